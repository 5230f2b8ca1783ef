# SPDX-License-Identifier: Apache-2.0
"""floor.py --floor=GLIBC FILE...: what is shipped needs no symbol of glibc newer than GLIBC, and no library but glibc's."""
import pathlib
import re
import sys

from shim_file import output

GLIBC = re.compile(r"(libc|libm|libpthread|libdl|librt)\.so\.[0-9]+|ld-linux-(x86-64|aarch64)\.so\.[0-9]+")
VERSION = re.compile(r"\*UND\*\s+[0-9a-f]+\s+\(?(\w+?)_([0-9.]+|PRIVATE)\)?\s+(\S+)")


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


def newest(path):
    versions = {version for library, version, _ in VERSION.findall(output("objdump", "-T", path)) if library == "GLIBC"}
    return max(versions, key=number) if versions else "none of glibc"


def main():
    floor, files = sys.argv[1].removeprefix("--floor="), sys.argv[2:]
    if not floor:
        print("skipped: only a release build (tools/release-build) has a floor")
        return 77
    bad = False
    for path in files:
        print(f"{pathlib.Path(path).name}: newest symbol {newest(path)}, floor {floor}")
        for fault in faults(path, floor):
            print(f"FAILED: {pathlib.Path(path).name}: {fault}")
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
