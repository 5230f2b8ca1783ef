#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""samples/pytorch/guard.py with a real PyTorch on simulated GPUs: torch.ops.load_library() is called where libkshim-query.so has found code, and
not else. KSHIM_TORCH names a folder with torch and its nvidia packages: `pip install --target FOLDER torch`."""
import os
import pathlib
import sys

import e2e

LIBRARY = pathlib.Path(sys.argv[1])
FAST = e2e.SAMPLES / "09_guard" / "libfast.so"  # sm_90a
e2e.require(LIBRARY, FAST, e2e.SIMULATOR / "libcuda.so.1")
FOLDER = os.environ.get("KSHIM_TORCH")
if not FOLDER:
    print("skipped: KSHIM_TORCH is not set")
    sys.exit(e2e.SKIPPED)

RUN = """import runpy, sys
import ask
ask.use({library!r})
sys.argv = [{script!r}, {fast!r}, "fast_scale"]
runpy.run_path({script!r}, run_name="__main__")
import torch
print("loaded:", len(torch.ops.loaded_libraries))
"""


class Guard(e2e.Case):
    def guard(self, capability):
        nvidia = [str(path) for path in pathlib.Path(FOLDER).glob("nvidia/*/lib")]
        code = RUN.format(library=str(LIBRARY), script=str(e2e.SOURCE / "samples" / "pytorch" / "guard.py"), fast=str(FAST))
        env = e2e.simulated(capability, PYTHONPATH=os.pathsep.join((FOLDER, str(e2e.SOURCE / "tests" / "query"), os.environ.get("PYTHONPATH", ""))))
        env["LD_LIBRARY_PATH"] = os.pathsep.join((str(e2e.SIMULATOR), *nvidia))
        env.update(KSHIM_BUILD_DIR=str(e2e.BUILD), KSHIM_SOURCE_DIR=str(e2e.SOURCE))
        done = self.run_program(sys.executable, "-c", code, env=env, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_a_gpu_that_it_has_code_for(self):
        said, loaded = self.guard("9.0")
        self.assertIn("sass, sm_90a", said)
        self.assertEqual(loaded, "loaded: 1")

    def test_a_gpu_that_it_has_none_for(self):
        said, loaded = self.guard("12.0")
        self.assertIn("none", said)
        self.assertEqual(loaded, "loaded: 0")


if __name__ == "__main__":
    del sys.argv[1:]
    e2e.main()
