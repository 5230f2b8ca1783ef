#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/release --check: lets through what agrees, and names each thing that does not."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VERSION = "project(kshim VERSION 1.2.3 LANGUAGES CXX)\n"
CHANGES = "# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-01)\n\n- A line.\n"
# name, CMakeLists.txt, CHANGELOG.md, tag, a file that is not committed, what is said (none: all is well)
CASES = [
    ("agrees", VERSION, CHANGES, "v1.2.3", False, ""),
    ("another tag", VERSION, CHANGES, "v1.2.4", False, "no tag v1.2.3"),
    ("no tag", VERSION, CHANGES, None, False, "no tag v1.2.3"),
    ("a longer version", VERSION, CHANGES.replace("## 1.2.3 ", "## 1.2.30 "), "v1.2.3", False, "no section ## 1.2.3"),
    ("another dot", VERSION, CHANGES.replace("## 1.2.3 ", "## 1x2.3 "), "v1.2.3", False, "no section ## 1.2.3"),
    ("unreleased lines", VERSION, CHANGES.replace("Unreleased\n", "Unreleased\n\n- More.\n"), "v1.2.3", False, "1 lines under ## Unreleased"),
    ("changed", VERSION, CHANGES, "v1.2.3", True, "not committed"),
]


def check(folder, cmake, changes, tag, dirty):
    (folder / "tools").mkdir()
    shutil.copy(SOURCE / "tools/release", folder / "tools")
    (folder / "CMakeLists.txt").write_text(cmake)
    (folder / "CHANGELOG.md").write_text(changes)
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]) + ((["tag", tag],) if tag else ()):
        subprocess.run(git + arguments, check=True)
    if dirty:
        (folder / "more").write_text("")
    return subprocess.run([folder / "tools/release", "--check"], capture_output=True, text=True)


def main():
    if not shutil.which("git"):
        print("skipped: no git")
        return 77
    failed = False
    for name, cmake, changes, tag, dirty, says in CASES:
        with tempfile.TemporaryDirectory() as folder:
            done = check(pathlib.Path(folder), cmake, changes, tag, dirty)
        good = done.returncode == (1 if says else 0) and says in done.stderr
        print("good" if good else "FAILED", name, done.returncode, done.stderr.strip())
        failed = failed or not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
