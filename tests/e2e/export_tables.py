#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads by runtimes before 12, which go through a table of the driver's: seen by slots replaced in place. What does not look as
expected, and what the system refuses, leaves the table as it was and the host as it is without the shim."""
import shutil

import e2e

PROGRAM = e2e.PROGRAMS / "e2e_export_table"
DRIVER = e2e.PROGRAMS / "table_driver" / "libcuda.so.1"
OLD = e2e.BUILD / "tests/clients/libold_11"
NEWER = e2e.BUILD / "tests/clients/libold_12"
FOLDERS = e2e.SOURCE / "build/deps/runtimes"
RUNTIMES = {major: sorted(FOLDERS.glob(f"{major}.*/nvidia/cuda_runtime/lib")) for major in (11, 12)}
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", PROGRAM, DRIVER)

OURS = "libkshim.so libkshim.so libkshim.so"
PTX = ".version 7.8\n.target sm_90\n.address_size 64\n"  # of the program
THEIRS = "libcuda.so.1 libcuda.so.1 libcuda.so.1"


class Table(e2e.Case):
    """On a driver made for it, which has a table in the shape that TABLE names."""

    def steps(self, *argv, table="good", **changes):
        changes.setdefault("LD_PRELOAD", e2e.SHIM)
        env = e2e.clean_environment(LD_LIBRARY_PATH=DRIVER.parent, TABLE=table, KSHIM_LOG="info", **({"KSHIM_PATCH_TABLE": "1"} | changes))
        done = self.run_program(PROGRAM, *argv, env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def assert_left_alone(self, done, reason, line="r--p r--p " + THEIRS):
        self.assertEqual(done.stdout, line + "\n")
        said = [line for line in done.stderr.splitlines() if "before 12 are not recorded" in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(reason, said[0])

    def test_the_table_of_the_test_is_read_only(self):
        done = self.steps("ask", LD_PRELOAD="")
        self.assertEqual(done.stdout, f"r--p r--p {THEIRS}\n")

    def test_nothing_is_replaced_unless_asked_for(self):
        done = self.steps("ask", "ask", KSHIM_PATCH_TABLE="0")
        self.assertEqual(done.stdout, f"r--p r--p {THEIRS}\n" * 2)
        self.assertEqual(done.stderr.count("KSHIM_PATCH_TABLE=1"), 1)

    def test_slots_are_replaced_and_rights_given_back(self):
        for table in ("good", "crossing"):
            with self.subTest(table):
                self.assertEqual(self.steps("ask", "ask", table=table).stdout, f"r--p r--p {OURS}\n" * 2)
        self.assertEqual(self.steps("ask", table="writable").stdout, f"rw-p rw-p {OURS}\n")

    def test_calls_pass_through_whole(self):
        done = self.steps("ask", "call", "call")
        self.assertEqual(done.stdout, f"r--p r--p {OURS}\n")
        modules = e2e.of_type(self.reports()[0], "module")
        self.assertEqual([(module["api"], module["result"]) for module in modules[:6]],
                         [(f"CUDART_INTERFACE slot {slot}", code) for slot in (1, 6, 8) for code in (0, 209)])
        self.assertEqual({(module["object"] is None, module["size"]) for module in modules}, {(False, len(PTX))})

    def test_no_call_goes_wrong_while_slots_are_replaced(self):
        self.assertEqual(self.steps("race").stdout, "0 wrong\n")

    def test_loading_libraries_changes_nothing(self):
        done = self.steps("newer", "ask")
        self.assertEqual(done.stdout, f"r--p r--p {THEIRS}\n")
        self.assertNotIn("not recorded", done.stderr)

    def test_disabled(self):
        self.assertEqual(self.steps("ask", KSHIM_DISABLE="1").stdout, f"r--p r--p {THEIRS}\n")

    def test_other_shapes_are_left_alone(self):
        for table, reason in (("small", "another shape"), ("huge", "another shape")):
            with self.subTest(table):
                self.assert_left_alone(self.steps("ask", table=table), reason)
        # The sixth slot leads to libc, or to data.
        for table, owner in (("outside", "libc.so.6"), ("data", "libcuda.so.1")):
            with self.subTest(table):
                self.assert_left_alone(self.steps("ask", table=table), "out of the driver's code",
                                       f"r--p r--p libcuda.so.1 {owner} libcuda.so.1")
        self.assert_left_alone(self.steps("ask", table="heap"), "outside of the driver", f"rw-p rw-p {THEIRS}")
        owner = "e2e_export_table e2e_export_table e2e_export_table"
        self.assert_left_alone(self.steps("table", "other", "ask"), "outside of the driver", f"rw-p rw-p {owner}")
        self.assert_left_alone(self.steps("ask", table="nothing"), "outside of the driver", "table (nil)")
        self.assert_left_alone(self.steps("ask", table="unmapped"), "outside of the driver", "table 0x8")
        self.assert_left_alone(self.steps("ask", table="odd"), "another shape", f"rw-p rw-p {THEIRS}")

    def test_write_access_is_refused(self):
        self.assert_left_alone(self.steps("deny", "ask"), "refuses write access")
        done = self.steps("deny", "ask", "ask", "call")  # said and tried once
        self.assertEqual(done.stdout, f"r--p r--p {THEIRS}\n" * 2)
        self.assertEqual(done.stderr.count("refuses write access"), 1)
        self.assertEqual(self.reports(), [])
        # What is writable needs no right.
        self.assertEqual(self.steps("deny", "ask", table="writable").stdout, f"rw-p rw-p {OURS}\n")

    def test_rights_are_known_without_proc(self):
        self.assertEqual(self.steps("blind", "ask", "call").stdout, f"r--p r--p {OURS}\n")

    def test_a_child_goes_on(self):
        self.assertEqual(self.steps("ask", "fork", "ask", "call").stdout, f"r--p r--p {OURS}\n" * 2)
        self.assertEqual(self.steps("fork", "ask", "call").stdout, f"r--p r--p {OURS}\n")

    def test_the_driver_is_unloaded_and_loaded_again(self):
        done = self.steps("ask", "call", "close", "ask", "call", "close", "ask", "call")
        self.assertEqual(done.stdout, f"r--p r--p {OURS}\n" * 3)
        # Where the first table was is now something else of the driver's.
        done = self.steps("ask", "close", "table", "crossing", "ask", "call")
        self.assertEqual(done.stdout, f"r--p r--p {OURS}\n" * 2)

    def test_a_second_driver_is_left_alone(self):
        second = self.folder / "libcuda.so.9"
        shutil.copy(DRIVER, second)
        done = self.steps("ask", "driver", second, "ask")
        self.assertEqual(done.stdout, f"r--p r--p {OURS}\nr--p r--p libcuda.so.9 libcuda.so.9 libcuda.so.9\n")


class Runtime(e2e.Case):
    """NVIDIA's runtime 11 on the simulator."""

    def setUp(self):
        super().setUp()
        if not all(RUNTIMES.values()) or not OLD.exists() or not NEWER.exists():
            self.skipTest("libcudart.so.11.0 or .12 is not here: tools/setup fetches them")

    def client(self, devices, *steps, shim=True):
        env = e2e.preloaded(devices, KSHIM_LOG="info", KSHIM_PATCH_TABLE="1") if shim else e2e.simulated(devices)
        env["LD_LIBRARY_PATH"] = ":".join(map(str, (e2e.SIMULATOR, RUNTIMES[11][-1], RUNTIMES[12][-1])))
        return self.run_program(PROGRAM, *steps, env=env)

    def old(self, devices, *steps, shim=True):
        return self.client(devices, *steps, "run", OLD, shim=shim)

    def assert_same_host(self, devices, *steps):
        bare, done = self.old(devices, *steps, shim=False), self.old(devices, *steps)
        self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout), done.stderr)
        self.assertIn("runtime 11", done.stdout)
        return done, self.reports()[0]

    def test_the_simulators_table_is_read_only(self):
        env = e2e.simulated("9.0")
        self.assertEqual(self.run_program(PROGRAM, "ask", env=env).stdout, f"r--p r--p {THEIRS}\n")

    def test_kshim_run_asks_for_it(self):
        folders = ":".join(map(str, (RUNTIMES[11][-1], RUNTIMES[12][-1])))
        for changes, slots in (({}, ["CUDART_INTERFACE slot 6"]), ({"KSHIM_PATCH_TABLE": "0"}, [])):
            with self.subTest(changes):
                report = self.folder / f"run{len(slots)}"
                done = self.kshim("run", "--simulate", "9.0", "--report", report, "--", PROGRAM, "run", OLD,
                                  env=e2e.clean_environment(LD_LIBRARY_PATH=folders, **changes))
                self.assertIn("runtime 11", done.stdout, done.stderr)
                records, = self.reports(report)
                self.assertEqual([module["api"] for module in e2e.of_type(records, "module")], slots)

    def test_runtime_12_alone_changes_nothing(self):
        done = self.client("9.0", "newer", "run", NEWER, "ask", "run", OLD, "ask")
        self.assertIn("runtime 12", done.stdout)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("r--p")],
                         [f"r--p r--p {THEIRS}", f"r--p r--p {OURS}"])
        modules = e2e.of_type(self.reports()[0], "module")
        self.assertEqual([module["api"] for module in modules], ["cuLibraryLoadData", "CUDART_INTERFACE slot 6"])

    def test_a_load(self):
        done, records = self.assert_same_host("9.0")
        module, = e2e.of_type(records, "module")
        self.assertEqual((module["api"], module["result"], module["selected"]), ("CUDART_INTERFACE slot 6", 0, "sm_90"))
        objects = {record["id"]: record["path"] for record in e2e.of_type(records, "object")}
        self.assertEqual(objects[module["object"]], str(OLD))
        self.assertEqual(e2e.of_type(records, "failure"), [])

    def test_a_load_that_fails(self):
        done, records = self.assert_same_host("8.0")
        module, = e2e.of_type(records, "module")
        failure, = e2e.of_type(records, "failure")
        gap, = e2e.of_type(records, "gap")
        self.assertEqual(module["result"], 209)
        self.assertEqual([(layer["api"], layer["code"]) for layer in failure["layers"]],
                         [("CUDART_INTERFACE slot 6", 209), ("cudaLaunchKernel", 209)])
        self.assertEqual((failure["kernel"], failure["module"]), ("scale", module["id"]))
        self.assertEqual((gap["kernels"], gap["need"]), (["scale"], "sm_80"))
        self.assertIn("kernel scale has no image", done.stderr)

    def test_a_load_that_fails_unseen(self):
        done, records = self.assert_same_host("8.0", "deny")
        self.assertIn("refuses write access", done.stderr)
        self.assertEqual(e2e.of_type(records, "module"), [])
        failure, = e2e.of_type(records, "failure")
        self.assertEqual([layer["layer"] for layer in failure["layers"]], ["runtime"])
        self.assertEqual(failure["kernel"], "scale")


if __name__ == "__main__":
    e2e.main()
