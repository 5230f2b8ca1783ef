#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheels, built by pip without a network from this build's binaries (KSHIM_PREBUILT), in a fresh virtual environment; and
what building them from the sources would compile (from_source.py does it)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402

staged.require_modules("scikit_build_core", "pip", "venv", "pytest")
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"
SIMULATOR = e2e.SOURCE / "python" / "simulator"
PACKAGE_FILES = {f"kshim/{path.name}" for path in staged.PACKAGE.iterdir() if path.is_file()} | {
    f"kshim/{path.relative_to(staged.PACKAGE)}" for path in (staged.PACKAGE / "fleet").rglob("*") if path.suffix in (".py", ".sql", ".json")} | {
    "kshim/_version.py", "kshim/bin/kshim", "kshim/lib/libkshim.so", "kshim/lib/libkshim-audit.so", "kshim/lib/libkshim-injection.so", "kshim/lib/libkshim-query.so.1"}


def pip(*argv, **environment):
    """No network, and nothing of this machine's settings: an index that somebody set would be asked."""
    env = e2e.clean_environment(PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX=1, PIP_DISABLE_PIP_VERSION_CHECK=1, **environment)
    done = subprocess.run([sys.executable, "-m", "pip", *map(str, argv)], cwd="/", env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200)
    if done.returncode != 0:
        raise AssertionError(f"pip {' '.join(map(str, argv))}:\n{done.stdout}")
    return done.stdout


