# SPDX-License-Identifier: Apache-2.0
"""Which test a process is at, written down beside its report: one line of JSON whenever that changes, with the time and how
long the report is. A worker that dies in the middle of a test leaves the line that it began with."""
import json
import os
import stat
import time
from typing import Any, Dict, Optional

from kshim import _files

SCHEMA = "kshim-tests/1"
SUFFIX = ".tests"  # not .jsonl: `kshim analyze FOLDER` reads those


def report_folder() -> Optional[str]:
    """Where the shim writes, from the pattern that `kshim run` gave it: FOLDER/%h.%p.jsonl."""
    pattern = os.environ.get("KSHIM_REPORT", "")
    folder = os.path.dirname(pattern).replace("%%", "\0")
    if not os.path.isabs(pattern) or "%" in folder:
        return None
    return folder.replace("\0", "%")


def host_name() -> str:
    """As the shim has it in file names."""
    return "".join("_" if c == "/" or c <= " " else c for c in os.uname().nodename) or "localhost"


def start_ticks() -> int:
    """When this process started, as proc(5) has it: tells it from another one with the same number."""
    return int(_files.text("/proc/self/stat").rpartition(")")[2].split()[19])


def first_record(path: str) -> Optional[Dict[str, Any]]:
    try:
        with _files.open_to_read(path) as file:
            record = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    return record if isinstance(record, dict) and record.get("type") == "process" else None


class Journal:
    """Of this process; of a fork's child, one of its own."""

    def __init__(self, folder: str, run: Optional[str]) -> None:
        self.folder = folder
        self.run = run
        self._pid = 0
        self._file = -1
        self._report: Optional[str] = None
        self._start = 0
        self._last: Any = None

    def mark(self, test: Optional[str], when: Optional[str] = None) -> None:
        if self._pid != os.getpid():
            self._open()
        if self._file < 0 or (test, when) == self._last:
            return
        self._last = (test, when)
        self._write({"test": test, "when": when, "time": time.time_ns(), "size": self._report_size()})

    def _open(self) -> None:
        if self._file >= 0:  # a fork's child has the parent's
            os.close(self._file)
        self._pid, self._file, self._report, self._last = os.getpid(), -1, None, None
        try:
            self._start = start_ticks()
            os.makedirs(self.folder, exist_ok=True)
            path = os.path.join(self.folder, f"pytest.{host_name()}.{self._pid}.{self._start}{SUFFIX}")
            # A spool is everybody's: what has the name may be a FIFO, or another user's.
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            found = os.fstat(self._file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                os.close(self._file)
                self._file = -1
                return
        except (OSError, ValueError, IndexError):
            return
        self._write({"schema": SCHEMA, "run": self.run, "host": host_name(), "pid": self._pid,
                     "start": self._start, "worker": os.environ.get("PYTEST_XDIST_WORKER")})

    def _write(self, record: Dict[str, Any]) -> None:
        try:
            os.write(self._file, (json.dumps(record) + "\n").encode())
        except OSError:  # no space left: the tests matter more
            os.close(self._file)
            self._file = -1

    def _report_size(self) -> int:
        """Of this process' own report, 0 while it has none. The shim adds a number where a name was taken."""
        if self._report is None:
            stem = os.path.join(self.folder, f"{host_name()}.{self._pid}")
            for number in range(10000):
                path = f"{stem}.jsonl" if number == 0 else f"{stem}.{number}.jsonl"
                record = first_record(path)
                if record is None:
                    break
                if record.get("start") == self._start and record.get("run") == self.run:
                    self._report = path
                    break
        if self._report is None:
            return 0
        try:
            return os.stat(self._report).st_size
        except OSError:
            return 0
