#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What becomes of an error after the call that failed: left behind by a probe and reported by innocent code, or read by nobody;
and a library that refuses the GPU without any call failing."""
import os

import e2e

CLIENTS = e2e.BUILD / "tests/clients"
SHARED, STATIC = CLIENTS / "aftermath", CLIENTS / "aftermath_static"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", SHARED, STATIC, CLIENTS / "nccl_like/libnccl.so.2")


class Aftermath(e2e.Case):
    def causes(self, *argv, devices="8.0", status=0):
        """{cause: finding} of a run; nothing may be lost by merging."""
        analysis, done = self.analysis("--simulate", devices, "--", *argv, status=status)
        bare = self.run_program(*argv, env=e2e.simulated(devices))
        self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout))
        self.assertEqual(len({row["cause"] for row in analysis["findings"]}), len(analysis["findings"]))
        return {row["cause"]: row for row in analysis["findings"]}

    def test_what_a_probe_leaves_is_stale(self):
        found = self.causes(SHARED, "stale", status=1)
        self.assertIn("benign-probe", found)
        self.assertFalse([cause for cause, row in found.items() if row["severity"] == "error"], found)
        stale = found["stale-error"]
        self.assertEqual((stale["severity"], stale["code"], stale["failed_call"]), ("warning", 209, "cudaGetLastError"))
        self.assertTrue(stale["object"].endswith("/libnccl.so.2"))
        self.assertIn("libnccl.so.2", stale["headline"])
        self.assertIn("innocent", stale["where"]["function"])
        self.assertEqual([row["action"] for row in stale["dead_ends"]], ["rebuilding aftermath for this GPU"])

    def test_a_cleared_error_is_read_by_its_neighbor_and_harms_nobody(self):
        found = self.causes(SHARED, "cleared")
        self.assertFalse([cause for cause, row in found.items() if row["severity"] != "info"], found)

    def test_the_runtime_asks_twice(self):
        for program in (SHARED, STATIC):
            found = self.causes(program, "async", devices="9.0")
            self.assertFalse([cause for cause, row in found.items() if row["severity"] != "info"], found)
        self.assertIn(201, [failure["layers"][0]["code"] for report in self.reports() for failure in e2e.of_type(report, "failure")])

    def test_nobody_looked(self):
        found = self.causes(SHARED, "unchecked")
        self.assertEqual(found["ptx-newer-than-device"]["severity"], "error")
        unchecked = found["unchecked-failure"]
        self.assertEqual((unchecked["severity"], unchecked["code"]), ("warning", 209))
        self.assertLessEqual(unchecked["confidence"], 0.6)
        self.assertGreater(unchecked["confidence"], 0.5)
        self.assertEqual(unchecked["failed_kernel"], "for_another_gpu(float*)")

    def test_with_a_static_runtime_it_is_less_sure(self):
        unchecked = self.causes(STATIC, "unchecked")["unchecked-failure"]
        self.assertLess(unchecked["confidence"], 0.5)

    def test_one_look_is_a_look_at_all_before_it(self):
        found = self.causes(SHARED, "both")
        self.assertIn("ptx-newer-than-device", found)
        self.assertNotIn("unchecked-failure", found)

    def test_a_program_that_ran_kernels_gave_up_for_its_own_reasons(self):
        found = self.causes(SHARED, "own-reasons", devices="9.0", status=3)
        self.assertEqual(found, {})
        self.assertNotIn("library-refuses", self.causes(SHARED, "own-reasons", devices="8.0", status=3))

    def test_somebody_looked(self):
        found = self.causes(SHARED, "checked")
        self.assertIn("ptx-newer-than-device", found)
        self.assertNotIn("unchecked-failure", found)

    def test_who_asks_is_written_once(self):
        self.run_program(SHARED, "checked", env=e2e.preloaded("8.0"))
        (records,) = self.reports()
        (failure,) = e2e.of_type(records, "failure")
        (read,) = e2e.of_type(records, "read")
        self.assertEqual((read["failure"], read["api"], read["code"]), (failure["id"], "cudaGetLastError", 209))
        names = {row["id"]: row["path"] for row in e2e.of_type(records, "object")}
        self.assertEqual(names[read["object"]], str(SHARED))
        self.assertTrue(read["native"], "the program asks about the library's failure: its stack tells where")

    def test_healthy_programs_have_none(self):
        self.run_program(SHARED, "stale", env=e2e.preloaded("9.0"))
        (records,) = self.reports()
        self.assertEqual(e2e.of_type(records, "read") + e2e.of_type(records, "failure"), [])

    def test_a_library_that_refuses_by_itself(self):
        for name in ("cublas", "cufft"):
            program = CLIENTS / name
            if not program.exists():
                self.skipTest(f"{name} is not on this machine")
            with self.subTest(name):
                found = self.causes(program, devices="6.1", status=1)
                refuses = found["library-refuses"]
                self.assertEqual((refuses["severity"], refuses["need"]), ("warning", "sm_61"))
                self.assertIn(f"/lib{name}.so.", refuses["object"])
                self.assertIn("sm_90", refuses["have"])
                self.assertIn("CUDA 8.0 to 12.9", refuses["fixes"][0]["why"])
                self.assertNotIn("library-refuses", self.causes(program, devices="9.0"))

    def test_a_library_that_has_code_for_most_gpus(self):
        """cuBLAS for x86-64 has a kernel for Thor, and no other code for it: its own look-up fails."""
        program = CLIENTS / "cublas"
        if not program.exists() or os.uname().machine != "x86_64":
            self.skipTest("cublas for x86-64 is not on this machine")
        refuses = self.causes(program, devices="11.0", status=1)["library-refuses"]
        self.assertEqual((refuses["severity"], refuses["need"], refuses["code"]), ("error", "sm_110", 209))
        self.assertEqual(refuses["failed_call"], "cuLibraryGetKernel")
        self.assertIn("/libcublas.so.", refuses["object"])

    def test_a_program_that_aborts_gave_up(self):
        program = CLIENTS / "cublas"
        if not program.exists():
            self.skipTest("cublas is not on this machine")
        for ends, found in (("kill -ABRT $$", ["library-refuses"]), ("kill -TERM $$", [])):
            with self.subTest(ends):
                analysis, _ = self.analysis("--simulate", "6.1", "--", "sh", "-c", f'"$0" || {ends}', program)
                self.assertEqual([row["cause"] for row in analysis["findings"]], found)

    def test_a_program_that_ends_well_and_used_no_kernel(self):
        """What it got from the library, it may have done without: the run is no `ok`, and the library is named where nothing else serves
        the GPU."""
        program = CLIENTS / "cublas"
        if not program.exists():
            self.skipTest("cublas is not on this machine")
        analysis, _ = self.analysis("--simulate", "6.1", "--", "sh", "-c", '"$0" || true', program, status=0)
        refuses, = analysis["findings"]
        self.assertEqual((analysis["verdict"], refuses["cause"], refuses["severity"], refuses["need"]), ("idle", "library-refuses", "warning", "sm_61"))

    def test_the_librarys_own_status_and_what_its_file_shows(self):
        """The file, its GPUs and its fix stay; the words make it sure."""
        program = CLIENTS / "cublas"
        if not program.exists():
            self.skipTest("cublas is not on this machine")
        analysis, _ = self.analysis("--simulate", "6.1", "--", "sh", "-c", '"$0" || { echo "RuntimeError: CUBLAS_STATUS_ARCH_MISMATCH" >&2; exit 1; }', program, status=1)
        refuses, = analysis["findings"]
        self.assertEqual((refuses["cause"], refuses["severity"], refuses["need"]), ("library-refuses", "error", "sm_61"))
        self.assertIn("/libcublas.so.", refuses["object"])
        self.assertIn("CUDA 8.0 to 12.9", refuses["fixes"][0]["why"])
        self.assertIn("said", [row["id"] for row in refuses["evidence_items"]])

    def test_what_another_one_refuses_is_not_the_librarys(self):
        program = CLIENTS / "cublas"
        if not program.exists():
            self.skipTest("cublas is not on this machine")
        words = "UserWarning: Flash attention only supports gpu architectures in the range [sm80, sm121]. Attempting to run on a sm 6.1 gpu.\nRuntimeError: No available kernel. Aborting execution."
        analysis, _ = self.analysis("--simulate", "6.1", "--", "sh", "-c", f'"$0" || {{ printf "{words}\n" >&2; exit 1; }}', program, status=1)
        refuses, = (row for row in analysis["findings"] if row["severity"] == "error")
        self.assertEqual((refuses["cause"], refuses["object"]), ("library-refuses", None))
        self.assertEqual([row["severity"] for row in analysis["findings"] if row["object"]], [])

    def test_a_program_that_says_something_else(self):
        """Then how it ended accuses no library."""
        program = CLIENTS / "cublas"
        if not program.exists():
            self.skipTest("cublas is not on this machine")
        for words, severity in (("dataset is empty", "info"), ("status 8 of cublasCreate", "warning"),
                                ("OSError: /x/kernels_gpu_py.so: undefined symbol: _ZN3c1015report_overflowEPKc", "info")):
            with self.subTest(words):
                analysis, _ = self.analysis("--simulate", "6.1", "--", "sh", "-c", f'"$0" || {{ echo {words} >&2; exit 1; }}', program, status=1)
                self.assertEqual([(row["cause"], row["severity"]) for row in analysis["findings"]], [("library-refuses", severity)])


if __name__ == "__main__":
    e2e.main()
