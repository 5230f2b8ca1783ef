#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""KSHIM_COVERAGE=1: every distinct kernel that was launched, by whatever entry point, and what that says about a target."""
import json
import signal
import sys

import e2e

CLIENTS = e2e.BUILD / "tests/clients"
STATIC, SHARED, DRIVER = CLIENTS / "runtime_static", CLIENTS / "runtime_shared", CLIENTS / "driver"
FATBIN = CLIENTS / "kernels.fatbin"
LOOP = e2e.PROGRAMS / "launch_many"
GUARDED = CLIENTS / "guarded"
PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", STATIC, SHARED, DRIVER, LOOP)
ALL = {"_Z5plainPf", "_Z11cooperativePf", "_Z8extendedPf", "_Z8capturedPf", "_Z4nodePf", "_Z11entry_pointPf"}


class Coverage(e2e.Case):
    def covered(self, *argv, devices="9.0", status=0, **more):
        done = self.run_program(*argv, env=e2e.preloaded(devices, KSHIM_COVERAGE="1", **more))
        self.assertEqual(done.returncode, status, done.stderr)
        return [[row for row in records if row["type"] == "coverage"] for records in self.reports()], self.reports()

    def test_every_way_to_launch(self):
        for program in (STATIC, SHARED):
            with self.subTest(program=program.name):
                (rows,), (records,) = self.covered(program)
                self.assertEqual({row["kernel"] for row in rows}, ALL)
                objects = {row["id"]: row["path"] for row in records if row["type"] == "object"}
                self.assertEqual({objects[row["object"]] for row in rows}, {str(program)})
                modules = {row["id"] for row in records if row["type"] == "module"}
                self.assertLessEqual({row["module"] for row in rows}, modules)
            for path in self.folder.rglob("*.jsonl"):
                path.unlink()

    def test_loose_code_has_a_module_and_no_object(self):
        (rows,), _ = self.covered(DRIVER, "dlsym", FATBIN)
        self.assertIn("scale", {row["kernel"] for row in rows})
        self.assertTrue(any(row["object"] is None and row["module"] is not None for row in rows), rows)

    def test_counts_from_many_threads(self):
        (rows,), (records,) = self.covered(LOOP, "4", "2500", FATBIN)
        self.assertEqual([(row["kernel"], row["launches"]) for row in rows], [("scale", 1), ("scale", 10000)])
        self.assertEqual(records[-1]["dropped"], 0)

    def test_a_failed_launch_is_none(self):
        done = self.run_program(STATIC, env=e2e.preloaded("8.0", KSHIM_COVERAGE="1"))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual([row for row in self.reports()[0] if row["type"] == "coverage"], [])

    def test_the_first_launch_is_there_after_a_kill(self):
        (rows,), (records,) = self.covered(LOOP, "1", "5", FATBIN, "kill", status=-signal.SIGKILL)
        self.assertEqual([(row["kernel"], row["launches"]) for row in rows], [("scale", 1)])
        self.assertNotEqual(records[-1]["type"], "end")

    def test_a_forks_child_counts_for_itself(self):
        (first, second), _ = self.covered(LOOP, "1", "5", FATBIN, "fork")
        self.assertEqual({tuple(row["launches"] for row in rows) for rows in (first, second)}, {(1, 5), (1, 3)})

    def test_off_there_is_nothing(self):
        self.run_program(STATIC, env=e2e.preloaded("9.0"))
        self.assertEqual([row for row in self.reports()[0] if row["type"] == "coverage"], [])

    def test_a_target_is_judged_by_what_ran(self):
        env = e2e.clean_environment(KSHIM_COVERAGE="1")
        analysis, _ = self.analysis("--simulate", "9.0", "--target", "8.0", "--", STATIC, env=env)
        (found,) = [row for row in analysis["findings"] if row["severity"] == "warning"]
        self.assertEqual((found["cause"], found["need"]), ("latent-gap", "sm_80"))
        self.assertIn("none of the 6 kernels launched in this run has code for sm_80", found["headline"])
        self.assertEqual(len(found["kernels"]), 6)
        analysis, _ = self.analysis("--simulate", "9.0", "--target", "8.0", "--", LOOP, "1", "1", FATBIN, env=env)
        self.assertEqual([row["cause"] for row in analysis["findings"] if row["severity"] == "warning"], ["latent-gap"])

    def latent(self, target, *argv, **variables):
        done = self.run_program(*argv, env=e2e.clean_environment(KSHIM_TARGET=target, **variables))
        report, = self.folder.rglob("*.jsonl")
        found = json.loads(self.kshim("analyze", "--format", "json", report).stdout)["findings"]
        report.unlink()
        return done, {row["object"] for row in found if (row["cause"], row["severity"]) == ("latent-gap", "warning")}

    # A static runtime loads code when it is needed: here it never is.
    def test_a_target_of_the_environment_is_judged_by_the_files_that_are_mapped(self):
        program = f"import ctypes\nctypes.CDLL({str(PLUGIN)!r})\nprint(ctypes.CDLL('libcuda.so.1').cuInit(0))"
        done, objects = self.latent("12.0", sys.executable, "-c", program, LD_PRELOAD=e2e.SHIM, LD_LIBRARY_PATH=e2e.SIMULATOR, KSHIM_SIM_DEVICES="9.0")
        self.assertEqual((done.stdout, objects), ("0\n", {str(PLUGIN)}), done.stderr)

    def test_a_target_begins_the_report_where_code_is_registered(self):
        _, objects = self.latent("8.0", SHARED, LD_PRELOAD=e2e.SHIM, LD_LIBRARY_PATH="")
        self.assertEqual(objects, {str(SHARED)})

    def guarded(self, *argv, devices, status=0, **env):
        e2e_env = e2e.clean_environment(**env)
        analysis, _ = self.analysis("--simulate", devices, "--", GUARDED.resolve(), *argv, env=e2e_env, status=status)
        return [row for row in analysis["findings"] if row["cause"] == "compiled-out"], analysis

    def test_what_a_guard_leaves_out_is_told(self):
        if not GUARDED.exists():
            self.skipTest("not built")
        (found,), analysis = self.guarded(devices="7.5", KSHIM_COVERAGE=1)
        self.assertEqual((analysis["verdict"], found["severity"], found["object"]), ("gap", "warning", str(GUARDED.resolve())))
        self.assertEqual({name.split("(")[0] for name in found["kernels"]}, {"returns", "traps", "complains"})
        self.assertGreater(found["confidence"], 0.7)
        self.assertEqual(len([row for row in found["evidence"] if "in sm_75 of guarded" in row]), 3, found["evidence"])
        for devices in ("8.0", "9.0"):
            self.assertEqual(self.guarded(devices=devices, KSHIM_COVERAGE=1)[0], [])

    def test_without_coverage_what_failed_is_looked_at(self):
        if not GUARDED.exists():
            self.skipTest("not built")
        self.assertEqual(self.guarded(devices="7.5")[0], [])
        (found,), _ = self.guarded("too-many", devices="7.5", status=1)
        self.assertEqual([name.split("(")[0] for name in found["kernels"]], ["returns"])


if __name__ == "__main__":
    e2e.main()
