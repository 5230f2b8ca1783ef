#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The situations of threads_YEAR.jsonl, in every clone: no fewer may be right than when the rules were last changed, and none may be wrong
with a confidence over 0.5 or be given a command that does harm."""
import json
import os
import pathlib
import re
import sys
import unittest

import promises
import threads

EXPLAIN_LOGS = sys.argv.pop()
SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
# Right on 2026-11-23. `first` is the half that the rules were written with, `second` the one that was put aside; a to c came later.
LEAST = {"first": 101, "second": 85, "a": 40, "b": 40, "c": 14, "d": 25, "e": 22, "f": 22, "g": 22, "h": 20, "i": 20, "j": 20,
         "k": 24, "l": 23, "m": 20, "n": 22, "o": 22, "p": 24, "q": 26, "r": 30, "s": 28, "t": 69, "u": 33, "v": 81, "w": 10, "x": 34}
LEAST_FIXES = 0.9
WRITTEN = "defghijklmnopqrstuvwx"


class Threads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rows = threads.judge(EXPLAIN_LOGS)
        cls.answers = [(row.case, row.answer) for row in rows]
        cls.rows = {half: [row for row in rows if threads.half_of(row.case) == half] for half in LEAST}

    def test_no_fewer_are_right(self):
        for half, least in LEAST.items():
            right = sum(row.verdict == "right" for row in self.rows[half])
            self.assertGreaterEqual(right, least, "\n".join(row.told() for row in self.rows[half] if row.verdict != "right"))

    def test_none_is_wrong_and_sure(self):
        for rows in self.rows.values():
            for row in rows:
                self.assertFalse(row.verdict == "wrong" and row.confidence > threads.SURE, row.told())
                self.assertFalse(row.harmful, row.told())

    def test_gpus_and_fixes(self):
        for rows in self.rows.values():
            self.assertFalse([row.told() for row in rows if row.gpu_right is False and row.gpu is not None])
            # "Xavier" alone is also a person's name.
            self.assertLessEqual(sum(row.gpu_right is False for row in rows), 1)
            fixes = [row for row in rows if row.fix_right is not None]
            self.assertGreaterEqual(sum(row.fix_right for row in fixes), LEAST_FIXES * len(fixes),
                                    "\n".join(row.told() for row in fixes if not row.fix_right))

    def test_no_fix_breaks_a_promise(self):
        situations = [json.loads(line) for line in (SOURCE / "tests/cases/situations.jsonl").read_text(encoding="utf-8").splitlines()]
        answers = self.answers + list(zip(situations, threads.explain(EXPLAIN_LOGS, situations), strict=True))
        self.assertEqual([line for case, answer in answers for line in promises.broken(case, answer)], [])

    def test_each_case_says_where_it_is_from(self):
        causes = set(re.findall(r'KSHIM_CAUSE\(\w+, "([^"]+)"', (SOURCE / "analyzer/core/causes.def").read_text(encoding="utf-8")))
        ids = set()
        for case in threads.cases():
            if case.get("set", "first") not in WRITTEN:
                self.assertRegex(case["url"], r"^https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+$")
                self.assertRegex(case["date"], r"^202[56]-\d\d$")
            self.assertLessEqual(set(case["causes"]), causes | {"none"}, case["id"])
            self.assertNotIn(case["id"], ids)
            ids.add(case["id"])


if __name__ == "__main__":
    unittest.main()
