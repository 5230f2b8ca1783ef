#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compilers in processes of their own (ptxas, nvcc, those of a real toolkit): what a failing one records, what kshim makes of it, and
that one that succeeds leaves nothing."""
import os
import pathlib
import re
import shutil
import sys
import unittest

import e2e

TOOLKIT = pathlib.Path(os.environ.get("KSHIM_NVCC", "/usr/local/cuda/bin"))
NVCC, PTXAS = TOOLKIT / "nvcc", TOOLKIT / "ptxas"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", NVCC, PTXAS)

PTX = ".version {isa}\n.target {target}\n.address_size 64\n.visible .entry k() {{ {body} }}\n"
STARTER = """
import ctypes, subprocess, sys
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
def compile_kernel():
    return subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode
sys.exit(compile_kernel())
"""


class Compilers(e2e.Case):
    def ptx(self, target="sm_75", isa="6.3", body="ret;"):
        path = self.folder / "in.ptx"
        path.write_text("// a comment first\n" + PTX.format(isa=isa, target=target, body=body))
        return path

    def failed(self, *argv, status=None, env=None):
        """The one report of a compiler that fails, and its record."""
        bare = self.run_program(*argv, env=e2e.clean_environment())
        done = self.run_program(*argv, env=e2e.clean_environment(LD_PRELOAD=e2e.SHIM, **(env or {})))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (bare.returncode, bare.stdout, bare.stderr))
        records = [row for rows in self.reports() for row in rows]
        self.assertEqual(sorted({row["type"] for row in records}), ["compiler", "end", "process"])
        found = e2e.of_type(records, "compiler")
        for row in found:
            self.assertIn(self.release(), row["version"])
        return found, done

    def release(self):
        return re.search(r"release (\d+\.\d+)", self.run_program(PTXAS, "--version", env=e2e.clean_environment()).stdout)[1]

    def finding(self, *argv):
        analysis, done = self.analysis(*argv)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        found = [row for row in analysis["findings"] if row["severity"] == "error"]
        self.assertEqual([row["cause"] for row in found], ["nvrtc-arch-unsupported"], analysis)
        return found[0]

    def evidence(self, finding, kind):
        return next((dict(row["arguments"]) for row in finding["evidence_items"] if row["id"] == kind), None)

    def test_what_succeeds_leaves_nothing(self):
        for argv in ((PTXAS, "-arch=sm_75", self.ptx(), "-o", "out.cubin"), (PTXAS, "--version")):
            done = self.run_program(*argv, env=e2e.clean_environment(LD_PRELOAD=e2e.SHIM))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([name for name in self.files() if name.endswith(".jsonl")], [])

    def test_an_architecture_that_ptxas_does_not_know(self):
        (row,), done = self.failed(PTXAS, "-m64", "--gpu-name", "sm_61", self.ptx(), "-o", "sm_99.cubin")
        self.assertEqual((row["program"], row["path"], row["asked"], row["input_isa"], row["status"]),
                         ("ptxas", os.path.realpath(PTXAS), ["sm_61"], "6.3", done.returncode))
        self.assertEqual((row["parent"][0]["pid"], row["parent"][0]["exe"]), (os.getpid(), os.path.realpath(sys.executable)))

    def test_one_that_a_sample_left_out(self):
        (row,), _ = self.failed(PTXAS, "--gpu-name", "sm_61", self.ptx(), "-o", "out.cubin", env={"KSHIM_SAMPLE": "1000000"})
        self.assertEqual(row["asked"], ["sm_61"])

    def test_what_nvcc_was_asked(self):
        source = self.folder / "k.cu"
        source.write_text("__global__ void k() {}\n")
        (row,), _ = self.failed(NVCC, "-gencode", "arch=compute_75,code=[sm_75,sm_61]", "--gpu-architecture=compute_199", "-c", source, "-o",
                                "sm_80.o", "-I", "compute_70")
        self.assertEqual((row["program"], row["asked"]), ("nvcc", ["compute_75", "sm_75", "sm_61", "compute_199"]))

    def test_the_first_that_failed_is_the_cause(self):
        """nvcc ends with an error because the ptxas that it starts does."""
        found, _ = self.failed(NVCC, "-cubin", "-arch=sm_75", self.ptx(isa="99.9"), "-o", "out.cubin")
        self.assertEqual(sorted(row["program"] for row in found), ["nvcc", "ptxas"])
        shutil.rmtree(self.folder / "kshim-report")
        finding = self.finding("--", NVCC, "-cubin", "-arch=sm_75", self.ptx(isa="99.9"), "-o", "out.cubin")
        self.assertEqual(finding["object"], os.path.realpath(PTXAS))
        self.assertIn("99.9", finding["headline"])
        self.assertEqual(self.evidence(finding, "compiler-ended")["program"], "ptxas")

    def test_an_error_of_the_program_text_is_no_finding(self):
        analysis, done = self.analysis("--", PTXAS, "-arch=sm_75", self.ptx(body="no_such_instruction;"), "-o", "out.cubin")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual([row["cause"] for row in analysis["findings"] if row["cause"] == "nvrtc-arch-unsupported"], [])
        self.assertEqual(analysis["verdict"], "no-cuda")

    def test_one_that_was_handled_is_no_error(self):
        analysis, done = self.analysis("--", "sh", "-c", f"{PTXAS} -arch=sm_61 {self.ptx()} || true")
        self.assertEqual(done.returncode, 0)
        self.assertEqual([(row["cause"], row["severity"]) for row in analysis["findings"]], [("nvrtc-arch-unsupported", "info")])

    def test_the_process_that_started_it(self):
        script = self.folder / "train.py"
        script.write_text(STARTER)
        for argv in ((PTXAS, "-arch=sm_61", self.ptx()), ("sh", "-c", f"true; {PTXAS} -arch=sm_61 {self.ptx()}; exit 3")):
            with self.subTest(argv[0]):
                finding = self.finding("--simulate", "6.1", "--", sys.executable, script, *argv)
                self.assertEqual((finding["need"], finding["object"]), ("sm_61", os.path.realpath(PTXAS)))
                self.assertEqual(self.evidence(finding, "started-by")["program"], os.path.realpath(sys.executable))
                self.assertEqual(self.evidence(finding, "compiler-ended")["version"], self.release())

    def test_another_compiler_of_the_machine(self):
        """TRITON_PTXAS_PATH names one that is too old for the input; the one that can is in PATH."""
        old = self.folder / "old/bin/ptxas"
        old.parent.mkdir(parents=True)
        shutil.copy(PTXAS, old)
        data = bytearray(old.read_bytes())
        release = self.release().encode()
        self.assertEqual(len(release), 4)
        changed = bytes(data).replace(b"Cuda compilation tools, release " + release, b"Cuda compilation tools, release 12.0")
        old.write_bytes(changed)
        env = e2e.clean_environment(PATH=f"{TOOLKIT}:{os.environ['PATH']}", TRITON_PTXAS_PATH=old)
        path = self.folder / "analysis.json"
        self.kshim("run", "--format", "json", "-o", path, "--", old, "-arch=sm_120", self.ptx(isa="99.0"), env=env)
        finding = e2e.json.loads(path.read_text())["findings"][0]
        self.assertEqual((finding["cause"], finding["need"]), ("nvrtc-arch-unsupported", "sm_120"))
        self.assertEqual([row["id"] for row in finding["fixes"]][:1], ["use-newer-ptxas"])  # nothing here reads ISA 99.0
        self.kshim("run", "--format", "json", "-o", path, "--", old, "-arch=sm_120", self.ptx(body="no_such_instruction;"), env=env)
        finding = e2e.json.loads(path.read_text())["findings"][0]
        self.assertEqual(self.evidence(finding, "other-compiler")["path"], os.path.realpath(PTXAS))
        self.assertEqual(finding["fixes"][0]["id"], "select-compiler")
        self.assertIn(f"TRITON_PTXAS_PATH={os.path.realpath(PTXAS)}", finding["fixes"][0]["commands"][0])

    def test_an_old_triton_gets_no_ptxas_of_cuda_13(self):
        """Triton before 3.5 refuses it: "Triton only support CUDA 10.0 or higher, but got CUDA version: 13.0"."""
        packages = self.folder / "env/lib/python3.11/site-packages"
        own = packages / "triton/backends/nvidia/bin/ptxas"
        own.parent.mkdir(parents=True)
        shutil.copy(PTXAS, own)
        own.write_bytes(own.read_bytes().replace(b"release " + self.release().encode(), b"release 12.0"))
        out = self.folder / "analysis.json"
        for release, selected in (("3.4.0", False), ("3.5.1", True)):
            info = packages / f"triton-{release}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: triton\nVersion: {release}\n")
            (info / "RECORD").write_text("triton/backends/nvidia/bin/ptxas,,\n")
            self.kshim("run", "--format", "json", "-o", out, "--", own, "-arch=sm_120", self.ptx(body="no_such_instruction;"),
                       env=e2e.clean_environment(PATH=f"{TOOLKIT}:/usr/bin:/bin"))
            fixes = [fix["id"] for fix in e2e.json.loads(out.read_text())["findings"][0]["fixes"]]
            self.assertEqual("select-compiler" in fixes, selected, (release, fixes))
            shutil.rmtree(info)

    # shows: a report whose compiler lies beside one of another user
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_a_compiler_of_another_user_is_not_selected(self):
        packages = self.folder / "env/lib/python3.11/site-packages"
        old, other = packages / "triton/backends/nvidia/bin/ptxas", packages / "nvidia/cuda_nvcc/bin/ptxas"
        for path, release in ((old, b"release 12.0"), (other, b"release 12.9")):  # the oldest that serves is selected
            path.parent.mkdir(parents=True)
            shutil.copy(PTXAS, path)
            path.write_bytes(path.read_bytes().replace(b"release " + self.release().encode(), release))
        out = self.folder / "analysis.json"
        for owner, named in ((0, True), (4711, False)):
            os.chown(other, owner, owner)
            self.kshim("run", "--format", "json", "-o", out, "--", old, "-arch=sm_120", self.ptx(body="no_such_instruction;"),
                       env=e2e.clean_environment(PATH="/usr/bin:/bin"))
            finding = e2e.json.loads(out.read_text())["findings"][0]
            said = [command for fix in finding["fixes"] for command in fix["commands"]]
            self.assertEqual(any(str(other) in command for command in said), named, said)
            self.assertFalse([command for command in said if not named and "TRITON_PTXAS_PATH=/" in command and str(self.folder) in command])


if __name__ == "__main__":
    e2e.main()
