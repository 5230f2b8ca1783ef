# SPDX-License-Identifier: Apache-2.0
"""Holds `kshim explain` to situations: python cases.py --kshim KSHIM [--table docs/internals/cases.md] [-v]

situations.jsonl has one a line: its category (judge.py has the causes that are right for it), the log that a user could paste
(software, GPU, driver, toolkit, what a look into the file shows, and the message of the program; never what was found out
afterwards), and, where a fix is known to have worked, the kinds of fixes that say the same.
Exit status 1 where fewer than 90 of 100 causes are right or honestly unknown, or more than 2 of 100 are wrong with a confidence over
0.5."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import judge

SITUATIONS = pathlib.Path(__file__).parent / "situations.jsonl"


def explain(kshim, case):
    done = subprocess.run([kshim, "explain", "--format", "json", "--log", "-"], input="\n".join(case["log"]) + "\n", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", env={**os.environ, "HOME": "/nonexistent"}, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{case['id']}: kshim explain ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def fix_verdict(case, first):
    """right, other or None (not judged) for the first fix."""
    if "fixes" not in case:
        return None
    return "right" if first["fixes"] and first["fixes"][0]["kind"] in case["fixes"] else "other"


def rows_of(kshim):
    for line in SITUATIONS.read_text(encoding="ascii").splitlines():
        case = json.loads(line)
        answer = explain(kshim, case)
        first = answer["findings"][0] if answer["findings"] else None
        verdict = judge.verdict(case["category"], first)
        yield {"id": case["id"], "cause": first["cause"] if first else "none", "confidence": first["confidence"] if first else 0.0,
               "verdict": verdict, "fix": fix_verdict(case, first) if verdict == "right" and first else None,
               "fix_kind": first["fixes"][0]["kind"] if first and first["fixes"] else "none", "case": case}


def summary(rows):
    count = {name: sum(row["verdict"] == name for row in rows) for name in ("right", "unknown", "wrong")}
    sure = sum(row["verdict"] == "wrong" and row["confidence"] > judge.SURE for row in rows)
    fixes = [row["fix"] == "right" for row in rows if row["fix"] is not None]
    return count, sure, fixes


def table(rows):
    count, sure, fixes = summary(rows)
    lines = ["# Held to situations", "",
             "<!-- SPDX-License-Identifier: Apache-2.0. Written by `python tests/cases/cases.py --table docs/internals/cases.md`. -->", "",
             "What users meet, each as the log that they could paste (tests/cases/situations.jsonl: software, GPU, driver, toolkit, the",
             "architectures that were read from the file, and the message; never what was found out afterwards), and given to",
             "`kshim explain --log`. A cause is right by the table in tests/cases/judge.py. `unknown` is right too, but counted by itself.",
             "The rules know no situation: they are rows over messages, versions and architectures.", "",
             f"{len(rows)} situations: **{count['right']} right, {count['unknown']} honestly unknown, {count['wrong']} wrong, {sure} of these with a",
             f"confidence over 0.5.** First fix, where one is known to have worked and the cause is right: {sum(fixes)} of {len(fixes)} of that kind.", "",
             "| situation | first cause | confidence | judged | first fix |", "| --- | --- | ---: | --- | --- |"]
    for row in rows:
        fix = row["fix_kind"] + {"right": " (worked)", "other": " (another worked)", None: ""}[row["fix"]]
        lines.append(f"| {row['id']} | {row['cause']} | {row['confidence']:.2f} | {row['verdict']} | {fix} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kshim", required=True)
    parser.add_argument("--table")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    rows = list(rows_of(args.kshim))
    count, sure, fixes = summary(rows)
    for row in rows:
        if row["verdict"] == "wrong" or (args.verbose and (row["verdict"] == "unknown" or row["fix"] == "other")):
            print(f"{row['verdict']:8} {row['confidence']:.2f} {row['id']}: {row['cause']} / fix {row['fix_kind']} {row['fix'] or ''}\n"
                  f"         {' | '.join(row['case']['log'])}")
    if args.table:
        with open(args.table, "w", encoding="utf-8") as out:
            out.write(table(rows))
    print(f"{len(rows)} situations: {count['right']} right, {count['unknown']} unknown, {count['wrong']} wrong, {sure} of these over "
          f"{judge.SURE}; fixes: {sum(fixes)} of {len(fixes)}")
    return 0 if 100 * (count["right"] + count["unknown"]) >= 90 * len(rows) > 0 and 100 * sure <= 2 * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
