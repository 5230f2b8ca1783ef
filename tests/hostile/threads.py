#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads, fibers, collectors and signal handlers that leave the shim by other ways than they came in."""
import os
import platform
import signal
import subprocess
import sys
import threading
import time

import e2e
import hostile


# As threadpoolctl up to 3.6 (scikit-learn, joblib) looks for thread pools: the callback needs the interpreter's lock, under ld.so's. The
# driver is called with the interpreter's lock held, as an extension module may.
IN_PYTHON = """
import ctypes, threading
libc, driver = ctypes.CDLL(None), ctypes.PyDLL('libcuda.so.1')
visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(lambda *words: 0)
stop = threading.Event()
def look():
    while not stop.is_set():
        libc.dl_iterate_phdr(visit, None)
threads = [threading.Thread(target=look) for _ in range(2)]
driver.cuInit(0)
ctypes.c_int.in_dll(driver, 'plain_driver').value = 209
for thread in threads: thread.start()
out = ctypes.c_void_p()
for i in range(400):
    driver.cuModuleGetFunction(ctypes.byref(out), ctypes.c_void_p(0x70000000), b'k%d' % i)
    ctypes.PyDLL('libcuda.so.1')['cuLaunchKernel']
stop.set()
for thread in threads: thread.join()
print('done')
"""

# The main thread's frames change all the time while other threads fail.
MOVES = """
import ctypes, sys, threading
sys.setswitchinterval(1e-5)
driver = ctypes.CDLL('libcuda.so.1')
driver.cuInit(0)
ctypes.c_int.in_dll(driver, 'plain_driver').value = 209
def deeper(depth):
    if depth:
        return sum(yielding(depth - 1))
    raise KeyError(depth)
def yielding(depth):
    yield 1
    yield deeper(depth)
def fail(number):
    out = ctypes.c_void_p()
    return driver.cuModuleGetFunction(ctypes.byref(out), ctypes.c_void_p(0x70000000), b'k%d' % number)
def run(first):
    for number in range(first, first + 200):
        fail(number)
threads = [threading.Thread(target=run, args=(1000 * i,)) for i in range(3)]
for thread in threads: thread.start()
rounds = 0
while any(thread.is_alive() for thread in threads):
    try:
        deeper(rounds % 60)
    except KeyError:
        rounds += 1
print('done')
"""


class Ends(hostile.Case):
    WITH_END = ("return", "exit", "_exit", "handler", "child", "thread")
    WITHOUT = ("quick_exit", "abort", "kill", "exec")

    def ways(self, *words, without=()):
        for how in self.WITH_END + self.WITHOUT:
            if how in without:
                continue
            with self.subTest(how):
                variables = {"LD_LIBRARY_PATH": hostile.PLAIN}
                self.same(hostile.PLAIN_HOST, "ends", how, *words, variables=variables, timeout=20)
                records = self.found(complete=False)[0]
                self.failure(records, "ends")
                self.assertEqual(len(e2e.of_type(records, "end")), how in self.WITH_END, how)

    def test_every_way_to_end(self):
        """a process ends by return, `exit`, `_exit`, `quick_exit`, abort, SIGKILL, exec, `_exit` in a signal handler, `pthread_exit` of the main thread, after a child of fork | nothing | every failure; an end record if the process ends itself, except by `quick_exit` or abort"""
        self.ways()

    def test_every_way_to_end_under_a_callback(self):
        """the same while another thread stays in a `dl_iterate_phdr` callback forever | nothing | the same"""
        self.ways("callback", without=("thread",))


