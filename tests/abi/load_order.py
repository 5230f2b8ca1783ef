# SPDX-License-Identifier: Apache-2.0
"""load_order.py CLANG: functions that are handed out by address load the real function behind an acquire fence. AArch64 may load it
before the address otherwise, and call nullptr. On another machine the sources are compiled for AArch64 by clang, with the headers at hand."""
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

# Source, and how many such functions it has at least.
SOURCES = {"exports/coverage_calls.cpp": 20, "exports/table_exports.cpp": 3}
# The C library's headers know the machine at hand; no function that differs between the two is compiled to instructions here.
STAND_IN = ["--target=aarch64-linux-gnu", "-D__x86_64__=1", "-D__builtin_ia32_pause()=((void)0)", "-w"]
FLAGS = ["-std=c++20", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]


def headers(clang):
    """The directories that the compiler searches for its own machine."""
    said = subprocess.run([clang, "-E", "-x", "c++", "-v", "/dev/null"], capture_output=True, text=True, check=True).stderr
    listed = said.split("#include <...> search starts here:")[1].split("End of search list.")[0].split()
    return [word for directory in listed for word in ("-isystem", directory)]


def assembly(clang, source, target):
    root = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
    foreign = [] if platform.machine() == "aarch64" else [*STAND_IN, "-nostdinc++", "-nostdlibinc", *headers(clang)]
    subprocess.run([clang, *foreign, *FLAGS, "-I", root / "shim", "-I", root / "include", "-S", "-o", target, root / "shim" / source], check=True)
    return target.read_text()


def calls_without_fence(text):
    """Functions that call the address that they load from a table g_real or g_table_real, and those of them that have no fence before the load."""
    wrappers, bad = 0, []
    for name, body in re.findall(r"^(_Z\w+):(.*?)^\.Lfunc_end", text, re.MULTILINE | re.DOTALL):
        load = re.search(r"g_(?:table_)?real", body)
        call = re.search(r"\tblr\t", body)
        if not load or not call or load.start() > call.start():
            continue
        wrappers += 1
        fence = re.search(r"\tdmb\tish(ld)?\b", body[:call.start()])
        # The address of the table may be made before the fence, the load from it may not.
        if not fence or re.search(r"\tldr\t[^\n]*g_(?:table_)?real", body[:fence.start()]):
            bad.append(name)
    return wrappers, bad


def main():
    clang = sys.argv[1]
    if not clang or clang.endswith("NOTFOUND"):
        print("skipped: no clang, which can compile for AArch64")
        return 77
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for source, least in SOURCES.items():
            wrappers, bad = calls_without_fence(assembly(clang, source, pathlib.Path(folder) / "code.s"))
            print(f"shim/{source}: {wrappers} functions load a real function, {len(bad)} without a fence")
            if bad or wrappers < least:
                print(f"FAILED: shim/{source}: {', '.join(bad) or f'{least} such functions were expected'}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
