# SPDX-License-Identifier: Apache-2.0
"""libkshim.so as readelf shows it, and the rows of hooks.def."""
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("KSHIM_SOURCE_DIR", Path(__file__).resolve().parents[2]))


def output(*command):
    """What readelf or objdump prints of the file that is the last word. objdump reads its own machine's files alone."""
    program, path = command[0], command[-1]
    if program == "objdump" and machine(path) != platform.machine():
        program = f"{machine(path)}-linux-gnu-objdump"
        if shutil.which(program) is None:
            sys.exit(f"{path}: {program} is not installed: apt install binutils-{machine(path).replace('_', '-')}-linux-gnu")
    return subprocess.run([program, *command[1:]], check=True, capture_output=True, text=True).stdout


def machine(path):
    """x86_64 or aarch64: what an ELF file is for, which in a cross build is another machine than this one."""
    header = Path(path).read_bytes()[:20]
    return {62: "x86_64", 183: "aarch64"}[int.from_bytes(header[18:20], "little")]


def hook_rows():
    """[(layer, name, stage, number of parameters)] of hooks.def."""
    text = (SOURCE / "shim/cuda/hooks.def").read_text()
    text = re.sub(r"//[^\n]*", "", text)
    rows = []
    for row in re.finditer(r"KSHIM_HOOK\((driver|runtime), (\w+), [\w*:]+,\s*", text):
        parameters, end = parenthesised(text, row.end())
        _, end = parenthesised(text, text.index("(", end))
        stage = re.match(r",\s*(\w+)\)", text[end:]).group(1)
        rows.append((row.group(1), row.group(2), stage, count(parameters)))
    return rows


# Which version nodes define the rows of compilers.def; the last one is the default.
NODES = {"nvrtc": ("@libnvrtc.so.11.2", "@libnvrtc.so.12", "@libnvrtc.so.13"),
         "link": ("@libnvJitLink.so.12", "@libnvJitLink.so.13"),
         "link12": ("@libnvJitLink.so.12",), "link13": ("@libnvJitLink.so.13",)}


def compiler_rows():
    """[(name, version nodes)] of compilers.def."""
    text = re.sub(r"//[^\n]*", "", (SOURCE / "shim/cuda/compilers.def").read_text())
    return [(name, NODES[nodes]) for name, nodes in re.findall(r"KSHIM_COMPILER\(\w+, (\w+), (\w+)\)", text)]


def parenthesised(text, start):
    """What stands between the parenthesis at `start` and its partner, and where the partner ends."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return text[start + 1:index], index + 1
    raise ValueError("unbalanced parentheses")


def count(parameters):
    depth, commas = 0, 0
    for letter in parameters:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        commas += letter == "," and depth == 0
    return commas + 1 if parameters.strip() not in ("", "void") else 0


def dynamic_symbols(path):
    """{name@version: address} of what is defined, {name@version} of what is needed."""
    defined, needed = {}, set()
    for line in output("readelf", "-W", "--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        if fields[6] == "UND":
            needed.add(fields[7])
        elif fields[6] != "ABS":
            defined[fields[7]] = int(fields[1], 16)
    return defined, needed
