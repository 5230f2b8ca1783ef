#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kshim scan` writes of the folder that scan_fixture.py makes, in every format for pages and programs, against
tests/golden/scan/.

golden_scan.py --kshim PATH [--update]      compares, or renews
"""
import argparse
import difflib
import os
import subprocess
import sys
import tempfile

import scan_fixture
import shown

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWLEDGE = os.path.join(os.path.dirname(HERE), "knowledge")  # no new release changes what is expected


def scan(kshim, folder, output_format):
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "KSHIM_KNOWLEDGE": KNOWLEDGE}
    command = [kshim, "scan", "--target", "7.5,9.0", "--format", output_format, "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode != 1 or done.stderr:
        sys.exit(f"{' '.join(command)} exited with {done.returncode}, not 1\n{done.stderr.decode(errors='replace')}")
    return done.stdout.decode("utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kshim", required=True)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    differs = False
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        scan_fixture.make(folder)
        for output_format, name in shown.FILES.items():
            actual = scan(os.path.abspath(options.kshim), folder, output_format)
            actual = shown.shown(output_format, actual, folder)
            path = os.path.join(HERE, "scan", name)
            if options.update:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(actual)
                continue
            with open(path, encoding="utf-8") as file:
                expected = file.read()
            difference = list(difflib.unified_diff(expected.splitlines(), actual.splitlines(), f"tests/golden/scan/{name}", "now",
                                                   lineterm=""))
            print("\n".join(difference), end="\n" if difference else "")
            differs = differs or expected != actual
    if differs:
        print("where this is meant, tests/golden/update renews it; read the diff before you commit it")
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
