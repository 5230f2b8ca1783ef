# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: where the build's parts are, running programs, reading reports. Every test case gets an
empty working folder, so that "leaves no file" can be looked at."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import fleet_here

BUILD = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
FORMATS = re.findall(r"^KSHIM_FORMAT\((\w+)", (SOURCE / "analyzer/core/formats.def").read_text(encoding="utf-8"), re.MULTILINE)
KSHIM = BUILD / "analyzer" / "kshim"
# What the tests preload; another build of it, as the release has it: KSHIM_TEST_SHIM.
SHIM = pathlib.Path(os.environ.get("KSHIM_TEST_SHIM") or BUILD / "shim" / "libkshim.so")
SIMULATOR = BUILD / "sim"
PROGRAMS = BUILD / "tests" / "e2e"
SAMPLES = BUILD / "samples"

SKIPPED = 77
# What another test run, or the person who started this one, may have set.
OURS = ("KSHIM_", "LD_PRELOAD", "LD_LIBRARY_PATH", "CUDA_", "NO_COLOR")


def require(*paths):
    """Ends the script as skipped where something was not built."""
    for path in paths:
        if not path.exists():
            print(f"skipped: {path} was not built")
            sys.exit(SKIPPED)


def main():
    unittest.main(verbosity=2)


def not_instrumented(case):
    """Skips what a simulator under a sanitizer cannot take part in."""
    if os.environ.get("KSHIM_SANITIZED"):
        case.skipTest(f"the simulator of this build is instrumented ({os.environ['KSHIM_SANITIZED']})")


def clean_environment(**changes):
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    env.update(LC_ALL="C.UTF-8", TERM="dumb")
    env.update({name: str(value) for name, value in changes.items()})
    return env


def simulated(devices, **changes):
    """The environment in which a program meets simulated devices without `kshim run`."""
    return clean_environment(LD_LIBRARY_PATH=SIMULATOR, KSHIM_SIM_DEVICES=devices, **changes)


def preloaded(devices="7.5", **changes):
    return simulated(devices, LD_PRELOAD=SHIM, **changes)


class Case(unittest.TestCase):
    """A test in a folder of its own."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_program(self, *argv, env=None, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([str(word) for word in argv], cwd=more.pop("cwd", self.folder), timeout=more.pop("timeout", 100), text=True,
                              env=clean_environment() if env is None else env, **more)

    def kshim(self, *argv, env=None, **more):
        return self.run_program(KSHIM, *argv, env=env, **more)

    def fleet(self, *argv):
        return fleet_here.run(self.folder, *argv, cwd=self.folder)

    def analysis(self, *argv, env=None, status=None):
        """`kshim run ARGV` with the analysis as JSON; checks the exit status where one is given."""
        path = self.folder / "analysis.json"
        done = self.kshim("run", "--format", "json", "-o", path, *argv, env=env)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        text = path.read_text()
        path.unlink()
        return json.loads(text), done

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))

    def reports(self, folder=None):
        """Each report of the working folder as its list of records. A torn last line fails."""
        found = []
        for path in sorted((folder or self.folder).rglob("*.jsonl")):
            text = path.read_text()
            self.assertTrue(text.endswith("\n"), f"{path.name}: torn last line")
            found.append([json.loads(line) for line in text.splitlines()])
        return found

    def assert_says(self, done, status, *parts):
        """One line on stderr with these parts, nothing on stdout, that exit status."""
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("kshim: error: "), lines[0])
        for part in parts:
            self.assertIn(part, lines[0])


def of_type(records, name):
    return [record for record in records if record["type"] == name]
