#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package `kshim` as the wheel installs it: what it says of itself, and `python -m kshim`."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402

e2e.require(e2e.KSHIM, e2e.SHIM)


class Package(staged.Staged):
    simulator = (e2e.SIMULATOR / "libcuda.so.1").exists()

    def module(self, *argv, **more):
        return self.python("-m", "kshim", *argv, **more)

    def asked(self, expression):
        done = self.python("-c", f"import kshim; print({expression})")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_places(self):
        self.assertEqual(self.asked("kshim.version, kshim.__version__"), f"{staged.VERSION} {staged.VERSION}")
        self.assertEqual(self.asked("kshim.path()"), str(self.site / "kshim" / "lib" / "libkshim.so"))
        self.assertEqual(self.asked("kshim.command()"), str(self.site / "kshim" / "bin" / "kshim"))
        self.assertEqual(self.asked("kshim.simulator()"), str(self.site / "kshim_simulator") if self.simulator else "None")
        self.assertEqual(self.module("path").stdout.strip(), self.asked("kshim.path()"))

    def test_preload_by_hand(self):
        done = self.python("-c", "print('libkshim.so' in open('/proc/self/maps').read())",
                           env=self.environment(LD_PRELOAD=self.asked("kshim.path()")))
        self.assertEqual((done.stdout, done.stderr), ("True\n", ""))

    def test_sources_alone(self):
        """A checkout on PYTHONPATH, without what is built."""
        shutil.copytree(staged.PACKAGE, self.folder / "kshim")
        (self.folder / "kshim" / "_version.py").write_text('version = "0"\n')
        env = self.environment()
        env["PYTHONPATH"] = str(self.folder)
        done = self.module("run", "true", env=env)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (125, 1), done.stderr)
        self.assertIn("kshim: error: bin/kshim is not in", done.stderr)

    def test_script(self):
        (self.folder / "train.py").write_text("import sys; print(sys.executable, *sys.argv[1:])\n")
        expected = f"{sys.executable} --simulate a b\n"
        for head in ([], ["--"], ["--report", "r"], ["--report", "r", "--fail-on=error", "--"]):
            with self.subTest(head):
                done = self.module("run", *head, "train.py", "--simulate", "a b")
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
        done = self.module("run", "--", "./train.py")
        self.assertEqual((done.returncode, done.stdout), (0, f"{sys.executable}\n"), done.stderr)

    def test_other_programs_as_they_are(self):
        done = self.module("run", "--", "echo", "train.py")
        self.assertEqual((done.returncode, done.stdout), (0, "train.py\n"))
        self.assertEqual(self.module("run", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.module("analyze").returncode, self.kshim("analyze").returncode)
        self.assertEqual(self.module("run", "--bad").returncode, 125)

    def test_value_options(self):
        """Those whose value may look like a script: as the help of `kshim run` has them."""
        known = self.python("-c", "from kshim.__main__ import VALUE_OPTIONS; print(*VALUE_OPTIONS)").stdout.split()
        text = self.kshim("run", "--help").stdout + self.kshim("--help").stdout
        shown = set()
        for names in re.findall(r"^  (-[^ ,]+(?:, --[a-z-]+)?) [^ ]", text, re.M):
            shown |= set(names.split(", "))
        self.assertEqual(shown, set(known))

    def test_same_process(self):
        with subprocess.Popen([sys.executable, "-m", "kshim", "run", "--", "sh", "-c", "echo $PPID"], text=True,
                              cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            self.assertEqual(int(child.stdout.read()), child.pid)

    def test_simulator(self):
        if not self.simulator:
            self.skipTest("the simulator was not built")
        code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
        done = self.module("run", "--simulate", "sm_120", "--", sys.executable, "-c", code)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), done.stderr)
        # Installed apart from it, as --user and a virtual environment can have it.
        apart = self.folder / "apart"
        apart.mkdir()
        shutil.copytree(self.site / "kshim", apart / "kshim")
        env = self.environment()
        env["PYTHONPATH"] = os.pathsep.join([str(apart), env["PYTHONPATH"]])
        done = self.module("run", "--simulate", "sm_120", "--", sys.executable, "-c", code, env=env)
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"), done.stderr)


if __name__ == "__main__":
    e2e.main()
