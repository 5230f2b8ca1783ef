#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim run` of programs that libkshim.so cannot watch, or not all of: it names the process, the reason and the file."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import e2e

HERE = e2e.BUILD / "tests" / "blind"
HOST = HERE / "blind_host"
GUEST = e2e.PROGRAMS / "e2e_guest"
SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
PLUGINS = {name: HERE / f"libplugin_{name}.so" for name in ("static", "shared", "driver", "plain", "large")}
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", HOST, GUEST, SCALE, *PLUGINS.values())


class Past(e2e.Case):
    """Code that binds past every preload: RTLD_DEEPBIND and dlmopen."""

    def run_host(self, how, plugin, *more, device="sm_75", status=1):
        return self.analysis("--simulate", device, "--", HOST, how, plugin, *more, status=status)

    def assert_names(self, analysis, *parts, verdict="blind"):
        """`verdict`: gap, where the driver's log tells of the refusal that nobody saw."""
        self.assertEqual(analysis["verdict"], verdict, json.dumps(analysis, indent=1))
        self.assertEqual([pathlib.Path(process["exe"]).name for process in analysis["blind"]], ["blind_host"])
        for part in parts:
            self.assertIn(str(part), analysis["blind"][0]["reason"])

    def test_plainly_loaded_plugins_are_watched(self):
        for name in ("static", "shared", "driver"):
            analysis, done = self.run_host("plain", PLUGINS[name])
            self.assertEqual((done.stdout, analysis["verdict"], analysis["blind"]), ("plugin: 209\n", "gap", []), name)

    def test_a_runtime_that_comes_back_with_its_plugin(self):
        """A shared runtime leaves with its only user, and comes back, perhaps to the same address: it is no second copy."""
        code = ("import ctypes, _ctypes\n"
                "driver = ctypes.CDLL('libcuda.so.1')\n"
                "for _ in range(20):\n"
                f"    plugin = ctypes.CDLL({str(PLUGINS['shared'])!r})\n"
                "    plugin.plugin_run()\n"
                "    _ctypes.dlclose(plugin._handle)\n")
        env = e2e.clean_environment(LD_PRELOAD=e2e.SHIM, **e2e.simulated("7.5"))
        self.assertEqual(self.run_program(sys.executable, "-c", code, env=env).returncode, 0)
        (records,) = self.reports()
        layers = {tuple(layer["layer"] for layer in row["layers"]) for row in e2e.of_type(records, "failure")}
        self.assertEqual(layers, {("driver", "runtime")})

    def test_deepbind(self):
        for name in ("static", "shared", "driver"):
            analysis, done = self.run_host("deepbind", PLUGINS[name])
            self.assertEqual(done.stdout, "plugin: 209\n")
            self.assert_names(analysis, PLUGINS[name], "RTLD_DEEPBIND", verdict="gap")
            finding, = analysis["findings"]
            self.assertEqual(finding["code"], 209)
            if name == "static":
                self.assertEqual((finding["cause"], finding["object"], finding["need"]), ("ptx-newer-than-device", str(PLUGINS[name]), "sm_75"))

    def test_deepbind_of_a_healthy_plugin_is_not_well(self):
        """Nothing failed, and nobody looked."""
        analysis, _ = self.run_host("deepbind", PLUGINS["static"], device="sm_90", status=0)
        self.assert_names(analysis, PLUGINS["static"], "RTLD_DEEPBIND")
        done = self.kshim("run", "--fail-on", "error", "--simulate", "sm_90", "--", HOST, "deepbind", PLUGINS["static"])
        self.assertEqual(done.returncode, 125)

    def test_dlmopen(self):
        for name in ("static", "shared", "driver"):
            analysis, done = self.run_host("dlmopen", PLUGINS[name])
            self.assertEqual(done.stdout, "plugin: 209\n")
            self.assert_names(analysis, PLUGINS[name], "dlmopen", verdict="gap")

    def test_relative_paths_are_completed(self):
        (self.folder / "here.so").symlink_to(PLUGINS["static"])
        analysis, _ = self.run_host("deepbind", "./here.so")
        self.assert_names(analysis, self.folder / "here.so", verdict="gap")

    def test_text(self):
        done = self.kshim("run", "--simulate", "sm_75", "--", HOST, "deepbind", PLUGINS["static"])
        self.assertIn("RTLD_DEEPBIND", done.stderr)
        self.assertIn("not watched:", done.stderr)

    def test_what_comes_through_nevertheless(self):
        """A runtime that was loaded plainly before: what is linked to it may be bound past the shim, its calls of the driver are
        not, so the failure is seen."""
        runtime = subprocess.run(["ldd", PLUGINS["shared"]], capture_output=True, text=True, check=True).stdout
        path = next(line.split()[2] for line in runtime.splitlines() if "libcudart" in line)
        analysis, _ = self.run_host("deepbind", PLUGINS["shared"], "exit", path)
        self.assertEqual((analysis["verdict"], analysis["blind"]), ("gap", []), json.dumps(analysis, indent=1))

    def test_a_process_that_is_watched_in_part(self):
        analysis, _ = self.run_host("deepbind", PLUGINS["static"], "exit", PLUGINS["driver"], device="sm_90", status=0)
        self.assert_names(analysis, PLUGINS["static"])
        self.assertNotIn("driver", analysis["blind"][0]["reason"])
        self.assertEqual(analysis["processes"][0]["modules"], 1)
        done = self.kshim("run", "--simulate", "sm_90", "--", HOST, "deepbind", PLUGINS["static"], "exit", PLUGINS["driver"])
        self.assertIn("not all of it was watched", done.stderr)

    def test_deepbind_without_cuda_is_nobodys_business(self):
        """Also where CUDA is used by somebody else."""
        analysis, _ = self.run_host("deepbind", PLUGINS["plain"], status=0)
        self.assertEqual((analysis["verdict"], analysis["blind"], self.files()), ("no-cuda", [], []))
        analysis, _ = self.run_host("deepbind", PLUGINS["plain"], "exit", "libcuda.so.1", status=0)
        self.assertEqual((analysis["verdict"], analysis["blind"]), ("no-cuda", []), json.dumps(analysis, indent=1))

    def test_a_large_library(self):
        """As Taichi's, which is opened with RTLD_DEEPBIND and has the driver's name 20 MB from its beginning."""
        analysis, done = self.run_host("deepbind", PLUGINS["large"], device="sm_90", status=0)
        self.assertIn("cuInit: 0", done.stdout)
        self.assert_names(analysis, PLUGINS["large"], "RTLD_DEEPBIND")

    def test_a_driver_that_a_script_names(self):
        """As in PHP, which opens its FFI with RTLD_DEEPBIND and closes it before the end: no file that is mapped names the driver."""
        notes = []
        for more in ((), ("--audit",)):
            done = self.kshim("run", *more, "--simulate", "sm_90", "--", HOST, "deepbind", PLUGINS["plain"], "close",
                              env=e2e.clean_environment() | {"PLUGIN_OPENS": "libcuda.so.1"})
            self.assertIn("cuInit: 0", done.stdout)
            notes.append("--audit" in done.stderr)
        self.assertEqual(notes, [True, False])

    def test_an_end_without_destructors(self):
        """What is left then is what the watcher saw from outside, which is a note."""
        for how, word in (("deepbind", "RTLD_DEEPBIND"), ("dlmopen", "dlmopen")):
            analysis, _ = self.run_host(how, PLUGINS["static"], "_exit")
            notes = [note for note in analysis["notes"] if word in note]
            self.assertEqual(len(notes), 1, json.dumps(analysis, indent=1))
            self.assertIn(str(PLUGINS["static"]), notes[0])

    def test_a_child_of_a_fork_has_the_driver_from_its_parent(self):
        """As the children of XLA, between fork and ptxas."""
        program = ("import ctypes, os, sys, time\n"
                   "driver = ctypes.CDLL('libcuda.so.1')\n"
                   "assert driver.cuInit(0) == 0\n"
                   f"library = ctypes.CDLL({str(PLUGINS['static'])!r})\n"  # names the driver
                   "if os.fork() == 0:\n    time.sleep(1)\n    os._exit(0)\n"
                   "os.wait()\n")
        analysis, _ = self.analysis("--simulate", "sm_75", "--", sys.executable, "-c", program)
        self.assertEqual([note for note in analysis["notes"] if "libcuda.so.1" in note], [])

    def test_the_parent_of_an_orphan(self):
        """`kshim run` takes orphans over, so that it finds those without the shim: a daemon's parent is not process 1."""
        program = ("import os, time\n"
                   "if os.fork() == 0:\n"
                   "    parent = os.getpid()\n"
                   "    if os.fork() == 0:\n"
                   "        while os.getppid() == parent: time.sleep(0.01)\n"
                   "        os.write(1, b'%d\\n' % os.getppid())\n"
                   "    os._exit(0)\n"
                   "os.wait()\nos.write(1, b'%d\\n' % os.getppid())\ntime.sleep(0.5)\n")
        done = self.kshim("run", "--", sys.executable, "-c", program)
        parents = [line for line in done.stdout.splitlines() if line.isdigit()]
        self.assertEqual((len(parents), len(set(parents))), (2, 1), done.stdout + done.stderr)

    def test_unloaded_in_time_from_a_namespace(self):
        """The driver stays behind: that much can be said."""
        analysis, _ = self.run_host("dlmopen", PLUGINS["static"], "close")
        self.assert_names(analysis, "dlmopen", verdict="gap")
        self.assertNotIn("libstdc++", analysis["blind"][0]["reason"])


