#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports that another user wrote, or that came by mail: what they say is shown, and no command is made of it. Links of another user."""
import html
import json
import os
import re
import shutil
import unittest

import e2e

e2e.require(e2e.KSHIM)
SOMEBODY = 4711
FORMATS = re.findall(r"^KSHIM_FORMAT\((\w+)", (e2e.SOURCE / "analyzer/core/formats.def").read_text(), re.MULTILINE)


def report(path, package=None, env=None, exe="/usr/bin/python3"):
    """A failing launch in the file `path`, which lacks code for the GPU."""
    head = {"type": "process", "seq": 0, "t": 0, "schema": "kshim-report/1", "shim": "0.1.0", "run": None, "host": os.uname().nodename,
            "pid": 17, "start": 1, "ppid": 1, "rank": None, "time": "2026-01-01T00:00:00.000000Z", "exe": exe, "argv": [exe, "train.py"],
            "cwd": "/home/u", "env": env or {}}
    images = [{"kind": "cubin", "arch": "sm_90", "isa": None, "count": 1, "bytes": 8}]
    rows = [head,
            {"type": "driver", "path": "/usr/lib/libcuda.so.1", "cuda_version": "13.0", "kernel_module": "580.82.07", "simulated": False},
            {"type": "device", "ordinal": 0, "name": "Tesla T4", "compute_capability": "7.5", "uuid": "GPU-1", "pci": "0000:01:00.0"},
            {"type": "object", "id": 1, "path": path, "build_id": "ab" * 20, "runtime": "static", "fatbins": 1, "images": images},
            {"type": "module", "id": 1, "object": 1, "offset": 4096, "content_hash": None, "size": 8, "api": "cuLibraryLoadData",
             "result": 0, "selected": None, "jit": None, "ms": 0.1, "device": 0},
            {"type": "failure", "id": 1, "stage": "launch",
             "layers": [{"layer": "driver", "api": "cuLibraryGetKernel", "code": 209, "name": "CUDA_ERROR_NO_BINARY_FOR_GPU"}],
             "device": 0, "kernel": "_Z6kernelPf", "module": 1, "object": 1, "tid": 17, "native": [], "python": [], "python_main": None},
            *([] if package is None else [{"type": "package", "object": 1, **package}]),
            {"type": "end", "time": "2026-01-01T00:00:01.000000Z", "failures": 1, "modules": 1, "dropped": 0}]
    return "".join(json.dumps({"type": row["type"], "seq": seq, "t": seq, **row}) + "\n" for seq, row in enumerate(rows))


EVIL_PIP = {"name": "vllm", "version": "0.9", "manager": "pip", "source": "git+https://evil.example/vllm.git@main"}
EVIL_CONDA = {"name": "somebodys-package", "version": "2.5", "manager": "conda", "channel": "evil-channel", "environment": "/evil/prefix"}


