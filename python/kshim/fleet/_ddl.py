# SPDX-License-Identifier: Apache-2.0
"""The tables of kshim-facts/1 as statements for other engines."""
from . import TABLES
from ._duckdb import schema

TYPES = {
    "clickhouse": {"string": "Nullable(String)", "integer": "Nullable(Int64)", "number": "Nullable(Float64)", "boolean": "Nullable(Bool)",
                   "date-time": "Nullable(DateTime64(6, 'UTC'))", "array": "Array(String)"},
    "athena": {"string": "string", "integer": "bigint", "number": "double", "boolean": "boolean", "date-time": "timestamp", "array": "array<string>"},
    "iceberg": {"string": "STRING", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "date-time": "TIMESTAMP", "array": "ARRAY<STRING>"},
}
# A row that comes again replaces the earlier one.
ENDS = {
    "clickhouse": ") ENGINE = ReplacingMergeTree ORDER BY `row_id`",
    "athena": ") PARTITIONED BY (`date` string) STORED AS PARQUET LOCATION '{place}/{table}/'",
    "iceberg": ") USING iceberg LOCATION '{place}/{table}'",
}


def statements(engine: str, place: str):
    """One CREATE a table. `place`: where the lake lies, for engines that read it there."""
    place = place.rstrip("/").replace("'", "''")
    for table in TABLES:
        rows = ",\n".join(f"  `{name}` {'String' if engine == 'clickhouse' and name == 'row_id' else TYPES[engine][kind]}"
                          for name, kind in schema()[table].items())
        begin = "CREATE EXTERNAL TABLE IF NOT EXISTS" if engine == "athena" else "CREATE TABLE IF NOT EXISTS"
        yield f"{begin} {table} (\n{rows}\n{ENDS[engine].format(place=place, table=table)};"
