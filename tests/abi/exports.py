# SPDX-License-Identifier: Apache-2.0
"""libkshim.so exports the names of hooks.def under the right versions and nothing else, needs libc alone, is small."""
import re
import sys
from pathlib import Path

from shim_file import compiler_rows, count, dynamic_symbols, hook_rows, machine, output, parenthesised

RUNTIMES = ("@libcudart.so.11.0", "@libcudart.so.12", "@libcudart.so.13")
LARGEST = 1_000_000  # bytes of the file that are mapped
# Weak references: to what the compiler's start files look for, to libc's functions that the floor's glibc lacks, and to ld.so's data that
# musl lacks.
TOLERATED = {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "_dl_find_object", "_r_debug",
             "__libc_single_threaded", "__libc_stack_end", "_dl_debug_addr"}

# All that is asked of libc by name. Hosts define functions of libc themselves, allocators, sandboxes and clocks stand in for more: what is
# not here is a system call (system_calls.h), or has a stand-in of the shim's (stack/walk.cpp, plain_memory.c).
ASKED_OF_LIBC = {"__environ", "environ", "__errno_location", "__stack_chk_fail", "clock_gettime", "__getauxval", "pthread_self", "sigaddset",
                 "sigemptyset", "sigismember", "snprintf", "stderr", "syscall", "uname", "__tls_get_addr", "_dl_find_object",
                 "__register_atfork"}

# Each takes the dynamic linker's lock. What is mapped is read without it (process/loaded_objects.h). The next dlsym and dlvsym after the
# shim, which its own exports go on to, are found by address, not by an import.
TAKES_THE_LINKERS_LOCK = {"dl_iterate_phdr", "dladdr", "dladdr1", "dlinfo", "dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym", "dlerror"}

failures = []


def check(good, message):
    if not good:
        failures.append(message)


def check_exports(path, rows):
    old = "GLIBC_2.2.5" if machine(path) == "x86_64" else "GLIBC_2.17"
    expected = {name + "@@KSHIM_1" for layer, name, _, _ in rows if layer == "driver"}
    expected |= {name + node for layer, name, _, _ in rows if layer == "runtime" for node in RUNTIMES}
    expected |= {name + node for name, nodes in compiler_rows() for node in nodes}
    expected |= {f"{name}@{old}" for name in ("dlsym", "dlvsym", "dlclose")} | {f"{name}@@GLIBC_2.34" for name in ("dlsym", "dlvsym", "dlclose")}
    expected |= {f"{name}@@{old}" for name in ("_exit", "_Exit")}
    defined, needed = dynamic_symbols(path)
    check(not expected - set(defined), f"not exported: {sorted(expected - set(defined))}")
    check(not set(defined) - expected, f"exported, but not in hooks.def: {sorted(set(defined) - expected)}")
    foreign = {name for name in needed if "@GLIBC_" not in name and name not in TOLERATED}
    check(not foreign, f"wanted from others than libc: {sorted(foreign)}")
    names = {name.partition("@")[0] for name in needed}
    check(not names & TAKES_THE_LINKERS_LOCK, f"takes the dynamic linker's lock: {sorted(names & TAKES_THE_LINKERS_LOCK)}")
    more = names - ASKED_OF_LIBC - TOLERATED
    check(not more, f"asked of libc by name: {sorted(more)}")


def check_dynamic(path):
    dynamic = output("readelf", "-W", "-d", path)
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    extra = {name for name in libraries if not re.match(r"libc\.so\.6$|ld-linux", name)}
    check(not extra, f"needs {sorted(extra)}")
    check("TEXTREL" not in dynamic, "has text relocations")
    check("(SONAME)" not in dynamic or "libkshim.so" in dynamic, "has a foreign soname")
    # frame_dummy of the start files, the constructors of lifetime.cpp, link_map.cpp and process_generation.cpp: no dynamic initializer of a global.
    size = int(re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", dynamic).group(1))
    check(size <= 32, f"{size // 8} constructors: a global is not constant-initialized")


def check_size(path):
    loads = re.findall(r"^\s*LOAD\s+\S+\s+\S+\s+\S+\s+(0x[0-9a-f]+)", output("readelf", "-W", "-l", path), re.MULTILINE)
    size = sum(int(load, 16) for load in loads)
    check(loads and size < LARGEST, f"{size} bytes are mapped")


def check_registration(rows, include):
    """Their prototypes stand in headers that only nvcc's own output may include."""
    headers = "".join(file.read_text(errors="replace") for file in sorted(Path(include, "crt").glob("*.h")))
    for _, name, _, parameters in rows:
        if not name.startswith("__cuda"):
            continue
        places = [match.end() - 1 for match in re.finditer(rf"CUDARTAPI\s+{name}\s*\(", headers)]
        check(places, f"{name}: no prototype in {include}/crt")
        for place in places:
            theirs = count(parenthesised(headers, place)[0])
            check(theirs == parameters, f"{name}: {parameters} parameters in hooks.def, {theirs} in the header")


def check_streams(rows, include):
    """A function with a stream has a second form, which programs with a default stream per thread call."""
    header = Path(include, "cuda.h").read_text(errors="replace")
    hooked = {name for layer, name, _, _ in rows if layer == "driver"}
    forms = {name: f"{name}_pt{kind.lower()}" for kind, name in re.findall(r"__CUDA_API_PT(SZ|DS)\((\w+)\)", header)}
    forms.pop("cuGetProcAddress_v2", None)  # chooses by flags
    check(len(forms) > 50, "cuda.h was not understood")
    missing = sorted(form for name, form in forms.items() if name in hooked and form not in hooked)
    check(not missing, f"no rows of hooks.def: {missing}")


def main():
    path, include = sys.argv[1], sys.argv[2]
    rows = hook_rows()
    check(len(rows) > 100, f"only {len(rows)} rows of hooks.def were understood")
    check(len(compiler_rows()) > 10, "compilers.def was not understood")
    check_exports(path, rows)
    check_dynamic(path)
    check_size(path)
    if Path(include, "crt").is_dir():
        check_registration(rows, include)
        check_streams(rows, include)
    else:
        print("no CUDA headers: prototypes of the registration functions are not compared")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
