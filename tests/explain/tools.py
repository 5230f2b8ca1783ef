#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What real compilers and programs print goes into kshim explain: nvcc, ptxas and cuobjdump of the toolkit, NVRTC, and programs that
fail on the simulated driver, whose log must lead to what their report says."""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

import e2e

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
FAILING = e2e.BUILD / "samples" / "01_missing_architecture" / "saxpy"


class Tools(e2e.Case):
    def said_by(self, *command, env=None):
        done = self.run_program(*command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout

    def explain(self, text, *args):
        (self.folder / "a.log").write_text(text)
        done = self.kshim("explain", "--format", "json", "--log", "a.log", *args)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def cause(self, text, *args):
        findings = self.explain(text, *args)["findings"]
        self.assertEqual(len(findings), 1, text)
        return findings[0]["cause"]

    def compiler(self, name):
        places = [pathlib.Path(NVCC).resolve().parent, *(e2e.SOURCE / "build/deps/clients").glob("*/lib/python3*/site-packages/triton/backends/nvidia/bin")]
        path = next((place / name for place in places if (place / name).exists()), None)
        if path is None:
            self.skipTest(f"no {name}")
        return path

    def test_nvcc_refuses(self):
        nvcc = self.compiler("nvcc")
        (self.folder / "k.cu").write_text("__global__ void k() {}\n")
        for flag in ("-arch=sm_50", "-gencode=arch=compute_150,code=sm_150"):
            text = self.said_by(nvcc, flag, "-cubin", "k.cu")
            self.assertEqual(self.cause(text), "nvrtc-arch-unsupported", text)

    def test_ptxas_refuses(self):
        ptxas = self.compiler("ptxas")
        head = ".version {}\n.target {}\n.address_size 64\n"
        rows = ((head.format("9.0", "sm_75"), "sm_35", "nvrtc-arch-unsupported"),
                (head.format("99.0", "sm_75"), "sm_75", "nvrtc-arch-unsupported"),
                (head.format("9.0", "sm_120"), "sm_90", "ptx-newer-than-device"),
                (head.format("9.0", "sm_90a"), "sm_100", "arch-specific-image"),
                (head.format("9.0", "sm_100f"), "sm_120", "arch-specific-image"))
        for source, target, cause in rows:
            (self.folder / "k.ptx").write_text(source)
            text = self.said_by(ptxas, f"-arch={target}", "k.ptx", "-o", "k.cubin")
            self.assertEqual(self.cause(text), cause, text)

    def test_cuobjdump_lists_what_a_file_holds(self):
        nvcc, cuobjdump = self.compiler("nvcc"), self.compiler("cuobjdump")
        (self.folder / "k.cu").write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
        done = self.said_by(nvcc, "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_120,code=compute_120", "k.cu", "-o", "k")
        self.assertTrue((self.folder / "k").exists(), done)
        listed = self.said_by(cuobjdump, "-lelf", "-lptx", "k")
        failed = "CUDA error 209: no kernel image is available for execution on the device\n"
        for cc, cause in (("7.5", "ptx-newer-than-device"), ("8.6", "unknown"), ("12.1", "unknown")):
            self.assertEqual(self.cause(listed + failed, "--assume-cc", cc), cause, listed)

    def test_nvrtc_refuses(self):
        names = sorted(pathlib.Path(NVCC).resolve().parent.parent.glob("**/libnvrtc.so.1?"))
        if not names:
            self.skipTest("no NVRTC")
        nvrtc = ctypes.CDLL(str(names[-1]))
        program = ctypes.c_void_p()
        self.assertEqual(nvrtc.nvrtcCreateProgram(ctypes.byref(program), b"__global__ void k() {}", b"k.cu", 0, None, None), 0)
        options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_50")
        self.assertNotEqual(nvrtc.nvrtcCompileProgram(program, 1, options), 0)
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        answer = self.explain(log.value.decode(), "--assume-cc", "5.0", "--assume-toolkit", "13.0")
        self.assertEqual(answer["findings"][0]["cause"], "nvrtc-arch-unsupported")
        self.assertIn("12.9", json.dumps(answer["findings"][0]["fixes"]))

    def test_the_log_of_a_failing_program_leads_to_what_its_report_says(self):
        if not FAILING.exists():
            self.skipTest("no samples")
        printed = self.said_by(FAILING, env=e2e.preloaded("6.1", KSHIM_LOG="off"))
        analysis = json.loads(self.kshim("analyze", "--format", "json", "kshim-report").stdout)
        self.assertEqual(self.cause(printed, "--assume-cc", "6.1"), analysis["findings"][0]["cause"], printed)


if __name__ == "__main__":
    if not os.path.exists(NVCC):
        print("skipped: no CUDA toolkit")
        sys.exit(77)
    e2e.main()
