#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is as .clang-format says. Other versions of clang-format than 14 break lines differently: skipped."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    try:
        version = subprocess.run(["clang-format", "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        print("skipped: no clang-format")
        return 77
    if not re.search(r"version 14\.", version):
        print("skipped: not clang-format 14:", version.strip())
        return 77
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "*.cpp", "*.h"], stdout=subprocess.PIPE)
    files = [str(ROOT / name) for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    if not files:
        print("skipped: not a git checkout")
        return 77
    return subprocess.run(["clang-format", "--dry-run", "--Werror", *files]).returncode


if __name__ == "__main__":
    sys.exit(main())
