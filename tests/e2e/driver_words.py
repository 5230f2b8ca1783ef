#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver's own words in a failure: the JIT compiler's log where the caller of a load asked for one, and with KSHIM_DRIVER_LOG=1
the driver's error log (CUDA 12.9 and later). The host prints what it got itself; the report has the same."""
import json

import e2e

e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")

# HOST ROOM: loads PTX of an ISA that the simulated driver does not read, with a log buffer of ROOM bytes (0: no buffer), and
# prints what the driver wrote there, and what its error log holds.
HOST = """
import ctypes, json, sys
cu = ctypes.CDLL("libcuda.so.1")
room = int(sys.argv[1])
context, out = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
ptx = b".version 9.9\\n.target sm_75\\n.address_size 64\\n.visible .entry k() { ret; }\\n\\0"
log = ctypes.create_string_buffer(max(room, 1))
options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
values = (ctypes.c_void_p * 2)(ctypes.addressof(log), room)
result = cu.cuModuleLoadDataEx(ctypes.byref(out), ptx, 2 if room else 0, options, values)
held, size = ctypes.create_string_buffer(65536), ctypes.c_size_t(65535)
assert cu.cuLogsDumpToMemory(None, held, ctypes.byref(size), 0) == 0
print(json.dumps({"result": result, "jit": log.value.decode(), "driver": held.value.decode()}))
sys.exit(3)
"""

# A thread loads modules that fail; meanwhile children of fork make a call, which the driver refuses (3) before it takes a lock.
FORKS = """
import ctypes, os, threading
cu = ctypes.CDLL("libcuda.so.1")
context, out = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
def fail():
    cu.cuCtxSetCurrent(context)
    while True:
        cu.cuModuleLoadData(ctypes.byref(out), b"no image at all")
threading.Thread(target=fail, daemon=True).start()
refused = 0
for _ in range(100):
    child = os.fork()
    if child == 0:
        os._exit(cu.cuMemAlloc_v2(ctypes.byref(out), 1))
    refused += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
print(refused, flush=True)
os._exit(0)
"""


class DriverWords(e2e.Case):
    def failure(self, room, **env):
        """What the host saw, the failure's record, and the evidence of its finding."""
        host = self.folder / "host.py"
        host.write_text(HOST, encoding="utf-8")
        analysis, done = self.analysis("--simulate", "7.5,driver=13.0", "--report", self.folder / "r", "--", "/usr/bin/env", "python3", host, room,
                                       env=e2e.clean_environment(**env), status=3)
        saw = json.loads(done.stdout)
        self.assertEqual(saw["result"], 222)
        (record,) = [row for report in self.reports(self.folder / "r") for row in e2e.of_type(report, "failure")]
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
        saw, record, evidence = self.failure(0, KSHIM_DRIVER_LOG="1")
        self.assertNotEqual(record["driver_log"], "")
        self.assertIn(record["driver_log"], saw["driver"])
        self.assertEqual(evidence["driver-log"]["text"], record["driver_log"])

    def test_children_of_fork_do_not_ask(self):
        """Another thread of the parent may have held the lock of the driver's log."""
        host = self.folder / "forks.py"
        host.write_text(FORKS, encoding="utf-8")
        _, done = self.analysis("--simulate", "7.5,driver=13.0", "--report", self.folder / "r", "--", "/usr/bin/env", "python3", host,
                                env=e2e.clean_environment(KSHIM_DRIVER_LOG="1"))
        self.assertEqual(done.stdout, "100\n", done.stderr)



if __name__ == "__main__":
    e2e.main()
