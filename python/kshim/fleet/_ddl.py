# SPDX-License-Identifier: Apache-2.0
"""The tables of kshim-facts/1 as statements for other engines."""
from . import TABLES
from ._duckdb import schema

TYPES = {
    "clickhouse": {"text": "Nullable(String)", "integer": "Nullable(Int64)", "number": "Nullable(Float64)", "boolean": "Nullable(Bool)",
                   "time": "Nullable(DateTime64(6, 'UTC'))", "texts": "Array(String)"},
    "athena": {"text": "string", "integer": "bigint", "number": "double", "boolean": "boolean", "time": "timestamp", "texts": "array<string>"},
    "iceberg": {"text": "STRING", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "time": "TIMESTAMP", "texts": "ARRAY<STRING>"},
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
        columns = schema()[table]["columns"]
        rows = ",\n".join(f"  `{name}` {'String' if engine == 'clickhouse' and name == 'row_id' else TYPES[engine][row['type']]}"
                          for name, row in columns.items())
        begin = "CREATE EXTERNAL TABLE IF NOT EXISTS" if engine == "athena" else "CREATE TABLE IF NOT EXISTS"
        yield f"{begin} {table} (\n{rows}\n{ENDS[engine].format(place=place, table=table)};"
