#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every verb over FIFOs, devices, links to them, sparse files, and files that shrink: none waits, none opens a device, and a file
costs no more than itself."""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import threading
import unittest
import zipfile

import e2e
import trust

e2e.require(e2e.KSHIM)
STRACE = shutil.which("strace")


class Reading(e2e.Case):
    def tree(self):
        """What a hostile user lays among honest files."""
        folder = self.folder / "tree"
        build = folder / "a" / "b"
        build.mkdir(parents=True)
        for name in ("f.so", "f.jsonl", "f.whl", "f.cubin", "f.ptx", "f.log", "CMakeCache.txt"):
            os.mkfifo(build / name)
        for name, target in (("z.so", "/dev/zero"), ("z.jsonl", "/dev/zero"), ("z.whl", "/dev/full"), ("l.so", build / "f.so")):
            (build / name).symlink_to(target)
        (folder / "CMakeCache.txt").symlink_to("/dev/zero")
        for name, first in (("s.so", b"\x7fELF\x01\x01\x01"), ("s.jsonl", b'{"type":"process",'), ("s.log", b"error"), ("s.whl", b"PK\x03\x04")):
            (build / name).write_bytes(first)
            os.truncate(build / name, 1 << 41)
        (build / "honest.jsonl").write_text(trust.report(str(build / "lib.so")))
        (build / "of_device.jsonl").write_text(trust.report(str(self.device())))
        return folder

    def device(self):
        path = self.folder / "device"
        if not path.exists():
            if os.geteuid() == 0:
                os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero
            else:
                path.symlink_to("/dev/zero")
        return path

    def verbs(self, folder):
        report = folder / "a/b/honest.jsonl"
        yield "analyze", folder
        yield "analyze", report
        yield "scan", folder
        yield "scan", "--kernels", folder
        yield "diff", folder, folder
        yield "diff", report, folder
        yield "explain", "--log", folder / "a/b/z.jsonl"
        yield "explain", "--log", folder / "a/b/f.log"
        yield "scan", folder / "a/b/s.so"
        yield "doctor", folder / "a/b/s.so"
        yield "doctor", folder / "a/b/f.so"
        yield "explain", "--log", folder / "a/b/s.log"
        yield "run", "--report", folder, "--", "true"
        yield "--version",
        yield "path",
        for verb in ("analyze", "scan", "doctor"):
            yield verb, "--root", folder, *([folder] if verb != "doctor" else [])
        yield "explain", "--log", folder / "a/b/f.jsonl"
        yield "explain", "--log", folder / "a/b/s.jsonl"
        yield "explain", folder / "a/b/f.whl"
        yield "analyze", "--format", "jsonl", folder
        yield "scan", "--expect", f"@{folder / 'a/b/f.ptx'}", folder
        yield "scan", "--knowledge", folder / "CMakeCache.txt", folder
        # A FIFO of their own: with a reader for a moment, SIGPIPE would end them.
        os.mkfifo(self.folder / "out.log")
        yield "analyze", "-o", self.folder / "out.log", report
        yield "analyze", "-o", folder / "a/b/z.so", report

    def at_once(self, rows, command, timeout):
        """(row, what became of its command) for each row. They wait more than they compute."""
        def run(row):
            return subprocess.run([str(word) for word in command(row)], timeout=timeout, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", env=e2e.clean_environment(), check=False, cwd=self.folder)

        rows = list(rows)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(zip(rows, pool.map(run, rows)))

    # shows: FIFOs, devices, links to them and sparse files of 2 TB among files that are read, in every verb
    def test_nothing_waits(self):
        for words, done in self.at_once(self.verbs(self.tree()), lambda words: (e2e.KSHIM, *words), timeout=60):
            with self.subTest(" ".join(map(str, words))):
                self.assertIn(done.returncode, (0, 1, 2, 3), done.stderr)

    # shows: a device that a report names (opening a watchdog, a tape, a serial line is using it)
    @unittest.skipUnless(STRACE, "needs strace")
    def test_no_device_is_opened(self):
        def traced(row):
            return STRACE, "-f", "-qq", "-e", "trace=open,openat", "-o", self.folder / f"strace.{row[0]}", e2e.KSHIM, *row[1]

        for (number, words), _ in self.at_once(enumerate(self.verbs(self.tree())), traced, timeout=100):
            with self.subTest(" ".join(map(str, words))):
                text = (self.folder / f"strace.{number}").read_text(errors="replace")
                self.assertIn("open", text)
                for line in text.splitlines():
                    opened = re.search(r'open(?:at)?\((?:AT_FDCWD, )?"([^"]*)", ([A-Z_|0-9]+)', line)
                    if opened is None or "O_PATH" in opened[2] or "O_DIRECTORY" in opened[2] or "O_EXCL" in opened[2] or " = -1 " in line:
                        continue
                    path = pathlib.Path(opened[1])
                    if str(path).startswith(str(self.folder)):
                        self.assertTrue(path.is_file(), line)

    # shows: a file that shrinks while it is read, in every verb that reads
    def test_a_file_that_shrinks(self):
        folder = self.folder / "files"
        folder.mkdir()
        honest = folder / "honest.ptx"
        honest.write_text(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry late() { ret; }\n")
        victim, report = folder / "victim.so", folder / "victim.jsonl"
        lines = trust.report(str(victim)) + '{"type":"end","seq":9,"t":9,"time":"2026-01-01T00:00:00Z","failures":0,"modules":0,"dropped":0}\n' * 20000
        # Of 32 bits: looked through from end to end.
        contents = {victim: b"\x7fELF\x01\x01\x01" + bytes(64 << 20), report: lines.encode(), folder / "victim.log": b"CUDA error 209\n" * 400000}
        stop = threading.Event()

        def flip():
            while not stop.is_set():
                for path, content in contents.items():
                    path.write_bytes(content)
                    stop.wait(random.uniform(0, 0.05))  # time for a reader to open it while it is long
                    os.truncate(path, 4096)

        thread = threading.Thread(target=flip)
        thread.start()
        said = ""
        try:
            for attempt in range(300):
                if attempt >= 10 and "became shorter" in said:
                    break
                done = self.kshim("scan", "--format", "json", folder)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertIn(str(honest), {row["path"] for row in json.loads(done.stdout)["objects"]})
                said += done.stdout + done.stderr
            for words in (("analyze", folder), ("diff", folder, folder), ("diff", victim, victim), ("explain", "--log", folder / "victim.log"),
                          ("doctor", victim), ("analyze", "--format", "jsonl", folder), ("analyze", "--root", self.folder, folder)) * 4:
                done = self.kshim(*words)
                self.assertIn(done.returncode, (0, 1, 2, 3), (words, done.stderr))
        finally:
            stop.set()
            thread.join()
        self.assertIn("became shorter", said, "it never happened: the test says nothing")

    # shows: a file system (NFS, FUSE) that no longer answers, in every verb that reads
    def test_a_file_system_that_does_not_answer(self):
        dead = self.folder / "dead"
        dead.mkdir()
        apart = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        rows = (("ALL", ("scan", dead / "lib.so")), ("ALL", ("analyze", dead / "lib.so")), ("ALL", ("scan", dead)),
                ("READ", ("scan", dead / "lib.so")), ("READ", ("analyze", dead / "lib.so")), ("READ", ("diff", dead / "lib.so", dead / "lib.so")),
                ("READ", ("explain", "--log", dead / "lib.so")), ("READ", ("doctor", dead / "lib.so")), ("ALL", ("doctor", "--root", dead)),
                ("READ", ("scan", "--knowledge", dead / "lib.so", self.folder)))

        def served(row):
            silent, (verb, *words) = row
            return *apart, sys.executable, e2e.SOURCE / "tests/support/silent_fs.py", dead, silent, e2e.KSHIM, verb, "--io-timeout", "1", *words

        for (silent, words), done in self.at_once(rows, served, timeout=100):
            with self.subTest(" ".join(map(str, words)), silent=silent):
                if done.returncode == 77 or "unshare" in done.stderr:
                    self.skipTest(f"no FUSE in a namespace of its own: {done.stderr}")
                self.assertEqual(done.returncode, 3, done.stderr)
                if silent == "READ":
                    self.assertIn(str(dead), done.stderr)
                self.assertIn("--io-timeout", done.stderr)

    # shows: a writer of a pipe that takes longer than --io-timeout
    def test_a_pipe_that_takes_its_time(self):
        image = self.folder / "a.ptx"
        image.write_text(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry late() { ret; }\n")
        for words in ("scan --target 9.0 -", "explain --log -"):
            with self.subTest(words):
                done = subprocess.run(["sh", "-c", f"(sleep 4; cat {image}) | {e2e.KSHIM} {words.replace(' ', ' --io-timeout 1 ', 1)}"], timeout=60, capture_output=True,
                                      text=True, env=e2e.clean_environment(), check=False, cwd=self.folder)
                self.assertNotIn("--io-timeout", done.stderr)
                self.assertIn(done.returncode, (0, 1), done.stderr)


    # shows: JSON that is nested 400,000 deep, escape sequences in what a wheel declares
    def test_what_packages_declare(self):
        deep = "[" * 400_000 + "]" * 400_000
        for arch in (deep, '"9.0_real\\u001b[31m\\n::error::x"'):
            wheel = self.folder / "a-1-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("a-1.dist-info/variant.json", '{"variants":{"x":{"nvidia":{"sm_arch":[%s]}}}}' % arch)
            done = self.fleet("requirements", "--verify", wheel)
            self.assertIn(done.returncode, (0, 1, 2, 3), done.stderr)
            self.assertNotIn("\x1b", done.stdout)
            self.assertNotIn("\n::error", done.stdout)
        image = self.folder / "tree/image"
        image.mkdir(parents=True)
        (image / "manifest.json").write_text('[{"Layers":["x"],"Config":"c"}]')
        (image / "c").write_text('{"config":{"Env":' + deep + "}}")
        done = self.kshim("scan", self.folder / "tree")
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)

    # shows: a fatbin of 20 MB that unpacks to 640 GB
    def test_a_bomb_of_images(self):
        bomb = self.bomb(10_000)
        report = self.folder / "r.jsonl"
        report.write_text(trust.report(str(bomb)).replace('"build_id": "' + "ab" * 20 + '"', '"build_id": null'))
        for words in (("scan", "--kernels", "--target", "9.0", bomb), ("scan", "--sizes", bomb), ("analyze", report)):
            with self.subTest(words[0:2]):
                done = subprocess.run([e2e.KSHIM, *map(str, words)], timeout=60, stdin=subprocess.DEVNULL, capture_output=True, env=e2e.clean_environment(),
                                      check=False)
                self.assertIn(done.returncode, (0, 1), done.stderr)

    # shows: a report that names files which take hours to read
    @unittest.skipUnless(e2e.SHIM.exists(), "the shim was not built")
    def test_a_report_of_many_bombs(self):
        bomb = self.bomb(60)
        head, *middle, end = (json.loads(line) for line in trust.report("").splitlines())
        rows = [head, *(row for row in middle if row["type"] in ("driver", "device"))]
        for number in range(1, 2001):
            path = self.folder / f"b{number}.fatbin"
            path.symlink_to(bomb)
            for row in middle:
                if row["type"] in ("object", "module", "failure"):
                    at = {"object": {"path": str(path), "build_id": None}, "module": {"object": number, "offset": 0}, "failure": {"object": number, "module": number}}
                    rows.append({**row, "id": number, **at[row["type"]]})
        rows[0]["run"] = "RUN"
        report = self.folder / "report"
        report.write_text("".join(json.dumps({**row, "seq": seq, "t": seq}) + "\n" for seq, row in enumerate([*rows, end])))
        lays_it = f'sed "s/RUN/$KSHIM_RUN_ID/" {report} >"$(dirname "$KSHIM_REPORT")/host.17.jsonl"'
        out = self.folder / "out.json"
        done = subprocess.run([e2e.KSHIM, "run", "--timeout", "1", "--format", "json", "-o", out, "--", "sh", "-c", lays_it], timeout=120, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=e2e.clean_environment(), check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        analysis = json.loads(out.read_text())
        self.assertTrue(analysis["findings"])
        self.assertTrue([note for note in analysis["notes"] if "host.17.jsonl" in note], analysis["notes"])

    def bomb(self, entries):
        """A fatbin whose images are zeros."""
        size, block = 64 << 20, 128 << 10
        blocks = [struct.pack("<I", (1 << 1) | (block << 3))[:3] + b"\0"] * (size // block)  # RFC 8878: RLE, of zeros
        blocks[-1] = struct.pack("<I", 1 | (1 << 1) | (block << 3))[:3] + b"\0"
        frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"".join(blocks)
        frame += bytes(-len(frame) % 8)
        entry = struct.pack("<HHIQIIHHIQQQQ", 2, 0x0101, 64, len(frame), len(frame), 0, 7, 1, 90, 0, 0x8000, 0, size) + frame
        body = entry * entries
        bomb = self.folder / "bomb.fatbin"
        bomb.write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body)
        return bomb

    # shows: a file system that no longer answers under `kshim run`: programs and files of CMD lie there
    @unittest.skipUnless(e2e.SHIM.exists() and os.geteuid() == 0, "needs the shim, and root to mount")
    def test_a_run_on_a_file_system_that_does_not_answer(self):
        dead, program = self.folder / "dead", self.folder / "program"
        report = self.folder / "report.jsonl"
        report.write_text(trust.report(str(dead / "lib.so")))
        leaves_report = f'cp {report} "$(dirname "$KSHIM_REPORT")/host.17.jsonl"; sed -i "s/\\"run\\": null/\\"run\\": \\"$KSHIM_RUN_ID\\"/" "$(dirname "$KSHIM_REPORT")/host.17.jsonl"'
        # A program that is begun when another file system lies over its name.
        covered = ("import os, subprocess, sys\n"
                   f"os.mkdir('{program}')\n"
                   f"open('{program}/lib.so', 'wb').write(open('/bin/sleep', 'rb').read())\n"
                   f"os.chmod('{program}/lib.so', 0o755)\n"
                   f"file = os.open('{program}/lib.so', os.O_RDONLY)\n"
                   f"subprocess.run(['mount', '--bind', '{dead}', '{program}'], check=True)\n"
                   "os.execve(file, ['sleep', '60'], os.environ)\n")
        dead.mkdir()
        rows = (("READ", (), 0, ("sh", "-c", leaves_report)), ("READ", (), 7, ("sh", "-c", leaves_report + "; exit 7")),
                ("READ", ("--fail-on", "error"), 125, ("sh", "-c", leaves_report)),
                ("ALL", ("--timeout", "2"), 128 + 15, (sys.executable, "-c", covered)))

        def served(row):
            silent, options, _, command = row
            return ("unshare", "--mount", sys.executable, e2e.SOURCE / "tests/support/silent_fs.py", dead, silent, e2e.KSHIM, "run", "--io-timeout", "1",
                    *options, "--", *command)

        for (silent, _, status, _), done in self.at_once(rows, served, timeout=100):
            with self.subTest(silent=silent, status=status):
                if done.returncode == 77 or "unshare" in done.stderr:
                    self.skipTest(f"no FUSE in a namespace of its own: {done.stderr}")
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn("--io-timeout", done.stderr)

    # shows: a program of a run leaves a FIFO in its own name's place
    @unittest.skipUnless(e2e.SHIM.exists(), "the shim was not built")
    def test_a_run_ends(self):
        script = self.folder / "trap.py"
        script.write_text("import os, shutil, sys, time\n"
                          "own = os.path.abspath('sleeper')\n"
                          "shutil.copy('/bin/sleep', own)\n"
                          "pid = os.spawnv(os.P_NOWAIT, own, [own, '30'])\n"
                          "time.sleep(0.2)\n"
                          "os.unlink(own)\n"
                          "os.mkfifo(own + ' (deleted)')\n"
                          "time.sleep(30)\n")
        done = subprocess.run([e2e.KSHIM, "run", "--timeout", "2", "--", "python3", script], cwd=self.folder, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env=e2e.clean_environment(), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--timeout", done.stderr)


if __name__ == "__main__":
    e2e.main()
