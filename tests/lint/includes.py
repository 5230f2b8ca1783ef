#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What C++ files use of the standard library, they or headers of ours include. One standard header includes another with this
compiler and not with the next: GCC 13 no longer brings std::uint8_t with <string>."""
import functools
import os
import pathlib
import re
import sys

from tree import ROOT, tracked

HEADERS = {
    "algorithm": r"std::(?:sort|stable_sort|find|find_if|any_of|all_of|none_of|min|max|clamp|count|count_if|transform|copy|copy_n|equal|"
                 r"lower_bound|upper_bound|remove_if|unique|reverse|fill)\(",
    "array": r"std::array<",
    "atomic": r"std::atomic\b",
    "chrono": r"std::chrono\b",
    "cstdint": r"std::u?int(?:8|16|32|64|ptr)_t\b",
    "cstdlib": r"std::(?:getenv|strtou?ll?|abort|exit|malloc|free)\(",
    "cstring": r"std::(?:mem(?:cpy|cmp|set|chr|move)|str(?:len|n?cmp|error))\(",
    "deque": r"std::deque<",
    "filesystem": r"std::filesystem\b",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::function<",
    "map": r"std::(?:multi)?map<",
    "memory": r"std::(?:unique|shared|weak)_ptr<|std::make_(?:unique|shared)<",
    "mutex": r"std::(?:mutex|lock_guard|unique_lock|scoped_lock)\b",
    "optional": r"std::(?:optional|nullopt)\b",
    "regex": r"std::regex\b",
    "set": r"std::(?:multi)?set<",
    "span": r"std::span<",
    "sstream": r"std::[io]?stringstream\b",
    "stdexcept": r"std::(?:runtime_error|invalid_argument|logic_error|out_of_range)\b",
    "string": r"std::(?:string|to_string)\b",
    "string_view": r"std::string_view\b",
    "system_error": r"std::(?:error_code|errc|system_error)\b",
    "thread": r"std::thread\b",
    "unordered_map": r"std::unordered_map<",
    "unordered_set": r"std::unordered_set<",
    "variant": r"std::(?:variant|visit|get_if)\b",
    "vector": r"std::vector<",
}
USES = {header: re.compile(pattern) for header, pattern in HEADERS.items()}
INCLUDE = re.compile(r'^#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)


@functools.lru_cache(maxsize=None)
def text(name: str) -> str:
    return re.sub(r"//.*", "", (ROOT / name).read_text(encoding="utf-8"))


def included(name: str, known: frozenset, seen: set) -> set:
    """Headers from elsewhere that the file names, and those that headers of ours name for it."""
    seen.add(name)
    out = set()
    for system, own in INCLUDE.findall(text(name)):
        if system:
            out.add(system)
            continue
        below = str(pathlib.PurePath(name).parent / own)
        for path in (below, own, *(other for other in known if other.endswith("/" + own))):
            path = os.path.normpath(path)
            if path in known:
                if path not in seen:
                    out |= included(path, known, seen)
                break
    return out


def main() -> int:
    names = [str(path.relative_to(ROOT)) for path in tracked() if path.suffix in (".h", ".cpp")]
    known = frozenset(names)
    bad = []
    for name in names:
        have = included(name, known, set())
        bad += [f"{name}: uses {found.group()} without #include <{header}>" for header, pattern in USES.items()
                if header not in have and (found := pattern.search(text(name)))]
    print("\n".join(bad) if bad else f"{len(names)} files in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
