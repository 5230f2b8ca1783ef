#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Redaction changes no name that a program looks up, and hides tokens as services make them.

Kernels: those of redact_corpus.py, and of the toolkit's libraries where they are at hand."""
import json
import os
import pathlib
import random
import string
import subprocess
import sys
import unittest

import redact_corpus

PROGRAM, KSHIM, TOOLKIT = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
LIBRARIES = ("cufft", "cusparse", "curand", "nccl", "cudnn_ops", "cudnn_cnn", "cudnn_engines_precompiled")
ALNUM = string.ascii_letters + string.digits


def redacted(content, lines):
    lines = list(lines)
    done = subprocess.run([PROGRAM, content], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return list(zip(lines, done.stdout.splitlines(), strict=True))


def drawn(generator, length, alphabet=ALNUM):
    return "".join(generator.choice(alphabet) for _ in range(length))


class Corpus(unittest.TestCase):
    def assert_unchanged(self, content, lines):
        changed = [f"{before}\n   -> {after}" for before, after in redacted(content, lines) if before != after]
        self.assertEqual(len(changed), 0, f"{len(changed)} changed:\n" + "\n".join(changed[:20]))

    def test_names_and_paths(self):
        names = [*redact_corpus.kernels(), *redact_corpus.paths()]
        self.assertGreater(len(set(names)), 4800)
        for content in ("identifier", "text"):
            self.assert_unchanged(content, names)
        self.assert_unchanged("identifier", redact_corpus.hashes())

    def test_lines_of_logs(self):
        self.assert_unchanged("text", redact_corpus.lines())

    def test_kernels_of_the_toolkit(self):
        files = [file for name in LIBRARIES if (file := TOOLKIT / f"lib{name}.so").exists()]
        if not files or not KSHIM.exists():
            self.skipTest("no toolkit, or no command")
        done = subprocess.run([KSHIM, "scan", "--kernels", "--format", "json", "--target", "9.0", *files], capture_output=True, text=True)
        kernels = {kernel["name"] for row in json.loads(done.stdout)["objects"] for kernel in row["kernels"] or []}
        self.assertGreater(len(kernels), 5000)
        for content in ("identifier", "text"):
            self.assert_unchanged(content, kernels)


class Secrets(unittest.TestCase):
    """In any text, and in the paths that have room for them."""
    def test_tokens_of_services(self):
        generator = random.Random(44)
        missed = {}
        for start, length in (("hf_", 34), ("ghp_", 36), ("gsk_", 52), ("npm_", 36), ("r8_", 37), ("sk-proj-", 48), ("sk-ant-api03-", 93),
                              ("nvapi-", 64), ("glsa_", 41), ("glc_", 80), ("fm2_", 120), ("tskey-auth-", 33), ("pypi-AgEIcHlwaS5vcmc", 120)):
            tokens = [drawn(generator, length) for _ in range(500)]
            for form in ("{}", "--option={}", "login('{}')", "https://h/{}?x", "/cache/{}/lib.so", "export A={};b"):
                shown = redacted("text", (form.format(start + token) for token in tokens))
                missed[start, form] = sum(token in after for token, (_, after) in zip(tokens, shown, strict=True))
        self.assertEqual(max(missed.values()), 0, missed)

    def test_values(self):
        generator = random.Random(45)
        for form in ("--token {}", "--token={}", "token={}", "KEY={} x", "https://h/x?sig={}", "{{'key': '{}'}}", "/w/token={}/x.so", "a.auth={},seed=1"):
            for length, alphabet in ((16, ALNUM), (32, ALNUM), (40, string.hexdigits[:16]), (32, string.hexdigits[:16])):
                values = [drawn(generator, length, alphabet) for _ in range(500)]
                shown = redacted("text", (form.format(value) for value in values))
                missed = [after for value, (_, after) in zip(values, shown, strict=True) if value in after]
                # A token without a digit may be a word (one in 30 of 16 characters).
                self.assertLess(len(missed), 60 if length == 16 else 8, (form, missed[:5]))

    def test_values_of_names_that_have_no_other_meaning(self):
        for value in ("hunter2", "correct horse", "s3cret", "letmein"):
            for form in ('password="{}"', "PGPASSWORD='{}'", '{{"api_key": "{}"}}', "hf_token: '{}'"):
                ((_, after),) = redacted("text", [form.format(value)])
                self.assertNotIn(value, after)

    def test_only_the_value(self):
        value = "Zq7Lw2Xk9Vb4Nm8TZq7Lw2Xk9Vb4Nm8T"
        for content, before, after in (
                ("text", f"/w/token={value}/x.so", "/w/token=…/x.so"), ("identifier", f"/w/token={value}/x.so", "/w/token=…/x.so"),
                ("text", f"a,password={value},seed=3/k.so", "a,password=…,seed=3/k.so"), ("identifier", f"/w/hf_{value}a1/x.so", "/w/…/x.so"),
                ("text", "password=hunter2/k.so", "password=…/k.so"), ("identifier", f"_Z1kv password={value}", "_Z1kv password=…"),
                ("identifier", "git+https://me:hunter2@host/a", "git+https://…@host/a"),
                ("text", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG+bPxRfi/CYEXAMPLEKEY x", "AWS_SECRET_ACCESS_KEY=… x"),
                ("text", "me:hunter2@db.example/x", "me:…@db.example/x"), ("text", "me:hunter2@10.0.0.1/x", "me:…@10.0.0.1/x"),
                ("text", "me:hunter2@db:5432", "me:…@db:5432")):
            self.assertEqual(redacted(content, [before]), [(before, after)])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
