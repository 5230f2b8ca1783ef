#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong input gives one clear line and the exit status that docs/cli.md promises; CMD is not started."""
import json
import os
import zipfile

import e2e

e2e.require(e2e.KSHIM, e2e.SHIM)


class Run(e2e.Case):
    def refuses(self, arguments, status, *parts):
        """CMD would leave a file."""
        done = self.kshim("run", *arguments, "--", "sh", "-c", "touch started")
        self.assert_says(done, status, *parts)
        self.assertEqual(self.files(), [])

    def test_unknown_architecture(self):
        self.refuses(["--simulate", "sm_999"], 125, "--simulate sm_999", "--list-gpus")
        self.refuses(["--simulate", "turing"], 125, "turing", "sm_86")
        self.refuses(["--target", "sm_86,sm_77"], 125, "--target", "sm_77", "--list-gpus")

    def test_other_values(self):
        self.refuses(["--simulate", "sm_86,driver=newest"], 125, "driver=", "12.4")
        self.refuses(["--simulate", "sm_86,color=red"], 125, "color=red")
        # A driver that the GPU never had, of the first and of the second one too.
        self.refuses(["--simulate", "RTX 5090,driver=12.4"], 125, "RTX 5090,driver=12.4", "12.0", "12.8")
        self.refuses(["--simulate", "K80,driver=13.0"], 125, "K80,driver=13.0", "3.7", "11.4")
        self.refuses(["--simulate", "sm_86,driver=12.4", "--simulate", "RTX 5090"], 125, "12.4", "12.0", "12.8")
        self.refuses(["--format", "pdf"], 125, "`pdf`", "json")
        self.refuses(["--fail-on", "note"], 125, "--fail-on", "error")
        self.refuses(["--status", "mine"], 125, "--status", "findings")
        self.refuses(["--timeout", "-1"], 125, "--timeout")
        self.refuses(["--timeout", "soon"], 125, "--timeout", "soon")
        self.refuses(["--simulatte", "sm_86"], 125, "--simulatte", "kshim run --help")

    def test_nothing_to_run(self):
        self.assert_says(self.kshim("run"), 125, "nothing to run", "-- CMD")
        self.assert_says(self.kshim("run", "--"), 125, "nothing to run")

    def test_missing_program(self):
        self.assert_says(self.kshim("run", "--", "no-such-program"), 127, "no-such-program", "not found in PATH")
        self.assert_says(self.kshim("run", "--", "./no-such-program"), 127, "./no-such-program", "no such file")

    def test_not_executable(self):
        (self.folder / "notes.txt").write_text("hello\n")
        self.assert_says(self.kshim("run", "--", "./notes.txt"), 126, "./notes.txt", "not executable")
        self.assert_says(self.kshim("run", "--", "."), 126, "folder")

    def test_interpreter_that_is_not_there(self):
        script = self.folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.assert_says(self.kshim("run", "--", "./script"), 127, "./script", "interpreter")

    def test_unwritable_folders(self):
        (self.folder / "file").write_text("")
        for folder in ("file", "file/below", "/proc/nowhere"):
            done = self.kshim("run", "--report", folder, "--", "sh", "-c", "touch started")
            self.assert_says(done, 125, f"--report {folder}", "cannot write there")
        done = self.kshim("run", "-o", "nowhere/analysis.json", "--", "sh", "-c", "touch started")
        self.assert_says(done, 125, "nowhere/analysis.json", "cannot write there")
        self.assertEqual(self.files(), ["file"])

    def test_full_disk(self):
        if os.path.exists("/dev/full"):
            self.assert_says(self.kshim("run", "-o", "/dev/full", "--", "true"), 125, "/dev/full", "cannot write")


class Analyze(e2e.Case):
    def test_no_input(self):
        self.assert_says(self.kshim("analyze"), 2, "missing", "PATH", "kshim analyze --help")

    def test_a_report_that_is_not_one(self):
        (self.folder / "notes.jsonl").write_text("these are notes\n")
        (self.folder / "image.bin").write_bytes(bytes(range(256)))
        (self.folder / "other.json").write_text(json.dumps({"schema": "somebody-elses/1"}) + "\n")
        (self.folder / "empty.jsonl").write_text("")
        for name in ("notes.jsonl", "image.bin", "other.json", "empty.jsonl", "not-there.jsonl"):
            done = self.kshim("analyze", name)
            self.assertEqual(done.returncode, 3, f"{name}: {done.stdout}{done.stderr}")
            self.assertIn(name, done.stdout + done.stderr)

    def test_of_many_errors_the_first_are_printed(self):
        for index in range(200):
            (self.folder / f"{index}.jsonl").write_text("x" * index)
        for options, lines in (([], 11), (["-v"], 200)):
            done = self.kshim("analyze", *options, *(f"gone-{index}" for index in range(200)))
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (3, lines), done.stderr[:2000])
        with zipfile.ZipFile(self.folder / "many.zip", "w") as archive:
            for index in range(200):
                archive.writestr(f"{index}.so", b"\x7fELF\x02\x01\x01" + b"\0" * 20 + b"fat" + bytes([index]))
        for options, lines in (([], 11), (["-v"], 200)):
            done = self.kshim("scan", *options, "many.zip")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (3, lines), done.stderr[:2000])
        self.assertIn("kshim: error: and 190 more", self.kshim("scan", "many.zip").stderr)

    def test_a_folder_without_reports(self):
        (self.folder / "empty").mkdir()
        done = self.kshim("analyze", "empty")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)

    def test_a_reader_that_goes_away(self):
        """`kshim analyze | head -0` ends quietly."""
        reader, writer = os.pipe()
        os.close(reader)
        done = self.run_program(e2e.KSHIM, "analyze", "--help", stdout=writer)
        os.close(writer)
        self.assertNotEqual(done.returncode, 0)


class Frame(e2e.Case):
    def test_unknown_command(self):
        self.assert_says(self.kshim("frobnicate"), 2, "frobnicate", "kshim help")

    def test_unknown_option(self):
        self.assert_says(self.kshim("analyze", "--no-such-option"), 2, "--no-such-option", "kshim analyze --help")
        self.assert_says(self.kshim("path", "extra"), 2, "extra")

    def test_no_command(self):
        done = self.kshim()
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: kshim", done.stderr)

    def test_help_and_version(self):
        for command in ("run", "analyze", "path"):
            for words in ((command, "--help"), ("help", command)):
                done = self.kshim(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn(f"Usage: kshim {command}", done.stdout)
                self.assertIn("Examples:", done.stdout)
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        done = self.kshim("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^kshim \d+\.\d+\.\d+.*kshim-report/1\nknowledge of \d{4}-\d\d-\d\d\n$")


if __name__ == "__main__":
    e2e.main()
