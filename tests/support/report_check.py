#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is this a report as docs/report-format.md promises?

    report_check.py [--complete] [--killed] REPORT...

Line by line: JSON with `type` first, the fields of include/kshim/report/schema.def with their kinds, `seq` without gaps,
ids that refer to a record before. Where jsonschema and docs/schema/report.json are there, they must agree. --complete: the
last line is `end`, but for `package`, and its counts are right. --killed: the last line may be torn. Exit status 1 with one line a fault.

    import report_check
    records = report_check.load(path, complete=True)      raises ReportError
"""
import argparse
import json
import os
import pathlib
import re
import sys

try:
    import jsonschema
except ImportError:
    jsonschema = None

ROOT = pathlib.Path(os.environ.get("KSHIM_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
SCHEMA = "kshim-report/1"
STAGES = {"load", "lookup", "query", "launch", "init", "other"}
IN_FULL = 16  # failures of a report that have their frames in any case (shim/failure/failures.cpp)
STACKS = ("native", "python", "python_main")
LAYERS = {"runtime", "driver", "nvrtc", "nvjitlink"}
LIST_KINDS = {  # kind: {member: (type, required)}
    "images": {"kind": (str, True), "arch": (str, True), "isa": (str, False), "count": (int, False), "bytes": (int, False)},
    "layers": {"layer": (str, True), "api": (str, True), "code": (int, True), "name": (str, False)},
    "frames": {"object": (str, False), "build_id": (str, False), "offset": (int, True), "symbol": (str, False)},
    "python": {"file": (str, True), "line": (int, False), "function": (str, False)},
    "processes": {"pid": (int, True), "start": (int, True), "exe": (str, False)},
}


class ReportError(AssertionError):
    """All that is wrong with one report, a line each."""


def schema_fields():
    """{record: {field: (kind, required)}} out of schema.def."""
    text = (ROOT / "include/kshim/report/schema.def").read_text()
    records = {name: {} for name in re.findall(r"^KSHIM_RECORD\((\w+),", text, re.M)}
    for record, field, kind, required in re.findall(r"^KSHIM_FIELD\((\w+), (\w+), (\w+), ([01]),", text, re.M):
        records[record][field] = (kind, required == "1")
    return records


FIELDS = schema_fields()


def validator():
    path = ROOT / "docs/schema/report.json"
    if jsonschema is None or not path.exists():
        return None
    return jsonschema.Draft202012Validator(json.loads(path.read_text()))


def is_uint(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def member_fault(kind, row):
    shape = LIST_KINDS[kind]
    if not isinstance(row, dict):
        return f"an element is {row!r}"
    for name, (wanted, required) in shape.items():
        value = row.get(name)
        if value is None and not required:
            continue
        if not (is_uint(value) if wanted is int else isinstance(value, str)):
            return f"{name} is {value!r}"
    extra = set(row) - set(shape)
    return f"unknown members {sorted(extra)}" if extra else None


def value_fault(kind, value):
    if kind in ("string", "text"):
        return None if isinstance(value, str) else f"is {value!r}, not a string"
    if kind == "uint":
        return None if is_uint(value) else f"is {value!r}, not a whole number"
    if kind == "number":
        return None if isinstance(value, (int, float)) and not isinstance(value, bool) else f"is {value!r}, not a number"
    if kind == "bool":
        return None if isinstance(value, bool) else f"is {value!r}, not true or false"
    if kind == "env":
        good = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        return None if good else f"is {value!r}, not an object of strings"
    if not isinstance(value, list):
        return f"is {value!r}, not a list"
    if kind in ("strings", "texts"):
        return None if all(isinstance(text, str) for text in value) else f"is {value!r}, not a list of strings"
    return next((fault for fault in (member_fault(kind, row) for row in value) if fault), None)


def record_faults(record):
    kind = record.get("type")
    if next(iter(record), None) != "type":
        yield "type is not the first key"
    if kind not in FIELDS:
        yield f"unknown type {kind!r}"
        return
    for name in ("seq", "t"):
        if not is_uint(record.get(name)):
            yield f"{name} is {record.get(name)!r}"
    for name, (wanted, required) in FIELDS[kind].items():
        value = record.get(name)
        if value is None:
            if required:
                yield f"{kind}.{name} is missing"
            continue
        fault = value_fault(wanted, value)
        if fault:
            yield f"{kind}.{name} {fault}"
    for name in set(record) - set(FIELDS[kind]) - {"type", "seq", "t"}:
        yield f"{kind}.{name} is not in schema.def"
    if kind == "process" and record.get("schema") != SCHEMA:
        yield f"schema is {record.get('schema')!r}"
    if kind == "failure":
        if record.get("stage") not in STAGES:
            yield f"stage is {record.get('stage')!r}"
        layers = record.get("layers") or []
        if not layers or any(layer.get("layer") not in LAYERS or layer.get("code") == 0 for layer in layers):
            yield f"layers are {layers!r}"


class Order:
    """What one line must have in common with those before it."""

    def __init__(self):
        self.next_seq = 0
        self.gaps = 0
        self.time = 0
        self.ids = {"object": set(), "module": set(), "failure": set()}
        self.stacks = {}  # frames of each kind, by the failure that has them in its record

    def faults(self, record):
        kind, seq = record["type"], record.get("seq", 0)
        if (kind == "process") != (self.next_seq == 0):
            yield "process is the first record and no other"
        if seq < self.next_seq:
            yield f"seq {seq} after {self.next_seq - 1}"
        self.gaps += seq - self.next_seq
        self.next_seq = seq + 1
        if record.get("t", 0) < self.time:
            yield f"t {record.get('t')} after {self.time}"
        self.time = record.get("t", 0)
        if kind in self.ids:
            if record.get("id") in self.ids[kind]:
                yield f"{kind} {record.get('id')} again"
            self.ids[kind].add(record.get("id"))
        for name, record_types in (("object", ("module", "failure", "gap", "package", "coverage")), ("module", ("failure",))):
            if kind in record_types and record.get(name) is not None and record[name] not in self.ids[name]:
                yield f"{kind} refers to {name} {record[name]}, which no record before describes"
        if kind == "failure":
            yield from self.stack_faults(record)
        if kind == "gap" and (record.get("total") or 0) > len(record["kernels"]) and record.get("complete"):
            yield f"complete, with {len(record['kernels'])} of {record['total']} kernels"
        if kind == "repeat" and record.get("id") not in self.ids["failure"]:
            yield f"repeat of failure {record.get('id')}, which no record before describes"

    def stack_faults(self, record):
        for name in STACKS:
            own, named = record.get(name), record.get(f"{name}_of")
            if named is None:
                if own and record.get("id", 0) > IN_FULL and own in self.stacks.setdefault(name, {}).values():
                    yield f"{name} is that of an earlier failure, and written again"
                self.stacks.setdefault(name, {})[record.get("id")] = own
            elif own is not None:
                yield f"{name} is there, and {name}_of"
            elif record.get("id", 0) <= IN_FULL:
                yield f"{name} is left out of one of the first {IN_FULL} failures"
            elif not self.stacks.setdefault(name, {}).get(named):
                yield f"{name}_of is {named!r}, and no failure before has its own there"


def check(text, complete=False, killed=False):
    """(records, faults) of a report's text."""
    records, faults, order, schema = [], [], Order(), validator()
    lines = text.split("\n")
    if lines[-1] and not killed:
        faults.append(f"line {len(lines)}: ends without a newline")
    for number, line in enumerate(lines[:-1], 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if not isinstance(record, dict):
            faults.append(f"line {number}: not an object")
            continue
        found = list(record_faults(record))
        if record.get("type") in FIELDS:
            found += order.faults(record)
        if schema is not None and not found and not schema.is_valid(record):
            found.append("docs/schema/report.json does not allow it")
        faults += [f"line {number}: {fault}" for fault in found]
        records.append(record)
    if not records:
        faults.append("no record at all")
    ends = [record for record in records if record.get("type") == "end"]
    # `kshim run` adds the files' packages and its own child's status when the process is over.
    written = [record for record in records if record.get("type") not in ("package", "exit")]
    if complete and (len(ends) != 1 or written[-1]["type"] != "end"):
        faults.append("end is not the last record")
    for end in ends:
        written_ones = len(order.ids["failure"])
        if end.get("failures") != written_ones and not (end.get("dropped") and end.get("failures") > written_ones):
            faults.append(f"end counts {end.get('failures')} failures, the report has {len(order.ids['failure'])}")
        if order.gaps > (end.get("dropped") or 0):
            faults.append(f"{order.gaps} records are missing, end says {end.get('dropped')}")
    if not ends and order.gaps and not killed:
        faults.append("seq has gaps")
    return records, faults


def load(path, complete=False, killed=False):
    """The records of a report that is in order; ReportError says what is not."""
    records, faults = check(pathlib.Path(path).read_bytes().decode("utf-8"), complete, killed)
    if faults:
        raise ReportError("\n".join(f"{path}: {fault}" for fault in faults))
    return records


def with_frames(records):
    """The same records, with the frames of failures that name another one for theirs."""
    failures = {record["id"]: record for record in records if record["type"] == "failure"}
    named = [(record, name) for record in failures.values() for name in STACKS if record.get(f"{name}_of") is not None]
    for record, name in named:
        record[name] = failures[record[f"{name}_of"]][name]
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--complete", action="store_true")
    parser.add_argument("--killed", action="store_true")
    parser.add_argument("report", nargs="+")
    arguments = parser.parse_args()
    status = 0
    for path in arguments.report:
        try:
            load(path, arguments.complete, arguments.killed)
        except (ReportError, OSError, UnicodeDecodeError) as error:
            print(error, file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
