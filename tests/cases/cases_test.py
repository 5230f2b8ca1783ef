#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases, where they are here: shared/cases/cases.jsonl beside the checkout, or KSHIM_CASES; and the page that they are told on."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer" / "kshim"

cases = next((path for path in (os.environ.get("KSHIM_CASES"), ROOT / "shared/cases/cases.jsonl", ROOT.parent / "shared/cases/cases.jsonl")
              if path and os.path.exists(path)), None)
if cases is None:
    print("skipped: no cases here; KSHIM_CASES names their file")
    sys.exit(77)
sys.exit(subprocess.run([sys.executable, "-B", ROOT / "tests/cases/cases.py", "--kshim", KSHIM, cases], check=False).returncode)
