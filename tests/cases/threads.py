# SPDX-License-Identifier: Apache-2.0
"""Holds `kshim explain` to situations of public threads: python threads.py --kshim KSHIM [--half first|second] [-v]

threads_YEAR.jsonl have one situation a line, by the year of the thread: what the log printed, in lines of our own with the programs' real messages, and what is right:
`causes` (ids; "none" = nothing of CUDA's failed, and explain says what did), `gpu`, the kinds of a right first fix, and `never`, which
no command may contain. `url` is the thread that it was taken from. The halves were drawn by the hash of the id before any rule was
written; the second was not looked at until the rules stood. `set`: a, b and c were collected on 2026-11-23, each before it was asked, the
expected answers first; what was right at the first look stands in docs/explain.md. threads_written.jsonl (d to j, u, w), threads_later.jsonl (k to p), threads_stranger.jsonl (q), threads_neighbors.jsonl (t), threads_classes.jsonl (v) and threads_structures.jsonl (x) are situations that were
written from what such threads are about, not from one of them: `first` is what the first fix has to say."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SURE = 0.5


def cases(half=None):
    rows = [json.loads(line) for path in sorted(HERE.glob("threads_*.jsonl")) for line in path.read_text(encoding="ascii").splitlines()]
    return [row for row in rows if half in (None, half_of(row))]


def half_of(case):
    if "set" in case:
        return case["set"]
    return ("first", "second")[int(hashlib.sha256(case["id"].encode()).hexdigest(), 16) % 2]


def explain(program, chosen):
    """The answers for these cases, in order, of `kshim explain`, or of explain_logs, which reads them all in one process."""
    many = pathlib.Path(program).name == "explain_logs"
    argv, end = ([program], "\x1e\n") if many else ([program, "explain", "--format", "json", "--log", "-"], "")
    logs = ["\n".join(case["log"]) + "\n" + end for case in chosen]
    answers = []
    for log in ["".join(logs)] if many else logs:
        done = subprocess.run(argv, input=log, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              env={**os.environ, "HOME": "/nonexistent"}, check=False)
        if done.returncode not in (0, 1, 3):
            raise RuntimeError(f"{log}: {program} ended with {done.returncode}: {done.stderr}")
        answers += done.stdout.split(end)[:-1] if many else [done.stdout]
    return [json.loads(answer) for answer in answers]


class Judged:
    def __init__(self, case, answer):
        first = answer["findings"][0] if answer["findings"] else None
        self.case = case
        self.answer = answer
        self.cause = first["cause"] if first else "none" if answer["recognised"] else "silent"
        self.confidence = first["confidence"] if first else 0.0
        fixes = first["fixes"] if first else []
        self.fix = fixes[0] if fixes else None
        self.verdict = "right" if self.cause in case["causes"] else "unknown" if self.cause in ("unknown", "silent") else "wrong"
        device = (first or {}).get("device") or {}
        self.gpu = device.get("compute_capability")
        self.gpu_right = "gpu" not in case or self.gpu == case["gpu"] if self.verdict == "right" and first else None
        commands = "\n".join(command for fix in fixes for command in fix["commands"])
        self.harmful = bool(case.get("never") and re.search(case["never"], commands))
        judged = self.verdict == "right" and first and ("fixes" in case or "first" in case)
        self.fix_right = self.is_right_fix() if judged else None

    def is_right_fix(self):
        if self.fix is None:
            return False
        said = "\n".join([self.fix["title"], *self.fix["commands"], self.fix["why"], self.fix["caveat"] or ""])
        return re.search(self.case["first"], said, re.IGNORECASE) is not None if "first" in self.case else self.fix["kind"] in self.case["fixes"]

    def told(self):
        marks = "".join(word for word, bad in ((" GPU!", self.gpu_right is False), (" FIX!", self.fix_right is False), (" HARM!", self.harmful)) if bad)
        fix = f"{self.fix['kind']}/{self.fix['id']}: {self.fix['title']}" if self.fix else "no fix"
        return f"{self.verdict:8} {self.confidence:.2f} {self.case['id']}: {self.cause}, not {self.case['causes']}; GPU {self.gpu}; {fix}{marks}"


def judge(kshim, half=None):
    chosen = cases(half)
    return [Judged(case, answer) for case, answer in zip(chosen, explain(kshim, chosen), strict=True)]


def figures(rows):
    count = collections.Counter(row.verdict for row in rows)
    sure = sum(row.verdict == "wrong" and row.confidence > SURE for row in rows)
    fixes = [row.fix_right for row in rows if row.fix_right is not None]
    gpus = [row.gpu_right for row in rows if row.gpu_right is not None]
    return {"cases": len(rows), "right": count["right"], "unknown": count["unknown"], "wrong": count["wrong"], "wrong_and_sure": sure,
            "fixes_right": sum(fixes), "fixes": len(fixes), "gpus_right": sum(gpus), "gpus": len(gpus), "harmful": sum(row.harmful for row in rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kshim", required=True)
    parser.add_argument("--half", choices=("first", "second", "a", "b", "c"))
    parser.add_argument("-v", "--verbose", action="store_true", help="tell what was not right")
    args = parser.parse_args()
    rows = judge(args.kshim, args.half)
    for row in rows:
        if args.verbose and (row.verdict != "right" or row.fix_right is False or row.gpu_right is False or row.harmful):
            print(row.told())
    print(json.dumps(figures(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
