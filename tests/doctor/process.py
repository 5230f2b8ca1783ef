#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim scan --pid and kshim doctor --pid: what real processes have mapped, and what they have not."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import e2e
import fixture

SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"  # has device code
COMPILER = shutil.which("cc") or shutil.which("gcc")
CUDART = pathlib.Path("/usr/local/cuda/lib64/libcudart.so")
e2e.require(SCALE, e2e.SIMULATOR / "libcuda.so.1")
LOADS = """import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path)
print("ready", flush=True)
sys.stdin.read()
"""


class Process(e2e.Case):
    def start(self, *argv, env=None, **more):
        process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=e2e.clean_environment() if env is None else env, **more)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def loads(self, *libraries, env=None):
        return self.start(sys.executable, "-c", LOADS, *libraries, env=env)

    def library(self, name, *flags, source="int f;", folder=None):
        """A library of that name in the working folder, without device code."""
        if COMPILER is None:
            self.skipTest("no C compiler")
        path = (folder or self.folder) / name
        subprocess.run([COMPILER, "-x", "c", "-", "-x", "none", "-shared", "-o", path, "-Wl,--no-as-needed", *[str(flag) for flag in flags]],
                       input=source, text=True, check=True)
        return path

    def ask(self, verb, pid, *options, status=0):
        done = self.kshim(verb, "--format", "json", "--pid", pid, *options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["process"]["pid"], pid)
        return found

    @staticmethod
    def ids(checks):
        return [check["id"] for check in checks if check["severity"] != "info"]

    def test_files_with_device_code_are_judged(self):
        process = self.loads(SCALE)
        there = json.loads(self.kshim("scan", "--format", "json", "--target", "12.0", SCALE).stdout)
        for target, status in (("12.0", 1), ("8.0", 0)):
            found = self.ask("scan", process.pid, "--target", target, status=status)
            self.assertEqual([pathlib.Path(each["path"]) for each in found["objects"]], [SCALE])
        found = self.ask("scan", process.pid, "--target", "12.0", status=1)
        self.assertEqual([found["findings"][0][key] for key in ("cause", "have", "need")],
                         [there["findings"][0][key] for key in ("cause", "have", "need")])

    def test_doctor_has_the_machine_and_what_is_mapped(self):
        process = self.loads(SCALE, e2e.SIMULATOR / "libcuda.so.1")
        found = self.ask("doctor", process.pid)
        fixture.schema_check(found)
        self.assertEqual([(each["name"], each["how"]) for each in found["libraries"]], [("libcuda.so.1", "mapped")])
        self.assertEqual(len(found["coverage"]), 1)
        self.assertTrue(found["system"]["glibc"])

    def test_the_gpu_library_of_what_is_mapped(self):
        base = self.library("libggml-base.so.0")
        absent = self.ask("scan", self.loads(base).pid)
        self.assertEqual(self.ids(absent["checks"]), ["gpu-library-not-mapped"])
        gpu = self.folder / "libggml-cuda.so"
        shutil.copy(SCALE, gpu)
        there = self.ask("scan", self.loads(base).pid)
        self.assertEqual(self.ids(there["checks"]), ["gpu-library-not-mapped"])
        self.assertIn(str(gpu), there["checks"][0]["text"])
        self.assertNotIn(str(gpu), absent["checks"][0]["text"])
        self.assertEqual(self.ids(self.ask("scan", self.loads(base, gpu).pid)["checks"]), [])
        self.assertEqual(self.kshim("scan", "--fail-on", "warning", "--pid", self.loads(base).pid).returncode, 1)

    def test_why_it_is_not_mapped(self):
        """What the linker would not find for it is named, but for what the process has mapped from elsewhere."""
        gone = self.library("libgone.so.1", "-Wl,-soname,libgone.so.1")
        (self.folder / "far").mkdir()
        far = self.library("libfar.so.2", "-Wl,-soname,libfar.so.2", folder=self.folder / "far")
        state = self.library("onnxruntime_pybind11_state.so")
        self.library("libonnxruntime_providers_cuda.so", gone, far)
        gone.unlink()
        text = self.ask("doctor", self.loads(state, far).pid)["findings"][0]["text"]
        self.assertIn("libgone.so.1", text)
        self.assertNotIn("libfar", text)

    def test_kernels_inside_need_no_other_library(self):
        shutil.copy(SCALE, self.folder / "libggml-base.so")
        self.assertEqual(self.ids(self.ask("scan", self.loads(self.folder / "libggml-base.so").pid)["checks"]), [])

    def test_the_variables_that_it_started_with(self):
        process = self.loads(env=e2e.clean_environment(CUDA_VISIBLE_DEVICES=""))
        self.assertEqual(self.ids(self.ask("scan", process.pid)["checks"]), ["hidden-devices"])
        process = self.loads(env=e2e.clean_environment(CUDA_FORCE_PTX_JIT="1"))
        self.assertEqual(self.ids(self.ask("scan", process.pid)["checks"]), ["jit-switch"])

    def test_a_driver_of_the_compat_package(self):
        folder = self.folder / "compat"
        folder.mkdir()
        driver = self.library("libcuda.so.580.82.07", "-Wl,-soname,libcuda.so.1", folder=folder)
        found = self.ask("doctor", self.loads(driver).pid)
        self.assertEqual((self.ids(found["findings"]), found["libraries"][0]["version"]), (["cuda-compat"], "580.82.07"))
        self.assertEqual(self.ask("scan", self.loads(driver).pid, "--target", "8.0")["driver"], "13.0")

    def test_two_majors(self):
        paths = [self.library(f"libcublas.so.{major}", f"-Wl,-soname,libcublas.so.{major}") for major in (12, 13)]
        self.assertEqual(self.ids(self.ask("doctor", self.loads(*paths).pid)["findings"]), ["mixed-cuda-libraries"])

    def test_the_toolkits_library(self):
        if not CUDART.exists():
            self.skipTest(f"no {CUDART}")
        found = self.ask("doctor", self.loads(CUDART).pid)
        self.assertRegex(found["libraries"][0]["name"], r"^libcudart\.so\.\d+$")

    def test_a_file_that_was_removed(self):
        copy = self.folder / "libmine.so"
        shutil.copy(SCALE, copy)
        process = self.loads(copy)
        copy.unlink()
        done = self.kshim("scan", "--format", "json", "--target", "12.0", "--pid", process.pid)
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1)
        # The kernel lets root alone read what has no name.
        self.assertTrue(any(str(copy) in each["path"] for each in found["objects"]) or any(str(copy) in note for note in found["notes"]), found)

    def test_another_root(self):
        if os.getuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("needs root and unshare")
        done = subprocess.run(["unshare", "--mount", "true"], check=False)
        if done.returncode != 0:
            self.skipTest("unshare --mount is refused here")
        root = self.folder / "root"
        for each in (sys.executable, SCALE):
            listed = subprocess.run(["ldd", each], stdout=subprocess.PIPE, text=True, check=False).stdout
            for path in [word for line in listed.splitlines() for word in line.split() if word.startswith("/")]:
                there = root / path.lstrip("/")
                there.parent.mkdir(parents=True, exist_ok=True)
                if not there.exists():
                    shutil.copy(path, there)
        (root / "opt").mkdir()
        shutil.copy(SCALE, root / "opt/libinside.so")
        program = self.folder / "waits"
        subprocess.run([COMPILER, "-x", "c", "-", "-o", root / "waits"], check=True, text=True, input="""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  if (dlopen(argv[1], RTLD_NOW) == 0) return puts(dlerror());
  puts("ready");
  fflush(stdout);
  return getchar();
}
""")
        subprocess.run(["cp", "-n", root / "waits", program], check=False)
        for way in (["chroot", root], ["unshare", "--mount", "chroot", root]):
            process = self.start(*way, "/waits", "/opt/libinside.so")
            found = self.ask("scan", process.pid, "--target", "12.0", status=1)
            self.assertEqual([each["path"] for each in found["objects"]], ["/opt/libinside.so"], way)
            self.assertEqual(found["process"]["program"], "/waits")

    def test_what_is_no_process_says_so_in_one_line(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for verb in ("scan", "doctor"):
            self.assert_says(self.kshim(verb, "--pid", ended.pid), 3, str(ended.pid))
            for text in ("abc", "", "-1", "0", "12x", "99999999999999999999"):
                self.assert_says(self.kshim(verb, f"--pid={text}"), 2, "--pid")
        self.assert_says(self.kshim("scan", "--pid", os.getpid(), SCALE), 2, "--pid", "PATH")
        self.assert_says(self.kshim("doctor", "--pid", os.getpid(), "python"), 2, "--pid")

    def test_a_process_that_was_not_collected(self):
        process = subprocess.Popen(["true"])
        state = pathlib.Path(f"/proc/{process.pid}/stat")
        while ") Z" not in state.read_text():
            time.sleep(0.01)
        self.assert_says(self.kshim("scan", "--pid", process.pid), 3, "has ended")
        process.wait()

    def test_a_process_of_another_user(self):
        if os.getuid() != 0:
            self.skipTest("only root can start one")
        other = self.loads()
        stranger = self.folder / "kshim"
        shutil.copy(e2e.KSHIM, stranger)
        for path in (self.folder, stranger):
            path.chmod(0o755)
        done = subprocess.run([stranger, "scan", "--pid", str(other.pid)], user=65534, group=65534, extra_groups=[], cwd="/",
                              capture_output=True, text=True, check=False, env=e2e.clean_environment())
        self.assert_says(done, 3, str(other.pid), "root")

    def test_it_ends_meanwhile(self):
        """Whatever the moment: an answer, or one line."""
        for pause in (0, 0.002, 0.005, 0.01, 0.02):
            process = self.loads(SCALE)
            asking = subprocess.Popen([e2e.KSHIM, "scan", "--target", "8.0", "--pid", str(process.pid)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True)
            time.sleep(pause)
            process.kill()
            process.wait()
            said = asking.communicate()[1]
            self.assertIn(asking.returncode, (0, 1, 3), said)
            self.assertLessEqual(said.count("kshim: error:"), 1)

    def test_names_and_values_cannot_steer_a_terminal(self):
        odd = self.library("libggml-base\x1b[2J\n.so")
        process = self.loads(odd, env=e2e.clean_environment(CUDA_VISIBLE_DEVICES="\x1b]0;x\x07,7"))
        for verb in ("scan", "doctor"):
            for form in ("text", "markdown", "json"):
                done = self.kshim(verb, "--format", form, "--pid", process.pid)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("\x1b", done.stdout + done.stderr)
                self.assertNotIn("\x07", done.stdout + done.stderr)


if __name__ == "__main__":
    fixture.main()
