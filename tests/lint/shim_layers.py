#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include graph of shim/: a folder includes only itself and the folders before it, and no two units include each other in a circle."""
import pathlib
import re
import sys

from tree import ROOT

SHIM = ROOT / "shim"
FOLDERS = ["guest", "process", "report", "cuda", "track", "failure", "core", "exports", "injection"]
INCLUDE = re.compile(r'^#\s*include\s*"([^"]+)"', re.MULTILINE)


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
    bad = [f"shim/{one} includes shim/{other}, which is in a folder above it" for one, other in sorted(upward)]
    bad += [f"a circle of includes: {' -> '.join(circle)}" for circle in circles(edges)]
    print("\n".join(bad) or f"{len(edges)} units in order")
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
