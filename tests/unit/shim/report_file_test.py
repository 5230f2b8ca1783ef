#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report file in the lives that processes lead: fork, exec, _exit, SIGKILL, closed descriptors, full disks.

    report_file_test.py REPORT_PROBE
"""
import os
import pathlib
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

import report_check

PROBE = os.path.abspath(sys.argv.pop(1))


class ReportFile(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(os.path.realpath(holder.name))
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def start(self, mode, *arguments, environment=None, **keywords):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("KSHIM_")}
        variables.update({"TMPDIR": str(self.temporary), **(environment or {})})
        return subprocess.run([PROBE, mode, *arguments], cwd=self.folder, env=variables, stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, check=False, timeout=60, **keywords)

    def reports(self, folder=None, **keywords):
        paths = sorted((folder or self.folder / "kshim-report").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        return [report_check.load(path, **keywords) for path in paths]

    def sonames(self, records):
        return [record["soname"] for record in records if record["type"] == "library"]

    def test_one_process(self):
        done = self.start("once", environment={"RANK": "3", "CUDA_VISIBLE_DEVICES": "1", "SECRET_TOKEN": "x",
                                               "KSHIM_RUN_ID": "run-1"})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        (records,) = self.reports(complete=True)
        process = records[0]
        self.assertEqual([record["type"] for record in records], ["process", "library", "end"])
        self.assertEqual((process["exe"], process["argv"], process["cwd"]), (PROBE, [PROBE, "…"], str(self.folder)))
        self.assertEqual((process["rank"], process["run"], process["host"]), (3, "run-1", os.uname().nodename))
        self.assertEqual(process["env"]["CUDA_VISIBLE_DEVICES"], "1")
        self.assertNotIn("SECRET_TOKEN", process["env"])
        self.assertEqual(process["ppid"], os.getpid())
        (path,) = (self.folder / "kshim-report").iterdir()
        self.assertEqual(path.name, f"{process['host']}.{process['pid']}.jsonl")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_no_record_no_file(self):
        self.assertEqual(self.start("nothing").returncode, 0)
        self.assertFalse((self.folder / "kshim-report").exists())

    def test_disabled(self):
        self.assertEqual(self.start("once", environment={"KSHIM_DISABLE": "1"}).returncode, 0)
        self.assertFalse((self.folder / "kshim-report").exists())

    def test_pattern(self):
        pattern = str(self.folder / "a/%h/rank%r.%%.%p.log")
        self.start("once", environment={"KSHIM_REPORT": pattern, "SLURM_PROCID": "5"})
        (path,) = self.folder.glob("a/*/*.log")
        self.assertRegex(str(path.relative_to(self.folder)), rf"^a/{re.escape(os.uname().nodename)}/rank5\.%\.\d+\.log$")
        report_check.load(path, complete=True)

    def test_an_existing_report_is_kept(self):
        for _ in range(3):
            self.start("once", environment={"KSHIM_REPORT": "r.jsonl"})
        self.assertEqual(sorted(path.name for path in self.folder.glob("r*")), ["r.1.jsonl", "r.2.jsonl", "r.jsonl"])
        self.assertEqual(len(self.reports(self.folder, complete=True)), 3)

    def test_working_directory_is_that_of_the_start(self):
        self.assertEqual(self.start("chdir").returncode, 0)
        self.assertEqual(len(self.reports(complete=True)), 1)

    def test_end_at_underscore_exit(self):
        self.assertEqual(self.start("_exit").returncode, 3)
        (records,) = self.reports(complete=True)
        self.assertEqual(self.sonames(records), ["one"])

    def test_quick_exit_leaves_whole_lines(self):
        self.assertEqual(self.start("quick").returncode, 4)
        (records,) = self.reports()
        self.assertEqual(self.sonames(records), ["one"])

    def test_killed_process_leaves_its_records_and_no_end(self):
        self.assertEqual(self.start("kill").returncode, -signal.SIGKILL)
        (records,) = self.reports()
        self.assertEqual([record["type"] for record in records], ["process", "library"])

    def test_child_of_fork_has_its_own(self):
        self.assertEqual(self.start("fork").returncode, 0)
        one, other = self.reports(complete=True)
        parent, child = (one, other) if other[0]["ppid"] == one[0]["pid"] else (other, one)
        self.assertEqual((self.sonames(parent), self.sonames(child)), (["parent", "parent"], ["child"]))
        self.assertEqual(child[0]["ppid"], parent[0]["pid"])

    def test_silent_children_leave_none(self):
        for mode in ("silent-fork", "vfork"):
            with self.subTest(mode):
                self.assertEqual(self.start(mode, environment={"KSHIM_REPORT": f"{mode}/r.jsonl"}).returncode, 0)
                (records,) = self.reports(self.folder / mode, complete=True)
                self.assertEqual(self.sonames(records), ["parent", "parent"])

    def test_fork_while_threads_write(self):
        self.assertEqual(self.start("busy-fork").returncode, 0)
        reports = self.reports(complete=True)
        self.assertEqual(len(reports), 21)
        children = [records for records in reports if records[0]["ppid"] != os.getpid()]
        self.assertEqual(len(children), 20)
        for records in children:
            self.assertEqual(self.sonames(records), ["child"] * (1 - records[-1]["dropped"]))

    def test_exec_begins_another(self):
        self.assertEqual(self.start("exec").returncode, 0)
        first, second = sorted(self.reports(), key=lambda records: records[-1]["type"] == "end")
        self.assertEqual(first[0]["pid"], second[0]["pid"])
        self.assertEqual((first[-1]["type"], second[-1]["type"]), ("library", "end"))

    def test_threads(self):
        self.assertEqual(self.start("threads").returncode, 0)
        (records,) = self.reports(complete=True)
        # A thread that waits too long for the lock drops its record and says so.
        self.assertEqual(len(self.sonames(records)) + records[-1]["dropped"], 4000)

    def test_closed_and_reused_descriptors(self):
        precious = self.folder / "precious"
        self.assertEqual(self.start("reuse", str(precious)).returncode, 0)
        self.assertEqual(precious.read_bytes(), b"")
        (records,) = self.reports(complete=True)
        self.assertEqual(self.sonames(records), ["before", "after"])

    def test_what_does_not_fit_is_taken_back_and_counted(self):
        done = self.start("small-disk")
        self.assertEqual(done.returncode, 0, "SIGXFSZ ends a process")
        (records,) = self.reports(complete=True)
        self.assertEqual(self.sonames(records), ["before", "after"])
        self.assertEqual(records[-1]["dropped"], 2)

    def test_closed_stdio_at_the_start(self):
        for number in (0, 1, 2):
            with self.subTest(number):
                done = self.start("alarm", environment={"KSHIM_REPORT": f"closed{number}/r.jsonl"},
                                  preexec_fn=lambda number=number: os.close(number))
                self.assertEqual(done.returncode, 0)
                self.assertEqual(len(self.reports(self.folder / f"closed{number}", complete=True)), 1)

    def test_a_file_of_the_host_in_place_of_stderr(self):
        done = self.start("no-stderr", str(self.folder / "precious"), preexec_fn=lambda: os.close(2))
        self.assertEqual(done.returncode, 0)

    def test_stderr_that_nobody_reads(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PROBE, "alarm"], cwd=self.folder, stderr=writer, check=False, timeout=60)
        os.close(writer)
        self.assertEqual(done.returncode, 0, "SIGPIPE ends a process")

    def test_stderr_that_is_full(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(writer, True)
        done = subprocess.run([PROBE, "alarm"], cwd=self.folder, stderr=writer, check=False, timeout=60)
        self.assertEqual(done.returncode, 0)
        os.close(reader)
        os.close(writer)

    def test_one_block_a_kind(self):
        done = self.start("alarm")
        self.assertEqual(done.stderr.count(b"kshim analyze kshim-report/"), 2, done.stderr)
        self.assertEqual(self.start("alarm", environment={"KSHIM_LOG": "error"}).stderr, b"")

    def test_bad_values_are_named_once(self):
        done = self.start("once", environment={"KSHIM_LOG": "loud\x1b[31m", "KSHIM_TARGET": "sm_banana"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(sorted(done.stderr.decode().splitlines()),
                         ["kshim: KSHIM_LOG=loud?[31m is not understood; using warn",
                          "kshim: KSHIM_TARGET=sm_banana is not understood; it is ignored"])
        self.assertEqual(self.start("nothing", environment={"KSHIM_LOG": "loud"}).stderr, b"", "a process without CUDA")

    def test_says_where_the_report_is_when_asked(self):
        done = self.start("once", environment={"KSHIM_LOG": "info"})
        (path,) = (self.folder / "kshim-report").iterdir()
        self.assertEqual(done.stderr.decode(), f"kshim: the report is {path}\n")

    def test_unwritable_place(self):
        done = self.start("once", environment={"KSHIM_REPORT": "/proc/nowhere/%p.jsonl"})
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), rf"^kshim: cannot write the report /proc/nowhere/\d+\.jsonl: the folder "
                                               rf"cannot be made; writing to {self.temporary}/kshim-report-{os.geteuid()}/\S+\n$")
        self.assertEqual(len(self.reports(self.temporary / f"kshim-report-{os.geteuid()}", complete=True)), 1)

    def test_nowhere_to_write(self):
        done = self.start("once", environment={"KSHIM_REPORT": "/proc/nowhere/r.jsonl", "TMPDIR": "/proc/nowhere"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, b"kshim: cannot write the report /proc/nowhere/r.jsonl: the folder cannot be made; "
                                      b"nothing is recorded\n")

    def test_few_descriptors(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        self.assertEqual(self.start("once", preexec_fn=limit).returncode, 0)
        self.assertEqual(len(self.reports(complete=True)), 1)

    def test_sign_of_life(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as receiver:
            receiver.bind(str(self.folder / "alive"))
            receiver.listen()
            receiver.settimeout(30)
            for path, answers in ((self.folder / "alive", True), (self.folder / "nobody", False)):
                done = self.start("nothing", environment={"KSHIM_RUN_SOCKET": str(path)})
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                if answers:
                    with receiver.accept()[0] as caller:
                        self.assertRegex(caller.recv(64), rb"^alive \d+\n$")


if __name__ == "__main__":
    unittest.main()
