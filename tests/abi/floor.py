# SPDX-License-Identifier: Apache-2.0
"""floor.py --floor=GLIBC FILE...: what is shipped needs no symbol of glibc newer than GLIBC, and no library but glibc's. A build
for this machine (--floor= without a number) has this glibc's versions, and is asked by name for functions that an older one lacks."""
import pathlib
import re
import sys

from shim_file import output

GLIBC = re.compile(r"(libc|libm|libpthread|libdl|librt)\.so\.[0-9]+|ld-linux-(x86-64|aarch64)\.so\.[0-9]+")
VERSION = re.compile(r"\*UND\*\s+[0-9a-f]+\s+\(?(\w+?)_([0-9.]+|PRIVATE)\)?\s+(\S+)")

RELEASE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "release-build"
LOWEST = re.search(r"KSHIM_GLIBC_FLOOR:-([0-9.]+)\}", RELEASE.read_text()).group(1)
# Older functions under a newer version: libraries that became libc's (2.34), what was inline, what headers put in another's place,
# and new mathematics.
OLDER = re.compile(r"(pthread|sem|timer|shm|mq|aio|clock)_\w+|__pthread_\w+|dl\w+|__libc_start_main|[fl]?stat(64)?|fstatat(64)?|mknod(at)?|"
                   r"fcntl64|__isoc23_\w+|__\w+_chk|(exp2?|log2?|pow|fmod|hypot)f?")
# What this machine's libstdc++ and libgcc ask for; those of the release build do not.
RUNTIME = {"__libc_single_threaded", "_dl_find_object", "arc4random", "getentropy", "strfromf128", "strtof128"}


def number(version):
    return tuple(int(part) for part in version.split("."))


def faults(path, floor):
    table = output("objdump", "-T", path)
    found = VERSION.findall(table)
    if "*UND*" in table and not found:
        yield "objdump's table was not understood"
    for library, version, symbol in found:
        if library != "GLIBC":
            yield f"needs {symbol} of {library}_{version}"
        elif version == "PRIVATE" or number(version) > number(floor):
            yield f"needs {symbol} of glibc {version}"
    # A strong reference without a version would be found in whatever library comes by.
    for line in table.splitlines():
        if "*UND*" in line and " w " not in line and not VERSION.search(line):
            yield f"needs a symbol without a version: {line.split()[-1]}"
    for name in re.findall(r"^\s+NEEDED\s+(\S+)", output("objdump", "-p", path), re.MULTILINE):
        if not GLIBC.fullmatch(name):
            yield f"needs {name}"


def newer_by_name(path):
    for library, version, symbol in VERSION.findall(output("objdump", "-T", path)):
        if library == "GLIBC" and version != "PRIVATE" and number(version) > number(LOWEST) and symbol not in RUNTIME \
                and not OLDER.fullmatch(symbol):
            yield f"calls {symbol}, which glibc has since {version}: tools/release-build is for {LOWEST}"


def newest(path):
    versions = {version for library, version, _ in VERSION.findall(output("objdump", "-T", path)) if library == "GLIBC"}
    return max(versions, key=number) if versions else "none of glibc"


def main():
    floor, files = sys.argv[1].removeprefix("--floor="), sys.argv[2:]
    if any(re.search(r"\b__(asan|tsan)_init\b", output("objdump", "-T", path)) for path in files):
        print("skipped: a sanitizer's functions are not shipped")
        return 77
    bad = False
    for path in files:
        print(f"{pathlib.Path(path).name}: newest symbol {newest(path)}, floor {floor or 'none'}")
        for fault in faults(path, floor) if floor else newer_by_name(path):
            print(f"FAILED: {pathlib.Path(path).name}: {fault}")
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
