#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packages that pip builds of a folder with setuptools and nvcc: what the analysis says of them, and that its command fixes them."""
import pathlib
import shutil
import site
import subprocess
import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402

e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")
staged.require_modules("pip", "setuptools")

SETTINGS = staged.settings()
SETUP = f"""
import os, subprocess
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

class Nvcc(build_ext):
    def build_extension(self, ext):
        path = self.get_ext_fullpath(ext.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.check_call(["{SETTINGS['KSHIM_NVCC']}", "-O1", "-gencode", "arch=compute_90,code=sm_90", "-cudart", "shared", "-shared",
                               "-Xcompiler", "-fPIC", "-L{SETTINGS['KSHIM_CUDA_LIB']}", "-Xlinker", "-rpath={SETTINGS['KSHIM_CUDA_LIB']}",
                               "-Xlinker", "--build-id", "-o", path, *ext.sources])

setup(name="My-Kernels", version="0.3", packages=["my_kernels"], package_dir=PACKAGE_DIR,
      ext_modules=[Extension("my_kernels._C", ["kernels.cu"])], cmdclass=dict(build_ext=Nvcc))
"""
MODULE = """
import ctypes, pathlib
launch = ctypes.CDLL(str(next(pathlib.Path(__file__).parent.glob("_C*.so")))).launch
"""
BACKEND = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


class OwnSource(e2e.Case):
    def setUp(self):
        super().setUp()
        self.venv = self.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.venv], check=True)
        library = next(self.venv.glob("lib/python3*/site-packages"))
        # pip and setuptools are those of the tests.
        (library / "tests.pth").write_text("".join(f"{folder}\n" for folder in site.getsitepackages()))
        pip = self.venv / "bin" / "pip"
        pip.write_text(f"#!/bin/sh\nexec {self.venv}/bin/python -m pip \"$@\"\n")
        pip.chmod(0o755)
        self.env = e2e.clean_environment(PATH=f"{self.venv}/bin:/usr/bin:/bin", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1",
                                         PIP_CONFIG_FILE="/dev/null", PIP_ROOT_USER_ACTION="ignore")

    def project(self, layout, backend):
        source = self.folder / "the project"
        package = source / layout / "my_kernels"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(MODULE)
        (source / "setup.py").write_text(f"PACKAGE_DIR = {{'': '{layout}'}}\n{SETUP}")
        shutil.copy(pathlib.Path(__file__).parent / "programs" / "kernels.cu", source)
        if backend:
            (source / "pyproject.toml").write_text(BACKEND)
        return source

    def shell(self, command):
        done = self.run_program("sh", "-c", command, env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def verdict(self):
        program = "import my_kernels; print(my_kernels.launch(0))"
        analysis, done = self.analysis("--simulate", "12.0", "--", self.venv / "bin" / "python", "-c", program, env=self.env)
        return analysis, done.stdout.splitlines()[0]

    def check(self, source, what):
        self.shell(f"pip install -q --no-build-isolation --no-deps {what}")
        analysis, answer = self.verdict()
        self.assertEqual(answer, "209")
        (finding,) = [each for each in analysis["findings"] if each["severity"] == "error"]
        self.assertEqual((finding["cause"], finding["package"]), ("no-image-for-arch", "My-Kernels 0.3 (pip)"))
        self.assertIn(f"built from {what.replace(chr(39), '')})", " ".join(finding["evidence"]))
        command = finding["fixes"][0]["commands"][0]
        self.assertTrue(command.endswith(f" --no-deps {what}"), command)
        self.assertIn("delete it first", finding["fixes"][0]["caveat"])
        shutil.rmtree(source / "build", ignore_errors=True)
        self.shell(command)
        analysis, answer = self.verdict()
        self.assertEqual((answer, analysis["verdict"]), ("0", "ok"))

    def editable(self, layout, backend):
        source = self.project(layout, backend)
        self.check(source, f"-e '{source}'")

    def test_editable(self):
        self.editable(".", True)

    def test_editable_by_setup_py(self):
        self.editable(".", False)

    def test_editable_with_src(self):
        self.editable("src", True)

    def test_folder(self):
        source = self.project(".", True)
        self.check(source, f"'{source}'")

    def test_report_from_elsewhere(self):
        """The record of the package tells it where the source is not."""
        source = self.project(".", True)
        self.shell(f"pip install -q --no-build-isolation --no-deps -e '{source}'")
        report = self.folder / "report.jsonl"
        self.kshim("run", "--simulate", "12.0", "--report", report, "--", self.venv / "bin" / "python", "-c",
                   "import my_kernels; print(my_kernels.launch(0))", env=self.env)
        shutil.rmtree(source)
        text = self.kshim("analyze", report).stdout
        self.assertIn("My-Kernels", text)
        self.assertIn(f"-e '{source}'", text.replace("\n", " "))


if __name__ == "__main__":
    e2e.main()
