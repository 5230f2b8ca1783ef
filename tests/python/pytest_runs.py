#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytest --kshim leaves pytest as it is: exit status, capture, input, terminal, xdist, coverage; and says what it could not do."""
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402
from staged import TESTED, findings_in  # noqa: E402

staged.require_modules("pytest", "xdist", "pytest_cov", "jsonschema")
import jsonschema  # noqa: E402
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", staged.LIBRARIES / "libnarrow.so")

NARROW = TESTED + 'def test_it(): assert lib("narrow").launch(0) == 209\n'
BROAD = TESTED + 'def test_it(): assert lib("broad").launch(0) == 0\n'
ON_12 = ("--kshim-simulate", "sm_120")


class Runs(staged.Staged):
    def last_lines(self, done):
        return findings_in(done.stdout)[1]

    def assert_status(self, done, status):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)

    # What is said

    def test_healthy(self):
        self.write(test_a=BROAD)
        done = self.pytest("--kshim", *ON_12)
        self.assert_status(done, 0)
        found, ours = findings_in(done.stdout)
        self.assertEqual((found, len(ours)), ([], 1), done.stdout)
        self.assertIn("1 process used CUDA, nothing was missing", ours[0])
        self.assertEqual(done.stderr, "")

    def test_what_could_not_be_written(self):
        """The failure is on no disk: nothing was missing would be a lie, and a gate must not pass. Of a process that has ended: pytest's own
        has not told yet how much it lost."""
        self.write(test_a=TESTED + """import resource
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
def test_it():
    assert lib("broad").launch(0) == 0
    narrow = lib("narrow")
    limit(1)
    got = narrow.launch(0)
    limit(resource.RLIM_INFINITY)
    assert got == 209
""")
        done = self.pytest("--kshim", *ON_12, "--kshim-fail-on", "error", "-n1")
        self.assert_status(done, 1)
        self.assertRegex(self.last_lines(done)[0], "records? lost")

    def test_without_cuda(self):
        self.write(test_a="def test_it(): pass\n")
        done = self.pytest("--kshim", "--kshim-fail-on", "warning")
        self.assert_status(done, 0)
        self.assertEqual(self.last_lines(done), ["kshim: no process used CUDA"])
        self.assertEqual(self.files(), ["test_a.py"])

    def test_without_a_gpu(self):
        self.write(test_a=TESTED + 'def test_it(): assert lib("broad").launch(0) in (35, 100)\n')
        done = self.pytest("--kshim-fail-on", "error")
        self.assert_status(done, 0)
        self.assertEqual(len(self.last_lines(done)), 1, done.stdout)

    def test_finding(self):
        self.write(test_a=NARROW)
        done = self.pytest(*ON_12)
        self.assert_status(done, 0)
        found, ours = findings_in(done.stdout)
        self.assertEqual(len(found), 1, done.stdout)
        first, rows = found[0]
        self.assertTrue(first.startswith("error: ") and first.endswith("[no-image-for-arch]"), first)
        self.assertEqual(rows["file"], [str(staged.LIBRARIES / "libnarrow.so")])
        self.assertIn("(12.0, simulated)", rows["on"][0])
        self.assertEqual((rows["has"], rows["needs"]), (["sm_90"], ["sm_120"]))
        self.assertIn("first(float*)", rows["kernel"][0])
        self.assertIn("test_a.py:", rows["where"][0])
        self.assertIn("sm_120", " ".join(rows["fix"]))
        self.assertEqual(rows["tests"], ["test_a.py::test_it"])
        # What it names can be done.
        again = self.kshim("analyze", ours[0].rpartition("kshim analyze ")[2])
        self.assertEqual(again.returncode, 1)
        self.assertIn("Do this [you]", again.stdout)
        folder = pathlib.Path(ours[0].rpartition("kshim analyze ")[2])
        analysis = json.loads(self.kshim("analyze", "--verbose", "--format", "json", folder).stdout)
        jsonschema.validate(analysis, json.loads((e2e.SOURCE / "docs" / "schema" / "analysis.json").read_text()))
        path, _, line = analysis["findings"][0]["failures"][0].rpartition(":")
        record = json.loads(pathlib.Path(path).read_text().splitlines()[int(line) - 1])
        self.assertEqual(record["type"], "failure")
        plain = json.loads(self.kshim("analyze", "--format", "json", folder).stdout)
        self.assertNotIn("failures", plain["findings"][0])

    def test_a_command_for_a_shell(self):
        self.write(test_a=NARROW)
        done = self.pytest(*ON_12, "--kshim-report", "with a blank")
        self.assertEqual(self.kshim(*shlex.split(self.last_lines(done)[0].rpartition("all of it: kshim ")[2])).returncode, 1, done.stdout)

    def test_target(self):
        self.write(test_a=TESTED + 'def test_it(): assert lib("narrow").launch(0) == 0\n')
        done = self.pytest("--kshim-simulate", "9.0", "--kshim-target", "sm_120", "--kshim-fail-on", "warning")
        self.assert_status(done, 1)
        found, _ = findings_in(done.stdout)
        self.assertTrue(found and found[0][0].endswith("[latent-gap]"), done.stdout)

    def test_fail_on(self):
        self.write(test_a=NARROW)
        done = self.pytest(*ON_12, "--kshim-fail-on", "error")
        self.assert_status(done, 1)
        self.assertIn("1 passed", done.stdout)
        self.assertIn("kshim: the session fails: --kshim-fail-on error", self.last_lines(done))
        self.assert_status(self.pytest(*ON_12, "--kshim-fail-on", "error", "-n", "2"), 1)
        self.assert_status(self.pytest(*ON_12, "--kshim-fail-on", "error", "-p", "no:terminal"), 1)

    def test_one_run_of_several_in_a_folder(self):
        self.write(test_a=NARROW, test_b=BROAD)
        self.assert_status(self.pytest(*ON_12, "--kshim-report", "r", "test_a.py", "--kshim-fail-on", "error"), 1)
        done = self.pytest(*ON_12, "--kshim-report", "r", "test_b.py", "--kshim-fail-on", "error")
        self.assert_status(done, 0)
        self.assertIn("1 process used CUDA", self.last_lines(done)[0])

    # What stays as it is

    def test_exit_status(self):
        self.write(test_pass="def test_it(): pass\n", test_fail="def test_it(): assert 0\n", test_none="",
                   test_stop="def test_it(): raise KeyboardInterrupt\n")
        for name, status in (("test_pass.py", 0), ("test_fail.py", 1), ("test_stop.py", 2), ("absent.py", 4), ("test_none.py", 5)):
            for more in ([], ["-n", "1"]) if status < 2 else ([],):
                with self.subTest(name, more=more):
                    self.assert_status(self.pytest(name, *more), status)
                    self.assert_status(self.pytest("--kshim", name, *more), status)

    def test_capture(self):
        self.write(test_a="""
import os, sys
def test_fails(capfd):
    os.write(1, b"from the descriptor")
    assert capfd.readouterr().out == "from the descriptor"
    print("said by the test"); os.system("echo said by a child"); assert 0
""")
        for mode in ("fd", "sys", "no"):
            with self.subTest(mode):
                plain, ours = self.pytest(f"--capture={mode}"), self.pytest("--kshim", f"--capture={mode}")
                strip = lambda text: re.sub(r"in [0-9.]+s|kshim: .*\n|plugins: .*|0x[0-9a-f]+", "", text)  # noqa: E731
                self.assertEqual(strip(ours.stdout).strip("=\n "), strip(plain.stdout).strip("=\n "))
                self.assertEqual(ours.stderr, plain.stderr)

    def test_input(self):
        self.write(test_a="import sys\ndef test_it(): assert sys.stdin.read() == 'typed'\n")
        done = self.pytest("--kshim", "-s", stdin=None, input="typed")
        self.assert_status(done, 0)

    def test_terminal(self):
        self.write(test_a="import os\ndef test_it(): assert all(os.isatty(fd) for fd in (0, 1, 2))\n")
        master, slave = pty.openpty()
        with subprocess.Popen([sys.executable, "-m", "pytest", "-s", "--kshim", "-p", "no:cacheprovider"], cwd=self.folder,
                              env=self.environment(), stdin=slave, stdout=slave, stderr=slave) as child:
            os.close(slave)
            shown = b""
            try:
                while piece := os.read(master, 4096):
                    shown += piece
            except OSError:  # EIO: the last one has closed it
                pass
            self.assertEqual(child.wait(60), 0, shown.decode())
        os.close(master)

    def test_coverage(self):
        self.write(mine="def used():\n    return 1\n\ndef unused():\n    return 2\n",
                   test_a="import mine\ndef test_one(): mine.used()\ndef test_two(): pass\n")
        for more in ([], ["-n", "2"]):
            with self.subTest(more=more):
                for ours in ([], ["--kshim"]):
                    done = self.pytest("--cov=mine", "--cov-report=term", *more, *ours)
                    self.assert_status(done, 0)
                    self.assertRegex(done.stdout, r"mine\.py +4 +1 +75%", done.stdout)

    def test_coverage_run(self):
        self.write(mine="def used():\n    return 1\n\ndef unused():\n    return 2\n",
                   test_a="import mine\ndef test_one(): mine.used()\n")
        done = self.python("-m", "coverage", "run", "--include=mine.py", "-m", "pytest", "-p", "no:cacheprovider", "--kshim")
        self.assert_status(done, 0)
        self.assertIn("75%", self.python("-m", "coverage", "report").stdout)

    def test_settings_of_the_project(self):
        (self.folder / "pytest.ini").write_text("[pytest]\naddopts = --kshim --kshim-simulate sm_120 --kshim-fail-on error\n")
        self.write(test_a=NARROW)
        self.assert_status(self.pytest(), 1)

    def test_started_once(self):
        self.write(conftest="import os, pathlib\nwith open('starts', 'a') as f: f.write(f'{os.getpid()}\\n')\n",
                   test_a="import os\ndef test_it(): assert os.getpid() == int(open('starts').read())\n")
        self.assert_status(self.pytest("--kshim"), 0)

    def test_nothing_without_the_option(self):
        self.write(test_a="""
import os, sys
def test_it():
    assert "kshim.pytest_plugin" in sys.modules
    assert not [name for name in sys.modules if name.startswith("kshim._pytest")]
    assert "LD_PRELOAD" not in os.environ
""")
        done = self.pytest()
        self.assert_status(done, 0)
        self.assertEqual(self.last_lines(done), [])

    # What it cannot do

    def test_a_preload_that_is_refused(self):
        broken = self.folder / "site"
        shutil.copytree(self.site, broken)
        (broken / "kshim" / "lib" / "libkshim.so").write_text("no library\n")
        self.write(test_a="def test_it(): pass\n")
        env = self.environment()
        env["PYTHONPATH"] = env["PYTHONPATH"].replace(str(self.site), str(broken))
        done = self.pytest("--kshim", env=env)
        self.assert_status(done, 0)
        self.assertIn("did not come to life", self.last_lines(done)[0])
        self.assert_status(self.pytest("--kshim", "--kshim-fail-on", "error", env=env), 1)

    def test_switched_off(self):
        self.write(test_a=NARROW)
        done = self.pytest(*ON_12, "--kshim-fail-on", "error", env=self.environment(KSHIM_DISABLE=1))
        self.assert_status(done, 1)
        self.assertIn("KSHIM_DISABLE=1", self.last_lines(done)[0])

    def test_called_by_a_program(self):
        self.write(test_a="def test_it(): pass\n", runner="import pytest, sys\nsys.exit(pytest.main(['--kshim']))\n")
        done = self.python("runner.py")
        self.assert_status(done, 4)
        self.assertIn("kshim run -- PROGRAM", done.stderr)

    def test_under_kshim_run(self):
        self.write(test_a=NARROW, runner="import pytest, sys\nsys.exit(pytest.main(['--kshim', '-p', 'no:cacheprovider']))\n")
        done = self.kshim("run", "--simulate", "sm_120", "--", sys.executable, "runner.py", env=self.environment())
        self.assert_status(done, 0)
        found, _ = findings_in(done.stdout)
        self.assertEqual(found[0][1]["tests"], ["test_a.py::test_it"], done.stdout)
        self.assertIn("Do this [you]", done.stderr)

    def test_misuse(self):
        self.write(test_a="def test_it(): pass\n")
        done = self.pytest("--kshim-simulate", "tesla")
        self.assert_status(done, 4)
        self.assertIn("`tesla` is neither an architecture", done.stderr)


if __name__ == "__main__":
    e2e.main()
