# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet from the sources, beside this build's command."""
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer/kshim"


def run(folder, *arguments, cwd=None):
    """`folder`: where the package is put together, beside a version of its own, as a build gives it."""
    package = pathlib.Path(folder) / "fleet-package"
    if not package.exists():
        shutil.copytree(SOURCE / "python/kshim", package / "kshim")
        (package / "kshim/_version.py").write_text('version = "0.0"\n')
    environment = {**os.environ, "PYTHONPATH": str(package), "PATH": f"{KSHIM.parent}:{os.environ['PATH']}"}
    return subprocess.run([sys.executable, "-B", "-m", "kshim.fleet", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          check=False, env=environment, cwd=cwd, timeout=600)
