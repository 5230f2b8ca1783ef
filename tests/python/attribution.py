#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which test a failure belongs to, from reports and journals made up here: borders, clocks, workers, damaged files."""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import types
import unittest

# The package without what only an installation has.
PACKAGE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"]) / "python" / "kshim"
sys.modules["kshim"] = types.ModuleType("kshim")
sys.modules["kshim"].__path__ = [str(PACKAGE)]
from kshim import _pytest_attribution as attribution  # noqa: E402
from kshim import _pytest_summary as summary  # noqa: E402

SECOND = 10**9
BEGAN = 1_795_250_721 * SECOND  # 2026-11-21T08:45:21Z


class Attribution(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-attribution-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def report(self, pid, *records, run="r", **head):
        head = {"type": "process", "run": run, "pid": pid, "start": 5, "ppid": 1, "time": "2026-11-21T08:45:21.000000Z", **head}
        lines = [json.dumps(record) if isinstance(record, dict) else record for record in (head, *records)]
        (self.folder / f"h.{pid}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        ends = [0]
        for line in lines:
            ends.append(ends[-1] + len(line) + 1)
        return ends[1:]  # the report's length behind each line

    def journal(self, pid, *marks, run="r", worker=None, **head):
        lines = [{"schema": "kshim-tests/1", "run": run, "pid": pid, "start": 5, "worker": worker, **head}]
        lines += [{"test": test, "when": when, "time": BEGAN + time, "size": size} for test, when, time, size in marks]
        (self.folder / f"pytest.h.{pid}.5.tests").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def found(self, run="r"):
        return attribution.Run(str(self.folder), run).tests_of_failures()

    def test_borders_and_a_clock_that_was_set(self):
        failure = {"type": "failure", "id": 1, "t": 10}
        repeat = {"type": "repeat", "id": 1, "count": 3, "t": 20}
        head, first, second = self.report(7, failure, repeat)
        # Written to the last byte before `b` began; and all of it years away by the clock.
        for clock in (0, -10**18, 10**18):
            self.journal(7, ("a", "call", clock, head), ("b", "call", clock, first), (None, None, clock, second))
            self.assertEqual(self.found(), {"h.7.jsonl:2": {"a": 1, "b": 2}})
        self.journal(7, ("a", "setup", 0, head + 1), ("a", "call", 0, first))
        self.assertEqual(self.found(), {"h.7.jsonl:2": {"a": 2}})

    def test_a_child_by_the_clock(self):
        self.journal(7, ("a", "call", 0, 0), ("b", "setup", SECOND, 0), (None, None, 2 * SECOND, 0))
        for t, expected in ((SECOND - 1, {"a": 1}), (SECOND, {"b (setup)": 1}), (2 * SECOND, {})):
            self.report(8, {"type": "failure", "id": 1, "t": t}, ppid=7)
            self.assertEqual(self.found(), {"h.8.jsonl:2": expected})

    def test_what_a_child_says(self):
        self.journal(7, ("a", "call", 0, 0), ("b", "call", SECOND, 0))
        for named, expected in (("a (call)", "a"), ("a (setup)", "b"), ("a (teardown)", "b"), ("x (y) (call)", "x (y)"), ("", "b")):
            self.report(8, {"type": "failure", "id": 1, "t": SECOND}, env={"PYTEST_CURRENT_TEST": named})
            self.assertEqual(self.found(), {"h.8.jsonl:2": {expected: 1}}, named)

    def test_whose_child(self):
        self.journal(7, ("a", "call", 0, 0), worker="gw0")
        self.journal(9, ("b", "call", 0, 0), worker="gw1")
        self.report(10, {"type": "failure", "id": 1, "t": 5}, ppid=9)
        self.report(11, {"type": "failure", "id": 1, "t": 5}, ppid=10)
        self.report(12, {"type": "failure", "id": 1, "t": 5}, ppid=4000, env={"PYTEST_XDIST_WORKER": "gw1"})
        self.assertEqual({tuple(tests) for tests in self.found().values()}, {("b",)})

    def test_another_process_of_that_number(self):
        self.journal(7, ("a", "call", 0, 0))
        self.report(7, {"type": "failure", "id": 1, "t": 5}, start=6, env={"PYTEST_CURRENT_TEST": "c (call)"})
        self.assertEqual(self.found(), {"h.7.jsonl:2": {"c": 1}})

    def test_other_runs(self):
        self.journal(7, ("a", "call", 0, 0), run="old")
        self.report(7, {"type": "failure", "id": 1, "t": 5}, run="old")
        run = attribution.Run(str(self.folder), "r")
        self.assertEqual((run.reports, run.journal_files, run.foreign), ([], [], 1))

    def test_damaged(self):
        odd = ['{"type":"failure","id":', "[1]", "null", {"type": "failure", "id": [1]}, {"type": "failure"},
               {"type": "repeat", "id": 9, "count": 3}, {"type": "failure", "id": 1, "t": "x"},
               {"type": "repeat", "id": 1, "count": "x"}, {"type": "repeat", "id": 1, "count": -5}, "\x00\x01"]
        for more in ({"env": [1]}, {"ppid": "x", "time": 5}, {"start": []}, {"env": {"PYTEST_CURRENT_TEST": 3}}):
            self.report(8, *odd, **more)
            (self.folder / "pytest.h.1.1.tests").write_text('{"schema":"kshim-tests/1","run":"r","pid":[],"start":{}}\n[]\n{"size":1}\n'
                                                            '{"size":0,"time":0,"test":4}\n{"size"')
            (self.folder / "pytest.h.2.1.tests").write_bytes(b"\xff\xfe")
            self.assertEqual(self.found(), {"h.8.jsonl:8": {}})
        self.assertEqual(attribution.Run(str(self.folder / "absent"), "r").reports, [])

    def honest(self):
        self.journal(7, ("a", "call", 0, 0))
        self.report(7, {"type": "failure", "id": 1, "t": 5})
        return {"h.7.jsonl:2": {"a": 1}}

    def opened(self):
        """What is opened from here on, but for looking (O_PATH)."""
        names = []
        real = os.open

        def watched(path, flags, *more, **named):
            if not flags & os.O_PATH:
                names.append(os.readlink(path) if str(path).startswith("/proc/self/fd/") else str(path))
            return real(path, flags, *more, **named)
        os.open = watched
        self.addCleanup(setattr, os, "open", real)
        return names

    # shows: the pytest plug-in: FIFOs, devices and links to them beside its reports
    def test_what_is_no_file(self):
        expected = self.honest()
        for suffix in (".jsonl", ".tests"):
            os.mkfifo(self.folder / f"f{suffix}")
            (self.folder / f"z{suffix}").symlink_to("/dev/zero")
            (self.folder / f"l{suffix}").symlink_to(self.folder / "f.jsonl")
            (self.folder / f"n{suffix}").symlink_to("nowhere")
            (self.folder / f"d{suffix}").mkdir()
            if os.geteuid() == 0:
                os.mknod(self.folder / f"c{suffix}", 0o020600, os.makedev(1, 5))
        opened = self.opened()
        self.assertEqual(self.found(), expected)
        self.assertTrue(opened)
        for path in opened:
            self.assertTrue(os.path.isfile(path), path)

    # shows: the pytest plug-in: reports and journals that are sparse, endless, deep, or have endless lines and numbers
    def test_what_is_too_large(self):
        expected = self.honest()
        head = (self.folder / "h.7.jsonl").read_bytes().splitlines()[0].replace(b'"pid": 7', b'"pid": 8') + b"\n"
        start = b'{"schema":"kshim-tests/1","run":"r","pid":8,"start":5}\n'
        for name, content in (("deep", b"[" * 3_000_000), ("number", b'{"id":' + b"1" * 3_000_000 + b"}"), ("long", b'{"id":"' + b"x" * (9 << 20)),
                              ("list", b"[" + b"{}," * 2_000_000 + b"{}]")):
            (self.folder / f"{name}.jsonl").write_bytes(head + content + b"\n")
            (self.folder / f"{name}.tests").write_bytes(start + content + b"\n")
        for name in ("sparse.jsonl", "sparse.tests"):
            (self.folder / name).write_bytes(head if name.endswith("jsonl") else start)
            os.truncate(self.folder / name, 1 << 41)
        (self.folder / "all.jsonl").write_bytes(b"")
        os.truncate(self.folder / "all.jsonl", 1 << 41)
        self.assertEqual(self.found(), expected)

    # shows: the pytest plug-in: a report that shrinks, one that is replaced while it is opened
    def test_what_changes(self):
        expected = self.honest()
        victim = self.folder / "h.9.jsonl"
        stop = threading.Event()

        def flip():
            while not stop.is_set():
                self.report(9, *({"type": "gap", "kernels": "x" * 1000} for _ in range(300)))
                os.truncate(victim, 100)
                os.unlink(victim)
                os.mkfifo(victim)
                os.unlink(victim)
                victim.symlink_to("/dev/zero")
                os.unlink(victim)
        thread = threading.Thread(target=flip)
        thread.start()
        try:
            for _ in range(200):
                self.assertEqual(self.found(), expected)
        finally:
            stop.set()
            thread.join()

    def test_clean(self):
        self.assertEqual(summary.clean("a\x1b[31m\n##[error]\u202e"), "a?[31m?##?[error]?")


if __name__ == "__main__":
    unittest.main(verbosity=2)
