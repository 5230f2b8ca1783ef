#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes reports of any size out of a real one, to measure the reader with. Nothing of what it makes is committed.

make_reports.py [--from REPORT] --bytes SIZE FILE      one report of about SIZE bytes (10M, 2G): loads, failures, repeats,
                                                       gaps and launched kernels again and again under new ids and names
make_reports.py [--from REPORT] --ranks N FOLDER       one report each of N ranks of one run, eight to a host (or K); the
                [--mixed HOST] [--runs R] [--bytes S]  GPUs of host number HOST are of another kind (7.5); R runs one after
                [--per-host K]                         the other; each report of about S bytes

REPORT: what libkshim.so wrote; by default tests/golden/two-gpus/report.jsonl, a sample on two simulated GPUs.
"""
import argparse
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = os.path.join(HERE, "..", "..", "tests", "golden", "two-gpus", "report.jsonl")
REPEATED = ("module", "failure", "repeat", "gap", "coverage", "read")
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def line(row):
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n"


def with_coverage(rows):
    """The same with a coverage record for each kernel that it names: as KSHIM_COVERAGE=1 would have it."""
    kernels = [(row["kernel"], row.get("object"), row.get("module")) for row in rows
               if row["type"] == "failure" and row.get("kernel")]
    return rows + [{"type": "coverage", "seq": 0, "t": 0, "kernel": kernel, "object": item, "module": module, "launches": 7}
                   for kernel, item, module in kernels]


class Numbered:
    """Writes records with `seq` and `t` that rise, as in every report."""
    def __init__(self, file):
        self.file, self.seq = file, 0

    def write(self, rows):
        text = ""
        for row in rows:
            text += line({**row, "seq": self.seq, "t": self.seq * 1000})
            self.seq += 1
        return self.file.write(text)


def renumbered(row, turn, step):
    """A record of another part of the same run: ids and kernels of its own, the same files."""
    row = dict(row)
    if "id" in row:
        row["id"] += turn * step
    for key in ("module", "failure"):
        if isinstance(row.get(key), int) and row["type"] != "object":
            row[key] += turn * step
    if row.get("kernel") and turn:
        row["kernel"] = f"{row['kernel']}.{turn}"  # as a compiler names a clone
    return row


def write_one(rows, size, path):
    """Of size 0: as it is."""
    rows = with_coverage(rows) if size else rows
    head = [row for row in rows if row["type"] not in REPEATED + ("end",)]
    body = [row for row in rows if row["type"] in REPEATED]
    tail = [row for row in rows if row["type"] == "end"]
    step = 1 + max((row.get("id", 0) for row in body), default=0)
    with open(path, "w", encoding="utf-8") as file:
        out = Numbered(file)
        written = out.write(head)
        turn = 0
        while written < size or turn == 0:
            written += out.write(renumbered(row, turn, step) for row in body)
            turn += 1
        failures = turn * sum(row["type"] == "failure" for row in body)
        out.write({**row, "failures": failures} for row in tail)


def as_rank(row, run, rank, options):
    row = dict(row)
    host_number, place = divmod(rank, options.per_host)
    if row["type"] == "process":
        host = f"node{host_number:03}"
        pid = 4000 + place
        row.update(run=f"{run:016x}", host=host, pid=pid, ppid=3999, rank=rank,
                   time=f"2026-11-21T{9 + run % 12:02}:00:00.000Z")
        row["env"] = {**row["env"], "RANK": str(rank)}
    elif row["type"] == "device":
        row["uuid"] = f"GPU-{rank:08x}-0000-0000-0000-000000000000"
        if options.mixed == host_number:
            row.update(name="NVIDIA T4 (simulated)", compute_capability="7.5")
    elif row["type"] == "gap" and options.mixed == host_number and row["device"] is not None:
        row["need"] = "sm_75"
    return row


def write_ranks(rows, options):
    os.makedirs(options.path, exist_ok=True)
    for run in range(1, options.runs + 1):
        for rank in range(options.ranks):
            mine = [as_rank(row, run, rank, options) for row in rows]
            name = f"{mine[0]['host']}.{mine[0]['pid']}{'' if run == 1 else f'.{run - 1}'}.jsonl"
            write_one(mine, options.bytes, os.path.join(options.path, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", default=DEFAULT)
    parser.add_argument("--bytes", type=size_of, default=0)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--mixed", type=int)
    parser.add_argument("--per-host", type=int, default=8)
    parser.add_argument("path")
    options = parser.parse_args()
    rows = lines_of(options.source)
    if options.ranks:
        write_ranks(rows, options)
    else:
        write_one(rows, options.bytes, options.path)


if __name__ == "__main__":
    main()
