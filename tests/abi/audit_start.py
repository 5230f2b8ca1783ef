# SPDX-License-Identifier: Apache-2.0
"""libkshim-audit.so reads libkshim.so as this build's linker laid it out: programs start under both as without."""
import os
import subprocess
import sys


def main():
    audit, shim = sys.argv[1:]
    failed = False
    for command in (["/bin/sh", "-c", "echo here; exit 5"], [sys.executable, "-c", "import ctypes; print('here'); raise SystemExit(5)"]):
        for settings in ({"LD_AUDIT": audit}, {"LD_AUDIT": audit, "LD_PRELOAD": shim}):
            done = subprocess.run(command, env={"PATH": os.environ["PATH"], **settings}, capture_output=True, text=True)
            good = (done.returncode, done.stdout, done.stderr) == (5, "here\n", "")
            print("good" if good else "FAILED:", command[0], sorted(settings), done.returncode, done.stdout, done.stderr)
            failed = failed or not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
