#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rebuild command that kshim prints works: copied, with the sources' names filled in, it makes a program that runs."""
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


if __name__ == "__main__":
    e2e.main()
