#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lives and deaths of processes, threads and signal handlers."""
import contextlib
import os
import platform
import shutil
import socket
import signal
import sys
import time

import e2e
import hostile
from hostile import BOTH, NO_IMAGE

# Puts a pipe or socket without a reader in the place of stderr, with another descriptor of it; prints how many SIGPIPE it receives.
RECEIVES_SIGPIPE = """
import ctypes, os, signal, socket, sys, threading
kind, how = sys.argv[1:]
driver = ctypes.CDLL('libcuda.so.1')
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
if kind == 'pipe':
    far, near = os.pipe()
else:
    near, far = (end.detach() for end in socket.socketpair())
os.close(far)
os.dup2(near, 2)
if how == 'process':
    os.kill(os.getpid(), signal.SIGPIPE)
elif how == 'thread':
    signal.pthread_kill(threading.main_thread().ident, signal.SIGPIPE)
driver.cuInit(0)
failed = driver.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), b'no image of any kind')
received = 0
while signal.sigtimedwait({signal.SIGPIPE}, 0):
    received += 1
print(failed, received)
"""


class Processes(hostile.Case):
    def test_vfork(self):
        """vfork, whose child execs or ends itself | nothing | the parent's failures once; a report of its own for the program that was started"""
        self.same(*self.scenario("vfork"))
        reports = self.found()
        self.assertEqual([self.codes(records) for records in reports], [BOTH, BOTH])
        self.assertEqual(len({records[0]["pid"] for records in reports}), 2)

    def test_posix_spawn(self):
        """posix_spawn | nothing | a report for each process"""
        self.same(*self.scenario("spawn"))
        self.assertEqual([self.codes(records) for records in self.found()], [BOTH, BOTH])

    def test_exec(self):
        """exec after a failure | nothing | two reports with one process id"""
        self.same(*self.scenario("exec"))
        reports = self.found(complete=False)
        self.assertEqual([self.codes(records) for records in reports], [BOTH, BOTH])
        self.assertEqual(len({records[0]["pid"] for records in reports}), 1)

    def test_daemon(self):
        """a daemon: two forks, setsid, every descriptor closed twice, its own file on the lowest number | nothing; its file has that number and nothing of ours in it | all of it: the file is opened again, by device and inode"""
        done = self.same(*self.scenario("daemon"))
        self.assertIn("file 3", done.stdout)
        self.assertEqual((self.folder / "shim/mine.txt").read_text(), "mine 209\n")
        for _ in range(100):  # nobody waits for a daemon
            records = self.found(complete=False)[0]
            if records[-1]["type"] == "end":
                break
            time.sleep(0.05)
        self.assertEqual(self.codes(self.only()), BOTH)
        self.assertEqual(e2e.of_type(self.only(), "end")[0]["dropped"], 0)

    def test_ends_without_destructors(self):
        """abort, SIGSEGV, quick_exit | nothing | every failure, no end"""
        for how, status in (("abort", -signal.SIGABRT), ("segv", -signal.SIGSEGV), ("quick", 4)):
            with self.subTest(how):
                self.assertEqual(self.same(*self.scenario(how)).returncode, status)
                records = self.found(complete=False)[-1]
                self.assertEqual((self.codes(records), e2e.of_type(records, "end")), (BOTH, []))

    def test_the_main_thread_ends_first(self):
        """pthread_exit of the main thread, the others go on | nothing | all of it"""
        self.same(*self.scenario("main-thread-first"))
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_closed_stdio(self):
        """started without stdin, stdout and stderr | nothing, no number is taken from it | all of it"""
        for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            with self.subTest(closed):
                self.same("sh", "-c", f'exec "$0" "$@" {closed}', *self.scenario("once"))
                self.assertEqual(self.codes(self.found()[-1]), BOTH)

    def test_a_pending_sigpipe(self):
        """stderr is a pipe without a reader, or a socket whose other end is closed; the host blocks SIGPIPE, and one is pending, of the process or of the thread, or none | nothing: it receives that one alone | all of it"""
        for kind in ("pipe", "socket"):
            for how in ("process", "thread", "none"):
                with self.subTest(f"{kind} {how}"):
                    done = self.same(sys.executable, "-c", RECEIVES_SIGPIPE, kind, how)
                    self.assertEqual(done.stdout.split(), ["201", str(int(how != "none"))])  # no context
                    self.assertEqual(self.codes(self.only()), [201])

    def test_a_terminal_that_is_nearly_full(self):
        """stderr is a terminal that nobody reads, with room for some bytes | nothing: it does not wait | all of it"""
        for room in (1, 20, 50, 100, 200):
            with self.subTest(room):
                reader, writer = os.openpty()
                os.set_blocking(writer, False)
                for size in (64, 1):
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            os.write(writer, b"x" * size)
                os.set_blocking(writer, True)
                os.read(reader, room)
                done = self.shimmed(*self.scenario("once"), stderr=writer, timeout=20)
                self.assertEqual((done.returncode, self.codes(self.found()[-1])), (3, BOTH))
                os.close(reader)
                os.close(writer)

    def test_a_bare_environment(self):
        """no HOME, no TMPDIR, no PATH, no locale | nothing | all of it"""
        unset = ("HOME", "TMPDIR", "PATH", "LANG", "LC_ALL", "TERM", "USER")
        self.same(*self.scenario("once"), unset=unset)
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_an_unknown_locale(self):
        """a locale that is not installed, texts that are no UTF-8 | nothing | all of it"""
        self.same(*self.scenario("once"), variables={"LC_ALL": "xx_XX.EUC-JP", "CUDA_CACHE_PATH": b"/\xff\xfe".decode("utf-8", "surrogateescape")})
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_64_threads(self):
        """64 threads that load and fail at once (more of that in tests/stress) | nothing | every load counted, each kind of failure once"""
        self.same(*self.scenario("threads"))
        records = self.only()
        self.assertEqual((self.codes(records), records[-1]["modules"], records[-1]["dropped"]), ([NO_IMAGE], 64 * 40, 0))

    def test_a_storm_of_signals(self):
        """a timer's signal every 150 microseconds, system calls interrupted all the time | nothing | every load counted, nothing dropped"""
        self.same(*self.scenario("storm"))
        records = self.only()
        self.assertEqual((self.codes(records), records[-1]["modules"], records[-1]["dropped"]), ([NO_IMAGE], 4000, 0))

    def test_a_handler_that_calls_cuda(self):
        """a signal handler that calls CUDA, on a stack of 16 KiB | nothing; what lies below its stack is as it was | all of it"""
        done = self.same(*self.scenario("handler"))
        self.assertEqual((done.stdout.count("handler: 209"), done.stdout.count("below: whole")), (3, 1))
        self.assertEqual(sorted(self.codes(self.only())), sorted(BOTH))

    def test_a_fiber_that_calls_cuda(self):
        """a fiber (makecontext) with a stack of 16 KiB in memory of malloc's | nothing; what lies below its stack is as it was | all of it"""
        self.assertIn("below: whole", self.same(*self.scenario("fiber")).stdout)
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_a_thread_on_memory_of_the_hosts(self):
        """a thread with a stack of 16 KiB that the host brought (pthread_attr_setstack), without a guard | nothing; what lies below it is as it was | all of it"""
        self.assertIn("below: whole", self.same(*self.scenario("own-memory")).stdout)
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_jumps_out_of_the_shim(self):
        """a signal handler that jumps out of the shim (siglongjmp), 500 times | nothing | what was abandoned half done is not written any more; end counts it"""
        self.same(*self.scenario("jumps"))
        self.assertEqual(self.only()[-1]["type"], "end")

    def test_a_file_of_its_own_as_number_2(self):
        """stderr is closed, and number 2 is a file or a pipe of the host's own, also one that it has open twice | not a byte in it | all of it"""
        for kind in ("stream", "append", "descriptor", "twice", "pipe"):
            with self.subTest(kind):
                for folder in ("bare", "shim"):
                    (self.folder / folder / "mine.txt").unlink(missing_ok=True)
                self.same(*self.scenario("own-stderr", kind))
                self.assertEqual(self.codes(self.found()[-1]), BOTH)

    def test_a_service_of_inetd(self):
        """stdin, stdout and stderr are one connection, as inetd and socat start a service | not a byte of the shim's in it | all of it"""
        got = {}
        for start in (self.bare, self.shimmed):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                start(*self.scenario("once"), stdin=theirs, stdout=theirs, stderr=theirs)
                theirs.shutdown(socket.SHUT_WR)
                got[start] = b"".join(iter(lambda: ours.recv(65536), b""))
        self.assertEqual(got[self.shimmed], got[self.bare])
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_stderr_redirected(self):
        """the host puts a log of its own in the place of stderr (`dup2`) | its lines are there | all of it"""
        self.same(*self.scenario("own-stderr", "redirected"))
        self.assertIn("kshim: ", (self.folder / "shim/log.txt").read_text())
        self.assertEqual((self.folder / "bare/log.txt").read_text(), "")

    def test_two_processes_of_one_number(self):
        """the first process of a pid namespace forks into another one, so that parent and child are both number 1 | nothing | a report for each"""
        self.need_root()
        argv = ("unshare", "--pid", "--fork", "env", f"LD_PRELOAD={e2e.SHIM}", *self.scenario("same-number"))
        done = self.bare(*argv)
        if done.returncode in (1, 77) and "child" not in done.stdout:
            self.skipTest(f"no pid namespaces here: {done.stderr}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        reports = self.found(self.folder / "bare")
        self.assertEqual([records[0]["pid"] for records in reports], [1, 1])
        self.assertEqual([len(e2e.of_type(records, "end")) for records in reports], [1, 1])

    def test_a_library_is_closed(self):
        """dlclose of a library whose device code is still loaded | nothing | every load and failure"""
        self.same(*self.scenario("closed-library", hostile.HERE / "libimage.so"))
        records = self.only()
        self.assertEqual((self.codes(records), records[-1]["modules"]), ([hostile.NOT_FOUND], 3))

    def test_libraries_come_and_go(self):
        """four threads that open and close libraries with device code while others fail, with `KSHIM_TARGET` set, for which the shim looks into what is loaded | nothing | all of it"""
        folder = self.folder / "libraries"
        folder.mkdir()
        for number in range(60):
            shutil.copy(e2e.BUILD / "tests" / "blind" / "libplugin_static.so", folder / f"l{number}.so")
        self.same(*self.scenario("churn", folder), variables={"KSHIM_TARGET": "12.0"})
        self.assertEqual(self.codes(self.only()), [NO_IMAGE])


class OtherWorlds(hostile.Case):
    """Processes that the shim has no business in, or does not get into."""

    def test_musl(self):
        """a program linked with musl, which loads the preload as well | nothing | none: no driver runs there"""
        program = hostile.HERE / "musl_host"
        if not program.exists() or not list(hostile.pathlib.Path("/lib").glob("ld-musl-*")):
            self.skipTest("no musl-gcc or no musl (Debian: musl-tools)")
        for word in ((), ("word",)):
            self.assertEqual(self.same(program, *word).returncode, 3 if word else 4)
        self.assertEqual(self.found(), [])

    def test_static(self):
        """a statically linked program | nothing: LD_PRELOAD is not for it | none; `kshim run` names it (blind.run)"""
        for word in ((), ("word",)):
            self.same(hostile.HERE / "static_host", *word)
        self.assertEqual(self.found(), [])

    def test_an_emulated_child(self):
        """fork after a failure under user-mode emulation (qemu-user) | nothing | a report for each process"""
        qemu = shutil.which(f"qemu-{platform.machine()}")
        if qemu is None:
            self.skipTest("no qemu-user (Debian: qemu-user)")
        e2e.require(hostile.PLAIN_HOST)
        ends = []
        for preload in ((), ("-E", f"LD_PRELOAD={e2e.SHIM}")):
            done = self.bare(qemu, "-E", f"LD_LIBRARY_PATH={hostile.PLAIN}", *preload, hostile.PLAIN_HOST, "worker")
            ends.append((done.returncode, done.stdout, hostile.without_ours(done.stderr)))
        self.assertEqual(ends[0], ends[1])
        self.assertEqual(ends[0][0], 0, ends[0])
        failures = [[record["kernel"] for record in e2e.of_type(records, "failure")] for records in self.found(self.folder / "bare")]
        self.assertEqual(sorted(failures), [["server"], ["worker"]])


if __name__ == "__main__":
    e2e.main()