class Wheels(e2e.Case):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="kshim-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.binaries = cls.work / "binaries"
        for component in ("python", "python-simulator"):
            staged.install(component, cls.binaries, "--strip")
        cls.wheels = cls.work / "wheels"
        for name, source in (("kshim", e2e.SOURCE), ("simulator", SIMULATOR)):
            pip("wheel", *cls.options(name), "--no-deps", "-w", cls.wheels, source)
        cls.venv = cls.work / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.venv], check=True)
        cls.installed = pip("--python", cls.venv / "bin" / "python", "install", "--no-deps", *cls.wheels.iterdir())

    @classmethod
    def options(cls, name):
        settings = {"cmake.define.KSHIM_PREBUILT": cls.binaries, "build-dir": cls.work / "build" / name}
        return ["--no-build-isolation", *(f"--config-settings={key}={value}" for key, value in settings.items())]

    def wheel(self, name):
        found = list(self.wheels.glob(f"{name}-*.whl"))
        self.assertEqual(len(found), 1)
        return found[0]

    def test_files(self):
        with zipfile.ZipFile(self.wheel("kshim")) as wheel:
            infos = {info.filename: info for info in wheel.infolist() if ".dist-info/" not in info.filename}
            about = f"kshim-{staged.VERSION}.dist-info"
            entry_points = wheel.read(f"{about}/entry_points.txt").decode()
            metadata = wheel.read(f"{about}/METADATA").decode()
            self.assertIn(f"{about}/licenses/LICENSE", wheel.namelist())
        self.assertEqual(set(infos), PACKAGE_FILES)
        self.assertTrue(infos["kshim/bin/kshim"].external_attr >> 16 & 0o111)
        self.assertIn("[console_scripts]\nkshim = kshim.__main__:main\n", entry_points)
        self.assertIn("[pytest11]\nkshim = kshim.pytest_plugin\n", entry_points)
        for line in ("Requires-Python: >=3.9", "License-Expression: Apache-2.0", "Provides-Extra: simulator",
                     'Requires-Dist: kshim-simulator; extra == "simulator"'):
            self.assertIn(line, metadata)
        with zipfile.ZipFile(self.wheel("kshim_simulator")) as wheel:
            files = {name for name in wheel.namelist() if ".dist-info/" not in name}
        self.assertEqual(files, {f"kshim_simulator/{name}" for name in ("__init__.py", "libcuda.so.1", "libnvidia-ml.so.1")})

    def test_tags(self):
        """One wheel for every Python; the platform is the builder's, until somebody repairs it for older ones."""
        platform = sysconfig.get_platform().replace("-", "_")
        for name in ("kshim", "kshim_simulator"):
            self.assertEqual(self.wheel(name).name, f"{name}-{staged.VERSION}-py3-none-{platform}.whl")

    def kshim_in(self, venv, *argv):
        return self.run_program(venv / "bin" / "kshim", *argv)

    def library(self, venv):
        return str(next(venv.glob("lib/python3*")) / "site-packages" / "kshim" / "lib" / "libkshim.so")

    def test_command(self):
        self.assertEqual(self.kshim_in(self.venv, "path").stdout.strip(), self.library(self.venv))
        self.assertEqual(self.kshim_in(self.venv, "--version").stdout, self.kshim("--version").stdout)

    def test_a_link_to_the_environment(self):
        link = self.folder / "link"
        link.symlink_to(self.venv)
        done = self.kshim_in(link, "path")
        self.assertEqual(pathlib.Path(done.stdout.strip()).resolve(), pathlib.Path(self.library(self.venv)).resolve())
        (self.folder / "kshim").symlink_to(self.venv / "bin" / "kshim")
        self.assertEqual(self.run_program(self.folder / "kshim", "path").stdout, self.kshim_in(self.venv, "path").stdout)

    def test_a_folder_with_a_blank(self):
        """LD_PRELOAD cannot name it; everything else works there."""
        venv = self.folder / "with blank"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        pip("--python", venv / "bin" / "python", "install", "--no-deps", self.wheel("kshim"))
        self.assertEqual(self.kshim_in(venv, "path").stdout.strip(), self.library(venv))
        self.assert_says(self.kshim_in(venv, "run", "--", "true"), 125, "with blank", "move kshim")

    def test_questions_about_a_fleet(self):
        """The installed package finds its own; the packages for systems have the same files."""
        said = self.run_program(self.venv / "bin" / "python", "-m", "kshim.fleet", "questions", env=e2e.clean_environment())
        names = {line.split(":")[0] for line in said.stdout.splitlines() if not line.startswith(" ")}
        staged.install("kshim", self.folder / "usr")
        shared = {path.name: path.read_bytes() for path in (self.folder / "usr/share/kshim/sql").iterdir()}
        self.assertEqual(shared, {path.name: path.read_bytes() for path in (staged.PACKAGE / "fleet/sql").iterdir()})
        self.assertEqual(names, {pathlib.Path(name).stem for name in shared}, said.stderr)

    def test_run(self):
        if not SAXPY.exists():
            self.skipTest("the samples were not built")
        done = self.kshim_in(self.venv, "run", "--simulate", "sm_120", "--", SAXPY)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("Do this [you]", done.stderr)

    def test_pytest_finds_the_plugin(self):
        (self.folder / "test_a.py").write_text("def test_it(): pass\n")
        env = e2e.clean_environment(PYTHONPATH=sysconfig.get_path("purelib"), PYTHONDONTWRITEBYTECODE=1)
        done = self.run_program(self.venv / "bin" / "python", "-m", "pytest", "--kshim", "-p", "no:cacheprovider", env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("kshim: no process used CUDA", done.stdout)

    def test_editable(self):
        venv = self.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        pip("--python", venv / "bin" / "python", "install", "--no-deps", *self.options("editable"), "-e", e2e.SOURCE,
            PYTHONPATH=sysconfig.get_path("purelib"))  # for what builds it
        done = self.run_program(venv / "bin" / "python", "-c", "import kshim; print(kshim.__file__, kshim.path())")
        self.assertEqual(done.returncode, 0, done.stderr)
        source, library = done.stdout.split()
        self.assertEqual(source, str(staged.PACKAGE / "__init__.py"))
        self.assertTrue(pathlib.Path(library).is_file(), library)
        self.assertEqual(self.kshim_in(venv, "path").stdout.strip(), library)
        self.assertEqual(self.kshim_in(venv, "run", "--", "true").returncode, 0)

    def test_uninstall(self):
        venv = self.folder / "venv"
        shutil.copytree(self.venv, venv, symlinks=True)
        pip("--python", venv / "bin" / "python", "uninstall", "-y", "kshim", "kshim-simulator")
        self.assertEqual([str(path) for path in venv.rglob("*kshim*")], [])

    def test_source_distribution(self):
        code = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
        done = self.run_program(sys.executable, "-c", code, self.folder, cwd=e2e.SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        archive = next(self.folder.glob("*.tar.gz"))
        with tarfile.open(archive) as tar:
            names = {name.partition("/")[2] for name in tar.getnames()}
        for name in ("CMakeLists.txt", "LICENSE", "README.md", "cmake/KshimPython.cmake", "cmake/version.py.in",
                     "python/kshim/__init__.py", "shim/cuda/hooks.def", "analyzer/cli/dispatch.cpp", "lib/CMakeLists.txt"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if name.startswith(("build/", ".git/"))])
        self.assertLess(archive.stat().st_size, 10 << 20)

    def test_what_is_compiled(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("Python before 3.11 reads no TOML")
        for folder, target, unwanted in ((e2e.SOURCE, "kshim_wheel", ("tests/", "sim/", "samples/", "bench/")),
                                         (SIMULATOR, "kshim_simulator_wheel", ("tests/", "shim/", "analyzer/", "samples/", "bench/"))):
            with self.subTest(target):
                settings = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["scikit-build"]
                self.assertEqual(settings["build"]["targets"], [target])
                defines = [f"-D{name}={value}" for name, value in settings["cmake"]["define"].items()]
                build = self.folder / target
                done = self.run_program("cmake", "-G", "Ninja", "-S", e2e.SOURCE, "-B", build, *defines)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = self.run_program("cmake", "--build", build, "--", "-t", "commands", target)
                self.assertEqual(done.returncode, 0, done.stderr)
                objects = re.findall(r" -o (\S+\.o) ", done.stdout)
                self.assertGreater(len(objects), 20, done.stdout)
                self.assertEqual([path for path in objects if path.startswith(unwanted)], [])


if __name__ == "__main__":
    e2e.main()
