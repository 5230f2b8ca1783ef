#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libkshim-audit.so: with it the shim sees what RTLD_DEEPBIND would bind past it, and the program sees no difference."""
import json
import pathlib
import re
import shutil
import subprocess

import e2e

HERE = e2e.BUILD / "tests" / "blind"
HOST = HERE / "blind_host"
AUDIT = e2e.BUILD / "shim" / "libkshim-audit.so"
BEHIND = HERE / "libbehind.so"
PLUGINS = {name: HERE / f"libplugin_{name}.so" for name in ("static", "shared", "driver", "plain", "no_plt")}
e2e.require(e2e.KSHIM, e2e.SHIM, AUDIT, e2e.SIMULATOR / "libcuda.so.1", HOST, BEHIND, *PLUGINS.values())


class Audit(e2e.Case):
    def run_host(self, how, plugin, *more, device="sm_75", status=1):
        return self.analysis("--audit", "--simulate", device, "--", HOST, how, PLUGINS[plugin], *more, status=status)

    def test_deepbind_is_seen(self):
        for name in ("static", "shared", "driver"):
            for how in ("plain", "deepbind"):
                analysis, done = self.run_host(how, name)
                self.assertEqual((analysis["verdict"], analysis["blind"], done.stdout), ("gap", [], "plugin: 209\n"),
                                 f"{how} {name}: {json.dumps(analysis, indent=1)}")
                if name == "driver":  # its load fails, before any kernel is asked for
                    continue
                kernels = [kernel for finding in analysis["findings"] for kernel in finding["kernels"]]
                self.assertTrue(any("plugin_kernel" in kernel for kernel in kernels), f"{how} {name}: {kernels}")

    def test_the_runtimes_own_functions_are_seen_too(self):
        """As without RTLD_DEEPBIND: one failure, at the driver and at the runtime."""
        for how in ("plain", "deepbind"):
            self.analysis("--audit", "--report", how, "--simulate", "sm_75", "--", HOST, how, PLUGINS["shared"], status=1)
            failures = [record for record in self.reports(self.folder / how)[0] if record["type"] == "failure"]
            self.assertEqual([[layer["layer"] for layer in failure["layers"]] for failure in failures], [["driver", "runtime"]], how)

    def test_a_healthy_one_is_well(self):
        for name in ("static", "shared", "driver"):
            analysis, _ = self.run_host("deepbind", name, device="sm_90", status=0)
            self.assertEqual((analysis["verdict"], analysis["blind"]), ("ok", []), name)

    def test_what_is_not_bound_as_a_call_stays_unseen_and_is_named(self):
        """-fno-plt: the linker asks an auditor about calls through the PLT, not about pointers."""
        analysis, _ = self.run_host("deepbind", "no_plt")
        self.assertEqual(analysis["verdict"], "gap")  # the driver's log has the refusal
        self.assertIn("libplugin_no_plt.so", analysis["blind"][0]["reason"])
        self.assertNotIn("try", analysis["blind"][0]["reason"])

    def test_other_namespaces_stay_unseen(self):
        analysis, _ = self.run_host("dlmopen", "static")
        self.assertEqual(analysis["verdict"], "gap")  # the driver's log has the refusal
        self.assertIn("dlmopen", analysis["blind"][0]["reason"])

    def test_it_is_recommended_where_it_would_help(self):
        analysis, _ = self.analysis("--simulate", "sm_75", "--", HOST, "deepbind", PLUGINS["static"])
        self.assertIn("kshim run --audit", analysis["blind"][0]["reason"])

    def test_an_auditor_that_is_there_stays(self):
        done = self.kshim("run", "--audit", "--", "sh", "-c", "echo $LD_AUDIT", env=e2e.clean_environment(LD_AUDIT="/nowhere/other.so"))
        self.assertEqual(done.stdout, f"/nowhere/other.so:{AUDIT}\n")

    def test_without_the_shim_it_does_nothing(self):
        """LD_AUDIT alone, as a child inherits it that dropped LD_PRELOAD."""
        for how in ("plain", "deepbind", "dlmopen"):
            done = self.run_program(HOST, how, PLUGINS["shared"], env=e2e.simulated("9.0", LD_AUDIT=AUDIT))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "plugin: 0\n", ""))

    def test_the_drivers_calls_are_the_same(self):
        """The simulator's trace with auditor and shim, and without both."""
        own = {"cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceGetUuid_v2",
               "cuDeviceGetPCIBusId", "cuCtxGetDevice", "cuCtxGetCurrent"}

        def trace(**environment):
            path = self.folder / "trace"
            path.unlink(missing_ok=True)
            self.run_program(HOST, "deepbind", PLUGINS["static"], env=e2e.simulated("9.0", KSHIM_SIM_TRACE=path, **environment))
            calls = [re.sub(r"0x[0-9a-f]+", "P", line.split(" ", 2)[2]) for line in path.read_text().splitlines()]
            return [call for call in calls if call.split("(")[0] not in own]

        bare = trace()
        self.assertGreater(len(bare), 100)
        self.assertEqual(trace(LD_AUDIT=AUDIT, LD_PRELOAD=e2e.SHIM, KSHIM_LOG="off"), bare)

    def test_another_tool_behind_the_shim_finds_its_next(self):
        driver = e2e.SIMULATOR / "libcuda.so.1"  # in the global scope, where RTLD_NEXT looks
        for audit in ({}, {"LD_AUDIT": AUDIT}):
            done = self.run_program(HOST, "plain", PLUGINS["driver"],
                                    env=e2e.simulated("9.0", LD_PRELOAD=f"{e2e.SHIM}:{BEHIND}:{driver}", KSHIM_LOG="off", **audit))
            self.assertEqual((done.returncode, done.stdout), (0, "behind: 0 at depth 1\nplugin: 0\n"), audit)

    def test_everyday_programs(self):
        for argv in (["sh", "-c", "echo hello; exit 3"], ["ls", "/"], ["env", "true"]):
            bare = self.run_program(*argv)
            with_it = self.run_program(*argv, env=e2e.clean_environment(LD_AUDIT=AUDIT, LD_PRELOAD=e2e.SHIM))
            self.assertEqual((with_it.returncode, with_it.stdout, with_it.stderr), (bare.returncode, bare.stdout, bare.stderr), argv)

    def test_the_file(self):
        """It needs no library and exports what rtld-audit(7) names, and no more."""
        readelf = shutil.which("readelf")
        if readelf is None:
            self.skipTest("no readelf")

        def output(*flags):
            return subprocess.run([readelf, "-W", *flags, AUDIT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout

        self.assertNotIn("NEEDED", output("--dynamic"))
        rows = [line.split() for line in output("--dyn-syms").splitlines()]
        names = {row[7] for row in rows if len(row) > 7 and row[0].rstrip(":").isdigit()}
        self.assertEqual(names, {"la_version", "la_objopen", "la_symbind64"})
        self.assertLess(pathlib.Path(AUDIT).stat().st_size, 200_000)


if __name__ == "__main__":
    e2e.main()
