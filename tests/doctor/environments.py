#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim doctor --format markdown ENVIRONMENT` on this machine with simulated GPUs: the block for an issue, of an environment that venv
made, one that uv made (where it is installed), and one laid out as conda does."""
import json
import os
import pathlib
import platform
import re
import shutil
import sys

import e2e

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
e2e.require(e2e.KSHIM, SAXPY, e2e.SIMULATOR / "libnvidia-ml.so.1")


class Environments(e2e.Case):
    def setUp(self):
        super().setUp()
        e2e.not_instrumented(self)
        self.prefix = self.folder / "env"

    def install(self, name="torch"):
        """A distribution with device code, as an installer leaves it."""
        [site] = self.prefix.glob("lib/python3*/site-packages")
        (site / name).mkdir()
        shutil.copy(SAXPY, site / name / "_C.so")
        (site / f"{name}-2.9.1.dist-info").mkdir()
        (site / f"{name}-2.9.1.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.9.1\n\n")
        (site / f"{name}-2.9.1.dist-info" / "RECORD").write_text(f"{name}/_C.so,,\n")

    def look(self, manager, version, *names, **env):
        """The block has all that an issue needs, and the environment that was named, not the one that is active."""
        for name in names:
            done = self.kshim("doctor", "--format", "json", name, env=e2e.simulated("8.6;12.0", PATH=os.environ["PATH"], **env))
            found = json.loads(done.stdout)
            [python] = found["pythons"]
            self.assertEqual((python["manager"], python["version"]), (manager, version), name)
            self.assertEqual(found["coverage"], [{"package": "torch 2.9.1", "files": 1, "archs": ["sm_80", "sm_90"],
                                                  "gpus": [{"compute_capability": "8.6", "files": 1, "run": 1, "jit": 0},
                                                           {"compute_capability": "12.0", "files": 1, "run": 0, "jit": 0}]}])
            done = self.kshim("doctor", "--format", "markdown", name, env=e2e.simulated("8.6;12.0", PATH=os.environ["PATH"], HOME=self.folder, **env))
            self.assertIn(done.returncode, (0, 1), done.stderr)
            libc, release = os.confstr("CS_GNU_LIBC_VERSION").split()
            for part in (f"{libc} {release}", platform.freedesktop_os_release()["PRETTY_NAME"], platform.release(), manager, version, "8.6", "12.0", "CUDA 13.0",
                         "torch 2.9.1", "sm_80 sm_90"):
                self.assertIn(part, done.stdout)
            for program in ("nvcc", "ptxas", "c++"):
                if path := shutil.which(program):
                    self.assertIn(path, done.stdout)
            self.assertNotIn(str(self.folder), done.stdout)
        return done.stdout

    def test_venv(self):
        done = self.run_program(sys.executable, "-m", "venv", "--without-pip", self.prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.install()
        (self.folder / ".venv").symlink_to(self.prefix)
        self.look("venv", platform.python_version(), self.prefix, self.prefix / "bin" / "python", "env/bin/python3", ".venv", VIRTUAL_ENV="/elsewhere")

    def test_uv(self):
        uv = shutil.which("uv") or pathlib.Path(sys.executable).parent / "uv"
        if not pathlib.Path(uv).exists():
            self.skipTest("no uv; tools/requirements-recipes.txt has it")
        done = self.run_program(uv, "venv", "--offline", "--no-config", "--python", sys.executable, self.prefix)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.install()
        self.look("uv", platform.python_version(), self.prefix, self.prefix / "bin" / "python", CONDA_PREFIX="/elsewhere")

    def test_the_systems(self):
        """No environment at all: Debian's interpreter, by its path and by its name in PATH."""
        [python] = [path for path in pathlib.Path("/usr/bin").glob("python3.*") if path.name.removeprefix("python3.").isdigit()][:1] or [None]
        if python is None:
            self.skipTest("no Python in /usr/bin")
        for name, path in (("/usr/bin/python3", os.environ["PATH"]), ("python3", "/usr/bin:/bin"), (python, "/bin")):
            done = self.kshim("doctor", "--format", "json", name, env=e2e.simulated("8.6", PATH=path, VIRTUAL_ENV="/elsewhere"))
            [found] = json.loads(done.stdout)["pythons"]
            self.assertEqual((found["manager"], found["version"], found["interpreter"]), ("system", python.name.removeprefix("python"), "/usr/bin/python3"), name)
            done = self.kshim("doctor", "--format", "markdown", name, env=e2e.simulated("8.6", PATH=path))
            self.assertRegex(done.stdout, rf"(?m)^\| Python \| .*{re.escape(found['version'])} \(system\)")
            self.assertIn(platform.freedesktop_os_release()["PRETTY_NAME"], done.stdout)

    def test_conda(self):
        """The interpreter lies in it, and its packages stand in conda-meta; there is no conda on PyPI or in Debian to make one."""
        (self.prefix / "bin").mkdir(parents=True)
        python = pathlib.Path(sys.executable).resolve()
        shutil.copy(python, self.prefix / "bin" / python.name)
        (self.prefix / "bin" / "python").symlink_to(python.name)
        (self.prefix / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages").mkdir(parents=True)
        (self.prefix / "conda-meta").mkdir()
        (self.prefix / "conda-meta" / "history").write_text("")
        (self.prefix / "conda-meta" / f"python-{platform.python_version()}-h955ad1f_0.json").write_text('{"name": "python"}')
        self.install()
        self.look("conda", platform.python_version(), self.prefix, self.prefix / "bin" / "python", VIRTUAL_ENV="/elsewhere")


if __name__ == "__main__":
    e2e.main()
