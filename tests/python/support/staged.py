# SPDX-License-Identifier: Apache-2.0
"""The packages as the wheels install them, made of this build's binaries, and pytest run with them."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import e2e

LIBRARIES = e2e.BUILD / "tests" / "python"
PACKAGE = e2e.SOURCE / "python" / "kshim"
VERSION = re.search(r"project\(kshim VERSION ([0-9.]+)", (e2e.SOURCE / "CMakeLists.txt").read_text()).group(1)


def require_modules(*names):
    for name in names:
        if importlib.util.find_spec(name) is None:
            print(f"skipped: no {name} in {sys.executable}; tools/setup installs it")
            sys.exit(e2e.SKIPPED)


def settings():
    """What CMake was told and found, by name."""
    text = (e2e.BUILD / "CMakeCache.txt").read_text()
    return dict(re.findall(r"^([A-Z_]+):[A-Z]+=(.*)$", text, re.MULTILINE))


def install(component, folder, *options):
    subprocess.run(["cmake", "--install", e2e.BUILD, "--component", component, "--prefix", folder, *options], check=True,
                   stdout=subprocess.DEVNULL)


def stage(folder, simulator=True):
    """What pip would have unpacked into `folder`."""
    install("python", folder)
    shutil.copytree(PACKAGE, folder / "kshim", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    if simulator:
        install("python-simulator", folder)
        shutil.copytree(e2e.SOURCE / "python" / "simulator" / "kshim_simulator", folder / "kshim_simulator",
                        dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    about = folder / f"kshim-{VERSION}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kshim\nVersion: {VERSION}\n")
    (about / "entry_points.txt").write_text("[pytest11]\nkshim = kshim.pytest_plugin\n")


class Staged(e2e.Case):
    simulator = True

    @classmethod
    def setUpClass(cls):
        cls.site = pathlib.Path(tempfile.mkdtemp(prefix="kshim-site-"))
        cls.addClassCleanup(shutil.rmtree, cls.site)
        stage(cls.site, cls.simulator)

    def environment(self, **changes):
        paths = [str(self.site), os.environ.get("PYTHONPATH", "")]
        env = e2e.clean_environment(PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1", COLUMNS="200", **changes)
        for name in [name for name in env if name.startswith(("PYTEST_", "COV"))]:
            del env[name]
        return env

    def python(self, *argv, env=None, **more):
        return self.run_program(sys.executable, *argv, env=env or self.environment(), **more)

    def write(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)

    def pytest(self, *argv, env=None, **more):
        """With neither the machine's plugins nor its cache."""
        return self.python("-m", "pytest", "-p", "no:cacheprovider", *argv, env=env, **more)


TESTED = f"""
import ctypes, os, pathlib, subprocess, sys
import pytest
FOLDER = pathlib.Path({str(LIBRARIES)!r})
def lib(name):
    return ctypes.CDLL(str(FOLDER / f"lib{{name}}.so"))
"""


def findings_in(text):
    """Of pytest's output: [(first line, {name: [values]})] of the section, and the last line of ours."""
    lines = text.splitlines()
    ours = [line for line in lines if line.startswith("kshim: ")]
    start = next((n for n, line in enumerate(lines) if re.fullmatch(r"=+ kshim =+", line)), None)
    found = []
    name = None
    for line in lines[start + 1:] if start is not None else []:
        if line.startswith("kshim: "):
            break
        if line.startswith(("error: ", "warning: ")):
            found.append((line, {}))
        elif found and line.startswith("  "):
            name = line[2:10].strip() or name
            found[-1][1].setdefault(name, []).append(line[10:].strip())
    return found, ours
