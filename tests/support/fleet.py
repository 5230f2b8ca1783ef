# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet where DuckDB is, and the rows of a lake."""
import json
import os
import pathlib
import subprocess

from fleet_here import KSHIM, SOURCE, package  # noqa: F401

PYTHON = pathlib.Path(os.environ.get("KSHIM_FLEET_PYTHON", SOURCE / "build/deps/venv/bin/python3"))


def usable():
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import duckdb"], capture_output=True, check=False).returncode == 0


def command(*arguments):
    return [str(PYTHON), "-m", "kshim.fleet", *map(str, arguments)]


def environment(**changes):
    return {**os.environ, "PATH": f"{KSHIM.parent}:{os.environ['PATH']}", **changes}


def run(of, *arguments, status=0, env=None, **options):
    done = subprocess.run(command(*arguments), cwd=of, capture_output=True, text=True, check=False, env=environment(**(env or {})), **options)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


ROWS = """
import json, pathlib, sys
from kshim.fleet import TABLES, _duckdb, _write
lake = _duckdb.open_lake(pathlib.Path(sys.argv[1]))
for table in TABLES:
    answer = lake.execute(f"SELECT * EXCLUDE (date) FROM {table} ORDER BY ALL")
    names = [column[0] for column in answer.description]
    print(json.dumps([table, [dict(zip(names, row)) for row in answer.fetchall()]], default=_write._time))
"""


def rows(of, lake):
    """Those of each table."""
    done = subprocess.run([PYTHON, "-c", ROWS, lake], cwd=of, stdout=subprocess.PIPE, check=True, env=environment())
    return dict(json.loads(line) for line in done.stdout.splitlines())
