#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes entry_points.def: every function <cuda.h>, <cudaProfiler.h> and sim/base/graphics_api.h declare, with the base name
cuGetProcAddress knows it by and the CUDA version that introduced it.

cuda.h, preprocessed with __CUDA_API_VERSION_INTERNAL, declares exactly the symbols libcuda.so.1 exports. The versions
are in cudaTypedefs.h as PFN_<name>_v<version>[_ptds|_ptsz]: sorted, they belong to name, name_v2, name_v3 ... aligned
from the end, because the oldest typedefs are not always there.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SUFFIXES = ("_ptds", "_ptsz")


def preprocess(compiler, include):
    source = "#define __CUDA_API_VERSION_INTERNAL\n" + "".join(
        f"#include <{name}>\n" for name in ("cuda.h", "cudaProfiler.h", "cudaTypedefs.h", "cudaProfilerTypedefs.h", "base/graphics_api.h"))
    command = [compiler, "-x", "c++", "-E", "-P", f"-I{include}", f"-I{pathlib.Path(__file__).resolve().parent}", "-"]
    return subprocess.run(command, input=source, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout


def split(symbol):
    """cuMemcpyHtoD_v2_ptds -> ("cuMemcpyHtoD", 2, "_ptds")."""
    thread = next((s for s in SUFFIXES if symbol.endswith(s)), "")
    stem = symbol[: len(symbol) - len(thread)]
    match = re.fullmatch(r"(\w+?)_v(\d+)", stem)
    return (match.group(1), int(match.group(2)), thread) if match else (stem, 1, thread)


def rows(text):
    symbols = sorted(set(re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(", text)))
    versions = {}
    for name, version, thread in re.findall(r"\bPFN_(cu[A-Z]\w*?)_v(\d+)(_ptds|_ptsz)?\b", text):
        versions.setdefault((name, thread), set()).add(int(version))
    families = {}
    for symbol in symbols:
        name, revision, thread = split(symbol)
        families.setdefault((name, thread), []).append((revision, symbol))
    known = set(symbols)
    for (name, thread), members in sorted(families.items()):
        introduced = sorted(versions.get((name, thread), ()))
        members.sort()
        for index, (_, symbol) in enumerate(members):
            back = len(members) - index
            # No typedef at all: as old as the API, because nothing says otherwise.
            version = introduced[-back] if back <= len(introduced) else (introduced[0] if introduced else 2000)
            base = symbol[: len(symbol) - len(thread)]
            if thread and base not in known:
                sys.exit(f"make_entry_points: {symbol} has no legacy twin {base}")
            yield symbol, name, version, base if thread else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--include", required=True, help="folder of cuda.h")
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    lines = ["// Made by sim/make_entry_points.py from cuda.h and cudaTypedefs.h. SPDX-License-Identifier: Apache-2.0",
             "// KSHIM_SIM_ENTRY(symbol, name, introduced): exported symbol, the name cuGetProcAddress knows, CUDA version.",
             "// KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base): its twin for per-thread default streams."]
    for symbol, name, version, base in rows(preprocess(args.compiler, args.include)):
        if base:
            lines.append(f"KSHIM_SIM_ENTRY_PER_THREAD({symbol}, {name}, {version}, {base})")
        else:
            lines.append(f"KSHIM_SIM_ENTRY({symbol}, {name}, {version})")
    if len(lines) < 500:
        sys.exit(f"make_entry_points: only {len(lines) - 3} functions found in {args.include}/cuda.h")
    with open(args.output, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
