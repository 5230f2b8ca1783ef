#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of the kshim command: a folder of analyzer/ includes itself and the folders that stand before it here, nothing
else."""
import re
import sys

from tree import ROOT, tracked

LAYERS = ["core", "data", "device_code", "owner", "input", "diagnose", "advise", "verbs", "run", "say", "render", "compare", "export", "cli"]
INCLUDE = re.compile(r'^#\s*include\s*"analyzer/([^"]+)"', re.MULTILINE)


def arrows() -> set:
    """(file, included file) of each include that points up."""
    up = set()
    for path in tracked():
        name = str(path.relative_to(ROOT))
        if not name.startswith("analyzer/") or path.suffix not in (".h", ".cpp", ".def"):
            continue
        name = name[len("analyzer/"):]
        folder = name.split("/")[0]
        if folder not in LAYERS:
            raise SystemExit(f"analyzer/{name}: the folder {folder} has no place in LAYERS")
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if LAYERS.index(target.split("/")[0]) > LAYERS.index(folder):
                up.add((name, target))
    return up


def main() -> int:
    up = arrows()
    bad = [f"analyzer/{name} includes analyzer/{target}: it points up" for name, target in sorted(up)]
    print("\n".join(bad) if bad else f"{len(LAYERS)} layers in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
