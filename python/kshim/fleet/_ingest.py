# SPDX-License-Identifier: Apache-2.0
"""Reports, and what `kshim` said of reports and files, into a lake: what is new since the last time, day by day."""
import array
import bisect
import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import stat
import subprocess
import tempfile
import time
from typing import Dict, Iterator, List, NamedTuple, Sequence

from .. import _files
from . import TABLES, _command
from ._duckdb import OF_FILES, TYPES, Missing, connect, named, quoted, schema
from ._tables import LONGEST_LINE, Hiding, Maker

LINES = (".analyses.jsonl", ".analyses.jsonl.gz", ".analyses.jsonl.zst")  # lines of `kshim analyze --format jsonl`
MOST_REPORTS, MOST_BYTES = 16384, 64 << 20  # of a batch
MOST_ARGUMENTS = 1 << 20
MOST_DAYS = 128  # each is a folder in every table; further ones are `unknown`
MOST_DOCUMENT = 1 << 30


class Input(NamedTuple):
    path: str
    size: int
    changed: int  # nanoseconds
    owner: int

    def key(self) -> int:
        text = f"{self.path}\n{self.size}\n{self.changed}".encode("utf-8", "surrogateescape")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class Done(NamedTuple):
    rows: Dict[str, int]  # by table, that the lake has now, of those that changed
    reports: int
    known: int
    unsettled: int
    rejected: int


def kind_of(name: str) -> str:
    if name.endswith(LINES):
        return "lines"
    return "report" if name.endswith(".jsonl") and name != ".jsonl" else ""


def inputs(paths: Sequence[str]) -> Iterator[Input]:
    """What is named, and every report and file of lines below a folder, each once. Links to folders are not followed."""
    seen = set()
    for path in sorted({os.path.abspath(path) for path in paths}):
        if not os.path.isdir(path):
            yield looked_at(path)
            continue
        for folder, folders, names in os.walk(path, onerror=lambda error: print(f"kshim.fleet: {error}", flush=True)):
            folders.sort()
            if folder in seen:
                folders.clear()
                continue
            seen.add(folder)
            for name in sorted(names):
                if kind_of(name) and os.path.join(folder, name) not in paths:
                    yield looked_at(os.path.join(folder, name))


def looked_at(path: str) -> Input:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if not os.path.islink(path):
            raise Missing(f"{path}: is not there") from None
        return Input(path, 0, 0, os.lstat(path).st_uid)
    return Input(path, found.st_size if stat.S_ISREG(found.st_mode) else 0, found.st_mtime_ns, found.st_uid)


