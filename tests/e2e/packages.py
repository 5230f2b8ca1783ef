#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose the failing file is and which lines are the user's: a library inside a wheel that a Python program calls, and a program
with debug information. What the lines are is read from the sources, by their marks."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import e2e
import report_check

NVCC = os.environ.get("KSHIM_NVCC", "")
if not NVCC:
    print("skipped: no nvcc here")
    sys.exit(e2e.SKIPPED)
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")

SOURCE = """#include <cuda_runtime.h>

__global__ void scale(float* x) {  // mark: kernel
  *x *= 2;
}

static void launch(float* x) {
  scale<<<1, 1>>>(x);  // mark: launch
}

extern "C" int run_scale() {
  float* x = nullptr;
  cudaMalloc(&x, 4);
  launch(x);  // mark: caller
  return static_cast<int>(cudaGetLastError());
}
"""
MAIN = 'extern "C" int run_scale();\nint main() { return run_scale() == 0; }\n'
SCRIPT = """import ctypes
import sys


def step(library):
    return library.run_scale()  # mark: script


step(ctypes.CDLL(sys.argv[1]))
"""


def line_of(text, mark):
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith("mark: " + mark))


class Packages(e2e.Case):
    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(tempfile.mkdtemp(prefix="kshim-e2e-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.built, ignore_errors=True)
        (cls.built / "scale.cu").write_text(SOURCE)
        (cls.built / "main.cu").write_text(MAIN)
        cls.nvcc("-shared", "-Xcompiler", "-fPIC", "-o", "libscale.so", "scale.cu")
        cls.nvcc("-g", "-lineinfo", "-o", "debug", "scale.cu", "main.cu")
        cls.nvcc("-O2", "-g", "-lineinfo", "-o", "optimized", "scale.cu", "main.cu")
        cls.nvcc("-o", "plain", "scale.cu", "main.cu")

    @classmethod
    def nvcc(cls, *argv):
        # A build id is what files are told apart by; not every gcc asks for one.
        subprocess.run([NVCC, "-arch=sm_90", "-Xlinker", "--build-id", *argv], cwd=cls.built, check=True, capture_output=True)

    def install(self):
        """A virtual environment with one wheel, whose library is vendored as auditwheel does it."""
        site = self.folder / "venv/lib/python3.11/site-packages"
        library = site / "scale_gpu.libs/libscale-1a2b3c4d.so"
        library.parent.mkdir(parents=True)
        shutil.copy(self.built / "libscale.so", library)
        info = site / "scale_gpu-1.3.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scale-gpu\nVersion: 1.3\n\n")
        (info / "RECORD").write_text(f"scale_gpu.libs/{library.name},,{library.stat().st_size}\n")
        (self.folder / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
        (self.folder / "train.py").write_text(SCRIPT)
        return library

    def failing(self, *argv):
        analysis, _ = self.analysis("--simulate", "sm_75", "--report", self.folder / "reports", "--", *argv)
        return next(row for row in analysis["findings"] if row["failed_kernel"] == "scale(float*)")

    def test_a_library_of_a_wheel_under_python(self):
        library = self.install()
        found = self.failing(sys.executable, "train.py", library)
        self.assertEqual(found["package"], "scale-gpu 1.3 (pip)")
        self.assertEqual(found["object"], str(library))
        self.assertTrue(any("is a copy of libscale inside scale-gpu 1.3 (pip)" in row for row in found["evidence"]), found["evidence"])
        self.assertTrue(found["where"]["file"].endswith("train.py"), found["where"])
        self.assertEqual((found["where"]["line"], found["where"]["function"]), (line_of(SCRIPT, "script"), "step"))

    def test_who_owned_the_file_outlives_the_file(self):
        library = self.install()
        self.failing(sys.executable, "train.py", library)
        (report,) = (self.folder / "reports").glob("*.jsonl")
        records = report_check.load(report, complete=True)
        (package,) = e2e.of_type(records, "package")
        self.assertEqual((package["name"], package["version"], package["manager"]), ("scale-gpu", "1.3", "pip"))
        self.assertEqual(package["environment"], str(self.folder / "venv"))
        shutil.rmtree(self.folder / "venv")
        done = self.kshim("analyze", "--format", "json", report)
        found = json.loads(done.stdout)["findings"][0]
        self.assertEqual(found["package"], "scale-gpu 1.3 (pip)")
        self.assertTrue(any("is no longer there" in row for row in found["evidence"]), found["evidence"])

    def test_another_file_at_the_path_is_not_judged(self):
        library = self.install()
        self.failing(sys.executable, "train.py", library)
        shutil.copy(self.built / "plain", library)  # has another build id
        (report,) = (self.folder / "reports").glob("*.jsonl")
        found = json.loads(self.kshim("analyze", "--format", "json", report).stdout)["findings"][0]
        self.assertTrue(any("its build id is" in row for row in found["evidence"]), found["evidence"])

    def test_debug_information_tells_the_lines(self):
        for program, lines in {"debug": ["launch", "caller"], "optimized": ["caller", "launch"]}.items():
            with self.subTest(program=program):
                found = self.failing(self.built / program)
                self.assertEqual(found["kernel_source"], {"file": str(self.built / "scale.cu"), "line": line_of(SOURCE, "kernel")})
                self.assertTrue(found["where"]["file"].endswith("scale.cu"), found["where"])
                # Optimized, gcc may lay the call at either line; it is the user's in any case.
                self.assertIn(found["where"]["line"], [line_of(SOURCE, mark) for mark in lines])
                self.assertEqual(found["where"]["object"], str(self.built / program))
                if program == "debug":
                    self.assertEqual(found["where"]["line"], line_of(SOURCE, "launch"))
                    self.assertEqual(found["where"]["function"], "launch(float*)")

    def test_without_it_there_is_the_function(self):
        found = self.failing(self.built / "plain")
        self.assertNotIn("kernel_source", found)
        self.assertIsNone(found["where"]["file"])
        self.assertEqual(found["where"]["function"], "launch(float*)")

    def test_the_same_build_elsewhere_is_read_in_its_place(self):
        first, second = self.folder / "first/program", self.folder / "second/program"
        for place in (first, second):
            place.parent.mkdir()
            shutil.copy(self.built / "debug", place)
        self.failing(first)
        first.unlink()
        (report,) = (self.folder / "reports").glob("*.jsonl")
        lines = report.read_text().splitlines()
        known = next(json.loads(line) for line in lines if '"object"' in line and '"build_id"' in line and str(first) in line and json.loads(line)["type"] == "object")
        last = json.loads(lines[-1])
        library = {"type": "library", "seq": last["seq"] + 1, "t": last["t"], "soname": "program", "path": str(second),
                   "version": None, "build_id": known["build_id"]}
        report.write_text("\n".join([*lines, json.dumps(library)]) + "\n")
        found = json.loads(self.kshim("analyze", "--format", "json", report).stdout)["findings"][0]
        self.assertTrue(any(f"{second}, which has the same build id, was read in its place" in row for row in found["evidence"]),
                        found["evidence"])
        self.assertEqual(found["where"]["line"], line_of(SOURCE, "launch"))


if __name__ == "__main__":
    e2e.main()
