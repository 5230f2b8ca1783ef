#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the reports of tests/golden again: the samples under libkshim.so on simulated GPUs, with the machine taken out.

record.py BUILD      BUILD: a build folder with shim, simulator and samples. Afterwards: tests/golden/update.
"""
import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# case, simulated GPUs, further environment, sample program
RECORDED = (
    ("no-image-for-arch", "6.1", {}, "01_missing_architecture/saxpy"),
    ("shared-runtime", "12.0", {}, "01_missing_architecture/saxpy_shared"),
    ("ptx-newer-than-device", "8.6", {}, "02_ptx_newer_than_gpu/histogram"),
    ("arch-specific-image", "12.0", {}, "03_arch_specific_sm_90a/attention"),
    ("kernel-missing-file-gone", "7.5", {}, "04_kernel_absent_from_one_image/convert"),
    ("dlopened-library", "7.5", {}, "06_dlopen_library/host"),
    ("two-gpus", "8.6;7.5", {}, "07_two_gpus/reduce"),
    ("sass-bypassed", "8.6", {"CUDA_FORCE_PTX_JIT": "1"}, "07_two_gpus/reduce"),
    ("healthy", "8.6", {}, "08_healthy/transpose"),
)


def record(build, devices, changes, program):
    """The lines of the one report that the program leaves."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": os.path.join(build, "shim", "libkshim.so"), "KSHIM_LOG": "off",
                       "LD_LIBRARY_PATH": os.path.join(build, "sim"), "KSHIM_SIM_DEVICES": devices,
                       "KSHIM_REPORT": os.path.join(folder, "report.jsonl"), **changes}
        path = os.path.join(build, "samples", program)
        subprocess.run([path], cwd=os.path.dirname(path), env=environment, capture_output=True, check=False)
        reports = glob.glob(os.path.join(folder, "*.jsonl"))
        if len(reports) != 1:
            sys.exit(f"{program}: {len(reports)} reports instead of one")
        with open(reports[0], encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def without_machine(rows, build):
    """The same report from another place: paths, host, ids and times are made up, offsets and build ids are not."""
    text = json.dumps(rows)
    for name, place in (("samples", "/home/ada/samples"), ("sim", "/opt/kshim/sim")):
        for path in (os.path.realpath(os.path.join(build, name)), os.path.join(build, name)):
            text = text.replace(path + "/", place + "/")
    text = re.sub(r'"/[^"]*/(libcudart\.so\.\d+)"', r'"/usr/local/cuda/lib64/\1"', text)
    text = text.replace(f'"{socket.gethostname()}"', '"node7"')
    rows = json.loads(text)
    fixed = {"pid": 4711, "ppid": 4700, "start": 912345, "tid": 4711, "shim": "0.1.0", "time": "2026-11-21T09:00:00.000Z"}
    for row in rows:
        row.update({key: value for key, value in fixed.items() if key in row})
        row["t"] = row["seq"] * 100000
        for frame in row.get("native") or []:
            if not frame["object"].startswith("/home/ada/"):
                frame["build_id"] = None
        if "ms" in row:
            row["ms"] = 0.25
        if "env" in row:
            row["env"] = {name: value for name, value in row["env"].items() if name.startswith("CUDA_F")}
    return rows


def main():
    build = os.path.abspath(sys.argv[1])
    for case, devices, changes, program in RECORDED:
        rows = without_machine(record(build, devices, changes, program), build)
        os.makedirs(os.path.join(HERE, case), exist_ok=True)
        with open(os.path.join(HERE, case, "report.jsonl"), "w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
