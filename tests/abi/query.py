#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""query.py LIBRARY HEADER: libkshim-query.so.1 exports what its header declares and nothing else, and asks libc alone, by the names that
stand here: none of them reads the environment, starts a thread or prints."""
import re
import sys
from pathlib import Path

from shim_file import dynamic_symbols, output

LARGEST = 600_000  # bytes that are mapped; zstd's and LZ4's decompressors are in it
TOLERATED = {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
ASKED_OF_LIBC = {"__errno_location", "__stack_chk_fail", "calloc", "clock_gettime", "close", "free", "getpid", "madvise", "malloc",
                 "memchr", "memcmp", "memcpy", "memmove", "memset", "mmap", "munmap", "open", "pread", "pthread_mutex_lock",
                 "pthread_mutex_unlock", "pthread_setcancelstate", "realloc", "strlen", "strnlen", "syscall"}
# The same, as older glibcs have them.
ASKED_OF_LIBC |= {"bcmp", "open64", "pread64", "mmap64"}

failures = []


def check(good, message):
    if not good:
        failures.append(message)


def main():
    path, header = sys.argv[1], Path(sys.argv[2]).read_text()
    declared = set(re.findall(r"^\w[\w ]* \*?(kshim_\w+)\(", header, re.MULTILINE))
    check(len(declared) == 2, f"the header was not understood: {declared}")
    defined, needed = dynamic_symbols(path)
    check(set(defined) == {f"{name}@@KSHIM_QUERY_1" for name in declared}, f"exports {sorted(defined)}")
    names = {name.partition("@")[0] for name in needed} - TOLERATED
    check(not names - ASKED_OF_LIBC, f"asks for {sorted(names - ASKED_OF_LIBC)}")
    foreign = {name for name in needed if "@GLIBC_" not in name and name not in TOLERATED}
    check(not foreign, f"wanted from others than libc: {sorted(foreign)}")
    dynamic = output("readelf", "-W", "-d", path)
    check(re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == ["libkshim-query.so.1"], "another soname")
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    check(all(re.match(r"libc\.so\.6$|ld-linux", name) for name in libraries), f"needs {sorted(libraries)}")
    for flag in ("NOW", "NODELETE"):
        check(re.search(rf"FLAGS_1\).*\b{flag}\b", dynamic), f"not linked with -z {flag.lower()}")
    check("TEXTREL" not in dynamic and "(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic, "text relocations, or a path to libraries")
    constructors = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", dynamic)
    check(constructors is None or int(constructors.group(1)) <= 8, "a global is not constant-initialized")
    segments = output("readelf", "-W", "-l", path)
    check(re.search(r"GNU_STACK\s.*\sRW\s", segments), "the stack is executable")
    size = sum(int(load, 16) for load in re.findall(r"^\s*LOAD\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)", segments, re.MULTILINE))
    check(0 < size < LARGEST, f"{size} bytes are mapped")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
