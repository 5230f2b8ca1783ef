#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/hostile-hosts.md names a test that is there, and that is not known to fail."""
import ast
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import known

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "hostile-hosts.md"


def tests(path):
    """{name: Class.test_name} of a script."""
    return {method.name[5:]: f"{node.name}.{method.name}" for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
            for method in node.body if isinstance(method, ast.FunctionDef) and method.name.startswith("test_")}


def main():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][2:]
    faults = [] if len(rows) > 20 else [f"{PAGE.name} has {len(rows)} rows"]
    for row in rows:
        found = re.search(r"\| `(?:hostile\.(\w+)|(tests/[\w/]+\.py))` (\w+) \|$", row)
        if not found:
            faults.append(f"no test in: {row}")
            continue
        script, path, name = found.groups()
        known_tests = tests(HERE / f"{script}.py" if script else ROOT / path)
        if name not in known_tests:
            faults.append(f"there is no test {name} in {script or path}")
        elif script and known.Known(f"hostile.{script}").how(known_tests[name]):
            faults.append(f"hostile.{script} {name} is known to fail, and the page says that it holds")
    for fault in faults:
        print("FAILED:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
