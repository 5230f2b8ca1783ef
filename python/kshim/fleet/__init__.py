# SPDX-License-Identifier: Apache-2.0
"""Questions about a fleet, answered by DuckDB from tables of what reports say. Needs the extra kshim[fleet].

    python -m kshim.fleet ingest REPORTS... LAKE         what is new in reports, as Parquet: one file per table and day
    python -m kshim.fleet ask LAKE QUESTION [NAME=VALUE...]
    python -m kshim.fleet sql LAKE "select ..."
    python -m kshim.fleet questions
    python -m kshim.fleet report LAKE > fleet.html
    python -m kshim.fleet tables clickhouse|athena|iceberg [PLACE]

Without DuckDB, from what `kshim` says of files and reports:

    python -m kshim.fleet requirements --to nvidia-require|nfd|wheel-variant|conda FILE...
    python -m kshim.fleet requirements --verify PACKAGE...
    python -m kshim.fleet openmetrics REPORTS... > kshim.prom
"""
import pathlib
import re
from typing import Dict, List, NamedTuple

TABLES = ("processes", "devices", "images", "serves", "plans", "loads", "failures", "findings", "kernels", "rejected")


class Question(NamedTuple):
    """A file of sql/: its first comment is the question, the next ones `-- :NAME TYPE default VALUE: meaning`."""
    name: str
    title: str
    sql: str
    parameters: Dict[str, "Parameter"]


class Parameter(NamedTuple):
    type: str
    default: str
    meaning: str


def questions() -> List[Question]:
    """The questions that come with kshim, in the order of their files' names."""
    return [read_question(path) for path in sorted((pathlib.Path(__file__).parent / "sql").glob("*.sql"))]


def read_question(path: pathlib.Path) -> Question:
    text = path.read_text(encoding="utf-8")
    comments = re.findall(r"^-- (?!SPDX)(.+)$", text, re.M)
    parameters = {}
    for line in comments[1:]:
        found = re.match(r":(\w+) (\w+) default (.*?): (.+)", line)
        if found:
            parameters[found[1]] = Parameter(found[2], found[3], found[4])
    sql = re.sub(r"^--.*\n", "", text, flags=re.M).strip().rstrip(";")
    return Question(path.stem, comments[0], sql, parameters)
