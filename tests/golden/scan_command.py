#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim scan as a command: what it writes where, what it refuses, what is left when it is interrupted.

scan_command.py KSHIM
"""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile

import scan_fixture

KSHIM = ""


class Command(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.realpath(temporary.name)
        scan_fixture.make(self.folder)
        os.remove(os.path.join(self.folder, "torn.fatbin"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def scan(self, *arguments, **options):
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8"}
        return subprocess.run([KSHIM, "scan", *arguments], cwd=self.folder, env=environment, capture_output=True, encoding="utf-8",
                              check=False, **options)

    def targets(self, text):
        return json.loads(self.scan("--format", "json", "--target", text, "scale.fatbin").stdout)["targets"]


class Output(Command):
    def test_device_code_of_a_scanned_folder_is_not_overwritten(self):
        for name in ("scale.fatbin", "things-1.2-py3-none-any.whl"):
            before = self.read(name)
            done = self.scan("-o", name, ".")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(name, done.stderr)
            self.assertEqual(self.read(name), before)

    def test_an_earlier_output_is_overwritten(self):
        for _ in range(2):
            self.assertEqual(self.scan("-o", "scan.txt", ".").returncode, 0)
        self.assertIn(b"scale.fatbin", self.read("scan.txt"))
        self.assertEqual([name for name in os.listdir(self.folder) if "kshim-" in name], [])

    def test_stdout_by_its_name(self):
        self.assertEqual(self.scan("-o", "/dev/stdout", ".").stdout, self.scan(".").stdout)

    def test_an_interrupt_leaves_no_empty_file(self):
        with zipfile.ZipFile(self.path("slow.whl"), "w", zipfile.ZIP_DEFLATED) as wheel:
            for i in range(3):  # longer to inflate than the wait below
                wheel.writestr(f"data{i}.ptx", scan_fixture.SCALE + "//" + "x" * (256 << 20))
        with subprocess.Popen([KSHIM, "scan", "-j", "1", "-o", "scan.txt", "slow.whl"], cwd=self.folder, stderr=subprocess.PIPE) as process:
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(("scan.txt", ".kshim"))], [])


class Targets(Command):
    def test_each_gpu_once(self):
        self.assertEqual(self.targets("8.6,sm_86,86,sm86"), ["sm_86"])

    def test_a_suffix_is_dropped(self):
        self.assertEqual(self.targets("sm_90a,9.0,sm_120f"), ["sm_90", "sm_120"])

    def test_what_no_gpu_is_called(self):
        for text, instead in (("sm_61a", "6.1"), ("6.1f", "6.1"), ("lto_80", "8.0"), ("sm_90f", "9.0")):
            done = self.scan("--target", text, "scale.fatbin")
            self.assertEqual(done.returncode, 2, text)
            self.assertIn(instead, done.stderr)


class Limits(Command):
    def test_fewer_threads_than_asked_for(self):
        def limit(megabytes=120):
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.mkdir(self.path("many"))  # small files: the stacks of the threads leave little room for a wheel
        for i in range(64):
            with open(self.path(f"many/{i}.ptx"), "w", encoding="utf-8") as file:
                file.write(scan_fixture.SCALE)
        if self.scan("-j", "1", "scale.fatbin", preexec_fn=limit).returncode != 0:
            self.skipTest("this build needs more memory to start")  # a sanitizer's
        whole = self.scan("many").stdout
        for megabytes in range(112, 121):  # what the stacks of 8 MB leave
            done = self.scan("-j", "64", "many", preexec_fn=lambda size=megabytes: limit(size))
            self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", whole), megabytes)


if __name__ == "__main__":
    KSHIM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
