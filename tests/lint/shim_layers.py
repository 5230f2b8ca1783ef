#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shim_layers.py [OBJECT...]: shim/'s folders only look up. The objects (shim/FOLDER/*.o) of a folder need no symbol that only a folder below
defines, and no file includes one of a folder below: what is inline has no symbol."""
import collections
import pathlib
import re
import subprocess
import sys

from tree import ROOT

SHIM = ROOT / "shim"
FOLDERS = ["guest", "process", "report", "cuda", "track", "failure", "core", "exports", "injection"]
INCLUDE = re.compile(r'^#\s*include\s*"([^"]+)"', re.MULTILINE)


def folder_of(path: str) -> str:
    return next(part for part in pathlib.PurePath(path).parts if part in FOLDERS)


def is_below(one: str, other: str) -> bool:
    return FOLDERS.index(one) > FOLDERS.index(other)


def upward_includes() -> list:
    bad = []
    for path in sorted(SHIM.rglob("*")):
        if path.suffix not in {".cpp", ".c", ".h", ".S", ".in"} or "audit" in path.parts:
            continue
        name = path.relative_to(SHIM)
        for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if included.startswith("kshim/"):
                continue
            if not (SHIM / included).is_file():
                bad.append(f"shim/{name}: {included} is not named by its folder")
            elif is_below(folder_of(included), folder_of(str(name))):
                bad.append(f"shim/{name} includes shim/{included}, which is in a folder below it")
    return bad


def upward_symbols(objects: list) -> list:
    defined, needed = collections.defaultdict(set), []
    for path in objects:
        name = path.split(".dir/")[-1]
        for line in subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout.splitlines():
            kind, symbol = line[17], line[19:]
            if kind == "U":
                needed.append((name, symbol))
            elif kind.isupper() and kind not in "VW":  # weak: inline in a header
                defined[symbol].add(folder_of(name))
    return [f"shim/{name} needs {symbol}, which shim/{sorted(defined[symbol])[0]}/ defines" for name, symbol in sorted(needed)
            if defined.get(symbol) and all(is_below(folder, folder_of(name)) for folder in defined[symbol])]


def main() -> int:
    objects = [path for argument in sys.argv[1:] for path in argument.split(";") if path]
    bad = upward_includes() + upward_symbols(objects)
    print("\n".join(bad) or f"{len(objects)} objects in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
