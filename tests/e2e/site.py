#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A site that preloads the shim for everybody: root's processes obey root's file, folders and files have caps, and nobody's default
folder is in anybody's way."""
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import e2e

e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")

PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
good = (".version 7.0\\n.target sm_70\\n.address_size 64\\n.visible .entry k() { ret; }\\n").encode() + b"\\0"
bad = good.replace(b"sm_70", b"sm_90")
module = ctypes.c_void_p()
for i in range(int(sys.argv[1])):
    cuda.cuModuleLoadData(ctypes.byref(module), good)
assert cuda.cuModuleLoadData(ctypes.byref(module), bad) != 0
"""


class Site(e2e.Case):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "program.py"
        self.program.write_text(PROGRAM)

    def run_it(self, loads=1, **changes):
        done = self.run_program(sys.executable, self.program, loads, env=e2e.preloaded("7.5", **changes))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    # shows: reports: loads without end
    def test_a_report_has_a_cap(self):
        said = self.run_it(2000, KSHIM_MAX_BYTES="64K").stderr
        (records,) = self.reports()
        self.assertLess(sum(path.stat().st_size for path in self.folder.rglob("*.jsonl")), 80 << 10)
        self.assertEqual(len(e2e.of_type(records, "failure")), 1, "what comes last is there")
        end = records[-1]
        self.assertEqual((end["type"], end["modules"] > 2000, end["dropped"] > 1000), ("end", True, True), end)
        self.assertEqual(said.count("KSHIM_MAX_BYTES"), 1, said)

    def test_a_folder_has_a_cap(self):
        for _ in range(4):
            said = self.run_it(KSHIM_MAX_FILES="3", KSHIM_REPORT=self.folder / "reports/%p.jsonl").stderr
        self.assertEqual(len(list((self.folder / "reports").iterdir())), 3)
        self.assertIn("KSHIM_MAX_FILES", said)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_nobody_is_in_anybodys_way(self):
        os.chown(self.folder, 4711, 4711)
        temporary = pathlib.Path(tempfile.mkdtemp(prefix="kshim-e2e-"))
        self.addCleanup(shutil.rmtree, temporary)
        said = self.run_it(TMPDIR=temporary).stderr
        self.assertEqual([path.name for path in self.folder.iterdir()], ["program.py"])
        self.assertEqual([path.name for path in temporary.iterdir()], ["kshim-report-0"])
        self.assertEqual(stat.S_IMODE((temporary / "kshim-report-0").stat().st_mode), 0o700)
        self.assertEqual(said.count("cannot write the report"), 1, said)

    # shows: site-wide preload: root's process with the environment of a user
    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_root_obeys_its_own_file(self):
        etc = self.folder / "etc"
        shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
        (etc / "ld.so.preload").write_text(f"{e2e.SHIM}\n")
        (etc / "kshim").mkdir()
        spool = self.folder / "spool"
        script = 'mount --bind "$0" /etc && exec "$@"'
        line = f"KSHIM_REPORT={spool}/%p.jsonl\n"
        # The line lies across the end of the first 4 KiB, and behind lines that are longer than that.
        long = "# " + "x" * (4096 - 2 - len(line) + 12) + "\n" + line
        longer = "KSHIM_REPORT=/tmp/" + "x" * 9000 + "\n" + line
        for settings, where in ((line, spool), ("", self.folder / "kshim-report"), (long, spool), (longer, spool), (long.rstrip("\n"), spool)):
            (etc / "kshim/options").write_text(settings)
            env = e2e.simulated("7.5", KSHIM_REPORT=self.folder / "evil/%h.conf", TMPDIR=self.folder / "evil")
            command = ["unshare", "--mount", "sh", "-c", script, etc, sys.executable, self.program, "1"]
            done = subprocess.run([str(word) for word in command], cwd=self.folder, env=env, capture_output=True, text=True, timeout=100,
                                  check=False)
            if "unshare" in done.stderr or "mount" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertFalse((self.folder / "evil").exists())
            self.assertEqual(len(list(where.glob("*.jsonl"))), 1, done.stderr)
            shutil.rmtree(where)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_a_full_disk_is_said(self):
        disk = self.folder / "disk"
        disk.mkdir()
        script = 'mount -t tmpfs -o size=4k none "$0" && head -c 4096 /dev/zero > "$0/full" && exec "$@"'
        env = e2e.preloaded("7.5", KSHIM_REPORT=disk / "%p.jsonl")
        # The shell is not preloaded: `env` sets the variable for the program.
        preload = env.pop("LD_PRELOAD")
        command = ["unshare", "--mount", "sh", "-c", script, disk, "env", f"LD_PRELOAD={preload}", sys.executable, self.program, "1"]
        done = self.run_program(*command, env=env)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("no space left"), 1, done.stderr)


if __name__ == "__main__":
    e2e.main()
