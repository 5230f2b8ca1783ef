#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of the kshim command: a folder of analyzer/ includes itself and the folders that stand before it here, nothing
else, and opens the namespace of its name alone. A type of another folder may be declared ahead. No file uses a whole namespace."""
import re
import sys

from tree import ROOT, tracked

LAYERS = ["core", "data", "device_code", "owner", "input", "diagnose", "say", "advise", "verbs", "run", "render", "compare", "cli"]
EXTENDS = {"core/text.h": "image"}  # names of versions and architectures, found by their argument
OPENED = re.compile(r"^namespace kshim(?:::(\w+))?[\w:]* \{\n((?:(?:class|struct) \w+;\n)+\})?", re.MULTILINE)
USES = re.compile(r"^\s*using namespace (?:kshim::)?(\w+);", re.MULTILINE)
INCLUDE = re.compile(r'^#\s*include\s*"analyzer/([^"]+)"', re.MULTILINE)


def check() -> list:
    """A sentence for each include that points up, and for each namespace of another folder."""
    bad = []
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if not name.startswith("analyzer/") or path.suffix not in (".h", ".cpp", ".def"):
            continue
        name = name[len("analyzer/"):]
        folder = name.split("/")[0]
        if folder not in LAYERS:
            raise SystemExit(f"analyzer/{name}: the folder {folder} has no place in LAYERS")
        text = path.read_text(encoding="utf-8")
        for target in INCLUDE.findall(text):
            if LAYERS.index(target.split("/")[0]) > LAYERS.index(folder):
                bad.append(f"analyzer/{name} includes analyzer/{target}: it points up")
        own = folder
        for space in USES.findall(text):
            if space in LAYERS:
                bad.append(f"analyzer/{name} uses namespace {space}: qualify its names, or import them one by one")
        for space, ahead in OPENED.findall(text):
            if space not in (own, EXTENDS.get(name)) and not ahead:
                bad.append(f"analyzer/{name} opens namespace kshim::{space}: this folder's is kshim::{own}")
    return bad


def main() -> int:
    bad = check()
    print("\n".join(sorted(bad)) if bad else f"{len(LAYERS)} layers in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
