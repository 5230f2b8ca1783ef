#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is fetched while kshim is built is named by what it is: actions by commit, Python packages by hash, containers by digest.
No job whose token may write runs a script of the repository or a package manager."""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = re.compile(r"(?m)^(?!\s*#).*(?:\b(?:tools|\.ci|tests)/\w|\b(?:pip|apt-get|cmake|pytest|npm)\b)")


def jobs(text):
    """{name: text} of a workflow, by its indentation."""
    body = text.split("\njobs:\n", 1)[1] if "\njobs:\n" in text else ""
    parts = re.split(r"(?m)^  (?=[A-Za-z])", body)
    return {part.split(":", 1)[0]: part for part in parts if part.strip()}


def faults():
    workflows = [*sorted((SOURCE / ".github/workflows").glob("*.yml")), SOURCE / "docs/ci/github-actions.yml"]
    for path in workflows:
        text = path.read_text(encoding="utf-8")
        for action in re.findall(r"uses:\s*(\S+)", text):
            if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action):
                yield f"{path.name}: {action} is not named by its commit"
        for image in re.findall(r"(?m)^[ -]+(?:container|image):\s*(.+)$", text):
            if "@sha256:" not in image and image != "${{ matrix.image }}":
                yield f"{path.name}: {image} has no digest"
        if not re.search(r"(?m)^permissions:\n  contents: read$", text):
            yield f"{path.name}: the token may do more than read where a job does not say what"
        for name, job in jobs(text).items():
            writes = re.search(r"(?m)^      [a-z-]+: write", job)
            ran = SCRIPTS.search(job)
            if writes and ran:
                yield f"{path.name}: {name} has {writes[0].strip()} and runs {ran[0].strip()}"
            if "actions/checkout" in job and not writes and "persist-credentials: false" not in job:
                yield f"{path.name}: {name}: the checkout keeps its credentials"
    for path in (SOURCE / "tools").rglob("*"):
        if path.is_file() and not path.suffix:
            for line in path.read_text(encoding="utf-8").splitlines():
                if re.search(r"pip\"? install\b.* -r ", line) and "--require-hashes" not in line:
                    yield f"{path.name}: {line.strip()}"
    lists = [*(SOURCE / "tools").glob("requirements*.txt"), SOURCE / "tools/floor/zig.txt", SOURCE / "tools/floor/wheels.txt", SOURCE / "tools/floor/tried.txt"]
    done = subprocess.run([sys.executable, "-B", SOURCE / "tools/hash_requirements", "--check", *lists], stdout=subprocess.PIPE, text=True,
                          check=False)
    yield from done.stdout.splitlines()


def main():
    bad = list(faults())
    for fault in bad:
        print(f"FAILED: {fault}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
