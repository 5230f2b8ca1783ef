#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that a machine can check, over every file git knows: license line, size, links between documents,
paths of somebody's machine."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST_FILE = 100 * 1024
# Rows of what kshim knows, a line each. A section stands in one file: a user's file replaces a section as a whole.
LARGEST_TABLE = 400 * 1024
TABLES = {"knowledge/wheels.json", "knowledge/messages.json", "knowledge/fixes.json", "tests/cases/threads_2025.jsonl"}
NO_COMMENTS = {".json", ".jsonl", ".log", ".values", ".txt", ".svg", ".bin", ""}
# Homes, and the folder of this very checkout: what a path copied from a terminal begins with. Not where that is /src.
HOME_PATH = re.compile(r"/(?:home|Users)/[a-z]\w*/|/root/" + (f"|{re.escape(str(ROOT))}\\b" if len(ROOT.parts) > 2 else ""))
MADE_UP_HOMES = {"/home/u/", "/home/me/", "/home/ada/", "/Users/ada/", "/home/bob/", "/home/lib/"}  # of our tests' people
ABOUT_HOMES = {"tests/unit/render/share_test.cpp", "tests/unit/report/redact_test.cpp"}  # tests of what shortens homes, root's among them
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def tracked() -> list:
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        print("skipped: not a git checkout")
        sys.exit(77)
    return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def problems(path: pathlib.Path):
    data = path.read_bytes()
    largest = LARGEST_TABLE if str(path.relative_to(ROOT)) in TABLES else LARGEST_FILE
    if len(data) > largest:
        yield f"{len(data)} bytes; files over {largest} stay out of the repository"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    needs_license = path.suffix not in NO_COMMENTS or text.startswith("#!")
    if needs_license and path.name != "LICENSE" and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield "no SPDX line in the first three"
    if path != pathlib.Path(__file__).resolve():
        for number, line in enumerate(lines, 1):
            found = HOME_PATH.search(line)
            if found and found.group() not in MADE_UP_HOMES and not (
                    found.group() == "/root/" and str(path.relative_to(ROOT)) in ABOUT_HOMES):
                yield f"line {number}: a path of somebody's machine: {found.group()}"
    if path.suffix == ".md":
        for target in LINK.findall(text):
            if "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
                yield f"link to {target}, which is not there"


def main() -> int:
    bad = [f"{path.relative_to(ROOT)}: {problem}" for path in tracked() for problem in problems(path)]
    print("\n".join(bad) if bad else f"{len(tracked())} files in order")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
