#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each sample fails for the reason it stands for: cause, kernel, file and a fix, in the analysis as JSON. What people read
is compared word for word by samples/update-outputs --check."""
import e2e

e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", e2e.SAMPLES / "08_healthy" / "transpose")


class Samples(e2e.Case):
    def finding(self, program, *devices, arguments=()):
        """The one finding of severity error."""
        options = [word for device in devices for word in ("--simulate", device)]
        analysis, _ = self.analysis(*options, "--", e2e.SAMPLES / program, *arguments, status=1)
        errors = [finding for finding in analysis["findings"] if finding["severity"] == "error"]
        self.assertEqual(len(errors), 1, analysis)
        self.assertEqual(analysis["verdict"], "gap")
        self.assertTrue(errors[0]["evidence"])
        return errors[0]

    def assert_rebuild(self, finding, *flags):
        commands = "\n".join(command for fix in finding["fixes"] if fix["kind"] == "rebuild" for command in fix["commands"])
        for flag in flags:
            self.assertIn(flag, commands)

    def test_missing_architecture(self):
        for program in ("saxpy", "saxpy_shared"):
            finding = self.finding(f"01_missing_architecture/{program}", "sm_120")
            self.assertEqual(finding["cause"], "no-image-for-arch")
            self.assertTrue(finding["object"].endswith(f"/{program}"))
            self.assertEqual(finding["kernels"], ["saxpy(int, float, float const*, float*)"])
            self.assert_rebuild(finding, "arch=compute_120")

    def test_ptx_newer_than_gpu(self):
        finding = self.finding("02_ptx_newer_than_gpu/histogram", "sm_86")
        self.assertEqual(finding["cause"], "ptx-newer-than-device")
        self.assert_rebuild(finding, "arch=compute_86")

    def test_arch_specific(self):
        # Its plain form would not run on an older GPU either.
        for device, cause in (("sm_100", "arch-specific-image"), ("sm_86", "no-image-for-arch")):
            finding = self.finding("03_arch_specific_sm_90a/attention", device)
            self.assertEqual(finding["cause"], cause)
            self.assertEqual(finding["code"], 209)

    def test_arch_specific_runs_where_it_belongs(self):
        analysis, done = self.analysis("--simulate", "sm_90", "--", e2e.SAMPLES / "03_arch_specific_sm_90a/attention", status=0)
        self.assertEqual((analysis["verdict"], done.stdout), ("ok", "attention: done\n"))

    def test_kernel_absent_from_one_image(self):
        finding = self.finding("04_kernel_absent_from_one_image/convert", "sm_75")
        self.assertEqual(finding["cause"], "kernel-missing-from-image")
        self.assertEqual(finding["kernels"], ["convert(float const*, unsigned short*)"])

    def test_driver_api(self):
        finding = self.finding("05_driver_api/blur", "sm_86")
        self.assertEqual(finding["cause"], "no-image-for-arch")
        self.assert_rebuild(finding, "arch=compute_86")

    def test_ptx_newer_than_driver(self):
        finding = self.finding("05_driver_api/blur", "sm_86,driver=12.4", arguments=["kernels_ptx.fatbin"])
        self.assertEqual((finding["cause"], finding["code"]), ("ptx-newer-than-driver", 222))
        self.assertIn("upgrade-driver", [fix["kind"] for fix in finding["fixes"]])

    def test_dlopen_library(self):
        finding = self.finding("06_dlopen_library/host", "sm_75")
        self.assertEqual(finding["cause"], "no-image-for-arch")
        self.assertTrue(finding["object"].endswith("/libscale.so"))
        self.assertEqual(finding["kernels"], ["void plugin::scale<float>(float*, float, int)"])

    def test_two_gpus(self):
        finding = self.finding("07_two_gpus/reduce", "sm_86", "sm_75")
        self.assertEqual(finding["cause"], "no-image-for-arch")
        self.assert_rebuild(finding, "arch=compute_75")

    def test_switches(self):
        """Programs that run on that device, broken by an environment variable alone."""
        for variable, program, device, cause in (
            ("CUDA_DISABLE_PTX_JIT", "02_ptx_newer_than_gpu/histogram", "sm_100", "ptx-jit-disabled"),
            ("CUDA_FORCE_PTX_JIT", "08_healthy/transpose", "sm_86", "sass-bypassed"),
        ):
            command = ["--simulate", device, "--", e2e.SAMPLES / program]
            healthy, _ = self.analysis(*command, status=0)
            self.assertEqual(healthy["verdict"], "ok")
            broken, _ = self.analysis(*command, env=e2e.clean_environment(**{variable: "1"}), status=1)
            self.assertEqual(broken["findings"][0]["cause"], cause)
            self.assertIn(variable, str(broken["findings"][0]["fixes"]))


if __name__ == "__main__":
    e2e.main()
