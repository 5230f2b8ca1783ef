#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim run --injection`: libkshim-injection.so, which cuInit opens, records what the driver refuses where libkshim.so is not, and leaves everything else
as it is."""
import ctypes
import sys

import driver_log
import e2e

CUBIN = driver_log.CUBIN
INJECTION = e2e.BUILD / "shim" / "libkshim-injection.so"
STATIC = e2e.PROGRAMS / "e2e_static_loads"
OTHER = e2e.PROGRAMS / "libe2e_injected.so"
e2e.require(INJECTION, STATIC, OTHER)


class Injection(e2e.Case):
    def run_it(self, *command, gpu="7.5", driver="13.0", options=("--no-driver-log",), status=1, **env):
        """The analysis, what CMD printed, and the reports that say that the shim was absent. By default no other witness speaks."""
        folder = self.folder / f"r{len(list(self.folder.glob('r*')))}"
        analysis, done = self.analysis("--injection", *options, "--simulate", f"{gpu},driver={driver}", "--report", folder, "--", *command, status=status,
                                       env=e2e.clean_environment(**env))
        absent = [report for report in self.reports(folder) if any(row["how"] == "absent" for row in e2e.of_type(report, "bypass"))]
        return analysis, done.stdout, absent

    def python(self, *before, how=(), times=1, status=1, **more):
        host = self.folder / "loads.py"
        host.write_text(driver_log.LOADS, encoding="utf-8")
        return self.run_it(*before, sys.executable, host, CUBIN, times, status, *how, status=status, **more)

    def assert_refused(self, analysis, count):
        finding, = analysis["findings"]
        said, = (row["arguments"] for row in finding["evidence_items"] if row["id"] == "driver-log" and "pid" in row["arguments"])
        self.assertEqual((finding["cause"], finding["severity"], finding["code"], finding["need"], said["count"]), ("no-image-for-arch", "error", 209, "sm_75", str(count)))
        self.assertEqual((finding["failed_call"], finding["failed_kernel"]), ("cuLibraryGetKernel", "scale"))
        return finding

    def test_a_child_without_ld_preload(self):
        for driver in ("13.0", "13.4"):
            with self.subTest(driver=driver):
                analysis, _, (report,) = self.python("env", "-u", "LD_PRELOAD", times=3, driver=driver)
                finding = self.assert_refused(analysis, 3)
                line = next(number for number, text in enumerate(driver_log.LOADS.splitlines(), 1) if "cuLibraryGetKernel" in text)
                self.assertEqual((finding["where"]["file"], finding["where"]["line"]), (str(self.folder / "loads.py"), line))
                failure = e2e.of_type(report, "failure")[0]
                self.assertEqual((failure["layers"], failure["tid"]), ([], report[0]["pid"]))
                self.assertTrue(failure["native"])
                self.assertEqual(len(e2e.of_type(report, "end")), 1)

    def test_a_namespace_of_the_linker(self):
        if not hasattr(ctypes.CDLL("libc.so.6"), "dlmopen"):
            self.skipTest("no dlmopen")
        self.assert_refused(self.python(how=("namespace",))[0], 1)

    def test_a_static_program(self):
        for options in ((), ("--no-driver-log",)):  # one witness or two: one finding
            with self.subTest(options=options):
                analysis, printed, (report,) = self.run_it(STATIC, CUBIN, 2, options=options)
                self.assert_refused(analysis, 2)
                self.assertEqual(printed, "209\n")
                self.assertEqual(report[0]["exe"], str(STATIC))
                self.assertEqual([row["exe"] for row in analysis["blind"]], [str(STATIC)])

    def test_the_drivers_log_alone_tells_of_a_static_program(self):
        analysis, _ = self.analysis("--simulate", "7.5", "--report", self.folder / "r", "--", STATIC, CUBIN, 2, status=1)
        self.assert_refused(analysis, 2)

    def test_where_the_shim_is_it_writes_nothing(self):
        analysis, _, absent = self.python()
        self.assertEqual((absent, analysis["blind"], len(analysis["findings"])), ([], [], 1))

    def test_what_works_is_no_finding(self):
        analysis, printed, (report,) = self.run_it(STATIC, CUBIN, 1, gpu="9.0", status=0)
        self.assertEqual((analysis["findings"], analysis["verdict"], printed), ([], "blind", "0\n"))
        self.assertEqual(e2e.of_type(report, "failure"), [])

    def test_the_library_of_another_tool_is_opened_too(self):
        _, printed, absent = self.run_it(STATIC, CUBIN, 1, CUDA_INJECTION64_PATH=OTHER)
        self.assertEqual((printed, len(absent)), ("injected\n209\n", 1))
        _, printed, absent = self.python(CUDA_INJECTION64_PATH=OTHER)
        self.assertEqual((printed, absent), ("injected\n", []))

    def test_one_that_is_not_there_changes_nothing(self):
        for path in ("/nowhere/lib.so", CUBIN, INJECTION):
            with self.subTest(path=path):
                bare = self.run_program(STATIC, CUBIN, 1, env=e2e.simulated("7.5", CUDA_INJECTION64_PATH=OTHER if path == INJECTION else path))
                done = self.kshim("run", "--injection", "--simulate", "7.5", "--report", "here", "-o", "out", "--", STATIC, CUBIN, 1,
                                  env=e2e.clean_environment(CUDA_INJECTION64_PATH=path))
                self.assertEqual(done.returncode, bare.returncode)
                self.assertEqual((done.stdout, done.stderr), (bare.stdout.replace("injected\n", ""), bare.stderr))

    def test_programs_of_32_bits_are_left_alone(self):
        done = self.kshim("run", "--injection", "--simulate", "7.5", "--", "sh", "-c", "echo $CUDA_INJECTION32_PATH; echo $CUDA_INJECTION64_PATH")
        self.assertEqual(done.stdout, f"\n{INJECTION}\n")

    def test_switched_off(self):
        _, printed, absent = self.run_it(STATIC, CUBIN, 1, KSHIM_DISABLE="1")
        self.assertEqual((printed, absent), ("209\n", []))


if __name__ == "__main__":
    e2e.main()
