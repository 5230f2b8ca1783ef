# SPDX-License-Identifier: Apache-2.0
"""Holds `kshim explain` to real cases: python cases.py --kshim KSHIM CASES.jsonl [--table docs/cases.md] [-v]

Exit status 1 where fewer than 90 of 100 judged causes are right or honestly unknown, or more than 2 of 100 are wrong with a
confidence over 0.5; 77 where there are no cases."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import facts
import judge


def explain(kshim, case):
    with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as log:
        log.write(facts.log_of(case))
        log.flush()
        done = subprocess.run([kshim, "explain", "--format", "json", "--log", log.name], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, "HOME": "/nonexistent"}, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{case['id']}: kshim explain ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def fix_verdict(case, first):
    """right, other or None (not judged) for the first fix."""
    worked = (case.get("fix_that_worked") or "").lower()
    if not case.get("fix_confirmed") or not worked or first is None:
        return None
    for pattern, kinds in judge.FIX_WORDS:
        if re.search(pattern, worked):
            break
    else:
        return None
    return "right" if first["fixes"] and first["fixes"][0]["kind"] in kinds else "other"


def rows_of(kshim, cases):
    for case in cases:
        answer = explain(kshim, case)
        first = answer["findings"][0] if answer["findings"] else None
        verdict = judge.verdict(case["category"], first) if judge.judged(case["category"]) else "not judged"
        yield {"id": case["id"], "category": case["category"], "cause": first["cause"] if first else "none",
               "confidence": first["confidence"] if first else 0.0, "verdict": verdict,
               "fix": fix_verdict(case, first) if verdict == "right" else None,
               "fix_kind": first["fixes"][0]["kind"] if first and first["fixes"] else "none", "case": case}


def summary(rows):
    judged = [row for row in rows if row["verdict"] != "not judged"]
    count = {name: sum(row["verdict"] == name for row in judged) for name in ("right", "unknown", "wrong")}
    sure = [row for row in judged if row["verdict"] == "wrong" and row["confidence"] > judge.SURE]
    fixes = [row for row in rows if row["fix"] is not None]
    return judged, count, sure, fixes


def table(rows):
    judged, count, sure, fixes = summary(rows)
    good = sum(row["fix"] == "right" for row in fixes)
    lines = ["# Held to real cases", "",
             "<!-- SPDX-License-Identifier: Apache-2.0. Written by `python tests/cases/cases.py --table docs/cases.md`. -->", "",
             "Reports of users, each turned into the log that its user could have pasted (tests/cases/facts.py: what was printed,",
             "GPU, driver, toolkit, and the architectures that were read from the file; never what was found out afterwards), and",
             "given to `kshim explain --log`. A cause is right by the table in tests/cases/judge.py. `unknown` is right too, but counted",
             "by itself. The rules know no case: they are rows over messages, versions and architectures.", "",
             f"{len(rows)} cases, {len(judged)} judged: **{count['right']} right, {count['unknown']} honestly unknown, {count['wrong']} wrong,",
             f"{len(sure)} of these with a confidence over 0.5.** First fix, where one was confirmed and the cause right: {good} of {len(fixes)} of the kind that worked.", "",
             "| case | category | first cause | confidence | judged | first fix |", "| --- | --- | --- | ---: | --- | --- |"]
    for row in rows:
        fix = row["fix_kind"] + {"right": " (worked)", "other": " (another worked)", None: ""}[row["fix"]]
        lines.append(f"| {row['id']} | {row['category']} | {row['cause']} | {row['confidence']:.2f} | {row['verdict']} | {fix} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="?", default=os.environ.get("KSHIM_CASES"))
    parser.add_argument("--kshim", required=True)
    parser.add_argument("--table")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not args.cases or not os.path.exists(args.cases):
        print("no cases here: give their file, or set KSHIM_CASES")
        return 77
    with open(args.cases, encoding="utf-8") as source:
        cases = [json.loads(line) for line in source if line.strip()]
    rows = list(rows_of(args.kshim, cases))
    judged, count, sure, fixes = summary(rows)
    for row in rows:
        if row["verdict"] == "wrong" or (args.verbose and (row["verdict"] == "unknown" or row["fix"] == "other")):
            case = row["case"]
            print(f"{row['verdict']:8} {row['confidence']:.2f} {row['id']} ({row['category']}): {row['cause']} / fix {row['fix_kind']} {row['fix'] or ''}\n"
                  f"         {case['error_text']} | cc {case['compute_capability']} | {case['binary_archs']} | driver {case['driver']}"
                  f" | toolkit {case['cuda_toolkit']} | worked: {case['fix_that_worked']}")
    if args.table:
        with open(args.table, "w", encoding="utf-8") as out:
            out.write(table(rows))
    share = 100 * (count["right"] + count["unknown"]) / max(1, len(judged))
    sure_share = 100 * len(sure) / max(1, len(judged))
    print(f"{len(rows)} cases, {len(judged)} judged: {count['right']} right, {count['unknown']} unknown, {count['wrong']} wrong, "
          f"{len(sure)} of these over {judge.SURE}; fixes: {sum(r['fix'] == 'right' for r in fixes)} of {len(fixes)}")
    return 0 if share >= 90 and sure_share <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
