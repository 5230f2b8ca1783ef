#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim analyze as a command: exit statuses, errors in one line, files, colors on a terminal only."""
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
KSHIM = ""


def known(table):
    """The rows of a built-in table: new ones change no test."""
    with open(os.path.join(HERE, "..", "..", "knowledge", f"{table}.json"), encoding="utf-8") as file:
        return json.load(file)[table]


def environment(**changes):
    base = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    base.update(changes)
    return {name: value for name, value in base.items() if value is not None}


def run(*arguments, cwd=HERE, **changes):
    return subprocess.run([KSHIM, "analyze", *arguments], cwd=cwd, env=environment(**changes), capture_output=True,
                          encoding="utf-8", check=False)


def on_terminal(*arguments, **changes):
    """Output and exit status with a terminal as stdout and stderr."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(HERE)
        os.execve(KSHIM, [KSHIM, "analyze", *arguments], environment(**changes))
    output = b""
    while True:
        if not select.select([terminal], [], [], 60)[0]:
            raise TimeoutError("nothing came for a minute")
        try:
            block = os.read(terminal, 65536)
        except OSError:  # Linux says EIO when the other side is gone
            block = b""
        if not block:
            break
        output += block
    os.close(terminal)
    return output.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class ExitStatus(unittest.TestCase):
    def test_findings_of_severity_error(self):
        self.assertEqual(run("no-image-for-arch").returncode, 1)

    def test_nothing_wrong(self):
        done = run("healthy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_warnings_are_not_errors(self):
        self.assertEqual(run("--target", "sm_120", "target").returncode, 0)

    def test_one_bad_file_among_many_is_a_note(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "letter.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write("Dear Ada,\n")
            done = run("no-image-for-arch", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, done.stdout.replace("\n      ", ""))


class Misuse(unittest.TestCase):
    def refuses(self, status, *arguments, says):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("kshim: error: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_no_path(self):
        self.refuses(2, says=["PATH", "kshim analyze --help"])

    def test_unknown_option(self):
        self.refuses(2, "--nonsense", "healthy", says=["--nonsense", "kshim analyze --help"])

    def test_unknown_format_lists_the_formats(self):
        self.refuses(2, "--format", "yaml", "healthy", says=["--format", "yaml", "text, json"])

    def test_unknown_architecture_tells_what_is_known(self):
        self.refuses(2, "--target", ",", "healthy", says=["--target", "names no architecture"])
        gpus = [row["cc"] for row in known("gpus")]
        self.refuses(2, "--target", "sm_75,sm_99", "healthy", says=["--target", "sm_99", f"from {gpus[0]} to {gpus[-1]}"])

    def test_assumptions_are_checked(self):
        self.refuses(2, "--assume-cc", "8.6,9.0", "healthy", says=["--assume-cc"])
        self.refuses(2, "--assume-driver", "new", "healthy", says=["--assume-driver", "new", "12.4"])
        self.refuses(2, "--assume-toolkit", "-1", "healthy", says=["--assume-toolkit"])

    def test_drivers_of_a_scan_are_checked(self):
        def scan(driver):
            done = subprocess.run([KSHIM, "scan", "--driver", driver, "--format", "json", "nothing.ptx"], cwd=folder, env=environment(),
                                  capture_output=True, encoding="utf-8", check=False)
            return done.returncode, json.loads(done.stdout)["driver"] if done.returncode == 0 else done.stderr

        newest = int(known("toolkits")[-1]["cuda"].split(".")[0])
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "nothing.ptx"), "w", encoding="utf-8") as file:
                file.write(".version 8.0\n.target sm_80\n.address_size 64\n")
            for driver, cuda in (("12.8", "12.8"), ("12.7", "12.7"), ("580", "13.0"), ("R535", "12.2"), ("580.82.07", "13.0"),
                                 ("13.5", "13.5"), (f"{newest + 1}.0", f"{newest + 1}.0")):
                self.assertEqual(scan(driver), (0, cuda), driver)
            for driver in ("", "4.0", "99.9", f"{newest + 2}.0", "340", "999", "58", "580x", "nvidia"):
                status, said = scan(driver)
                self.assertEqual(status, 2, driver)
                self.assertIn("--driver: ", said)
                self.assertIn("12.4", said)

    def test_path_that_is_not_there(self):
        self.refuses(3, "/nowhere/report.jsonl", says=["/nowhere/report.jsonl"])

    def test_file_that_is_no_report(self):
        self.refuses(3, "golden.py", says=["golden.py"])

    def test_folder_without_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuses(3, folder, says=[folder, "jsonl"])

    def test_output_that_cannot_be_written(self):
        self.refuses(2, "-o", "/nowhere/analysis.txt", "healthy", says=["--output", "/nowhere/analysis.txt"])

    def test_output_is_not_one_of_the_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.jsonl")
            with open(os.path.join(HERE, "healthy", "report.jsonl"), encoding="utf-8") as file:
                content = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            self.refuses(2, "-o", path, path, says=[path])
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), content)

    def test_hostile_names_do_not_steer_the_terminal(self):
        for arguments in (["--target", "sm_\x1b[31m", "healthy"], ["/nowhere/\x1b[31m"], ["-o", "/nowhere/\x1b[2J", "healthy"],
                          ["--format", "\x1b[1m", "healthy"], ["--\x1b[1m"], ["--assume-driver", "\x1b[1m", "healthy"]):
            self.assertNotIn("\x1b", run(*arguments).stderr, arguments)


class Output(unittest.TestCase):
    def test_file_gets_what_stdout_would(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "analysis.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write("x" * 100000)  # longer than what comes
            done = run("--format", "json", "-o", path, "healthy")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file), json.loads(run("--format", "json", "healthy").stdout))

    def test_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([KSHIM, "analyze", "healthy"], cwd=HERE, env=environment(), stdout=full,
                                  stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("stdout", done.stderr)

    def test_help_has_an_example(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Examples:\n  kshim analyze ", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)


class Terminal(unittest.TestCase):
    def test_colors_on_a_terminal_only(self):
        colored, status = on_terminal("no-image-for-arch", COLUMNS="100")
        self.assertEqual(status, 1)
        self.assertIn("\x1b[1;31merror:", colored)
        self.assertNotIn("\x1b", run("no-image-for-arch").stdout)

    def test_no_color_and_dumb_terminals(self):
        for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
            self.assertNotIn("\x1b", on_terminal("no-image-for-arch", **changes)[0], changes)

    def test_ascii_where_the_locale_is_not_utf8(self):
        self.assertTrue(run("no-image-for-arch", "-v", LC_ALL="C").stdout.isascii())
        self.assertTrue(run("no-image-for-arch", "-v", LC_ALL=None).stdout.isascii())
        self.assertFalse(run("no-image-for-arch", "-v", LC_ALL=None, LANG="de_DE.UTF-8").stdout.isascii())


if __name__ == "__main__":
    KSHIM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
