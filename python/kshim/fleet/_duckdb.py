# SPDX-License-Identifier: Apache-2.0
"""The lake: LAKE/TABLE/date=DAY/*.parquet, made and asked by DuckDB."""
import atexit
import json
import pathlib
import re
import shutil
import tempfile
from typing import Dict, Iterable, Optional

from .. import _files
from . import TABLES, Question

TYPES = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "date-time": "TIMESTAMP", "array": "VARCHAR[]"}


# What a file holds does not change from day to day.
OF_FILES = ("images", "serves", "plans")


class Missing(RuntimeError):
    """DuckDB is not installed, or a folder is not what it should be."""


def connect(memory: str = "2GB"):
    try:
        import duckdb
    except ImportError:
        raise Missing("DuckDB is not installed: pip install 'kshim[fleet]'") from None
    connection = duckdb.connect()
    spill = tempfile.mkdtemp(prefix="kshim-fleet-")  # the caller's alone: DuckDB's own names can be guessed
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


def _columns(table: str) -> str:
    return "{" + ", ".join(f"{quoted(column)}: {quoted(TYPES[kind])}" for column, kind in schema()[table].items()) + "}"


def _source(table: str, files: Iterable[pathlib.Path]) -> str:
    names = ", ".join(named(file) for file in files)
    return f"read_json([{names}], format='newline_delimited', columns={_columns(table)}, maximum_object_size=16777216, ignore_errors=true, filename=true)"


def ingest(facts: pathlib.Path, lake: pathlib.Path, memory: str = "2GB") -> Dict[str, int]:
    """Merges the tables of `facts` into the lake, day by day: of rows with one key the newest export's counts. Returns rows by table. A day
    is written beside, in a folder of its own, and renamed, so that a reader sees the old or the new one and no link is followed. A value
    that is not of its column's type is null; a line that is no row is left out."""
    if not any((facts / f"table={table}").is_dir() for table in TABLES):
        raise Missing(f"{facts}: holds no tables of `kshim export`")
    connection = connect(memory)
    rows = {}
    for table in TABLES:
        days: Dict[str, Dict[str, pathlib.Path]] = {}
        for folder in sorted((facts / f"table={table}").glob("date=*")):
            for path in folder.iterdir():
                if path.is_file() and not path.is_symlink() and path.name.endswith((".ndjson", ".ndjson.zst")) and not path.name.startswith("."):
                    days.setdefault("date=all" if table in OF_FILES else folder.name, {})[f"{folder.name}/{path.name}"] = path
        for name, files in days.items():
            day = lake / table / name
            if day.is_symlink() or day.parent.is_symlink():
                raise Missing(f"{day}: a link leads elsewhere; a lake has none")
            done = day / "ingested.json"
            known = set(json.loads(_files.text(str(done)))) if done.exists() else set()
            fresh = sorted((files[path] for path in set(files) - known), key=lambda path: (path.stat().st_mtime_ns, str(path)))
            if not fresh:
                continue
            day.mkdir(parents=True, exist_ok=True)
            whole = day / "rows.parquet"
            ages = ", ".join(f"({quoted(path)}, {age})" for age, path in enumerate(fresh, 1))
            query = (f"SELECT r.* EXCLUDE (filename), f.newness FROM {_source(table, fresh)} r "
                     f"JOIN (VALUES {ages}) f(name, newness) ON f.name = r.filename WHERE row_id IS NOT NULL")
            if whole.exists():
                query += f" UNION ALL BY NAME SELECT *, 0 AS newness FROM read_parquet({named(whole)}, hive_partitioning=false)"
            # A report of a file that was scanned before does not have its hash.
            known_hash = "if(build_id IS NULL, NULL, max(sha256) OVER (PARTITION BY row_id))"
            columns = "* EXCLUDE (newness)" + (f" REPLACE (coalesce(sha256, {known_hash}) AS sha256)" if table == "images" else "")
            with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=day) as temporary:
                partial, beside = pathlib.Path(temporary, "rows.parquet"), pathlib.Path(temporary, "ingested.json")
                connection.execute(
                    f"COPY (SELECT {columns} FROM ({query}) QUALIFY row_number() OVER (PARTITION BY row_id ORDER BY newness DESC) = 1) "
                    f"TO {quoted(partial)} (FORMAT parquet, COMPRESSION zstd)")
                beside.write_text(json.dumps(sorted(known | set(files))))
                partial.replace(whole)
                beside.replace(done)
            count = connection.execute(f"SELECT count(*) FROM read_parquet({named(whole)}, hive_partitioning=false)").fetchone()[0]
            rows[table] = rows.get(table, 0) + count
    return rows


def open_lake(lake: pathlib.Path, memory: str = "2GB"):
    """A connection with one view a table."""
    connection = connect(memory)
    if not any((lake / table).is_dir() for table in TABLES):
        raise Missing(f"{lake}: holds no tables; `python -m kshim.fleet ingest FACTS {lake}` makes them")
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
