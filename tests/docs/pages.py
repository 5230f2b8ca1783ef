#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the pages are, and their commands. Those of kshim and of its Python package are run, in a folder that has the files that the pages name.
Commands of the build are looked up: a preset, a target, a test, a script must be there. For the others, ELSEWHERE names the test that
runs them, or says why none does. Options of kshim in the text of a page must be in its help."""
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import e2e

sys.path.insert(0, str(e2e.SOURCE / "tests/python/support"))
import staged

staged.require_modules("pytest", "duckdb")
LIBRARY = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
PROGRAMS = (e2e.SAMPLES / "01_missing_architecture" / "saxpy", e2e.SAMPLES / "10_green" / "zeros", e2e.SAMPLES / "10_green" / "fallback")
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", LIBRARY, *PROGRAMS)
PAGES = [e2e.SOURCE / "README.md", e2e.SOURCE / "CONTRIBUTING.md", *sorted((e2e.SOURCE / "docs").rglob("*.md")),
         e2e.SOURCE / "samples/pytorch/README.md", e2e.SOURCE / "samples/frameworks/README.md"]
OURS = re.compile(r"(?:[A-Z_]+=(?:\$\([^)]*\)|\S+) )*(?:kshim|eval|pytest|python -m kshim\S*|python train\.py|\./\w+|build/dev/analyzer/kshim)(?= |$)")
# What a page says instead of a place of this machine.
PLACES = {"/var/spool/kshim": "spool", "/data/lake": "lake", "/var/lib/prometheus/node-exporter": ".", "build/dev/analyzer/kshim": "kshim",
          "build/dev/sim": str(e2e.SIMULATOR)}
# How a command begins: the test that runs the same, or why none does.
ELSEWHERE = {
    r"pip install \. ": "tests/python/from_source.py",
    r"pip install 'kshim\[fleet\]'": "tests/python/wheel.py",
    r"pip wheel ": "tests/python/wheel.py",
    r"podman run --gpus all": "tests/e2e/containers.py",
    r"podman run --device": "tests/e2e/containers.py",
    r"(?:podman save|skopeo copy) .* kshim scan": "tests/e2e/containers.py",
    r"sudo install .*": "tests/e2e/containers.py",
    r"kshim scan .*==": "tests/e2e/scan_package.py",
    r"kshim completion .*> (?:\"|~)": "tests/e2e/install.py",
    r"APPTAINER_BIND=": "not run: Debian 12 has no package of Apptainer",
    r"journalctl ": "not run: it is of the machine; tests/explain/command.py reads a log from a pipe",
    r"python -m ipykernel ": "not run: Jupyter is not installed by tools/setup",
    r"python -c ['\"]import torch": "not run: PyTorch is not installed by tools/setup",
    r"python guard\.py ": "tests/query/torch_guard.py",
}


def commands(page):
    text = page.read_text()
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.M):
            yield re.sub(r"\s+#(?: .*)?$", "", command)
    for block in re.findall(r"^Examples:\n((?:  .*\n)+)", text, re.M):
        for command in block.splitlines():
            yield re.split(r" {3,}", command.strip())[0]
    for command in re.findall(r"^ *(?:- )?run: (kshim .*)$", text, re.M):
        yield command


ALL = {}  # command: the page that has it first
for each in PAGES:
    for found in commands(each):
        ALL.setdefault(found, str(each.relative_to(e2e.SOURCE)))


@functools.lru_cache(maxsize=None)
def options_of(verb):
    done = subprocess.run([e2e.KSHIM, *([verb] if verb else []), "--help"], capture_output=True, text=True, check=False)
    return {"--version", *re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", done.stdout)} if done.returncode == 0 else None


def elsewhere(command):
    return next((test for begin, test in ELSEWHERE.items() if re.match(begin, command)), None)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-pages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        staged.stage(cls.folder / "site")
        for program in (*PROGRAMS, "program", "app"):
            shutil.copy(program if isinstance(program, pathlib.Path) else PROGRAMS[0], cls.folder / pathlib.Path(program).name)
        for place in ("libfoo.so", "libfast.so", "old/libscale.so", "new/libscale.so", "old/libfoo.so", "new/libfoo.so", "build/lib/libfoo.so",
                      "build/libfoo.so", ".venv/lib/libfoo.so", "venv/lib/libfoo.so", "vllm/_C.abi3.so"):
            (cls.folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(LIBRARY, cls.folder / place)
        (cls.folder / ".venv/bin").mkdir()
        (cls.folder / ".venv/bin/python").symlink_to(sys.executable)
        (cls.folder / "build/simulate").symlink_to(PROGRAMS[0])
        for wheel in ("dist/foo-1.0-py3-none-any.whl", "torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl", "torch-2.9.1+cu126-cp311-cp311-linux_x86_64.whl",
                      "torch-2.9.1+cu128-cp311-cp311-linux_x86_64.whl"):
            (cls.folder / wheel).parent.mkdir(exist_ok=True)
            with zipfile.ZipFile(cls.folder / wheel, "w") as archive:
                archive.write(LIBRARY, "foo/libfoo.so")
        cls.conda_package()
        (cls.folder / "samples").symlink_to(e2e.SOURCE / "samples")
        shutil.copy(e2e.SOURCE / "samples/pytorch/gtx1080.log", cls.folder / "train.log")
        (cls.folder / "train.py").write_text('import subprocess, sys\nsys.exit(subprocess.run(["./saxpy"]).returncode)\n')
        (cls.folder / "test_it.py").write_text('import subprocess\n\n\ndef test_it():\n    subprocess.run(["./saxpy"], check=False)\n')
        (cls.folder / "bin").mkdir()
        for name, line in (("python", f'{sys.executable} "$@"'), ("pytest", f'{sys.executable} -m pytest -p no:cacheprovider "$@"'), ("kshim", f'{e2e.KSHIM} "$@"')):
            (cls.folder / "bin" / name).write_text(f"#!/bin/sh\nexec {line}\n")
            (cls.folder / "bin" / name).chmod(0o755)
        cls.environment = e2e.clean_environment(
            PATH=f"{cls.folder / 'bin'}:{os.environ['PATH']}", PYTHONPATH=f"{cls.folder / 'site'}:{os.environ.get('PYTHONPATH', '')}", PYTHONDONTWRITEBYTECODE="1",
            CUDAARCHS="75;90", GITHUB_STEP_SUMMARY=str(cls.folder / "summary.md"), HOME=str(cls.folder), TMPDIR=str(cls.folder))
        for report in ("kshim-report", "kshim-report/monday", "kshim-report/tuesday", "reports", "spool"):
            environment = e2e.preloaded("12.0", KSHIM_REPORT=cls.folder / report / "node7.4711.jsonl", KSHIM_LOG="off")
            subprocess.run([PROGRAMS[0]], env=environment, cwd=cls.folder, stdout=subprocess.DEVNULL, check=False)
        shutil.copy(cls.folder / "kshim-report/node7.4711.jsonl", cls.folder)
        for name in ("before.json", "after.json"):
            subprocess.run([e2e.KSHIM, "scan", "--format", "json", "-o", name, "libfoo.so"], env=cls.environment, cwd=cls.folder, check=False)

    @classmethod
    def conda_package(cls):
        import tarfile
        (cls.folder / "info").mkdir()
        (cls.folder / "info/index.json").write_text(json.dumps({"name": "libfoo", "version": "1.2", "build": "h0_0", "depends": ["__cuda_arch >=7.5"]}))
        with tarfile.open(cls.folder / "libfoo-1.2-h0_0.tar.bz2", "w:bz2") as package:
            package.add(cls.folder / "info/index.json", "info/index.json")
            package.add(LIBRARY, "lib/libfoo.so")

    def test_those_of_kshim_run(self):
        run = [command for command in ALL if OURS.match(command) and not elsewhere(command)]
        self.assertGreater(len(run), 60)
        for command in run:
            words = command
            for place, here in PLACES.items():
                words = words.replace(place, here)
            with self.subTest(page=ALL[command], command=command):
                done = subprocess.run(["bash", "-c", words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
                                      check=False)
                self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertNotRegex(done.stderr, r"^kshim: error: ", done.stderr)

    def test_those_of_the_build_are_there(self):
        presets = {row["name"] for row in json.loads((e2e.SOURCE / "CMakePresets.json").read_text())["configurePresets"]}
        targets = subprocess.run(["ninja", "-C", e2e.BUILD, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
        targets = {pathlib.Path(line.split(": ")[0]).name for line in targets.splitlines() if ": " in line}
        looked = 0
        for command, page in ALL.items():
            if OURS.match(command) or elsewhere(command):
                continue
            for simple in re.split(r" && |; ", command):
                words = [word for word in shlex.split(simple) if not re.match(r"[A-Z_]+=", word) and word != "sudo"]
                looked += 1
                with self.subTest(page=page, command=simple):
                    if words[0] == "ctest":
                        self.assertIn(words[words.index("--preset") + 1], presets)
                        if "-R" in words:
                            found = subprocess.run(["ctest", "--test-dir", e2e.BUILD, "-N", "-R", words[words.index("-R") + 1]], capture_output=True, text=True, check=True)
                            self.assertRegex(found.stdout, r"Total Tests: [1-9]")
                    elif words[0] == "cmake":
                        self.assertIn(words[words.index("--preset") + 1], presets)
                    elif words[0] == "ninja":
                        for target in words[1:]:
                            if not target.startswith(("-", "build/")):
                                self.assertTrue(target in targets, f"no target {target}")
                    elif words[0].startswith("build/dev/"):
                        self.assertTrue((e2e.BUILD / words[0][len("build/dev/"):]).exists() or pathlib.Path(words[0]).name in targets)
                    elif words[0] == "python3":
                        self.assertTrue((e2e.SOURCE / words[1]).is_file())
                    else:
                        self.assertTrue(os.access(e2e.SOURCE / words[0], os.X_OK), "neither of kshim, nor of the build, nor a row of ELSEWHERE")
        self.assertGreater(looked, 20)

    def test_the_others_have_a_test_or_a_reason(self):
        for begin, test in ELSEWHERE.items():
            self.assertTrue(any(re.match(begin, command) for command in ALL), f"no page has {begin}")
            if not test.startswith("not run: "):
                self.assertTrue((e2e.SOURCE / test).is_file(), test)

    def test_options_in_the_text_are_options(self):
        """`kshim scan --sizes` in a sentence."""
        looked = 0
        for page in PAGES:
            text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
            for code in re.findall(r"`kshim ((?:[^`\n]|\n(?!\n))*)`", text):
                words = code.split()
                verb = words[0] if not words[0].startswith("-") and not words[0].isupper() else ""
                for option in (word.split("=")[0].strip('"') for word in words[1 if verb else 0:] if re.match(r"--?[a-z]", word)):
                    looked += 1
                    with self.subTest(page=str(page.relative_to(e2e.SOURCE)), code=code):
                        self.assertIsNotNone(options_of(verb), f"no verb {verb}")
                        self.assertIn(option, options_of(verb))
                    if "--" in words:
                        break
        self.assertGreater(looked, 30)


class Paths(unittest.TestCase):
    def test_paths_in_the_text_are_there(self):
        looked = 0
        for page in PAGES:
            for path in re.findall(r"`((?:analyzer|bench|cmake|docs|include|knowledge|lib|python|query|samples|shim|sim|tests|tools)/[\w./-]+)`", page.read_text()):
                looked += 1
                self.assertTrue("NAME" in path or (e2e.SOURCE / path).exists(), f"{page.relative_to(e2e.SOURCE)}: {path}")
        self.assertGreater(looked, 60)


class Words(unittest.TestCase):
    """A page answers one question: what is longer is two pages, or for a maintainer."""

    def test_a_page_has_1200_at_most(self):
        whole = 0
        for page in PAGES:
            text = page.read_text()
            if re.search(r"<!-- (?:SPDX.*)?(?:[Gg]enerated by|Made by|Written by) `?[\w ./-]+", text.split("\n# ")[0] + text[:300]):
                continue  # a tool writes all of it
            text = re.sub(r"<!-- (generated|measured).*?<!-- (end|/measured) -->", "", text, flags=re.S)
            words = len([word for word in text.split() if re.search(r"\w", word)])
            whole += words
            with self.subTest(page=str(page.relative_to(e2e.SOURCE))):
                self.assertLessEqual(words, 1200)
        self.assertLessEqual(whole, 30000)
        self.assertGreater(whole, 10000)

    def test_limitations_are_25_at_most(self):
        """What a user meets, in one or two sentences each."""
        bullets = re.findall(r"^- ((?:.+\n(?!- ))*.+)", (e2e.SOURCE / "docs/limitations.md").read_text(), re.M)
        self.assertIn(len(bullets), range(15, 26))
        self.assertEqual([bullet for bullet in bullets if len(bullet.split()) > 60], [])


if __name__ == "__main__":
    e2e.main()
