# SPDX-License-Identifier: Apache-2.0
"""Tables of kshim-facts/1 from lines of `kshim analyze --format jsonl`, by DuckDB's own reader of JSON."""
import hmac
import json
import pwd
from typing import Dict, NamedTuple, Optional

from .. import _files

LONGEST_LINE = 16 << 20

# What a line has, as far as tables need it. Numbers that a report may make as large as it likes are unsigned here and null in a table.
_IMAGES = "STRUCT(kind VARCHAR, arch VARCHAR, isa VARCHAR, \"count\" UBIGINT, bytes UBIGINT)[]"
_PACKAGE = "STRUCT(name VARCHAR, version VARCHAR)"
LINE = {
    "schema": "VARCHAR",
    "verdict": "VARCHAR",
    "devices": "STRUCT(ordinal UBIGINT, name VARCHAR, compute_capability VARCHAR, uuid VARCHAR, pci VARCHAR)[]",
    "processes": "STRUCT(report VARCHAR, host VARCHAR, pid BIGINT, rank UBIGINT, exe VARCHAR, argv VARCHAR[], failures UBIGINT, complete BOOLEAN, lost UBIGINT, "
                 "sample UBIGINT, exit_status BIGINT, term_signal BIGINT)[]",
    "findings": f"STRUCT(cause VARCHAR, severity VARCHAR, confidence DOUBLE, code BIGINT, build_id VARCHAR, object VARCHAR, package_info {_PACKAGE}, "
                "failed_kernel VARCHAR, need VARCHAR, have VARCHAR[], gpus STRUCT(compute_capability VARCHAR)[], hypothetical BOOLEAN, "
                "fixes STRUCT(id VARCHAR, commands VARCHAR[])[], \"where\" STRUCT(file VARCHAR, line UBIGINT), \"count\" UBIGINT)[]",
    "facts": "STRUCT(time VARCHAR, start UBIGINT, ppid UBIGINT, run VARCHAR, uid VARCHAR, hidden BOOLEAN, job VARCHAR, account VARCHAR, queue VARCHAR, "
             "shim VARCHAR, driver VARCHAR, kernel_module VARCHAR, simulated BOOLEAN, modules UBIGINT, compiler_status BIGINT, owner UBIGINT, "
             "\"foreign\" BOOLEAN, changed BIGINT, arrived BIGINT, "
             f"files STRUCT(path VARCHAR, build_id VARCHAR, images {_IMAGES}, package_info {_PACKAGE})[], "
             "loads STRUCT(file BIGINT, content_hash VARCHAR, device UBIGINT, result UBIGINT, jit BOOLEAN, selected VARCHAR, \"count\" UBIGINT, microseconds UBIGINT)[], "
             "failures STRUCT(id UBIGINT, finding BIGINT, stage VARCHAR, code BIGINT, name VARCHAR, kernel VARCHAR, file BIGINT, compute_capability VARCHAR, "
             "python_file VARCHAR, python_line UBIGINT, \"count\" UBIGINT)[], "
             "kernels STRUCT(kernel VARCHAR, file BIGINT, content_hash VARCHAR, launches UBIGINT)[], damage STRUCT(line UBIGINT, reason VARCHAR)[])",
    "rejected": "STRUCT(report VARCHAR, reason VARCHAR, owner UBIGINT)",
}
# A report may be a stranger's: only a time in UTC is a time, and another user's names no day that is not near its arrival.
_TIME = r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z"
_LINES = f"""
CREATE OR REPLACE TEMP TABLE line AS
WITH read AS (SELECT *, processes[1] AS process, if(facts."foreign", '.' || coalesce(o.key, ''), '') AS theirs,
                     if(regexp_full_match(facts.time, '{_TIME}'), try_cast(facts.time AS TIMESTAMP), NULL) AS time,
                     CASE WHEN facts.hidden AND (facts.uid IS NOT NULL OR NOT $keyed) THEN facts.uid
                          WHEN facts."foreign" OR facts.hidden OR u.name IS NULL THEN o.said ELSE u.said END AS person,
                     o.name AS owner_name, o.home AS owner_home
              FROM line_of_batch
              LEFT JOIN people o ON o.uid = facts.owner::VARCHAR
              LEFT JOIN people u ON u.uid = facts.uid)
SELECT verdict, devices, process, findings, facts, theirs, time, person, process.report AS report_path,
       hidden_path(process.report, owner_name, owner_home) AS report,
       concat(process.host, '.', process.pid, '.', facts.start, '.', facts.time, theirs) AS id,
       CASE WHEN time IS NULL THEN 'unknown'
            WHEN facts."foreign" AND time::DATE NOT BETWEEN to_timestamp(facts.arrived)::DATE - 31 AND to_timestamp(facts.arrived)::DATE + 1 THEN 'unknown'
            ELSE strftime(time, '%Y-%m-%d') END AS day,
       list_transform(facts.files, lambda f: {{'id': nullif(coalesce(f.build_id, f.path, ''), '') || theirs, 'path': f.path, 'build_id': f.build_id,
                                          'package': f.package_info.name, 'version': f.package_info.version}}) AS files
FROM read WHERE process IS NOT NULL AND facts IS NOT NULL AND (process.complete OR facts.changed <= $settled);
"""
# Each: the columns of its table that a line gives, the day, and `newer`: of rows with one row_id the largest counts.
_SELECTS = {
    "processes": """SELECT id, time, facts.run, process.host, process.pid, facts.ppid, process.rank, person, facts.job, facts.account, facts.queue, process.exe,
        process.argv, facts.shim, facts.driver, facts.kernel_module, facts.simulated, verdict, process.complete,
        coalesce(128 + process.term_signal, process.exit_status, facts.compiler_status), facts.modules, process.failures, process.lost, process.sample, report,
        day, facts.changed FROM line""",
    "devices": """SELECT concat(id, '/device', d.ordinal), id, d.ordinal, d.name, d.compute_capability, d.uuid, d.pci, day, changed
        FROM (SELECT id, day, facts.changed, unnest(devices) AS d FROM line)""",
    "loads": """SELECT concat(id, '/load/', file_id, '/', result, '/', if(jit, 'jit', 'sass')), id, file_id, min(file.path), min(file.package), min(file.version),
        if(count(device) = count(*) AND min(device) = max(device), min(device), NULL), result, jit,
        if(count(selected) = count(*) AND min(selected) = max(selected), min(selected), NULL), sum(loads), sum(microseconds) / 1000.0, any_value(day), any_value(changed)
        FROM (SELECT *, coalesce(file.id, content_hash) AS file_id FROM
              (SELECT id, day, changed, files[l.file + 1] AS file, l.content_hash, l.device, l.result, l.jit, l.selected, l."count" AS loads, l.microseconds
               FROM (SELECT id, day, files, facts.changed, unnest(facts.loads) AS l FROM line)))
        GROUP BY id, file_id, result, jit""",
    "failures": """SELECT concat(id, '/failure', f.id), id, if(f.finding IS NULL, NULL, concat(id, '/finding', f.finding)), time, findings[f.finding + 1].cause, f.stage,
        f.code, f.name, f.kernel, file.id, file.path, file.build_id, file.package, file.version, f.compute_capability, driver, f.python_file, f.python_line, f."count",
        day, changed
        FROM (SELECT *, files[f.file + 1] AS file FROM
              (SELECT id, day, time, files, findings, facts.driver, facts.changed, unnest(facts.failures) AS f FROM line))""",
    "findings": """SELECT concat(id, '/finding', number - 1), id, time, f.cause, f.severity, f.confidence, f.code, nullif(coalesce(f.build_id, f.object, ''), '') || theirs,
        f.object, f.package_info.name, f.package_info.version, f.failed_kernel, f.need, f.have, f.gpus[1].compute_capability, f.hypothetical, f.fixes[1].id,
        nullif(array_to_string(f.fixes[1].commands, chr(10)), ''), f."where".file, f."where".line, f."count", day, changed
        FROM (SELECT id, day, time, theirs, facts.changed, unnest(findings) AS f, generate_subscripts(findings, 1) AS number FROM line)""",
    "kernels": """SELECT concat(id, '/kernel', number - 1), id, k.kernel, coalesce(files[k.file + 1].id, k.content_hash), k.launches, day, changed
        FROM (SELECT id, day, files, facts.changed, unnest(facts.kernels) AS k, generate_subscripts(facts.kernels, 1) AS number FROM line)""",
    "rejected": """SELECT concat(path, ':', coalesce(line, 0)), path, nullif(line, 0), reason, $today, 0
        FROM (SELECT hidden_path(rejected.report, o.name, o.home) AS path, 0 AS line, rejected.reason AS reason
              FROM line_of_batch LEFT JOIN people o ON o.uid = rejected.owner::VARCHAR WHERE rejected IS NOT NULL
              UNION ALL SELECT report, d.line, d.reason FROM (SELECT report, unnest(facts.damage) AS d FROM line)
              UNION ALL SELECT report, 1, '`process`: `time` is not a UTC time; ignored' FROM line WHERE time IS NULL
              UNION ALL SELECT source, NULL, 'a line of it is no analysis with facts: write it with `kshim analyze --format jsonl`'
                        FROM line_of_batch WHERE rejected IS NULL AND (facts IS NULL OR schema IS DISTINCT FROM 'kshim-analysis/1'))""",
    "files": """SELECT file.id AS id, file.path, file.build_id, NULL AS sha256, file.package, file.version, images, facts.changed AS newer
        FROM (SELECT facts, unnest(files) AS file, unnest(list_transform(facts.files, lambda f: f.images)) AS images FROM line) WHERE images IS NOT NULL""",
}
_PARTS = r"'^(?:sm|compute|lto|tile)_(\d+)(\d)([af]?)$'"
# Of files, once: a file that many processes load is written once.
_OF_FILES = {
    "images": f"""SELECT concat(id, '/', i.kind, '/', i.arch, '/', i.isa), id, build_id, sha256, path, package, version, i.kind, i.arch,
        try_cast(regexp_replace(i.arch, {_PARTS}, '\\1.\\2') AS DOUBLE), nullif(regexp_extract(i.arch, {_PARTS}, 3), ''), i.isa, i."count", i.bytes, $today, newer
        FROM (SELECT *, unnest(images) AS i FROM file)""",
    "serves": f"""SELECT concat(id, '/', compute_capability), id, compute_capability, earliest, ['none', 'jit', 'sass'][1 + max(how)], $today, 0
        FROM (SELECT id, compute_capability, earliest, if(list_contains(runs, arch), 2, if(valid AND list_contains(compiles, arch), 1, 0)) AS how
              FROM (SELECT DISTINCT id, i.arch AS arch, i.kind <> 'ptx' OR coalesce(try_cast(string_split(i.isa, '.') AS INT[]) >= string_split(ptx.isa, '.')::INT[], true) AS valid
                    FROM (SELECT id, unnest(images) AS i FROM file) LEFT JOIN ptx ON ptx.arch = i.arch), gpu
              WHERE regexp_matches(arch, {_PARTS}))
        GROUP BY ALL""",
}


