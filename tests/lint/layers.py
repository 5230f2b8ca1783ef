#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of the kshim command: a folder of analyzer/ includes itself and the folders that stand before it here, nothing
else. KNOWN lists the includes that still point up; it only gets shorter: an entry that is no longer needed is an error too."""
import re
import sys

from tree import ROOT, tracked

LAYERS = ["core", "data", "device_code", "owner", "input", "diagnose", "advise", "verbs", "run", "say", "render", "compare", "export", "cli"]
INCLUDE = re.compile(r'^#\s*include\s*"analyzer/([^"]+)"', re.MULTILINE)
KNOWN = {
    ("diagnose/compiled_out.cpp", "verbs/report_findings.h"),
    ("diagnose/coverage_gaps.cpp", "verbs/report_findings.h"),
    ("diagnose/jit_tax.cpp", "verbs/report_findings.h"),
    ("diagnose/latent_gaps.cpp", "verbs/report_findings.h"),
    ("diagnose/library_findings.cpp", "advise/library_fixes.h"),
    ("diagnose/library_findings.cpp", "advise/program.h"),
    ("diagnose/library_findings.cpp", "verbs/report_findings.h"),
    ("diagnose/log_diagnosis.h", "verbs/explain.h"),
    ("diagnose/places.h", "advise/advice.h"),
    ("diagnose/scan_coverage.h", "verbs/scan.h"),
    ("diagnose/scene.h", "verbs/analysis.h"),
    ("input/files/kernel_needs.h", "verbs/scan.h"),
    ("input/files/object.cpp", "diagnose/scan_coverage.h"),
    ("input/files/object.cpp", "verbs/scan_findings.h"),
    ("input/files/object.h", "verbs/scan.h"),
    ("say/verdict_line.h", "render/page.h"),
    ("verbs/explain.cpp", "render/finding_text.h"),
    ("verbs/explain.cpp", "say/log_titles.def"),
}


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
    bad = [f"analyzer/{name} includes analyzer/{target}: it points up" for name, target in sorted(up - KNOWN)]
    bad += [f"{name} -> {target} is gone: take it out of KNOWN in layers.py" for name, target in sorted(KNOWN - up)]
    print("\n".join(bad) if bad else f"{len(LAYERS)} layers in order but for {len(KNOWN)} known includes")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
