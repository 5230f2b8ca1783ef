#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is not a matter of images: recorded once, with call, kernel, stack and cause, so that nobody rebuilds for nothing."""
import e2e

CLIENTS = e2e.BUILD / "tests/clients"
SHARED, STATIC = CLIENTS / "trouble_shared", CLIENTS / "trouble_static"
BOTH = (SHARED, STATIC)
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", SHARED, STATIC)


class Trouble(e2e.Case):
    def finding(self, program, mode, cause, devices="9.0", status=1, options=(), env=None):
        """The one error of a run, which prints and ends as it does without the shim, and its failures."""
        simulate = [word for device in devices.split(";") if device for word in ("--simulate", device)]
        env = e2e.clean_environment(**(env or {}))
        analysis, done = self.analysis(*simulate, "--report", self.folder / "r", "--", program, mode, *options, env=env,
                                       status=status)
        errors = [row for row in analysis["findings"] if row["severity"] == "error"]
        self.assertEqual([row["cause"] for row in errors], [cause], analysis["findings"])
        failures = [row for records in self.reports() for row in e2e.of_type(records, "failure")]
        self.assertNotIn("rebuild", [fix["kind"] for fix in errors[0]["fixes"]])
        self.assertTrue(errors[0]["fixes"], "a finding says what to do")
        for path in self.folder.rglob("*.jsonl"):
            path.unlink()
        return errors[0], failures

    def test_out_of_memory(self):
        for program in BOTH:
            finding, failures = self.finding(program, "out-of-memory", "out-of-memory")
            self.assertEqual((finding["code"], finding["failed_call"]), (2, "cuMemAlloc_v2"))
            self.assertEqual(len(failures), 1)
            self.assertIn("out_of_memory", finding["where"]["function"])
            self.assertEqual([layer["layer"] for layer in failures[0]["layers"]][:1], ["driver"])

    def test_a_program_that_makes_do_with_less_is_fine(self):
        for mode in ("out-of-memory", "invalid-device"):
            analysis, _ = self.analysis("--simulate", "9.0", "--", SHARED, mode, "go-on", status=0)
            self.assertEqual([row["severity"] for row in analysis["findings"]], ["info"], analysis["findings"])

    def test_invalid_device(self):
        finding, failures = self.finding(SHARED, "invalid-device", "invalid-device")
        self.assertEqual((finding["code"], finding["failed_call"], len(failures)), (101, "cudaSetDevice", 1))

    def test_more_threads_than_there_can_be(self):
        for program in BOTH:
            finding, failures = self.finding(program, "too-many-threads", "launch-resources")
            self.assertIn("scale", finding["failed_kernel"])
            self.assertEqual(len(failures), 1)

    def test_more_threads_than_the_kernel_allows(self):
        for program in BOTH:
            finding, failures = self.finding(program, "beyond-bounds", "launch-resources")
            self.assertEqual((finding["code"], len(failures)), (1, 1))  # as an RTX 3060 answers: tests/sim/ledger
            self.assertIn("narrow", finding["failed_kernel"])

    def test_a_kernel_that_dies_is_one_failure_however_many_calls_tell(self):
        for program in BOTH:
            finding, failures = self.finding(program, "fault", "device-fault", env={"KSHIM_SIM_FAULT": "scale"})
            self.assertEqual((finding["code"], len(failures)), (700, 1))
            self.assertIn("ynchronize", finding["failed_call"])
            self.assertGreaterEqual(finding["count"], 2)
        finding, _ = self.finding(SHARED, "fault", "device-fault",
                                  env={"KSHIM_SIM_FAULT": "scale:716", "CUDA_LAUNCH_BLOCKING": "1"})
        self.assertEqual((finding["code"], finding["failed_call"]), (716, "cuLaunchKernel"))
        self.assertIn("scale", finding["failed_kernel"])

    def test_another_devices_stream(self):
        for program in BOTH:
            finding, failures = self.finding(program, "foreign-stream", "context-mismatch", devices="9.0;9.0")
            self.assertEqual((finding["code"], len(failures)), (400, 1))
            self.assertTrue(finding["devices"][0].startswith("GPU 1: "), finding["devices"])
            self.assertGreater(finding["confidence"], 0.7)

    def test_a_forks_child(self):
        for program in BOTH:
            finding, failures = self.finding(program, "forked", "fork-after-init")
            self.assertEqual((finding["code"], len(failures)), (3, 1))

    def test_no_device(self):
        env = {"LD_LIBRARY_PATH": e2e.SIMULATOR}
        for program in BOTH:
            finding, failures = self.finding(program, "count-devices", "no-device", devices="", env=env)
            self.assertEqual((finding["code"], len(failures)), (100, 1))
        analysis, _ = self.analysis("--", SHARED, "count-devices", "go-on", env=e2e.clean_environment(**env), status=0)
        self.assertEqual([row["severity"] for row in analysis["findings"]], ["info"], "a program that goes on is fine")

    def test_no_driver_as_in_a_container_without_its_gpu(self):
        if e2e.subprocess.run(["sh", "-c", "ldconfig -p | grep -q libcuda.so.1"]).returncode == 0:
            self.skipTest("this machine has a driver")
        finding, failures = self.finding(SHARED, "count-devices", "no-device", devices="")
        self.assertEqual((finding["code"], len(failures)), (35, 1))
        self.assertTrue(any("container" in fix["title"] for fix in finding["fixes"][:2]), finding["fixes"])

    def test_a_driver_older_than_the_runtime(self):
        finding, failures = self.finding(SHARED, "count-devices", "driver-too-old", devices="9.0,driver=12.4")
        self.assertEqual((finding["code"], len(failures)), (35, 1))
        self.assertGreater(finding["confidence"], 0.9)
        self.assertIn("580", finding["fixes"][0]["title"])
        self.assertTrue(any("CUDA 13" in line and "CUDA 12.4" in line
                            for line in finding["evidence"]), finding["evidence"])

    def test_the_same_with_a_static_runtime_which_initializes_nothing(self):
        finding, failures = self.finding(STATIC, "count-devices", "driver-too-old", devices="9.0,driver=12.4")
        self.assertEqual(failures, [], "there is no report")
        self.assertEqual(finding["object"], str(STATIC))
        self.assertGreater(finding["confidence"], 0.8)
        self.assertIn("580", finding["fixes"][0]["title"])
        analysis, _ = self.analysis("--simulate", "9.0,driver=12.4", "--", STATIC, "count-devices", "go-on", status=0)
        self.assertEqual((analysis["verdict"], analysis["findings"]), ("no-cuda", []), "a program that goes on is fine")
        self.assertFalse(any("DEEPBIND" in note for note in analysis.get("notes", [])), analysis)

    def test_a_driver_that_has_no_door_for_the_runtime(self):
        """Before CUDA 12 there is no cuGetProcAddress_v2, and runtime 13 asks for nothing else."""
        finding, failures = self.finding(STATIC, "count-devices", "driver-too-old", devices="8.0,driver=11.0")
        self.assertEqual(failures, [], "there is no report")
        self.assertTrue(any("CUDA 11.0" in line for line in finding["evidence"]), finding["evidence"])


if __name__ == "__main__":
    e2e.main()
