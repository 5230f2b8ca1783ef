#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every client of route_table.py on the simulator, on a device on which it works and on one on which it does not, with
and without the shim, and checks that the shim saw the load, the failure, the kernel and the file, for a Python client the line
of its script, and that the client saw nothing of the shim: same output, same exit status, same driver calls with the same
results (several threads: see client_runs.differences()).

  ctest --test-dir build/dev -R clients.routes -V                         as a test
  tools/clients --torch --table                                                 makes docs/internals/routes.md
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import client_checks
import e2e
import route_page
import route_table
from client_runs import BUILD, SHIM, SIMULATOR


def can_compile():
    asked = subprocess.run([route_table.PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
                           capture_output=True, text=True, check=False)
    compiler = any(map(shutil.which, (os.environ.get("CC", "gcc"), "gcc", "clang")))
    return bool(compiler) and pathlib.Path(asked.stdout.strip(), "Python.h").exists()


def missing_parts(route):
    """Why a row cannot be run here; None if it can."""
    if route.script and not route.argv[0].exists():
        option = " --torch" if route.argv[0] == route_table.TORCH else ""
        return f"not fetched: tools/clients{option} does it"
    if route.compiles and not can_compile():
        return "no C compiler, or no Python.h: Triton builds its launcher here (python3-dev)"
    missing = [str(word) for word in [*route.argv, *route.needs] if isinstance(word, pathlib.Path) and not (BUILD / word).exists()]
    return f"not built: {', '.join(missing)}" if missing else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="docs/internals/routes.md on stdout")
    parser.add_argument("--cuda-lib", help="folder of the toolkit's libraries")
    parser.add_argument("--nvcc", default="nvcc", help="the toolkit's compiler, for its version")
    parser.add_argument("--only", default="", help="rows whose route or client has this text")
    options = parser.parse_args()
    e2e.require(SHIM, SIMULATOR / "libcuda.so.1")
    runtimes = route_table.found_runtimes()
    failed, rows, skipped = 0, [], []
    say = sys.stderr if options.table else sys.stdout
    for route in route_table.routes(runtimes):
        title = f"{route.name}: {route.client}"
        if options.only and options.only not in title:
            continue
        why_not = missing_parts(route)
        if why_not:
            skipped.append(title)
            print(f"skipped: {title}: {why_not}", file=say, flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="kshim-clients-") as folder:
            found = client_checks.check(route, folder)
        problems = [f"{column}: {problem}" for column, each in found.items() for problem in each]
        failed += bool(problems)
        rows.append(route_page.table_row(route, found))
        print(f"{'FAILED' if problems else 'ok'}: {title}", file=say, flush=True)
        for problem in problems:
            print(f"  {problem}", file=sys.stderr, flush=True)
    if options.table:
        route_page.write(rows, skipped, options.nvcc, options.cuda_lib, runtimes)
    print(f"{len(rows)} routes, {failed} failed, {len(skipped)} skipped", file=sys.stderr)
    if not rows:
        print("skipped: no client was built", file=say)
        return e2e.SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