class Threads(hostile.Case):
    def test_the_main_thread_has_ended(self):
        """the main thread ends (pthread_exit) before another one looks functions up and uses the driver for the first time | nothing | all of it"""
        done = self.same(hostile.PLAIN_HOST, "main-ends", hostile.HERE / "libcalls_back.so", variables={"LD_LIBRARY_PATH": hostile.PLAIN})
        self.assertEqual((done.returncode, done.stdout), (5, "1 1\n0 209\n"))
        self.failure(self.only(), "main_ends")

    def test_a_worker_that_starts_a_program(self):
        """a child of fork starts a program that is not there (vfork), then uses the driver | nothing | a report for each process"""
        self.assertEqual(self.plain("worker").stdout, "209\n7f00 0 0 0 0 0\n209\n500\n")
        self.assertEqual(sorted(record["kernel"] for records in self.found() for record in e2e.of_type(records, "failure")), ["server", "worker"])

    def test_python_looks_for_thread_pools(self):
        """Python threads run `dl_iterate_phdr` with a Python callback (threadpoolctl) while another thread calls the driver and holds the GIL | nothing | every failure"""
        self.assertEqual(self.plain(None, "-c", IN_PYTHON, program=hostile.pathlib.Path(sys.executable), timeout=30).stdout, "done\n")
        self.assertEqual(len(e2e.of_type(self.only(), "failure")), 400)

    def test_python_frames_that_change(self):
        """three Python threads fail while the main thread calls, yields and raises all the time | nothing | every failure, with frames that were there"""
        program = hostile.pathlib.Path(sys.executable)
        self.assertEqual(self.plain(None, "-c", MOVES, program=program, timeout=60).stdout, "done\n")
        failures = e2e.of_type(self.only(), "failure")
        self.assertEqual(len(failures), 600)
        for failure in failures:
            if failure["python"]:
                self.assertEqual([frame["function"] for frame in failure["python"]][:2], ["fail", "run"])
            main = [frame["function"].split(".")[-1] for frame in failure["python_main"] or []]
            known = {"<module>", "<genexpr>", "deeper", "yielding"} | set(dir(threading.Thread)) | set(dir(threading.Event)) | set(dir(threading.Condition))
            self.assertLessEqual(set(main), known)

    def has_frames(self, record):
        self.assertIn("plain_host", str(record["native"]))

    def test_arguments_that_lead_nowhere(self):
        """a program calls each function with arguments that are not valid pointers; each call fails | nothing: `errno` and the signal mask stay the same | -"""
        self.assertEqual(self.plain("garbage").stdout, "wrong: 0\n")

    def test_names_of_all_kinds(self):
        """kernel names of three million characters, empty ones, and bytes that are not text | nothing | every failure, in whole lines"""
        self.assertEqual(self.plain("names").stdout, "9 209\n")
        self.failure(self.only(), "last")

    def test_generated_code(self):
        """generated code without unwind tables calls the driver | nothing | all of it, with the frames that can be found"""
        self.plain("generated")
        self.failure(self.only(), "below")

    def test_a_stack_that_ends_at_the_edge(self):
        """a hand-written coroutine whose first frame lies at the very end of its mapping | nothing | all of it"""
        self.plain("edge")
        self.failure(self.only(), "after")

    def test_another_layout_of_memory(self):
        """no address randomization, the legacy memory layout, everything executable (`setarch`) | nothing | all of it"""
        for options in ("-R", "-L", "-RX"):
            with self.subTest(options):
                self.plain(platform.machine(), options, hostile.PLAIN_HOST, "crowd", program=hostile.pathlib.Path("/usr/bin/setarch"))

    def test_before_and_after_main(self):
        """a program uses the driver before all constructors, in a library's constructor, in destructors | nothing | what fails before the shim's destructor"""
        done = self.plain(None, program=hostile.HERE / "early")
        self.assertEqual(done.stdout.count(": 0 209"), 5, done.stdout)
        self.assertGreaterEqual(len(e2e.of_type(self.found(complete=False)[0], "failure")), 1)

    def test_green_threads(self):
        """a green-thread scheduler that switches in a timer's signal handler (`swapcontext`), 3,000 times | nothing | all of it"""
        self.assertIn("after: 209", self.plain("switches").stdout)
        self.has_frames(self.failure(self.only(), "after"))

    def test_a_coroutine_on_the_stack(self):
        """a coroutine whose stack is part of the main thread's stack | nothing: the memory below it stays the same | all of it"""
        self.assertIn("below: whole", self.plain("coroutine").stdout)
        self.failure(self.only(), "coroutine")

    def test_threads_that_are_canceled(self):
        """60 threads are canceled at random places (`PTHREAD_CANCEL_ASYNCHRONOUS`) | nothing | what fails later, with its frames"""
        self.assertEqual(self.plain("cancel").stdout, "after: 209 209\n")
        records = self.only()
        for name in ("after", "other"):
            self.has_frames(self.failure(records, name))

    def test_after_a_crowd(self):
        """calls fail in eight threads at once, later in another one | nothing | every failure with its frames, including the last one"""
        self.assertEqual(self.plain("crowd").stdout, "last: 209\n")
        records = self.only()
        self.has_frames(self.failure(records, "last"))
        self.assertEqual((len(e2e.of_type(records, "failure")), records[-1]["dropped"]), (241, 0))

    def test_a_process_that_is_stopped(self):
        """a process is stopped (SIGSTOP) again and again while calls fail at both layers in four threads | nothing | one failure with both layers"""
        env = e2e.clean_environment(LD_LIBRARY_PATH=hostile.PLAIN, LD_PRELOAD=e2e.SHIM)
        process = subprocess.Popen([hostile.PLAIN_HOST, "stopped"], env=env, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "begun\n")
        for _ in range(12):
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(0.4)
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.03)
        self.assertEqual(process.communicate()[0], "wrong: 0\n")
        records = self.found(self.folder)[0]
        self.assertEqual([len(record["layers"]) for record in e2e.of_type(records, "failure")], [2])
        self.assertEqual(records[-1]["dropped"], 0)

    def test_jumps_out_of_a_failing_launch(self):
        """a timer's signal handler jumps out of a launch that fails at both layers (`siglongjmp`), 500 times; then another thread opens a library | nothing | what fails later"""
        self.assertEqual(self.plain("jumps", hostile.HERE / "libcalls_back.so").stdout, "opened: 1\n209\n")
        self.failure(self.only(), "after")

    def test_forks_during_registration(self):
        """a signal handler forks 40 times while kernels are registered; the children register and launch | nothing | every failing launch, with the kernel's name"""
        self.assertEqual(self.plain("registers", timeout=30).stdout, "209\n")
        reports = self.found()
        self.assertEqual(len(reports), 41)
        for records in reports:
            kernels = [record["kernel"] for record in e2e.of_type(records, "failure")]
            self.assertIn(kernels, (["in_the_child"], ["after"]))

    def test_handlers_of_fork(self):
        """handlers of `pthread_atfork` call the driver, 50 times, while calls fail in two threads | nothing | every failure, in the parent's report and in the children's"""
        self.assertEqual(self.plain("at-fork", timeout=60).stdout, "50\n")
        reports = self.found()
        self.assertEqual(len(reports), 51)
        for records in reports:
            kernels = {record["kernel"] for record in e2e.of_type(records, "failure")}
            self.assertTrue({"child", "after"} <= kernels or {"prepare", "parent"} <= kernels, kernels)

    def test_threads_far_apart(self):
        """four threads whose stacks lie 256 GiB apart (isolates with a region each) fail all the time | nothing | a failure and its number: none is taken for another thread"""
        done = self.plain("far-apart")
        self.assertEqual(done.stdout, "4000\n")
        records = self.only()
        self.assertEqual([record["count"] for record in e2e.of_type(records, "repeat")][-1:], [4000])
        self.assertEqual(records[-1]["dropped"], 0)

    def test_threads_that_come_and_go(self):
        """3,000 threads; a call fails in each, and again in a destructor while the thread ends | nothing | two failures and their number"""
        self.assertEqual(self.plain("many-threads").stdout, "6000\n")
        records = self.only()
        self.assertEqual({record["kernel"] for record in e2e.of_type(records, "failure")}, {"lives", "leaves"})
        counts = {record["id"]: record["count"] for record in e2e.of_type(records, "repeat")}
        self.assertEqual(set(counts.values()), {3000})

    def test_a_failure_that_nobody_hears_of(self):
        """a driver call fails inside a runtime function that does not return the error; the thread ends | nothing | the failure"""
        self.plain("pending")
        records = self.only()
        failures = e2e.of_type(records, "failure")
        apis = [layer["api"] for record in failures for layer in record["layers"]]
        # What a program waits for is one failure, whichever call reports it: the fifth call repeats the fourth.
        self.assertEqual(apis, ["cuModuleLoadData", "cuModuleUnload", "cuModuleGetGlobal_v2", "cuCtxSynchronize"])
        self.assertEqual([(repeat["id"], repeat["count"]) for repeat in e2e.of_type(records, "repeat")], [(failures[3]["id"], 2)])

    def test_a_program_that_polls(self):
        """a program asks again and again whether a stream or an event is ready (600: not yet), then its kernel has crashed; pinned memory is out | nothing | the crash and both allocations, not that it was not ready"""
        self.same(sys.executable, "-c", "import ctypes\ndriver = ctypes.CDLL('libcuda.so.1')\ndriver.cuInit(0)\nanswer = ctypes.c_int.in_dll(driver, 'plain_driver')\n"
                  "polls = driver.cuStreamQuery, driver.cuStreamQuery_ptsz, driver.cuEventQuery\nout = ctypes.c_void_p()\n"
                  "for answer.value in (600, 0, 600, 719): print(*(poll(None) for poll in polls))\n"
                  "answer.value = 2\nprint(driver.cuMemHostAlloc(ctypes.byref(out), 1, 0), driver.cuMemAllocHost_v2(ctypes.byref(out), 1))\n",
                  variables={"LD_LIBRARY_PATH": hostile.PLAIN})
        records = self.only()
        self.assertEqual([(failure["layers"][0]["api"], failure["layers"][0]["code"]) for failure in e2e.of_type(records, "failure")],
                         [("cuStreamQuery", 719), ("cuMemHostAlloc", 2), ("cuMemAllocHost_v2", 2)])

    def test_a_handler_inside_the_driver(self):
        """`KSHIM_DRIVER_LOG=1`; a signal interrupts a call that is going to fail, and another call fails in the handler | nothing | both failures, each with what the driver's log says of it"""
        self.assertEqual(self.plain("interrupted", variables={"KSHIM_DRIVER_LOG": "1"}, timeout=20).stdout, "209 209\n")
        records = self.only()
        self.assertEqual({name: self.failure(records, name)["driver_log"] for name in ("handler", "interrupted")}, dict.fromkeys(("handler", "interrupted"), "[12:00:00.000][1][CUDA][E][cuModuleGetFunction] refused"))

    def test_a_child_of_fork_and_the_drivers_log(self):
        """`KSHIM_DRIVER_LOG=1`; a process forks in a call that is going to fail, and another call fails in the child | nothing | the failures of both, each with what the driver's log says of it"""
        self.assertEqual(self.plain("forked-in-log", variables={"KSHIM_DRIVER_LOG": "1"}, timeout=20).stdout, "5\n")
        logs = {record["kernel"]: record["driver_log"] for records in self.found() for record in e2e.of_type(records, "failure")}
        self.assertEqual(logs, dict.fromkeys(("before", "child", "parent"), "[12:00:00.000][1][CUDA][E][cuModuleGetFunction] refused"))

    def test_a_lock_of_the_driver_and_stopped_threads(self):
        """a collector of the program's own stops four threads with a signal, 100 times, while calls fail in them; one that is stopped may own the lock of the driver that another one waits for | nothing: a thread that asks the driver for the shim answers signals | all of it"""
        self.assertEqual(self.plain("stops-threads", timeout=120).stdout, "all answered\n")
        self.assertTrue(e2e.of_type(self.only(), "failure"))

    def test_a_jump_out_of_a_question(self):
        """a time limit (`siglongjmp` in a signal handler) gives a piece of work up while the shim asks the driver about a failure | nothing | every later failure"""
        self.assertEqual(self.plain("while-asking", "jumps").stdout, "20\n")
        records = self.only()
        self.assertEqual((len(e2e.of_type(records, "failure")), records[-1]["dropped"]), (1 + 20, 0))

    def test_a_handler_in_a_question(self):
        """a call fails in a signal handler, also on a stack of its own, while the shim asks the driver about another failure | nothing | both failures"""
        for word in ("calls", "stack"):
            with self.subTest(word):
                self.assertEqual(self.plain("while-asking", word).stdout, "20\n")
                records = self.only()
                self.assertEqual((len(e2e.of_type(records, "failure")), records[-1]["dropped"]), (1 + 3 + 20, 0))

    def test_a_collector(self):
        """Boehm's garbage collector stops threads with a signal and scans their stacks, 300 times, while calls fail in four threads | nothing | all of it"""
        program = hostile.HERE / "collector"
        if not program.exists():
            self.skipTest("no libgc (Debian: libgc-dev)")
        self.assertEqual(self.plain(None, program=program).stdout, "wrong: 0\n")
        self.assertEqual(len(e2e.of_type(self.only(), "failure")), 900)


if __name__ == "__main__":
    e2e.main()
