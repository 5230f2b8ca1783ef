#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include graph of shim/: a folder includes only itself and the folders before it, and no two units include each other in a circle.
KNOWN lists what is still wrong. It only shrinks: an entry that no file needs any more fails the test as well."""
import pathlib
import re
import sys

from tree import ROOT

SHIM = ROOT / "shim"
FOLDERS = ["guest", "process", "report", "cuda", "track", "failure", "exports"]
INCLUDE = re.compile(r'^#\s*include\s*"([^"]+)"', re.MULTILINE)
KNOWN = {
    ("cuda/compilers", "failure/observer"),
    ("cuda/driver_table", "failure/observer"),
}
# Units that may still include each other.
KNOWN_CIRCLES: set = set()


def unit(path: str) -> str:
    return re.sub(r"\.(?:cpp|c|h|S)$", "", path)


def main() -> int:
    upward, edges = set(), {}
    for path in sorted(SHIM.rglob("*")):
        if path.suffix not in {".cpp", ".c", ".h", ".S", ".in"} or "audit" in path.parts:
            continue
        name = str(path.relative_to(SHIM))
        folder = name.split("/")[0]
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if included.startswith("kshim/"):
                continue
            if included.split("/")[0] not in FOLDERS or not (SHIM / included).is_file():
                print(f"shim/{name}: {included} is not named by its folder")
                return 1
            if FOLDERS.index(included.split("/")[0]) > FOLDERS.index(folder):
                upward.add((unit(name), unit(included)))
            elif unit(included) != unit(name):
                edges.setdefault(unit(name), set()).add(unit(included))
    bad = [f"shim/{one} includes shim/{other}, which is in a folder above it" for one, other in sorted(upward - KNOWN)]
    bad += [f"({one!r}, {other!r}) is not needed in KNOWN any more" for one, other in sorted(KNOWN - upward)]
    found = circles(edges)
    bad += [f"a circle of includes: {' -> '.join(circle)}" for circle in found if not any(known >= set(circle) for known in KNOWN_CIRCLES)]
    bad += [f"{sorted(known)} is not needed in KNOWN_CIRCLES any more" for known in KNOWN_CIRCLES if not any(known >= set(circle) for circle in found)]
    print("\n".join(bad) if bad else f"{len(edges)} units in order, {len(KNOWN)} known arrows upward, {len(KNOWN_CIRCLES)} known circles")
    return 1 if bad else 0


def circles(edges: dict) -> list:
    """A circle for each unit that reaches itself, each circle once."""
    found, seen = [], set()
    for start in sorted(edges):
        trail, stack = {start: None}, [start]
        while stack:
            at = stack.pop()
            for after in sorted(edges.get(at, ())):
                if after == start:
                    circle = [at]
                    while trail[circle[-1]] is not None:
                        circle.append(trail[circle[-1]])
                    if frozenset(circle) not in seen:
                        seen.add(frozenset(circle))
                        found.append(circle[::-1] + [start])
                elif after not in trail:
                    trail[after] = at
                    stack.append(after)
    return found


if __name__ == "__main__":
    sys.exit(main())
