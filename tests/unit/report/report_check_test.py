#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report_check.py takes a good report and refuses each way of being wrong."""
import copy
import json
import unittest

import report_check

PROCESS = {"type": "process", "seq": 0, "t": 0, "schema": "kshim-report/1", "shim": "0.1.0", "run": None, "host": "h",
           "pid": 17, "start": 1, "ppid": 1, "rank": None, "time": "2026-11-21T08:45:21.005Z", "exe": "/bin/x",
           "argv": ["x"], "cwd": "/", "env": {"CUDA_VISIBLE_DEVICES": "0"}}
OBJECT = {"type": "object", "seq": 1, "t": 5, "id": 1, "path": "/bin/x", "build_id": None, "runtime": "static",
          "fatbins": 1, "images": [{"kind": "cubin", "arch": "sm_75", "isa": None, "count": 1, "bytes": 10}]}
FAILURE = {"type": "failure", "seq": 2, "t": 6, "id": 1, "stage": "launch",
           "layers": [{"layer": "driver", "api": "cuLaunchKernel", "code": 209, "name": None}], "device": 0,
           "kernel": "_Z1kv", "module": None, "object": 1, "tid": 17,
           "native": [{"object": "/bin/x", "build_id": None, "offset": 1, "symbol": None}],
           "python": [{"file": "a.py", "line": None, "function": "f"}], "python_main": None}
END = {"type": "end", "seq": 3, "t": 7, "time": "2026-11-21T08:45:22.005Z", "failures": 1, "modules": 0, "dropped": 0}
GOOD = [PROCESS, OBJECT, FAILURE, END]


def text(records):
    return "".join(json.dumps(record) + "\n" for record in records)


class ReportCheck(unittest.TestCase):
    def changed(self, index, **fields):
        records = copy.deepcopy(GOOD)
        records[index].update(fields)
        return report_check.check(text(records), complete=True)[1]

    def test_good(self):
        self.assertEqual(report_check.check(text(GOOD), complete=True), (GOOD, []))

    def test_each_fault_is_found(self):
        for index, fields in [(0, {"schema": "kshim-report/2"}), (0, {"pid": "17"}), (0, {"env": {"A": 1}}), (0, {"argv": "x"}),
                              (1, {"path": None}), (1, {"images": [{"kind": "cubin"}]}), (1, {"surprise": 1}), (1, {"seq": 9}),
                              (1, {"t": 100}), (1, {"type": "novel"}), (2, {"object": 7}), (2, {"module": 1}),
                              (2, {"stage": "lunch"}), (2, {"layers": []}), (2, {"native": [{"symbol": "main"}]}),
                              (2, {"layers": [{"layer": "driver", "api": "x", "code": 0, "name": None}]}),
                              (3, {"failures": 0}), (3, {"type": "repeat", "id": 5, "count": 2})]:
            with self.subTest(index=index, **fields):
                self.assertNotEqual(self.changed(index, **fields), [])

    def test_missing_records_must_be_owned_up_to(self):
        records = [PROCESS, {**END, "failures": 0}]
        self.assertNotEqual(report_check.check(text(records))[1], [])
        records[1]["dropped"] = 2
        self.assertEqual(report_check.check(text(records))[1], [])

    def test_torn_line_only_after_a_kill(self):
        torn = text(GOOD[:3]) + '{"type":"fail'
        self.assertNotEqual(report_check.check(torn)[1], [])
        self.assertEqual(report_check.check(torn, killed=True)[1], [])
        self.assertNotEqual(report_check.check(torn, complete=True, killed=True)[1], [])

    def test_type_comes_first(self):
        moved = {"seq": 0, **PROCESS}
        self.assertNotEqual(report_check.check(text([moved]))[1], [])


if __name__ == "__main__":
    unittest.main()