class Outside(e2e.Case):
    """Processes that the shim does not get into."""

    def named(self, analysis, name):
        self.assertEqual(analysis["verdict"], "blind", json.dumps(analysis, indent=1))
        found = [process["reason"] for process in analysis["blind"] if pathlib.Path(process["exe"]).name == name]
        self.assertEqual(len(found), 1, json.dumps(analysis, indent=1))
        return found[0]

    def test_an_empty_environment(self):
        e2e.not_instrumented(self)
        analysis, done = self.analysis("--", "env", "-i", f"LD_LIBRARY_PATH={e2e.SIMULATOR}", "KSHIM_SIM_DEVICES=7.5", GUEST,
                                       SCALE, "linger")
        self.assertIn("environment was cleared", self.named(analysis, "e2e_guest"))
        self.assertIn("no kernel image", done.stdout)

    def test_a_setuid_program_that_uses_cuda(self):
        e2e.not_instrumented(self)
        if os.getuid() != 0:
            self.skipTest("only root can give a file away")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-e2e-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{folder} is mounted nosuid")
        # The loader ignores LD_LIBRARY_PATH there as well, so the simulator is what is loaded by its path; a copy, because
        # the build may lie in a folder that nobody else may enter.
        program, simulator = folder / "borrowed", folder / "libcuda.so.1"
        shutil.copy(HOST, program)
        shutil.copy(e2e.SIMULATOR / "libcuda.so.1", simulator)
        simulator.chmod(0o755)
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        analysis, _ = self.analysis("--simulate", "sm_75", "--", program, "plain", simulator, "exit", status=4)
        self.assertIn("setuid", self.named(analysis, "borrowed"))


if __name__ == "__main__":
    e2e.main()
