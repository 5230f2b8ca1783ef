#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release-packages: the same bytes twice, and what is in the packages. Needs what tools/release-build leaves."""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
ARCH = platform.machine()


def packages(folder):
    subprocess.run([SOURCE / "tools/release-packages", "--archives", ARCH], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "KSHIM_DIST": str(folder)})
    return {path.name: path for path in sorted((folder / ARCH / "dist").iterdir())}


def main():
    if not (SOURCE / "build/floor" / ARCH / "build/analyzer/kshim").exists() or not shutil.which("dpkg-deb"):
        print("skipped: no release build (tools/release-build), or no dpkg-deb")
        return 77
    bad = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = packages(pathlib.Path(one))
        time.sleep(1.1)  # times in archives are whole seconds: another one must not show
        second = packages(pathlib.Path(other))
        if list(first) != list(second) or len(first) != 5:
            bad.append(f"{list(first)} and {list(second)}")
        bad += [f"{name} differs" for name in first if first[name].read_bytes() != second[name].read_bytes()]
        names = {}
        for name, path in first.items():
            if name.endswith(".tar.gz"):
                with tarfile.open(path) as archive:
                    names[name] = {member.name.split("/", 1)[-1] for member in archive}
                    bad += [f"{name}: {member.name} belongs to {member.uid}" for member in archive if member.uid != 0]
            elif name.endswith(".deb"):
                listing = subprocess.run(["dpkg-deb", "--contents", path], check=True, capture_output=True, text=True).stdout
                names[name] = {line.split()[5].removeprefix("./usr/") for line in listing.splitlines()}
        wanted = {"kshim": ("bin/kshim", "lib/libkshim.so", "lib/libkshim-audit.so", "share/doc/kshim/LICENSES.md"),
                  "kshim-simulator": ("lib/kshim/sim/libcuda.so.1", "lib/kshim/sim/libnvidia-ml.so.1")}
        for name, members in names.items():
            simulator = name.startswith("kshim-simulator")
            bad += [f"{name}: no {member}" for member in wanted["kshim-simulator" if simulator else "kshim"] if member not in members]
            bad += [f"{name}: {member}" for member in wanted["kshim" if simulator else "kshim-simulator"] if member in members]
    print("\n".join(f"FAILED: {line}" for line in bad) or f"the same twice: {', '.join(first)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
