#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No line of a log without CUDA trouble is taken for a failure of CUDA's: each by itself, and all of a domain together.

ordinary.py EXPLAIN_LOGS"""
import itertools
import json
import os
import subprocess
import sys
import unittest

import ordinary_lines

EXPLAIN_LOGS = sys.argv.pop()
LEAST = 2000


def answers(logs):
    done = subprocess.run([EXPLAIN_LOGS], input="".join(f"{log}\n\x1e\n" for log in logs), capture_output=True, encoding="utf-8",
                          env={**os.environ, "HOME": "/nonexistent"}, check=True)
    return [json.loads(answer) for answer in done.stdout.split("\x1e\n")[:-1]]


class Ordinary(unittest.TestCase):
    def check(self, logs):
        told = [f"{finding['cause']} {finding['confidence']}: {answer['quote'] or log.splitlines()[0]}"
                for log, answer in zip(logs, answers(logs), strict=True) for finding in answer["findings"]]
        self.assertEqual(told, [])

    def test_no_line_is_a_failure(self):
        lines = [line for _, line in ordinary_lines.lines()]
        self.assertGreater(len(set(lines)), LEAST)
        self.check(lines)

    def test_nor_is_a_log_of_them(self):
        self.check(["\n".join(line for _, line in group) for _, group in itertools.groupby(ordinary_lines.lines(), lambda row: row[0])])


if __name__ == "__main__":
    unittest.main()