class Ingestion:
    def __init__(self, lake: pathlib.Path, memory: str, settle: int) -> None:
        self.lake, self.settled = lake, int(time.time()) - settle
        self.connection = connect(memory, on_disk=True)
        self.today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        self.taken = array.array("Q")
        self.reports = self.unsettled = self.known_again = self.rejected = 0
        columns = {table: {name: TYPES[kind] for name, kind in columns.items()} for table, columns in schema().items()}
        known = _command.answer("scan", "--list-gpus", "--format", "json")
        self.maker = Maker(self.connection, columns, known, Hiding.of(os.environ.get("KSHIM_PRIVATE", "")), self.today)
        self.known = array.array("Q")
        # What another user's manifest names as known is not read.
        manifests = [path for path in lake.glob("manifest/*.parquet") if os.lstat(path).st_uid in (0, os.geteuid())]
        if manifests:
            rows = self.connection.execute(f"SELECT key FROM read_parquet([{', '.join(map(named, manifests))}]) ORDER BY key")
            while some := rows.fetchmany(65536):
                self.known.extend(key for key, in some)

    def is_known(self, key: int) -> bool:
        at = bisect.bisect_left(self.known, key)
        return at < len(self.known) and self.known[at] == key

    def take(self, paths: Sequence[str]) -> None:
        batch: List[Input] = []
        size = arguments = 0
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kshim-fleet-"))
            running = None
            for one in inputs(paths):
                if self.is_known(one.key()):
                    self.known_again += 1
                elif one.path.endswith(".json"):
                    self.take_document(one)
                elif kind_of(one.path) == "lines":
                    self.maker.add_lines(named(one.path), 1 << 62)
                    self.taken.append(one.key())
                    self.reports += 1
                else:
                    length = len(os.fsencode(one.path)) + 1
                    if batch and (len(batch) == MOST_REPORTS or size + one.size > MOST_BYTES or arguments + length > MOST_ARGUMENTS):
                        running = self.turn(running, batch, folder)
                        batch, size, arguments = [], 0, 0
                    batch.append(one)
                    size, arguments = size + one.size, arguments + length
            if batch:
                running = self.turn(running, batch, folder)
            if running:
                self.add(*running)

    def turn(self, before, batch: List[Input], folder: str):
        """Starts to read a batch, and adds the one before it meanwhile."""
        descriptor, path = tempfile.mkstemp(suffix=".jsonl", dir=folder)
        with open(descriptor, "wb") as out:
            command = [_command.command(), "analyze", "--format", "jsonl", "--full", *(one.path for one in batch)]
            running = subprocess.Popen(command, stdout=out)
        if before:
            self.add(*before)
        return running, batch, path

    def add(self, running: subprocess.Popen, batch: List[Input], path: str) -> None:
        status = running.wait()
        if status not in (0, 1, 3):
            raise _command.Refused(f"`kshim analyze` ended with {status}", 3)
        self.drop_long_lines(path)
        self.maker.add_lines(named(path), self.settled)
        left = set(self.maker.unsettled(self.settled))
        self.taken.extend(one.key() for one in batch if one.path not in left)
        self.unsettled += len(left)
        self.reports += len(batch) - len(left)
        self.rejected += self.maker.rejected()
        os.unlink(path)

    def drop_long_lines(self, path: str) -> None:
        """DuckDB ends at a line that is longer than it expects."""
        if os.path.getsize(path) <= LONGEST_LINE:
            return
        with open(path, "rb") as lines:
            long = [line for line in lines if len(line) > LONGEST_LINE // 2]
        if not long:
            return
        with open(path, "rb") as lines, open(f"{path}.short", "wb") as out:
            out.writelines(line for line in lines if len(line) <= LONGEST_LINE // 2)
        os.replace(f"{path}.short", path)
        for line in long:
            self.maker.reject(json.loads(line)["processes"][0]["report"], f"its analysis has more than {LONGEST_LINE >> 21} MiB")

    def take_document(self, one: Input) -> None:
        try:
            with _files.open_to_read(one.path) as file:
                document = json.loads(file.read(MOST_DOCUMENT))
        except (OSError, ValueError):
            document = None
        theirs = one.owner not in (0, os.geteuid())
        if os.path.islink(one.path) and os.lstat(one.path).st_uid not in (0, os.geteuid()):
            document = None
        if not self.maker.add_document(document, one.owner if theirs else None, one.changed // 10**9):
            self.maker.reject(one.path, "is no JSON of `kshim scan` or `kshim analyze`")
            self.rejected += 1
        self.taken.append(one.key())
        self.reports += 1

    def finish(self) -> Dict[str, int]:
        self.maker.finish()
        rows = {}
        for table in TABLES:
            made = f"made_{table}"
            days = [name for name, in self.connection.execute(f"SELECT day FROM {made} GROUP BY day ORDER BY count(*) DESC, day DESC").fetchall()]
            if table in OF_FILES:
                groups = {"all": "true"} if days else {}
            else:
                apart = [day for day in days if day != "unknown"][:MOST_DAYS]
                groups = {day: f"day = {quoted(day)}" for day in apart}
                if len(apart) < len(days):
                    groups["unknown"] = f"day NOT IN ({', '.join(map(quoted, apart)) or quoted('')})"
            for day, where in groups.items():
                rows[table] = rows.get(table, 0) + self.merge(table, day, f"SELECT * EXCLUDE (day) FROM {made} WHERE {where}")
        if self.taken:
            self.write_manifest()
        return rows

    def merge(self, table: str, name: str, fresh: str) -> int:
        """Into a day of a table: of rows with one key the newest counts. A day is written beside, in a folder of its own, and renamed, so that a
        reader sees the old or the new one and no link is followed."""
        day = self.lake / table / f"date={name}"
        if day.is_symlink() or day.parent.is_symlink():
            raise Missing(f"{day}: a link leads elsewhere; a lake has none")
        day.mkdir(parents=True, exist_ok=True)
        whole = day / "rows.parquet"
        query = f"SELECT *, 1 AS is_new FROM ({fresh})"
        if whole.exists():
            query += f" UNION ALL BY NAME SELECT *, 0 AS newer, 0 AS is_new FROM read_parquet({named(whole)}, hive_partitioning=false)"
        # A report of a file that was scanned before does not have its hash.
        known_hash = "if(build_id IS NULL, NULL, max(sha256) OVER (PARTITION BY row_id))"
        columns = "* EXCLUDE (newer, is_new)" + (f" REPLACE (coalesce(sha256, {known_hash}) AS sha256)" if table == "images" else "")
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=day) as temporary:
            partial = pathlib.Path(temporary, "rows.parquet")
            count = self.connection.execute(
                f"COPY (SELECT {columns} FROM ({query}) QUALIFY row_number() OVER (PARTITION BY row_id ORDER BY is_new DESC, newer DESC) = 1) "
                f"TO {quoted(partial)} (FORMAT parquet, COMPRESSION zstd)").fetchone()[0]
            partial.replace(whole)
        return count

    def write_manifest(self) -> None:
        folder = self.lake / "manifest"
        if folder.is_symlink():
            raise Missing(f"{folder}: a link leads elsewhere; a lake has none")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as temporary:
            plain, partial = pathlib.Path(temporary, "keys.csv"), pathlib.Path(temporary, "keys.parquet")
            with open(plain, "w", encoding="ascii") as out:
                out.writelines(f"{key}\n" for key in self.taken)
            self.connection.execute(f"COPY (SELECT * FROM read_csv({named(plain)}, header=false, columns={{'key': 'UBIGINT'}})) TO {quoted(partial)} (FORMAT parquet)")
            partial.replace(folder / f"{self.today}.{time.time_ns():x}.{os.getpid()}.parquet")


@contextlib.contextmanager
def alone(lake: pathlib.Path) -> Iterator[None]:
    """One ingestion at a time: several hosts may share a lake."""
    if lake.is_symlink() and os.lstat(lake).st_uid not in (0, os.geteuid()):
        raise Missing(f"{lake}: is a link of another user")
    try:
        lake.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lake / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Missing(f"{lake}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def ingest(paths: Sequence[str], lake: pathlib.Path, memory: str = "2GB", settle: int = 600) -> Done:
    """Takes what the lake's manifest does not have. A report without its end that changed in the last `settle` seconds is left for the next time:
    its process may still run."""
    with alone(lake):
        work = Ingestion(lake, memory, settle)
        work.take(paths)
        try:
            rows = work.finish()
        except OSError as error:
            raise Missing(f"{lake}: {error.strerror}") from None
        return Done(rows, work.reports, work.known_again, work.unsettled, work.rejected)
