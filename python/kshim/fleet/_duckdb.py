# SPDX-License-Identifier: Apache-2.0
"""The lake: LAKE/TABLE/date=DAY/rows.parquet, asked by DuckDB."""
import atexit
import json
import pathlib
import re
import shutil
import tempfile
from typing import Dict, Optional

from .. import _files
from . import TABLES, Question

TYPES = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "date-time": "TIMESTAMP", "array": "VARCHAR[]"}


# What a file holds does not change from day to day.
OF_FILES = ("images", "serves", "plans")


class Missing(RuntimeError):
    """DuckDB is not installed, or a folder is not what it should be."""


def connect(memory: str = "2GB", on_disk: bool = False):
    try:
        import duckdb
    except ImportError:
        raise Missing("DuckDB is not installed: pip install 'kshim[fleet]'") from None
    spill = tempfile.mkdtemp(prefix="kshim-fleet-")  # the caller's alone: DuckDB's own names can be guessed
    connection = duckdb.connect(f"{spill}/made.duckdb" if on_disk else ":memory:")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    connection.execute(f"SET memory_limit='{memory}'; SET TimeZone='UTC'; SET preserve_insertion_order=false; "
                       f"SET temp_directory={quoted(spill)}")
    return connection


def schema() -> Dict[str, Dict[str, str]]:
    """The columns of kshim-facts/1 by table, each with the format of its texts or the type that JSON Schema has for it."""
    tables = json.loads(_files.text(str(pathlib.Path(__file__).parent / "facts.json")))
    return {table: {name: about.get("format", about["type"][0]) for name, about in columns["properties"].items()} for table, columns in tables.items()}


def quoted(text) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def named(path) -> str:
    """A file's name for DuckDB, which takes such names for patterns."""
    return quoted(re.sub(r"([*?\[])", r"[\1]", str(path)))


def open_lake(lake: pathlib.Path, memory: str = "2GB"):
    """A connection with one view a table."""
    connection = connect(memory)
    if not any((lake / table).is_dir() for table in TABLES):
        raise Missing(f"{lake}: holds no tables; `python -m kshim.fleet ingest REPORTS... {lake}` makes them")
    for table in TABLES:
        columns = schema()[table]
        if any((lake / table).glob("date=*/rows.parquet")):
            source = f"SELECT * FROM read_parquet({named(lake / table)[:-1]}/date=*/rows.parquet', union_by_name=true, hive_partitioning=true)"
        else:
            source = "SELECT " + ", ".join(f"NULL::{TYPES[kind]} AS {column}" for column, kind in columns.items()) + ", NULL::VARCHAR AS date WHERE false"
        connection.execute(f"CREATE VIEW {table} AS {source}")
    return connection


def bound(question: Question, given: Dict[str, str]) -> Dict[str, object]:
    """Values of the question's parameters; ValueError names what is wrong."""
    unknown = sorted(set(given) - set(question.parameters))
    if unknown:
        known = ", ".join(question.parameters) or "none"
        raise ValueError(f"{question.name} has no parameter `{unknown[0]}`; it has: {known}")
    kinds = {"text": str, "integer": int, "number": float}
    values = {}
    for name, parameter in question.parameters.items():
        text = given.get(name, parameter.default)
        try:
            values[name] = kinds[parameter.type](text)
        except ValueError:
            raise ValueError(f"{name}: `{text}` is not of type {parameter.type}") from None
    return values


def ask(connection, question: Question, given: Optional[Dict[str, str]] = None):
    values = bound(question, given or {})
    sql = re.sub(r":(\w+)\b", lambda found: "$" + found[1] if found[1] in values else found[0], question.sql)
    return connection.execute(sql, values or None)
