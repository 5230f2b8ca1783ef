#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pip install` of the source distribution, compiled: outside of the checkout, with nothing but what the archive holds, the same
compiler and ccache. tools/check lets ccache share objects between folders; without that this takes minutes."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402

staged.require_modules("scikit_build_core", "pip", "venv")
e2e.require(e2e.KSHIM)

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"
# What this machine has and where the build found it; the rest is pyproject.toml's.
KEPT = ("KSHIM_CUDA_INCLUDE", "KSHIM_UNWIND_LIBRARY", "KSHIM_WERROR")


def skip(why):
    print(f"skipped: the wheel from its sources: {why}")
    sys.exit(e2e.SKIPPED)


class FromSource(e2e.Case):
    def test_install(self):
        settings = staged.settings()
        work = pathlib.Path(tempfile.mkdtemp(prefix="kshim-source-"))
        self.addCleanup(shutil.rmtree, work)
        code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
        subprocess.run([sys.executable, "-c", code, work], cwd=e2e.SOURCE, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
            archive.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(work)
        source = work / f"kshim-{staged.VERSION}"
        # tools/setup may have unpacked libunwind into build/deps: at the same place here, CMake finds it and ccache knows its path.
        if (unwind := e2e.SOURCE / "build" / "deps" / "libunwind").exists():
            shutil.copytree(unwind, source / unwind.relative_to(e2e.SOURCE), symlinks=True)
            settings.pop("KSHIM_UNWIND_LIBRARY", None)
        options = {f"cmake.define.{name}": settings[name] for name in KEPT if settings.get(name)}
        # ccache sees paths relative to the folder that compiles: as deep as this build's, so that they are the same.
        options.update({"build-dir": "build/wheel", "cmake.build-type": settings["CMAKE_BUILD_TYPE"]})
        env = e2e.clean_environment(CC=settings["CMAKE_C_COMPILER"], CXX=settings["CMAKE_CXX_COMPILER"], CCACHE_BASEDIR=source, CCACHE_NOHASHDIR="1",
                                    PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        # ccache tells the compiler's languages apart: that of the build.
        env.pop("LC_ALL")
        env.update({"LC_ALL": os.environ["LC_ALL"]} if "LC_ALL" in os.environ else {})
        venv = work / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        wheel = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", work, source]
        built = subprocess.run([*wheel, *(f"--config-settings={name}={value}" for name, value in options.items())], cwd=work, env=env, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(built.returncode, 0, built.stdout)
        subprocess.run([sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "-q", "--no-deps", next(work.glob("*.whl"))],
                       env=env, check=True)
        shutil.rmtree(source)  # what is installed needs nothing of it
        kshim = venv / "bin" / "kshim"
        # The archive is of no commit that git could name.
        self.assertEqual(self.run_program(kshim, "--version").stdout, re.sub(r" \([0-9a-f]+[^)]*\)", "", self.kshim("--version").stdout))
        library = self.run_program(kshim, "path").stdout.strip()
        self.assertTrue(library.startswith(str(venv)), library)
        done = self.run_program("env", f"LD_PRELOAD={library}", "echo", "fine")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "fine\n", ""))
        if SAXPY.exists():
            ours, its = (run("scan", "--format", "json", SAXPY).stdout for run in (self.kshim, lambda *argv: self.run_program(kshim, *argv)))
            self.assertEqual(its, ours)
            self.assertIn("sm_90", its)


if __name__ == "__main__":
    if shutil.which("ccache") is None:
        skip("no ccache: it would compile everything again")
    if staged.settings().get("KSHIM_SANITIZE"):
        skip("this build is instrumented, and a wheel is not")
    e2e.main()
