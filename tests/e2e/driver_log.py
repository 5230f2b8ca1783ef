#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver's error log (CUDA_LOG_FILE) under `kshim run`: it tells of what the driver refused where libkshim.so is not, in both
forms that drivers write; of what a shim saw it adds nothing, and a file that the program names is the program's."""
import ctypes
import os
import sys

import e2e

CUBIN = e2e.BUILD / "tests" / "clients" / "kernels.cubin"  # of sm_90
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", CUBIN)

# CUBIN TIMES STATUS [namespace]: asks for a kernel that the GPU has no image of.
LOADS = """
import ctypes, sys
image, times, status, *how = sys.argv[1:]
if how:
    libc = ctypes.CDLL("libc.so.6")
    libc.dlmopen.restype = ctypes.c_void_p
    cu = ctypes.CDLL("libcuda.so.1", handle=libc.dlmopen(ctypes.c_long(-1), b"libcuda.so.1", 2))
else:
    cu = ctypes.CDLL("libcuda.so.1")
data = open(image, "rb").read()
library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0
for _ in range(int(times)):
    result = cu.cuLibraryLoadData(ctypes.byref(library), data, None, None, 0, None, None, 0)
    if result == 0:
        result = cu.cuLibraryGetKernel(ctypes.byref(kernel), library, b"scale")
    assert result == 209, result
sys.exit(int(status))
"""


class DriverLog(e2e.Case):
    def run_it(self, *before, times=1, status=1, how=(), options=(), driver="13.0", **env):
        host = self.folder / "loads.py"
        host.write_text(LOADS, encoding="utf-8")
        analysis, _ = self.analysis("--simulate", f"7.5,driver={driver}", "--report", self.folder / "r", *options, "--", *before, sys.executable, host,
                                    CUBIN, times, status, *how, status=status, env=e2e.clean_environment(**env))
        return analysis

    def witness(self, analysis):
        finding, = analysis["findings"]
        row, = (row for row in finding["evidence_items"] if row["id"] == "driver-log" and "pid" in row["arguments"])
        return finding, row["arguments"]

    def log(self):
        return max((self.folder / "r").glob("*.driver.log"), default=self.folder / "r" / "none", key=lambda path: path.stat().st_mtime_ns)

    def test_a_child_without_the_shim(self):
        for driver in ("13.0", "13.4"):
            with self.subTest(driver=driver):
                finding, said = self.witness(self.run_it("env", "-u", "LD_PRELOAD", times=3, driver=driver))
                self.assertEqual((finding["cause"], finding["severity"], finding["code"], finding["need"]), ("no-image-for-arch", "error", 209, "sm_75"))
                self.assertEqual((said["count"], finding["object"]), ("3", None))  # Python has no device code
                self.assertEqual(os.path.realpath(said["exe"]), os.path.realpath(sys.executable))
                self.assertEqual((finding["failed_call"], finding["failed_kernel"]), ("cuLibraryGetKernel", "scale"))
                place = next(row for row in finding["evidence_items"] if row["id"] == "failed-call")
                lines = self.log().read_text(encoding="utf-8").splitlines()[:place["line"]]
                self.assertTrue(any("GPU ISA 75" in line for line in lines))

    def test_a_namespace_of_the_linker(self):
        """The shim is in the process, and does not see the call."""
        libc = ctypes.CDLL("libc.so.6")
        if not hasattr(libc, "dlmopen"):
            self.skipTest("no dlmopen")
        finding, said = self.witness(self.run_it(how=("namespace",)))
        self.assertEqual((finding["cause"], finding["object"]), ("no-image-for-arch", None))
        self.assertEqual(said["count"], "1")

    def test_what_the_shim_saw_is_said_once(self):
        finding, = self.run_it()["findings"]
        self.assertNotIn("driver-log", [row["id"] for row in finding["evidence_items"]])
        self.assertFalse(self.log().exists())

    def test_a_program_that_goes_on(self):
        """It asked, and did without."""
        finding, _ = self.witness(self.run_it("env", "-u", "LD_PRELOAD", status=0))
        self.assertEqual(finding["severity"], "info")

    def test_the_programs_own_file_wins(self):
        own = self.folder / "own.log"
        self.assertEqual(self.run_it("env", "-u", "LD_PRELOAD", CUDA_LOG_FILE=own)["findings"], [])
        self.assertIn("GPU ISA 75", own.read_text(encoding="utf-8"))
        self.assertFalse(self.log().exists())

    def test_left_out(self):
        self.assertEqual(self.run_it("env", "-u", "LD_PRELOAD", options=["--no-driver-log"])["findings"], [])
        self.assertFalse(self.log().exists())

    def test_an_old_driver_says_nothing(self):
        self.assertEqual(self.run_it("env", "-u", "LD_PRELOAD", driver="12.8")["findings"], [])

    def test_nothing_is_left_behind(self):
        done = self.kshim("run", "--simulate", "9.0", "--", sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([name for name in self.files() if name.endswith(".log")], [])


if __name__ == "__main__":
    e2e.main()
