#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rebuild command that kshim prints works: copied, with the sources' names filled in, it makes a program that runs."""
import json
import os
import pathlib
import shlex
import shutil

import e2e

NVCC = pathlib.Path(os.environ.get("KSHIM_NVCC", ""))
CUDA_LIB = os.environ.get("KSHIM_CUDA_LIB", "")
CUDA_STUBS = os.environ.get("KSHIM_CUDA_STUBS", "")
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", e2e.SAMPLES / "07_two_gpus" / "reduce", NVCC / "nvcc")


class Fixes(e2e.Case):
    def assert_fixed(self, sample, program, broken, source, *devices):
        """`program` fails because of the file `broken`; the first rebuild that is offered for that fixes it."""
        built = e2e.SAMPLES / sample
        for path in built.iterdir():
            if path.is_file() and path.suffix != ".cmake":
                shutil.copy(path, self.folder)
        command = [word for device in devices for word in ("--simulate", device)] + ["--", self.folder / program]
        before, _ = self.analysis(*command, status=1)
        rebuild = next(fix for fix in before["findings"][0]["fixes"] if fix["kind"] == "rebuild")
        words = shlex.split(rebuild["commands"][0])
        self.assertEqual(words[0], "nvcc")
        at = words.index("SOURCES")
        # Where the toolkit is not in its usual place, nvcc must be told of its libraries.
        words[at:at + 1] = [str(e2e.SOURCE / "samples" / sample / source), f"-L{CUDA_LIB}", f"-L{CUDA_STUBS}"]
        self.assertIn(broken, words)
        (self.folder / broken).unlink()
        done = self.run_program(NVCC / "nvcc", *words[1:])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        after, _ = self.analysis(*command, status=0)
        self.assertEqual(after["verdict"], "ok")

    def test_program(self):
        self.assert_fixed("01_missing_architecture", "saxpy", "saxpy", "saxpy.cu", "sm_120")

    def test_ptx(self):
        self.assert_fixed("02_ptx_newer_than_gpu", "histogram", "histogram", "histogram.cu", "sm_86")

    def test_arch_specific(self):
        self.assert_fixed("03_arch_specific_sm_90a", "attention", "attention", "attention.cu", "sm_100")

    def test_fatbin(self):
        self.assert_fixed("05_driver_api", "blur", "kernels.fatbin", "kernels.cu", "sm_86")

    def test_library(self):
        self.assert_fixed("06_dlopen_library", "host", "libscale.so", "scale.cu", "sm_75")

    def test_second_gpu(self):
        self.assert_fixed("07_two_gpus", "reduce", "reduce", "reduce.cu", "sm_86", "sm_75")

    def scanned(self, name, *sources):
        """What is said of a library for 12.0; each source has its text and its architectures."""
        objects = []
        for number, (text, *architectures) in enumerate(sources):
            source = self.folder / f"{name}{number}.cu"
            source.write_text(text)
            objects.append(source.with_suffix(".o"))
            self.assert_ran(NVCC / "nvcc", "-Xcompiler", "-fPIC", "-c", source, "-o", objects[-1],
                            *(word for each in architectures for word in ("-gencode", f"arch=compute_{each},code=sm_{each}")))
        library = self.folder / f"lib{name}.so"
        self.assert_ran(NVCC / "nvcc", "-shared", *objects, "-o", library, f"-L{CUDA_LIB}", f"-L{CUDA_STUBS}")
        scan = json.loads(self.run_program(e2e.KSHIM, "scan", "--target", "12.0", "--format", "json", library).stdout)
        return [fix["id"] for fix in scan["findings"][0]["fixes"]]

    def assert_ran(self, *command):
        done = self.run_program(*command)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_static_library(self):
        # No -gencode adds an architecture to what NVIDIA compiled; a type of a header proves nothing.
        own = ("__global__ void scale(float* x) { *x *= 2; }", 75, 120)
        for name, text, fix in (
                ("tensor", "namespace cutensor_internal_namespace { struct Plan; __global__ void run(Plan*, int* n) { *n = 1; } }",
                 "link-other-library"),
                ("dnn", "struct cudnnTensorStruct { int n; }; __global__ void pool(cudnnTensorStruct t, int* n) { *n = t.n; }",
                 "link-other-library"),
                ("sparse", "namespace cusparselt { __global__ void spmma(int* n) { *n = 1; } }", "link-other-library"),
                ("rand", "struct curandStateXORWOW { int n; }; __global__ void draw(curandStateXORWOW* s) { s->n = 1; }", "rebuild"),
                ("own", "struct mycudnn { int n; }; __global__ void pool(mycudnn t, int* n) { *n = t.n; }", "rebuild")):
            with self.subTest(name):
                self.assertEqual(self.scanned(name, own, (text, 75))[0], fix)


if __name__ == "__main__":
    e2e.main()
