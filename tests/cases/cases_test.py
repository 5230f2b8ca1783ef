#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate of `kshim explain` (cases.py)."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer" / "kshim"

sys.exit(subprocess.run([sys.executable, "-B", HERE / "cases.py", "--kshim", KSHIM], check=False).returncode)
