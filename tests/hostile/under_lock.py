#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shim does while it holds its lock, which every thread that fails or loads waits for: no file system but the report's is asked for
a path, and of an image no more than 64 KiB is looked at. Each system call of a real host is stopped at by ptrace, and the lock's
owner read."""
import ctypes
import os
import pathlib
import platform
import re
import signal
import struct
import subprocess
import sys

import e2e

PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", PLUGIN)
TRACEME, SYSCALL, GETREGS, SETOPTIONS, GOOD_STOPS = 0, 24, 12, 0x4200, 1
# Of x86-64: the number, and which argument is the path.
PATHS = {2: "rdi", 4: "rdi", 6: "rdi", 21: "rdi", 89: "rdi", 257: "rsi", 262: "rsi", 267: "rsi", 269: "rsi", 332: "rsi"}
READV, ASK = 310, 128  # process_vm_readv; rt_sigtimedwait, whose set may lie on two pages
AT = {"r10": 7, "r8": 9, "rdx": 12, "rsi": 13, "rdi": 14, "number": 15}
HOST = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
plugin = ctypes.CDLL(sys.argv[1])
context, module = ctypes.c_void_p(), ctypes.c_void_p()
text = b".version 7.8\\n.target sm_90\\n.address_size 64\\n.visible .entry late() { ret; }\\n//" + b"x" * (4 << 20)
image = ctypes.create_string_buffer(text)
print(ctypes.addressof(image), len(image), flush=True)
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
for _ in range(3):
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) != 0
assert cuda.cuModuleLoad(ctypes.byref(module), sys.argv[2].encode()) != 0
assert cuda.cuModuleGetFunction(ctypes.byref(module), None, b"none") != 0
"""


def lock_in(shim):
    """The address of the lock of core/state.cpp in the library; None where it has no symbols."""
    source = None
    for line in subprocess.run(["readelf", "-sW", shim], capture_output=True, text=True, check=True).stdout.splitlines():
        row = line.split()
        if len(row) >= 8 and row[3] == "FILE":
            source = row[7]
        elif len(row) >= 8 and source == "state.cpp" and row[7].endswith("6g_lockE"):
            return int(row[1], 16)
    return None


class Host:
    """A traced process; iterates over its system calls as (number, registers, whether the lock is held)."""

    def __init__(self, argv, env, cwd):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.out, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.dup2(theirs, 1)
            self.libc.ptrace(TRACEME, 0, None, None)
            os.execve(argv[0], [str(word) for word in argv], env)
        os.close(theirs)
        os.waitpid(self.pid, 0)
        self.libc.ptrace(SETOPTIONS, self.pid, None, GOOD_STOPS)
        self.memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        self.lock = None
        self.status = None

    def read(self, address, size):
        return os.pread(self.memory, size, address)

    def text(self, address):
        try:
            return self.read(address, 512).split(b"\0")[0].decode(errors="replace") if address else ""
        except OSError:
            return ""

    def is_locked(self):
        if self.lock is None:
            found = re.search(rf"^(\w+)-\S+ \S+ 00000000 .*{re.escape(e2e.SHIM.name)}$", pathlib.Path(f"/proc/{self.pid}/maps").read_text(), re.MULTILINE)
            if found is None:
                return False
            self.lock = int(found[1], 16) + lock_in(e2e.SHIM)
        return struct.unpack("Q", self.read(self.lock, 8))[0] != 0

    def calls(self):
        passed, entering = 0, True
        while True:
            self.libc.ptrace(SYSCALL, self.pid, None, passed)
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                self.status = os.waitstatus_to_exitcode(status)
                return
            stop = os.WSTOPSIG(status)
            passed = 0 if stop in (signal.SIGTRAP, signal.SIGTRAP | 0x80) else stop
            if stop != signal.SIGTRAP | 0x80:
                continue
            if entering:
                registers = (ctypes.c_ulong * 27)()
                self.libc.ptrace(GETREGS, self.pid, None, ctypes.addressof(registers))
                named = {name: registers[at] for name, at in AT.items()}
                yield named["number"], named, self.is_locked()
            entering = not entering


class UnderLock(e2e.Case):
    def test_no_path_and_no_large_read(self):
        """a host that loads a large image from memory and one from a file, and fails, with a target that every mapped file is read for | nothing | all of it"""
        if platform.machine() != "x86_64" or lock_in(e2e.SHIM) is None:
            self.skipTest("needs x86-64 and the library's symbols")
        (self.folder / "image.ptx").write_text(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n")
        env = e2e.preloaded("7.5", KSHIM_TARGET="12.0", KSHIM_LOG="off", KSHIM_REPORT=f"{self.folder}/reports/%p.jsonl")
        host = Host([sys.executable, "-c", HOST, PLUGIN, self.folder / "image.ptx"], env, self.folder)
        held, asked, opened = 0, {True: set(), False: set()}, {True: set(), False: set()}
        for number, registers, locked in host.calls():
            held += locked
            if number in PATHS:
                opened[locked].add(host.text(registers[PATHS[number]]))
            elif number == READV:
                rows = host.read(registers["r10"], 16 * registers["r8"])
                for address, size in struct.iter_unpack("2Q", rows):
                    asked[locked].update(range(address // 4096, (address + max(size, 1) - 1) // 4096 + 1))
            elif number == ASK:
                asked[locked].update(range(registers["rdi"] // 4096, (registers["rdi"] + 7) // 4096 + 1))
        self.assertEqual(host.status, 0)
        image, size = map(int, os.read(host.out, 100).split())
        pages = set(range(image // 4096, (image + size) // 4096))
        allowed = {"", "/", ".", *(part for part in str(self.folder).split("/")), "reports"}
        elsewhere = {path for path in opened[True] if path not in allowed and not path.startswith(("/proc/", "/sys/")) and not path.endswith(".jsonl")}
        self.assertEqual(elsewhere, set())
        self.assertLessEqual(len(asked[True] & pages), 16)
        # The test sees what it looks for.
        self.assertGreater(held, 20)
        self.assertIn(str(PLUGIN), opened[False])
        self.assertGreater(len(asked[False] & pages), 1000)
        (report,) = self.reports(self.folder / "reports")
        self.assertEqual({row["result"] for row in e2e.of_type(report, "module")} & {0}, set())
        self.assertIn(str(PLUGIN), {row["path"] for row in e2e.of_type(report, "object")})


if __name__ == "__main__":
    e2e.main()
