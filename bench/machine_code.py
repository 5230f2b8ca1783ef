# SPDX-License-Identifier: Apache-2.0
"""The instructions that a successful launch executes inside libkshim.so, as objdump shows them in the built library."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/abi"))
from launch_path import success_path  # noqa: E402  the test counts what is shown here
from shim_file import output  # noqa: E402

SHOWN = ((r"cuLaunchKernel@@KSHIM_1$", "`cuLaunchKernel`, called by its symbol"),
         (r"_ZL27kshim_routed_cuLaunchKernelP\w+$", "`cuLaunchKernel`, called by the address that `cuGetProcAddress` or `dlsym` gave"),
         (r"cudaLaunchKernel@@?libcudart\.so\.13$", "`cudaLaunchKernel` of a shared runtime 13"))


def symbols(path):
    found = {}
    for line in output("nm", path).splitlines():
        fields = line.split()
        if len(fields) == 3:
            found[fields[2]] = int(fields[0], 16)
    return found


def section(path):
    """Markdown; on other machines than x86-64 a sentence."""
    known, text = symbols(path), []
    for name, title in SHOWN:
        places = [address for symbol, address in known.items() if re.match(name, symbol)]
        if len(places) != 1:
            raise SystemExit(f"{path} has {len(places)} symbols {name}: it must not be stripped")
        steps = success_path(path, places[0])
        text.append(f"{title}: {len(steps)} instructions.\n\n```asm\n" + "\n".join(readable(step) for step in steps) + "\n```\n")
    return f"By {compiler(path)}.\n\n" + "\n".join(text)


def readable(step):
    """Without the addresses of this very build."""
    step = " ".join(step.split())
    step = re.sub(r"-?0x[0-9a-f]+\(%rip\)(.*) # [0-9a-f]+ <([^>]*)>", lambda found: f"{plain(found[2])}(%rip){found[1]}", step)
    return re.sub(r"^(j\w+) [0-9a-f]+ <.*>$", r"\1 (cold)", step)


def plain(symbol):
    return output("c++filt", symbol).strip().replace("kshim::shim::", "")


def compiler(path):
    for line in output("readelf", "-p", ".comment", path).splitlines():
        if "]" in line:
            return line.split("]", 1)[1].strip()
    return "an unknown compiler"


def variables(path):
    """Bytes of .data and .bss."""
    rows = subprocess.run(["size", "-A", path], capture_output=True, text=True, check=True).stdout.splitlines()
    sizes = {row.split()[0]: int(row.split()[1]) for row in rows if row.startswith(".")}
    return sizes.get(".data", 0), sizes.get(".bss", 0)


def stripped_size(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "stripped"
        subprocess.run(["strip", "-o", copy, path], check=True)
        return copy.stat().st_size