class Person(NamedTuple):
    said: Optional[str]  # in the column `user`
    key: str  # in the keys of another user's rows
    name: Optional[str]
    home: Optional[str]


class Hiding(NamedTuple):
    """KSHIM_PRIVATE, as the shim reads it: whether users are hidden, and the key of their hashes."""
    hides: bool = False
    key: bytes = b""

    @classmethod
    def of(cls, value: str) -> "Hiding":
        if value in ("", "0"):
            return cls()
        if value == "1":
            return cls(True)
        try:
            key = _files.text(value).encode().rstrip(b"\r\n")
        except OSError:
            key = b""
        if not 16 <= len(key) <= 4096:
            raise ValueError(f"KSHIM_PRIVATE: {value!r} is no key: name a file of 16 to 4096 bytes that can be read")
        return cls(True, key)

    def person(self, uid: str) -> Person:
        try:
            known = pwd.getpwuid(int(uid))
            name, home = known.pw_name, known.pw_dir
        except (KeyError, ValueError, OverflowError):
            name, home = None, None
        if not self.hides:
            return Person(name or uid, uid, name or (uid if uid.isdecimal() else None), None)
        hashed = hmac.new(self.key, uid.encode(), "sha256").hexdigest() if self.key else None
        return Person(hashed, hashed or "", name or (uid if uid.isdecimal() else None), home)


