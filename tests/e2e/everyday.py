#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs without CUDA do not notice the shim: same output, same status, no file, no thread."""
import shutil
import sys

import e2e

e2e.require(e2e.SHIM)

SCRIPT = """
import ctypes, os, subprocess, sys, threading
print(sys.version)
print(sorted(n for n in os.listdir("/proc/self/task")).__len__(), threading.active_count())
print(ctypes.CDLL(None).dlsym is not None, ctypes.CDLL("libm.so.6").abs(-3))
print(subprocess.run(["sh", "-c", "echo child; exit 4"]).returncode)
try:
    ctypes.CDLL("libcuda-not-here.so")
except OSError as error:
    print(error)
"""


class Everyday(e2e.Case):
    def assert_same(self, *argv, **more):
        if shutil.which(argv[0]) is None:
            self.skipTest(f"{argv[0]} is not installed")
        bare = self.run_program(*argv, **more)
        with_shim = self.run_program(*argv, env=e2e.clean_environment(LD_PRELOAD=e2e.SHIM), **more)
        self.assertNotEqual(bare.stdout, "")
        self.assertEqual((with_shim.returncode, with_shim.stdout, with_shim.stderr),
                         (bare.returncode, bare.stdout, bare.stderr))

    def test_bash(self):
        self.assert_same("bash", "-c", "echo $BASH_VERSION; (exit 3) | cat; coproc cat; echo to >&${COPROC[1]}; "
                                       "read -u ${COPROC[0]} back; echo $back; exec 3</etc/passwd; wc -l <&3; exit 6")
        self.assertEqual(self.files(), [])

    def test_git(self):
        self.assert_same("git", "--version")
        self.assert_same("git", "-C", e2e.SOURCE, "-c", "safe.directory=*", "log", "--stat", "-3")
        self.assertEqual(self.files(), [])

    def test_python(self):
        self.assert_same(sys.executable, "-c", SCRIPT)
        self.assertEqual(self.files(), [])

    def test_pipes_of_many(self):
        self.assert_same("sh", "-c", "seq 2000 | sort -r | xargs -n 50 echo | tail -3; ls -d / /proc/self")
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    e2e.main()
