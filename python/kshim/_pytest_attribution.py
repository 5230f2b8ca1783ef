# SPDX-License-Identifier: Apache-2.0
"""Which test each recorded failure belongs to, from the reports of a run and the journals of its pytest processes.

In a pytest process it is exact: the journal has the length of the report at the moment a test began, and what was written
behind that is the test's. In another process it is told by PYTEST_CURRENT_TEST, which the shim records: a process that a
test's own code started belongs to that test for good; one that a fixture started belongs to whatever test runs when it
fails, as does one that does not say."""
import bisect
import datetime
import json
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from kshim import _files, _pytest_journal

MOST_MARKS = 1_000_000  # of one journal
MOST_FAILURES = 65_536  # of one report
_ENDLESS_NUMBER = re.compile(rb"[0-9]{400}")  # Python takes time that grows with its square

Json = Dict[str, Any]
Tests = Dict[str, int]  # test, and how often it failed there


class Mark(NamedTuple):
    size: int
    time: int
    label: Optional[str]


def label_of(test: str, when: Optional[str]) -> str:
    return f"{test} ({when})" if when in ("setup", "teardown") else test


def _number(record: Json, name: str) -> Optional[int]:
    value = record.get(name)
    return value if isinstance(value, int) else None


def _lines(path: str) -> Iterator[Tuple[int, int, Json]]:
    """Number, offset and record of each line; a torn or foreign line is left out."""
    offset = 0
    try:
        for number, line in enumerate(_files.lines(path), 1):
            try:
                record = None if _ENDLESS_NUMBER.search(line) else json.loads(line)
            except (ValueError, RecursionError, MemoryError):  # nested deeper than any record is
                record = None
            if isinstance(record, dict):
                yield number, offset, record
            offset += len(line)
    except OSError:
        return


class _Journal:
    def __init__(self, head: Json, marks: List[Mark]) -> None:
        self.pid, self.start, self.worker = _number(head, "pid"), _number(head, "start"), head.get("worker")
        self._marks = marks
        self._sizes = [mark.size for mark in marks]
        self._times = [mark.time for mark in marks]

    def at_offset(self, offset: int) -> Optional[str]:
        at = bisect.bisect_right(self._sizes, offset)
        return self._marks[at - 1].label if at else None

    def at_time(self, time: int) -> Optional[str]:
        at = bisect.bisect_right(self._times, time)
        return self._marks[at - 1].label if at else None


def _read_journal(path: str) -> Optional[Tuple[Json, List[Mark]]]:
    head: Optional[Json] = None
    marks: List[Mark] = []
    for _, _, record in _lines(path):
        if head is None:
            if record.get("schema") != _pytest_journal.SCHEMA:
                return None
            head = record
            continue
        size, time, test = _number(record, "size"), _number(record, "time"), record.get("test")
        if len(marks) < MOST_MARKS and size is not None and time is not None and (test is None or isinstance(test, str)):
            marks.append(Mark(size, time, None if test is None else label_of(test, record.get("when"))))
    return None if head is None else (head, marks)


def _nanoseconds(text: Any) -> Optional[int]:
    try:
        moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    except (TypeError, ValueError):
        return None
    epoch = datetime.datetime(1970, 1, 1)
    return (moment - epoch) // datetime.timedelta(microseconds=1) * 1000


class Run:
    """What one run left in its folder."""

    def __init__(self, folder: str, run: Optional[str]) -> None:
        self.reports: List[str] = []
        self.journal_files: List[str] = []
        self.foreign = 0  # reports of other runs in the same folder
        self._journals: List[_Journal] = []
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            names = []
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".jsonl"):
                head = _pytest_journal.first_record(path)
                if head is not None and head.get("run") == run:
                    self.reports.append(path)
                else:
                    self.foreign += 1
            elif name.endswith(_pytest_journal.SUFFIX):
                journal = _read_journal(path)
                if journal is not None and journal[0].get("run") == run:
                    self.journal_files.append(path)
                    self._journals.append(_Journal(*journal))
        self._by_process = {(journal.pid, journal.start): journal for journal in self._journals}
        self._parents: Dict[int, int] = {}

    def tests_of_failures(self) -> Dict[str, Tests]:
        """By REPORT:LINE of the failure record, with the report's name alone."""
        out: Dict[str, Tests] = {}
        heads = [(path, _pytest_journal.first_record(path) or {}) for path in self.reports]
        pairs = [(_number(head, "pid"), _number(head, "ppid")) for _, head in heads]
        self._parents = {pid: parent for pid, parent in pairs if pid is not None and parent is not None}
        for path, head in heads:
            self._read_report(path, head, out)
        return out

    def _read_report(self, path: str, head: Json, out: Dict[str, Tests]) -> None:
        own = self._by_process.get((_number(head, "pid"), _number(head, "start")))
        began = _nanoseconds(head.get("time"))
        counted: Dict[int, int] = {}
        lines: Dict[int, str] = {}
        for number, offset, record in _lines(path):
            failure = _number(record, "id")
            if failure is None:
                continue
            if record.get("type") == "failure" and len(lines) < MOST_FAILURES:
                lines[failure] = f"{os.path.basename(path)}:{number}"
                times = 1
            elif record.get("type") == "repeat" and failure in lines:
                times = (_number(record, "count") or 0) - counted[failure]
            else:
                continue
            if times <= 0:
                continue
            counted[failure] = counted.get(failure, 0) + times
            if own is not None:
                label = own.at_offset(offset)
            else:
                label = self._of_child(head, None if began is None else began + (_number(record, "t") or 0))
            tests = out.setdefault(lines[failure], {})
            if label is not None:
                tests[label] = tests.get(label, 0) + times

    def _of_child(self, head: Json, time: Optional[int]) -> Optional[str]:
        recorded = head.get("env")
        environment = recorded if isinstance(recorded, dict) else {}
        named, _, phase = str(environment.get("PYTEST_CURRENT_TEST", "")).rpartition(" (")
        phase = phase.rstrip(")")
        if named and phase == "call":
            return label_of(named, phase)
        by_time = None
        if time is not None:
            labels = [journal.at_time(time) for journal in self._journals_of(head, environment.get("PYTEST_XDIST_WORKER"))]
            by_time = next((label for label in labels if label is not None), None)
        return by_time or (label_of(named, phase) if named else None)

    def _journals_of(self, head: Json, worker: Optional[str]) -> List[_Journal]:
        """Of the pytest process that started this one: by its parents, else by the worker's name, else all of them."""
        by_pid = {journal.pid: journal for journal in self._journals}
        pid = _number(head, "ppid")
        for _ in range(64):
            if pid in by_pid:
                return [by_pid[pid]]
            if pid is None:
                break
            pid = self._parents.get(pid)
        return [journal for journal in self._journals if journal.worker == worker] or self._journals
