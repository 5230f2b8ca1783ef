#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compilers that end."""
import shutil
import signal

import e2e
import hostile

COMPILERS = hostile.HERE / "compilers"
e2e.require(COMPILERS / "nvcc", COMPILERS / "own" / "nvcc")


class CompilerEnds(hostile.Case):
    def ends(self, how, status, program=COMPILERS / "nvcc", **more):
        """The statuses of the compiler records."""
        shutil.rmtree(self.folder / "shim", ignore_errors=True)
        done = self.same(program, how, status, "-arch=sm_61", **more)
        self.assertEqual([row for records in self.found() for row in records if row["type"] == "failure"], [])
        rows = [row for records in self.found() for row in e2e.of_type(records, "compiler")]
        for row in rows:
            self.assertEqual((row["program"], row["asked"], row["version"]), ("nvcc", ["sm_61"], None))
        return done.returncode, [row["status"] for row in rows]

    def test_a_compiler_fails(self):
        """a program named nvcc ends with a status other than 0: return, exit, `_exit`, exit in a handler, in a thread and in atexit, after the main thread | nothing | the status, once"""
        for how in ("return", "exit", "_exit", "_Exit", "again", "own", "handler-exit", "handler-_exit", "thread", "main-first"):
            with self.subTest(how):
                self.assertEqual(self.ends(how, 3), (3, [3]))
        self.assertEqual(self.ends("exit", 513), (1, [1]))

    def test_a_compiler_ends_well(self):
        """a program named nvcc ends with 0, or past libc (quick_exit, the system call, abort) | nothing | none"""
        for how in ("return", "exit", "_exit", "handler-exit", "thread"):
            with self.subTest(how):
                self.assertEqual(self.ends(how, 0), (0, []))
        self.assertEqual(self.ends("exit", 256), (0, []))
        self.assertEqual(self.ends("quick", 3), (3, []))
        self.assertEqual(self.ends("group", 3), (3, []))
        self.assertEqual(self.ends("abort", 3), (-signal.SIGABRT, []))

    def test_a_child_of_a_compiler(self):
        """a child that a compiler forked fails | nothing | none: the child is no compiler"""
        self.assertEqual(self.ends("fork", 3), (0, []))
        self.assertEqual(self.ends("vfork", 127), (0, []))

    def test_a_compiler_without_files(self):
        """a compiler that has closed all its files, or has no place for a report | nothing | where there is a place, all of it"""
        self.assertEqual(self.ends("closed", 3), (3, [3]))
        self.assertEqual(self.ends("return", 3, variables={"KSHIM_REPORT": "/dev/null"}), (3, []))
        variables = {"KSHIM_REPORT": "/proc/nowhere/r.jsonl", "TMPDIR": self.folder}
        done = self.shimmed(COMPILERS / "nvcc", "return", 3, "-arch=sm_61", variables=variables)
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertEqual(len(self.found(self.folder)), 1)

    def test_a_compiler_whose_input_is_a_pipe(self):
        """a program named ptxas fails whose input is a FIFO | nothing: a process that waits to write into it goes on waiting | the status"""
        ptxas = self.folder / "ptxas"
        shutil.copy(COMPILERS / "nvcc", ptxas)
        pipe = self.folder / "in.ptx"
        self.beside_a_writer(pipe, lambda: self.assertEqual(self.shimmed(ptxas, "return", 3, "-arch=sm_61", pipe).returncode, 3))
        self.assertEqual([row["status"] for row in e2e.of_type(self.only(), "compiler")], [3])

    def test_an_on_exit_of_its_own(self):
        """a program named nvcc that defines on_exit | its own is called by it alone | the status"""
        self.assertEqual(self.ends("own", 3, program=COMPILERS / "own" / "nvcc"), (3, [3]))


if __name__ == "__main__":
    e2e.main()
