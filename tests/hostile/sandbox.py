#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""seccomp filters that refuse what the shim asks the kernel for: each system call that its sources name, in turn."""
import errno
import os
import platform
import re
import signal
import subprocess

import e2e
import hostile
from hostile import BOTH

# Without these the driver, or libc, does not start: what the host itself makes of it is its own affair.
HOSTS_OWN = {"mmap"}
# Early, without them there is no report at all; late, it is what was written before.
NO_REPORT = {"openat", "write", "fstat"}


def system_calls():
    """Name and number of each one in the shim's sources."""
    names = set()
    for path in sorted((e2e.SOURCE / "shim").rglob("*")):
        if path.suffix in (".cpp", ".h"):
            names |= set(re.findall(r"\bSYS_([a-z0-9_]+)", path.read_text()))
    lines = ["#include <sys/syscall.h>"] + [f"#ifdef SYS_{name}\nkshim {name} SYS_{name}\n#endif" for name in sorted(names)]
    done = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], input="\n".join(lines), capture_output=True, text=True, check=True)
    return {name: int(number) for name, number in re.findall(r"^kshim (\w+) (\d+)$", done.stdout, re.MULTILINE)}


class Sandbox(hostile.Case):
    def refuse(self, name, number, error, when):
        with self.subTest(f"{name}, {errno.errorcode[error]}, {when}"):
            folder = self.folder / f"{name}.{error}.{when}"
            argv = self.scenario("sandbox", f"{number}:{error}:{when}")
            done = self.same(*argv, variables={"KSHIM_REPORT": folder / "r.jsonl"})
            if done.returncode == 77:
                self.skipTest("no seccomp here")
            # glibc 2.36 has a second way to end the program, 2.39 has not: without the shim as with it.
            self.assertIn(done.returncode, (0, -signal.SIGSEGV) if name == "exit_group" else (0,))
            reports = self.found(folder, complete=False) if folder.exists() and (folder / "r.jsonl").stat().st_size else []
            if when == "early" and name in NO_REPORT | {"mkdirat"}:
                self.assertEqual(reports, [])
            else:
                self.assertEqual([self.codes(records) for records in reports], [BOTH])
                for failure in e2e.of_type(reports[0], "failure"):  # memory is read without process_vm_readv as well
                    self.assertIn("host", [os.path.basename(frame["object"] or "") for frame in failure["native"]])

    def test_each_system_call_is_refused(self):
        """a seccomp filter that refuses (EPERM, ENOSYS) any one system call that the shim makes, or answers EINTR to every write, before the driver starts or after | nothing | all of it, but: none where no file can be made from the start"""
        calls = system_calls()
        self.assertGreater(len(calls), 25)
        for name, number in calls.items():
            for error in (errno.EPERM, errno.ENOSYS):
                for when in ("early", "late"):
                    if when == "late" or name not in HOSTS_OWN:
                        self.refuse(name, number, error, when)
        self.refuse("write", calls["write"], errno.EINTR, "early")
        self.refuse("write", calls["write"], errno.EINTR, "late")

    def test_a_sandbox_from_the_start(self):
        """a sandbox around the process (an old container run time, gVisor) refuses a system call by which the shim reads memory, or another one of its start | nothing | the failure"""
        calls = system_calls()
        argv = self.scenario("once")
        for name in ("process_vm_readv", "getpid", "rt_sigprocmask", "madvise", "getcwd", "readlinkat", "fstat"):
            for error in (errno.EPERM, errno.ENOSYS):
                with self.subTest(name=name, error=error):
                    done = self.same(hostile.HERE / "box", calls[name], error, *argv)
                    if done.returncode == 77:
                        self.skipTest("no seccomp here")
                    self.assertEqual((done.returncode, done.stdout), (3, "host: 0 0 500 209\n"))
                    if name != "fstat":
                        self.assertEqual([self.codes(records) for records in self.found()], [BOTH])

    def test_a_program_that_seals_itself(self):
        """a program without CUDA that forbids itself, and libraries, all system calls but a few, by a filter that ends it or raises SIGSYS, or by `PR_SET_SYSCALL_USER_DISPATCH` | nothing: the shim makes none there (glibc 2.35 or later) | none"""
        if tuple(map(int, platform.libc_ver()[1].split("."))) < (2, 35):
            self.skipTest("needs glibc 2.35")
        for how in ("kill", "trap", "dispatch"):
            for end in ("return", "exit", "_exit"):
                with self.subTest(how=how, end=end):
                    done = self.same(hostile.HERE / "sealed", how, end)
                    if done.returncode == 77:
                        self.skipTest(f"no {how} here")
                    self.assertEqual((done.returncode, done.stdout), (3, "open\nsealed 1\n"))

    def test_a_constructor_that_seals_the_program(self):
        """a library's constructor, which runs before that of a preload, forbids the program all system calls but a few (Cloudflare's sandbox) | the kernel ends the program, unless `KSHIM_DISABLE=1` | none"""
        library = hostile.HERE / "libseals.so"
        for disable, status in (("1", 3), ("0", -signal.SIGSYS)):
            bare, shimmed = (start(hostile.HERE / "quick_ends", "_exit", preload=path, variables={"KSHIM_DISABLE": disable})
                             for start, path in ((self.bare, library), (self.shimmed, f"{e2e.SHIM}:{library}")))
            if bare.returncode == 77:
                self.skipTest("no seccomp here")
            self.assertEqual((bare.returncode, shimmed.returncode), (3, status))

    def test_a_child_that_seals_itself(self):
        """a program uses CUDA and has closed a library, or has only opened one; its child does not use CUDA, forbids itself all system calls but a few (a zygote that parses what it does not trust), and ends, where the runtime unloads what it has loaded | nothing: the shim makes none there (glibc 2.35 or later) | what the parent did"""
        if tuple(map(int, platform.libc_ver()[1].split("."))) < (2, 35):
            self.skipTest("needs glibc 2.35")
        for end in ("return", "exit"):
            with self.subTest(end=end):
                done = self.same(hostile.HERE / "sealed", "kill", end, hostile.PLAIN / "libcuda.so.1")
                if done.returncode == 77:
                    self.skipTest("no seccomp here")
                self.assertEqual(done.returncode, 3)
                self.assertEqual(len(e2e.of_type(self.only(), "failure")), 1)
                self.assertEqual(self.same(hostile.HERE / "sealed", "kill", end, hostile.PLAIN / "libcuda.so.1", "unused").returncode, 3)

    def landlocked(self, start, what):
        done = start(*self.scenario("landlock", what))
        if done.returncode == 77:
            self.skipTest("no Landlock here")
        return done

    def test_landlock(self):
        """Landlock forbids the program to write files, or also to read outside of the system's folders, before the driver starts or after | nothing | all of it, but: none where no file can be made from the start"""
        for what in ("write", "read"):
            for when, codes in (("early", []), ("late", [BOTH])):
                with self.subTest(what=what, when=when):
                    self.landlocked(self.same, f"{what}:{when}")
                    self.assertEqual([self.codes(records) for records in self.found(complete=False)], codes)

    def test_a_program_that_cannot_read_the_preload(self):
        """a program confines itself so that libkshim.so cannot be read, and starts another program | ld.so says on that program's stderr that the preload is ignored | - |"""
        if str(e2e.SHIM).startswith("/usr/"):
            self.skipTest("the shim lies in a system folder")
        bare, shimmed = (self.landlocked(start, "starts:late") for start in (self.bare, self.shimmed))
        self.assertEqual((bare.returncode, shimmed.returncode, bare.stdout), (0, 0, shimmed.stdout))
        lines = hostile.without_ours(shimmed.stderr).splitlines()
        self.assertTrue(lines and all(line.startswith("ERROR: ld.so") for line in lines), lines)


if __name__ == "__main__":
    e2e.main()