class Maker:
    """Makes the tables in a connection: `made_TABLE` has the columns of TABLE, `day` and `newer`."""

    def __init__(self, connection, tables: Dict[str, Dict[str, str]], known: dict, hiding: Hiding, today: str) -> None:
        self.connection, self.tables, self.hiding, self.today = connection, tables, hiding, today
        self.people: Dict[str, Person] = {}
        for table, columns in tables.items():
            rows = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f"CREATE TABLE made_{table} ({rows}, day VARCHAR, newer BIGINT)")
        connection.execute("CREATE TABLE file (id VARCHAR, path VARCHAR, build_id VARCHAR, sha256 VARCHAR, package VARCHAR, version VARCHAR, "
                           f"images {_IMAGES}, newer BIGINT)")
        connection.execute("CREATE TABLE people (uid VARCHAR, said VARCHAR, key VARCHAR, name VARCHAR, home VARCHAR)")
        connection.execute("CREATE TABLE gpu (compute_capability VARCHAR, earliest VARCHAR, runs VARCHAR[], compiles VARCHAR[])")
        connection.executemany("INSERT INTO gpu VALUES (?, ?, ?, ?)", [[row[name] for name in ("compute_capability", "earliest", "runs", "compiles")]
                                                                        for row in known["gpus"]])
        # PTX of an earlier version of its language than the first that knows the target is none.
        connection.execute("CREATE TABLE ptx (arch VARCHAR, isa VARCHAR)")
        connection.executemany("INSERT INTO ptx VALUES (?, ?)", list(known["ptx"].items()))
        connection.execute("CREATE MACRO hidden_path(path, name, home) AS " + (
            "array_to_string(list_transform(string_split(if(starts_with(path, home || '/'), '~' || substr(path, length(home) + 1), path), '/'), "
            "lambda x: if(x = name, '~', x)), '/')" if hiding.hides else "path"))

    def add_lines(self, source: str, settled: int) -> None:
        """`source`: as DuckDB reads it. `settled`: of reports without an end, those that changed after it are left out."""
        columns = "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in LINE.items()) + "}"
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE line_of_batch AS SELECT * EXCLUDE (filename), filename AS source FROM read_json({source}, format='newline_delimited', "
            f"columns={columns}, maximum_object_size={LONGEST_LINE}, ignore_errors=true, filename=true)")
        self._know_people()
        self.connection.execute(_LINES, {"keyed": bool(self.hiding.key), "settled": settled})
        for table, select in _SELECTS.items():
            self.connection.execute(f"INSERT INTO {'file' if table == 'files' else 'made_' + table} {self._cast(table, select)}",
                                    {"today": self.today} if "$today" in select else None)
        self._keep_each_file_once()

    def unsettled(self, settled: int) -> list:
        return [row[0] for row in self.connection.execute(
            "SELECT processes[1].report FROM line_of_batch WHERE NOT processes[1].complete AND facts.changed > ?", [settled]).fetchall()]

    def rejected(self) -> int:
        return self.connection.execute("SELECT count(*) FROM line_of_batch WHERE rejected IS NOT NULL").fetchone()[0]

    def add_document(self, document: dict, owner: Optional[int], changed: int) -> bool:
        """What `kshim scan` or `kshim analyze --format json` wrote; False where it is no such thing. `owner`: where it is another user's."""
        if not isinstance(document, dict) or document.get("schema") not in ("kshim-scan/1", "kshim-analysis/1"):
            return False
        theirs = "" if owner is None else "." + self.hiding.person(str(owner)).key
        rows = [row for row in document.get("objects") or [] if isinstance(row, dict) and isinstance(row.get("images"), list) and row.get("path")]
        files = []
        for row in rows:
            place = row["path"] + (f"/{row['member']}" if row.get("member") else "")
            name, _, version = (row.get("package") or "").rpartition(" ")
            package = row.get("package_info") or {"name": name or version, "version": version if name else None}
            images = [{key: image.get(key) for key in ("kind", "arch", "isa", "count", "bytes")} for image in row["images"] if isinstance(image, dict)]
            files.append({"id": (row.get("build_id") or place) + theirs, "path": place, "build_id": row.get("build_id"), "sha256": row.get("sha256"),
                          "package": package.get("name") or None, "version": package.get("version") or None, "images": images, "newer": (1 << 62) + changed})
        self._insert_files(files)
        for plan in document.get("fleet") or []:
            if not isinstance(plan, dict) or not plan.get("object"):
                continue
            key = (plan.get("build_id") or plan["object"]) + theirs
            archs = [row.get("arch") for row in (plan.get("smallest") or {}).get("archs") or [] if isinstance(row, dict)]
            self.connection.execute("INSERT INTO made_plans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [
                key, key, plan["object"], plan.get("gpus") or [], archs, plan.get("cmake"), plan.get("toolkits") or [], self.today, changed])
        self._keep_each_file_once()
        return True

    def reject(self, path: str, reason: str) -> None:
        self.connection.execute("INSERT INTO made_rejected VALUES (?, ?, NULL, ?, ?, 0)", [f"{path}:0", path, reason, self.today])

    def finish(self) -> None:
        for table, select in _OF_FILES.items():
            self.connection.execute(f"INSERT INTO made_{table} {self._cast(table, select)}", {"today": self.today})

    def _insert_files(self, rows: list) -> None:
        """All at once: a statement costs DuckDB 20 ms, a row next to nothing."""
        texts = ("id", "path", "build_id", "sha256", "package", "version")
        self.connection.execute(f"INSERT INTO file SELECT {', '.join(f'r->>{chr(39)}{name}{chr(39)}' for name in texts)}, (r->'images')::{_IMAGES}, (r->>'newer')::BIGINT "
                                "FROM (SELECT unnest(?::JSON[]) AS r)", [json.dumps(rows)])

    def _keep_each_file_once(self) -> None:
        self.connection.execute("CREATE OR REPLACE TABLE file AS SELECT * FROM file QUALIFY row_number() OVER (PARTITION BY id ORDER BY newer DESC, path) = 1")

    def _know_people(self) -> None:
        fresh = [row[0] for row in self.connection.execute(
            "SELECT DISTINCT uid FROM (SELECT facts.uid AS uid FROM line_of_batch UNION ALL SELECT facts.owner::VARCHAR FROM line_of_batch "
            "UNION ALL SELECT rejected.owner::VARCHAR FROM line_of_batch) WHERE uid IS NOT NULL AND uid NOT IN (SELECT uid FROM people)").fetchall()]
        if fresh:
            self.connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", [[uid, *self.hiding.person(uid)] for uid in fresh])

    def _cast(self, table: str, select: str) -> str:
        """With the types of the table; a number that its column does not hold is null."""
        if table == "files":
            return select
        columns = {**self.tables[table], "day": "VARCHAR", "newer": "BIGINT"}
        names = ", ".join(f'"{name}"' for name in columns)
        casts = ", ".join(f'try_cast("{name}" AS {kind})' for name, kind in columns.items())
        return f"SELECT {casts} FROM ({select}) AS made({names})"
