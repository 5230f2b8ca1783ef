# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet from the sources, beside this build's command."""
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer/kshim"


def package(folder):
    """Puts the package together in `folder`, beside a version of its own, as a build gives it; where to import it from."""
    out = pathlib.Path(folder) / "fleet-package"
    if not out.exists():
        shutil.copytree(SOURCE / "python/kshim", out / "kshim")
        (out / "kshim/_version.py").write_text('version = "0.0"\n')
    return out


def run(folder, *arguments, cwd=None):
    environment = {**os.environ, "PYTHONPATH": str(package(folder)), "PATH": f"{KSHIM.parent}:{os.environ['PATH']}"}
    return subprocess.run([sys.executable, "-B", "-m", "kshim.fleet", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          check=False, env=environment, cwd=cwd, timeout=600)
