#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim explain as a person calls it: its output, its exit statuses, its schema, and input that is none."""
import gzip
import json
import os
import re
import subprocess

import e2e
import schemas

LOG = """Traceback (most recent call last):
  File "/home/u/train.py", line 17, in <module>
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""
# Two of everything that schema and renderer have to carry.
SUBJECTS = ("209", "8", "48", "0", "cudaErrorNoKernelImageAvailable", "CUDA_ERROR_NO_BINARY_FOR_GPUS", "cudaErrorXyzzy", "no such thing",
            "nvrtc: error: invalid value for --gpu-architecture (-arch) on RTX 4090", "CUDA out of memory",
            "Expected all tensors to be on the same device")


class Explain(e2e.Case):
    def explain(self, *args, status=0, **kwargs):
        done = self.kshim("explain", *args, **kwargs)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_every_kind_is_of_the_schema(self):
        check = schemas.validator("explain")
        for subject in SUBJECTS:
            for more in ((), ("--assume-cc", "6.1", "--assume-driver", "580", "--assume-toolkit", "13.0")):
                done = self.kshim("explain", "--format", "json", *more, subject)
                self.assertIn(done.returncode, (0, 3), done.stderr)
                output = json.loads(done.stdout)
                self.assertEqual(schemas.errors(check, output), [], subject)
                for finding in output["findings"]:
                    self.assertNotRegex(finding["headline"], r"[{}]", "a placeholder that nothing filled in")

    def test_a_number_says_what_it_means_and_what_to_run(self):
        text = self.explain("209", "-v")
        for part in ("no kernel image is available", "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU", "kshim run", "kshim scan"):
            self.assertIn(part, text)

    def test_the_page_of_messages_names_the_same_causes(self):
        folder = e2e.SOURCE / "docs/messages"
        rows = re.findall(r"^\| \[(.+)\]\((.+\.md)\) \| .*?`([a-z0-9-]+)`", (folder / "index.md").read_text(), re.M)
        self.assertGreater(len(rows), 10)
        for message, page, cause in rows:
            fixes = (folder / page).read_text().split("## What fixes it", 1)[1]
            self.assertEqual(re.findall(r"\[`([a-z0-9-]+)`\]", fixes)[:1], [cause], page)
            findings = json.loads(self.kshim("explain", "--format", "json", message).stdout)["findings"]
            self.assertEqual([row["cause"] for row in findings][:1], [cause], message)

    def test_words_need_no_quotes(self):
        self.assertEqual(self.explain("invalid", "device", "function"), self.explain("invalid device function"))

    def test_a_log_by_name_and_from_a_pipe(self):
        (self.folder / "train.log").write_text(LOG)
        named = self.explain("--log", "train.log", status=1)
        self.assertIn("train.py:17", named)
        self.assertIn("train.log:3", named)
        for words in (("--log", "-"), ("-",), ()):
            piped = self.explain(*words, status=1, input=LOG, stdin=None)
            self.assertEqual(piped.replace("stdin", "train.log").splitlines()[:-1], named.splitlines()[:-1], words)

    def test_a_pipe_by_its_name(self):
        """What the shell makes of <(COMMAND)."""
        os.mkfifo(self.folder / "pipe")
        writer = subprocess.Popen(["sh", "-c", 'printf "%s" "$0" > pipe', LOG], cwd=self.folder)
        self.addCleanup(writer.wait)
        self.assertIn("train.py:17", self.explain("pipe", status=1))

    def test_a_log_without_a_failure_is_fine(self):
        (self.folder / "ok.log").write_text("epoch 1\nepoch 2\n")
        self.assertIn("not recognized", self.explain("--log", "ok.log"))
        (self.folder / "host.log").write_text("std::bad_alloc\n")
        self.assertIn("not a CUDA failure", self.explain("--log", "host.log"))
        (self.folder / "own.log").write_text("start\nERROR: LoadError: Xyzzy\n")
        self.assertIn("Xyzzy", self.explain("--log", "own.log", status=1))

    def test_misuse(self):
        self.assert_says(self.kshim("explain"), 2, "missing")
        self.assert_says(self.kshim("explain", "209", "--log", "x"), 2, "not both")
        self.assert_says(self.kshim("explain", "209", "--format", "html"), 2, "text, json")
        self.assert_says(self.kshim("explain", "209", "--assume-cc", "nine"), 2, "--assume-cc")
        self.assert_says(self.kshim("explain", "--log", "missing.log"), 3, "missing.log", "No such file")
        self.assert_says(self.kshim("explain", "--log", "."), 3, "is a folder")
        for missing in ("logs/train.lgo", "train.log"):
            self.assert_says(self.kshim("explain", missing), 3, missing, "no such file")

    def test_a_log_of_windows_is_read_and_a_file_that_is_no_log_is_refused(self):
        for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
            (self.folder / "win.log").write_bytes(LOG.encode(name))
            self.assertIn("train.py:17", self.explain("--log", "win.log", status=1), name)
        (self.folder / "a.gz").write_bytes(gzip.compress(LOG.encode()))
        self.assert_says(self.kshim("explain", "--log", "a.gz"), 3, "a.gz", "gzip")
        self.assert_says(self.kshim("explain", "--log", "/bin/true"), 3, "program or library")

    def test_a_program_that_went_on_has_not_failed(self):
        text = "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n"
        (self.folder / "cpu.log").write_text(text)
        self.assertIn("error:", self.explain("--log", "cpu.log", status=1))
        (self.folder / "cpu.log").write_text(text + "Epoch 1/5\n")
        self.assertIn("warning:", self.explain("--log", "cpu.log"))

    def test_what_is_not_known_says_so(self):
        done = self.kshim("explain", "cudaErrorXyzzy")
        self.assertEqual(done.returncode, 3)
        self.assertIn("not recognized", done.stdout)

    def test_a_hostile_log_steers_nothing(self):
        text = "\x1b]0;owned\x07\x1b[2J CUDA error 209: \u202egnp.exe <script>alert(1)</script>\n".encode() + b"\xff\xfe\n"
        (self.folder / "evil.log").write_bytes(text)
        for form in ("text", "json"):
            out = self.explain("--log", "evil.log", "--format", form, status=1)
            self.assertNotIn("\x1b", out)
            self.assertNotIn("\u202e", out)
        self.assertTrue(json.loads(out)["findings"])

    def test_output_goes_to_a_file_and_never_over_the_log(self):
        (self.folder / "a.log").write_text(LOG)
        self.assertEqual(self.explain("--log", "a.log", "-o", "out.txt", status=1), "")
        self.assertIn("train.py:17", (self.folder / "out.txt").read_text())
        self.assert_says(self.kshim("explain", "--log", "a.log", "-o", "a.log"), 2, "is the log to read")

    def test_markdown_is_made_to_be_shared(self):
        log = self.folder / "m.log"
        log.write_text(LOG.replace("/home/u", "/home/secret"), encoding="utf-8")
        page = self.explain("--format", "markdown", "--log", log, status=1)
        self.assertIn("\n```", page)
        self.assertNotIn("/home/secret", page)

    def test_without_a_home_or_a_locale(self):
        env = {"PATH": os.environ["PATH"]}  # and nothing else
        self.assertIn("209", self.explain("209", env=env))


if __name__ == "__main__":
    e2e.main()
