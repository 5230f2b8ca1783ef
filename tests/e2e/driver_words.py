#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver's own words in a failure: the JIT compiler's log where the caller of a load asked for one, and with KSHIM_DRIVER_LOG=1
what the driver's error log (CUDA 12.9 and later) says of the call. The host prints what it got itself; the report has the same."""
import json
import re

import e2e

CUBIN = e2e.BUILD / "tests" / "clients" / "kernels.cubin"  # of sm_90
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", CUBIN)

# HOST ROOM: loads PTX of an ISA that the simulated driver does not read, with a log buffer of ROOM bytes (0: no buffer), and
# prints what the driver wrote there, and what its error log holds.
HOST = """
import ctypes, json, sys
cu = ctypes.CDLL("libcuda.so.1")
room = int(sys.argv[1])
context, out = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cu.cuCtxGetDevice(ctypes.byref(ctypes.c_int())) == 201  # which no hook sees
assert cu.cuCtxSetCurrent(context) == 0
ptx = b".version 9.9\\n.target sm_75\\n.address_size 64\\n.visible .entry k() { ret; }\\n\\0"
log = ctypes.create_string_buffer(max(room, 1))
options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
values = (ctypes.c_void_p * 2)(ctypes.addressof(log), room)
result = cu.cuModuleLoadDataEx(ctypes.byref(out), ptx, 2 if room else 0, options, values)
held, size = ctypes.create_string_buffer(65536), ctypes.c_size_t(65535)
if hasattr(cu, "cuLogsDumpToMemory"):
    assert cu.cuLogsDumpToMemory(None, held, ctypes.byref(size), 0) == 0
print(json.dumps({"result": result, "jit": log.value.decode(), "driver": held.value.decode()}))
sys.exit(3)
"""

# HOST IMAGE THREADS: that many threads ask for a kernel each, all at once, of an image that the GPU cannot run.
THREADS = """
import ctypes, sys, threading
cu = ctypes.CDLL("libcuda.so.1")
count = int(sys.argv[2])
context, library = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
data = open(sys.argv[1], "rb").read()
assert cu.cuLibraryLoadData(ctypes.byref(library), data, None, None, 0, None, None, 0) == 0
barrier = threading.Barrier(count)
def ask(number):
    cu.cuCtxSetCurrent(context)
    barrier.wait()
    out = ctypes.c_void_p()
    assert cu.cuLibraryGetKernel(ctypes.byref(out), library, b"kernel%d" % number) == 209
threads = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


class DriverWords(e2e.Case):
    def failure(self, room, driver="13.0", **env):
        """What the host saw, the failure's record, and the evidence of its finding."""
        host = self.folder / "host.py"
        host.write_text(HOST, encoding="utf-8")
        analysis, done = self.analysis("--simulate", f"7.5,driver={driver}", "--report", self.folder / driver, "--", "/usr/bin/env", "python3", host, room,
                                       env=e2e.clean_environment(**env), status=3)
        saw = json.loads(done.stdout)
        self.assertEqual(saw["result"], 222)
        (record,) = [row for report in self.reports(self.folder / driver) for row in e2e.of_type(report, "failure")]
        (finding,) = [row for row in analysis["findings"] if row["severity"] == "error"]
        return saw, record, {row["id"]: row.get("arguments") for row in finding["evidence_items"]}

    def test_the_log_that_the_caller_asked_for(self):
        saw, record, evidence = self.failure(4096)
        self.assertNotEqual(saw["jit"], "")
        self.assertEqual(record["jit_log"], saw["jit"])
        self.assertEqual(evidence["jit-log"]["text"], saw["jit"])
        self.assertIsNone(record["driver_log"], "KSHIM_DRIVER_LOG is off")
        self.assertNotIn("driver-log", evidence)

    def test_a_short_buffer_gives_what_it_holds(self):
        saw, record, _ = self.failure(16)
        self.assertEqual(record["jit_log"], saw["jit"])
        self.assertLess(len(saw["jit"]), 17)

    def test_a_caller_that_asked_for_none(self):
        _, record, evidence = self.failure(0)
        self.assertIsNone(record["jit_log"])
        self.assertNotIn("jit-log", evidence)

    def test_the_drivers_error_log(self):
        """Of the driver's lines, those of the call that failed; not those of one before it, which no hook saw."""
        for driver, of_one_call in (("13.0", 1), ("13.4", 2)):
            with self.subTest(driver=driver):
                trace = self.folder / f"{driver}.trace"
                saw, record, evidence = self.failure(0, driver, KSHIM_DRIVER_LOG="1", KSHIM_SIM_TRACE=trace)
                lines = saw["driver"].splitlines()
                self.assertIn("No CUDA context", lines[0])
                self.assertEqual(record["driver_log"].splitlines(), lines[of_one_call:])
                self.assertEqual(evidence["driver-log"]["text"], record["driver_log"])
                calls = trace.read_text(encoding="utf-8")
                self.assertEqual([calls.count(name + "(") for name in ("cuLogsRegisterCallback", "cuLogsUnregisterCallback")], [1, 1])

    def test_a_driver_without_the_log(self):
        _, record, _ = self.failure(0, "12.8", KSHIM_DRIVER_LOG="1")
        self.assertIsNone(record["driver_log"])

    def test_each_thread_has_its_own_lines(self):
        """Up to 256 threads have theirs. Of more, some have lost them; none has those of another one."""
        host = self.folder / "threads.py"
        host.write_text(THREADS, encoding="utf-8")
        for driver, count in (("13.0", 100), ("13.4", 100), ("13.4", 400)):
            with self.subTest(driver=driver, count=count):
                folder = self.folder / f"{driver}-{count}"
                self.analysis("--simulate", f"7.5,driver={driver}", "--report", folder, "--", "/usr/bin/env", "python3", host, CUBIN, count,
                              env=e2e.clean_environment(KSHIM_DRIVER_LOG="1", KSHIM_REPEATS="each"))
                report, = self.reports(folder)
                failures = e2e.of_type(report, "failure")
                self.assertEqual(len(failures), count)
                for record in failures:
                    named = re.findall(r"Kernel \((\w+)\)", record["driver_log"] or "")
                    self.assertIn(named, [[record["kernel"]]] + ([[]] if count > 256 else []))


if __name__ == "__main__":
    e2e.main()
