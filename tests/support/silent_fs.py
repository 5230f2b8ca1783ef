#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""silent_fs.py FOLDER SILENT COMMAND...: runs COMMAND where FOLDER is a file system (FUSE) that has one file, lib.so, and never answers a READ
(SILENT is READ), or anything at all (ALL), and ends with COMMAND's status. Exit status 77: no FUSE here; 98: COMMAND was still there after
30 s. To be started in a mount namespace of its own (`unshare`)."""
import ctypes
import os
import select
import signal
import struct
import sys
import time

CODES = {"LOOKUP": 1, "FORGET": 2, "GETATTR": 3, "OPEN": 14, "READ": 15, "RELEASE": 18, "FLUSH": 25, "INIT": 26, "OPENDIR": 27, "READDIR": 28,
         "RELEASEDIR": 29, "INTERRUPT": 36, "BATCH_FORGET": 42}
NAMES = {code: name for name, code in CODES.items()}
SIZE = 1 << 20
FOREVER = 1 << 30
ASYNC_READ = 1  # as every daemon has it: a process that waits for a page can be killed
ENOSYS, ENOENT = 38, 2


def attributes(node):
    mode, size = (0o040755, 0) if node == 1 else (0o100644, SIZE)
    return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(name, node, body):
    """What the file system says; an errno; None for a request that has no answer."""
    if name in ("FORGET", "BATCH_FORGET", "INTERRUPT"):
        return None
    if name == "INIT":
        return struct.pack("<4I2H2I2H8I", 7, 31, 65536, ASYNC_READ, 0, 0, 65536, 1, 0, 0, *[0] * 8)
    if name == "LOOKUP":
        return struct.pack("<4Q2I", 2, 1, FOREVER, FOREVER, 0, 0) + attributes(2) if body == b"lib.so\0" else ENOENT
    if name == "GETATTR":
        return struct.pack("<Q2I", FOREVER, 0, 0) + attributes(node)
    if name in ("OPEN", "OPENDIR"):
        return struct.pack("<Q2I", 1, 0, 0)
    if name == "READDIR":
        return b"" if struct.unpack_from("<Q", body, 8)[0] else struct.pack("<2Q2I", 2, 1, 6, 8) + b"lib.so\0\0"
    if name == "READ":
        return bytes(struct.unpack_from("<QI", body, 8)[1])
    return b"" if name in ("RELEASE", "RELEASEDIR", "FLUSH") else ENOSYS


def serve(device, silent):
    request = os.read(device, 1 << 20)
    _, code, unique, node = struct.unpack_from("<2I2Q", request)
    name = NAMES.get(code, "")
    if name == silent:
        return
    said = answer(name, node, request[40:])
    if said is not None:
        data = b"" if isinstance(said, int) else said
        os.write(device, struct.pack("<IiQ", 16 + len(data), -said if isinstance(said, int) else 0, unique) + data)


def main():
    folder, silent, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return 77
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if ctypes.CDLL(None, use_errno=True).mount(b"silent", folder.encode(), b"fuse", 6, options.encode()) != 0:
        return 77
    serve(device, "")  # INIT: the first request, which mounting makes
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        # A request that a daemon has taken cannot be given up, not even by SIGKILL: one that hangs takes none.
        if select.select([] if silent == "ALL" else [device], [], [], 0.05)[0]:
            serve(device, silent)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) % 256
    os.kill(child, signal.SIGKILL)
    os.close(device)  # a process that waits for it goes on
    os.waitpid(child, 0)
    return 98


if __name__ == "__main__":
    sys.exit(main())
