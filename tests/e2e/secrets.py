#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program full of marked secrets fails under the shim: neither its report nor what kshim makes of it has one of them."""
import json
import random
import string
import sys

import e2e

e2e.require(e2e.SHIM, e2e.KSHIM, e2e.SIMULATOR / "libcuda.so.1")

# The secrets are given by names of files, so that the script's own text, which no report has, does not matter.
PROGRAM = """
import ctypes, pathlib, sys
cuda = ctypes.CDLL("libcuda.so.1")
heap = [bytearray(pathlib.Path("heap").read_bytes()) for _ in range(100)]

def load(image):
    local = pathlib.Path("local").read_text()
    stack = (ctypes.c_char * 64)(*pathlib.Path("stack").read_bytes())
    module = ctypes.c_void_p()
    result = cuda.cuModuleLoadData(ctypes.byref(module), image)
    return result, local, stack

assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
result, local, stack = load(pathlib.Path("image.ptx").read_bytes() + b"\\0")
assert result == 218 or result == 209, result
"""
PTX = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry late() { ret; }\n"


def secret(kind):
    generator = random.Random(kind)
    return "".join(generator.choice(string.ascii_letters + string.digits) for _ in range(32))


class Secrets(e2e.Case):
    def failing_program(self, **changes):
        named = {name: secret(name) for name in ("option", "equals", "env", "unlisted", "url", "cwd", "heap", "stack", "local")}
        plain = {name: secret(name) for name in ("positional", "glued", "value")}
        folder = self.folder / ("hf_" + named["cwd"])
        folder.mkdir()
        for name in ("heap", "stack", "local"):
            (folder / name).write_text(named[name])
        (folder / "image.ptx").write_text(PTX)
        (folder / "train.py").write_text(PROGRAM)
        env = e2e.preloaded("7.5", HF_TOKEN=named["unlisted"], NVCC_APPEND_FLAGS="-DAPI_KEY=" + named["env"],
                            CUDA_LOG_FILE="/var/log/x?token=" + named["url"],
                            KSHIM_REPORT=self.folder / "reports" / "%p.jsonl", **changes)
        done = self.run_program(sys.executable, "train.py", "--hf-token", named["option"], "--password=" + named["equals"],
                                "--lr", plain["value"], plain["positional"], "-p" + plain["glued"], "--device", "cuda:0",
                                env=env, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        (report,) = (self.folder / "reports").iterdir()
        return report, done.stderr, named, plain

    def assert_none(self, text, secrets):
        for name, value in secrets.items():
            at = text.find(value)
            self.assertEqual(at, -1, f"the {name} secret is in clear: {text[max(at - 80, 0):at + 40]}")

    def test_nothing_by_default(self):
        report, said, named, plain = self.failing_program()
        text = report.read_text()
        self.assert_none(text + said, {**named, **plain})
        process, *_ = records = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(process["argv"][1:], ["train.py", "--hf-token", "…", "--password=…", "--lr", "…", "…", "-p…",
                                               "--device", "cuda:0"])
        self.assertEqual(process["cwd"], str(self.folder / "…"))
        failure, *_ = e2e.of_type(records, "failure")
        self.assertEqual([frame["function"] for frame in failure["python"]], ["load", "<module>"])
        for kind in ("text", "json", "markdown", "html", "sarif", "junit", "github"):
            done = self.kshim("analyze", "--format", kind, report)
            self.assert_none(done.stdout + done.stderr, {**named, **plain})
        shown = json.loads(self.kshim("analyze", "--format", "json", report).stdout)["processes"][0]["argv"]
        self.assertEqual(shown[1:], ["train.py"])

    def test_all_arguments_but_known_secrets(self):
        report, said, named, plain = self.failing_program(KSHIM_ARGV="full")
        text = report.read_text()
        self.assert_none(text + said, named)
        argv = json.loads(text.splitlines()[0])["argv"]
        self.assertIn(plain["positional"], argv)
        self.assertIn("--password=…", argv)

    def test_no_arguments(self):
        report, said, named, plain = self.failing_program(KSHIM_ARGV="off")
        self.assert_none(report.read_text() + said, {**named, **plain})
        self.assertIsNone(json.loads(report.read_text().splitlines()[0])["argv"])


if __name__ == "__main__":
    e2e.main()