class Trust(e2e.Case):
    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        self.home.mkdir()

    def commands(self, text, *options, owner=None):
        path = self.folder / "r.jsonl"
        path.write_text(text)
        if owner is not None:
            os.chown(path, owner, owner)
        env = e2e.clean_environment(HOME=self.home)
        done = self.kshim("analyze", "--format", "json", *options, path, env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        analysis = json.loads(done.stdout)
        self.assertTrue(analysis["findings"])
        return [command for finding in analysis["findings"] for fix in finding["fixes"] for command in fix["commands"]], analysis

    # shows: a report names a source or a channel of the attacker's
    def test_sources_are_this_machines_own(self):
        for package, evil in ((EVIL_PIP, "evil.example"), (EVIL_CONDA, "evil-channel"), (EVIL_CONDA, "/evil/prefix")):
            text = report("/opt/env/lib/python3.11/site-packages/x/libx.so", package)
            commands, _ = self.commands(text)
            self.assertFalse([command for command in commands if evil in command])
            trusted, _ = self.commands(text, "--trust-reports")
            self.assertTrue([command for command in trusted if evil in command], trusted)

    # shows: a report that came by mail: the name of a package that anyone may register
    def test_unknown_packages_are_in_no_command(self):
        for manager in ("pip", "conda", "dpkg", "rpm"):
            for name, known in (("evil-typosquat", False), ("torch-cuda-evil", False), ("nvidia-cuda-nvrtc-evil", False), ("vllm", True), ("cupy-cuda12x", True)):
                with self.subTest(manager=manager, name=name):
                    folder = "/usr/lib/x86_64-linux-gnu" if manager in ("dpkg", "rpm") else "/opt/gone/lib/python3.11/site-packages/x"
                    commands, analysis = self.commands(report(f"{folder}/libx.so", {"name": name, "version": "0.9", "manager": manager}))
                    self.assertIn(name, analysis["findings"][0]["package"])
                    named = [command for command in commands if name in command]
                    if known:
                        self.assertTrue(named or manager != "pip", commands)
                    else:
                        self.assertFalse(named)
        # Of what pip installed as a file, nobody knows whether an index has its source.
        for manager in ("conda", "dpkg", "rpm"):
            commands, _ = self.commands(report("/usr/lib/x86_64-linux-gnu/libx.so", {"name": "evil-typosquat", "version": "0.9", "manager": manager}), "--trust-reports")
            self.assertTrue([command for command in commands if "evil-typosquat" in command], commands)

    # shows: a report of the caller's whose program is another user's
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_programs_of_another_user_are_named(self):
        program = self.folder / "python3"
        program.write_text("")
        text = report("/opt/gone/libx.so", exe=str(program))
        self.assertFalse([note for note in self.commands(text)[1]["notes"] if str(program) in note])
        os.chown(program, SOMEBODY, SOMEBODY)
        self.assertTrue([note for note in self.commands(text)[1]["notes"] if str(program) in note])

    # shows: a report of another user, of every kind of finding: no path, source or version that it gives is in a command
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_nothing_of_another_users_report_is_in_a_command(self):
        def marked(value, key=""):
            if isinstance(value, dict):
                return {name: marked(inner, name) for name, inner in value.items()}
            if isinstance(value, list):
                return [marked(inner, key) for inner in value]
            if not isinstance(value, str):
                return value
            if value.startswith("/"):
                return ":".join("/evil9" + part if part.startswith("/") else part for part in value.split(":"))
            return "evil9" + value if key in ("channel", "environment", "source", "build", "asked", "kernel") else value
        reports = sorted((e2e.SOURCE / "tests/golden").rglob("*.jsonl"))
        self.assertGreater(len(reports), 20)
        path = self.folder / "r.jsonl"

        def told(output_format, *options):
            return self.kshim("analyze", "--format", output_format, *options, path, env=e2e.clean_environment(HOME=self.home)).stdout

        def commands(*options):
            text = told("json", *options)
            return {command for finding in (json.loads(text)["findings"] if text else []) for fix in finding["fixes"]
                    for command in fix["commands"] if "evil9" in command}

        def joined(text):
            """Without what a format does to a command: line breaks, entities, GitHub's escapes."""
            return "".join(html.unescape(text.replace("%0A", "").replace("%3A", ":").replace("%2C", ",").replace('\\"', '"')).replace("\\\n", "").split())

        withheld = 0
        for each in reports:
            try:
                records = [json.loads(line) for line in each.read_text().splitlines()]
            except ValueError:
                continue
            path.unlink(missing_ok=True)
            path.write_text("".join(json.dumps(marked(record)) + "\n" for record in records))
            os.chown(path, SOMEBODY, SOMEBODY)
            for asked in ((), ("--target", "12.0"), ("--assume-cc", "3.5"), ("--assume-driver", "11.0")):
                with self.subTest(each.parent.name, asked=asked):
                    self.assertFalse(commands(*asked))
                    trusted = commands("--trust-reports", *asked)
                    withheld += len(trusted)
                    for output_format in FORMATS if trusted else ():
                        text = joined(told(output_format, *asked))
                        self.assertFalse([command for command in trusted if joined(command) in text], output_format)
        self.assertGreater(withheld, 10)

    # shows: a report names a folder to delete that is none of the caller's caches
    def test_only_own_caches_are_deleted(self):
        cache = self.home / ".cache" / "torch_extensions" / "py311" / "mine"
        cache.mkdir(parents=True)
        (cache / "mine.so").write_bytes(b"x")
        thesis = self.home / "thesis"
        thesis.mkdir()
        (thesis / "data.so").write_bytes(b"x")
        (self.home / ".cache/torch_extensions/link").symlink_to(thesis)
        roots = self.home / ".cache/torch_extensions"
        for path in (f"{roots}/../../thesis/data.so", f"{roots}/link/data.so", "/etc/torch_extensions/a/b.so",
                     f"{self.folder}/torch_extensions/x/y.so", f"{roots}/gone/gone.so"):
            commands, _ = self.commands(report(path))
            self.assertFalse([command for command in commands if "rm " in command], path)
        commands, _ = self.commands(report(str(cache / "mine.so")))
        self.assertIn(f"rm -r {cache}", commands)

    # shows: a report of another user in a shared folder
    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_of_another_user(self):
        cache = self.home / ".cache" / "torch_extensions" / "py311" / "mine"
        cache.mkdir(parents=True)
        (cache / "mine.so").write_bytes(b"x")
        for path, package in ((str(cache / "mine.so"), None), ("/opt/evilname/lib/python3.11/site-packages/x/evillib.so", EVIL_PIP),
                              ("/srv/evilname/build/evillib.so", {"name": "evilpackage", "version": "1", "manager": "pip"})):
            text = report(path, package, exe="/home/bob/evilname/python3")
            commands, analysis = self.commands(text, owner=SOMEBODY)
            for command in commands:
                for word in ("evil", "rm ", "vllm", "mine"):
                    self.assertNotIn(word, command)
            self.assertTrue([note for note in analysis["notes"] if "another user" in note], analysis["notes"])
            _, analysis = self.commands(text, "--trust-reports", owner=SOMEBODY)
            self.assertFalse([note for note in analysis["notes"] if "another user" in note])
        _, analysis = self.commands(report("/srv/x/evillib.so"), owner=0)
        self.assertFalse([note for note in analysis["notes"] if "another user" in note])

    # shows: a report and an environment of another user on this machine: what the environment's records say
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_the_environment_of_another_user(self):
        packages = self.folder / "env/lib/python3.11/site-packages"
        info = packages / "evilpkg-1.dist-info"
        for folder in (packages / "evilpkg", info, self.folder / "env/conda-meta"):
            folder.mkdir(parents=True)
        (packages / "evilpkg/_C.so").write_bytes(b"x")
        (info / "METADATA").write_text("Name: evilpkg\nVersion: 1\n")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text("evilpkg/_C.so,,\n")
        (info / "direct_url.json").write_text('{"url": "https://evil.example/evilpkg.git", "vcs_info": {"vcs": "git", "commit_id": "0", "requested_revision": "main"}}')
        text = report(str(packages / "evilpkg/_C.so"))
        commands, _ = self.commands(text, owner=SOMEBODY)
        self.assertTrue([command for command in commands if "evilpkg" in command], "the records are read where they are root's")
        for path, mode, owner in ((packages, 0o755, SOMEBODY), (self.folder / "env", 0o755, SOMEBODY), (packages, 0o777, 0), (packages / "evilpkg/_C.so", 0o644, SOMEBODY)):
            before = path.stat()
            os.chown(path, owner, owner)
            path.chmod(mode)
            commands, _ = self.commands(text, owner=SOMEBODY)
            self.assertFalse([command for command in commands if "evil" in command], path)
            os.chown(path, 0, 0)
            path.chmod(before.st_mode & 0o7777)

    # shows: a link of another user among reports: to a file of the caller's, whose words would count as the caller's own
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_a_link_of_another_user(self):
        cache = self.home / ".cache" / "torch_extensions" / "py311" / "mine"
        cache.mkdir(parents=True)
        (cache / "mine.so").write_bytes(b"x")
        own = self.folder / "own.jsonl"
        own.write_text(report(str(cache / "mine.so")))
        spool = self.folder / "spool"
        spool.mkdir()
        for link, target in (("a.jsonl", own), ("folder", self.folder)):
            (spool / link).symlink_to(target)
            os.chown(spool / link, SOMEBODY, SOMEBODY, follow_symlinks=False)
        (spool / "b.jsonl").symlink_to(own)

        def analyze(path):
            done = self.kshim("analyze", "--format", "json", path, env=e2e.clean_environment(HOME=self.home))
            analysis = json.loads(done.stdout)
            return [command for finding in analysis["findings"] for fix in finding["fixes"] for command in fix["commands"]], analysis["notes"]

        for path in (spool / "a.jsonl", spool / "folder" / "own.jsonl"):
            commands, notes = analyze(path)
            self.assertFalse([command for command in commands if "rm " in command], path)
            self.assertTrue([note for note in notes if "another user" in note], notes)
        for path in (own, spool / "b.jsonl"):
            commands, notes = analyze(path)
            self.assertIn(f"rm -r {cache}", commands)
            self.assertFalse(notes)
        (spool / "b.jsonl").unlink()
        done = self.kshim("analyze", spool)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("another user", done.stderr)


if __name__ == "__main__":
    e2e.main()
