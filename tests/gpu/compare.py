# SPDX-License-Identifier: Apache-2.0
"""Compares what a real driver answers with what the simulator answers.

    compare.py real PROGRAM IMAGES       real device against the simulator set up like it; exit 77 without a device
    compare.py simulated PROGRAM IMAGES  the facts that must hold on the simulator, whatever the device
"""
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
SWITCHES = [{}, {"CUDA_MODULE_LOADING": "EAGER"}, {"CUDA_DISABLE_PTX_JIT": "1"}, {"CUDA_FORCE_PTX_JIT": "1"}]
# Product facts of one card, not behavior: size, clocks, buses, names.
INCIDENTAL = ("device.name", "attribute.13", "attribute.16", "attribute.33", "attribute.34", "attribute.36", "attribute.37",
              "attribute.38", "attribute.50")


def facts(program: str, images: str, environment: dict) -> dict:
    done = subprocess.run([program, images], env={**os.environ, **environment}, stdout=subprocess.PIPE, check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode == 77:
        print(text.strip())
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"{program}: exit status {done.returncode}\n{text[-500:]}")
    return dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)


def simulator(cc: str, driver: str) -> dict:
    return {"LD_LIBRARY_PATH": str(BUILD / "sim"), "KSHIM_SIM_DEVICES": cc, "KSHIM_SIM_DRIVER": driver}


def real(program: str, images: str) -> int:
    differences = 0
    for switches in SWITCHES:
        device = facts(program, images, switches)
        cc = f"{device['attribute.75']}.{device['attribute.76']}"
        version = int(device["driver.version"])
        simulated = facts(program, images, {**switches, **simulator(cc, f"{version // 1000}.{version % 1000 // 10}")})
        for name in sorted(device.keys() | simulated.keys()):
            if device.get(name) != simulated.get(name) and name not in INCIDENTAL:
                print(f"{switches or 'default'}: {name}: real {device.get(name)}, simulated {simulated.get(name)}")
                differences += 1
    print(f"{differences} differences: each is a line for the ledger (docs/internals/simulator.md) and a change of the simulator")
    return 1 if differences else 0


def expect(found: dict, wanted: dict, what: str) -> int:
    wrong = {name: (value, found.get(name)) for name, value in wanted.items() if found.get(name) != str(value)}
    for name, (value, got) in wrong.items():
        print(f"{what}: {name}: expected {value}, got {got}")
    return len(wrong)


def simulated(program: str, images: str) -> int:
    wrong = 0
    everywhere = {"same_address.cuLaunchKernel": 1, "same_address.cuLaunchKernel_ptsz": 1, "same_address.cuLibraryLoadData": 1,
                  "same_address.cuGetProcAddress_v2": 1, "same_address.cuGetProcAddress": 1, "same_address.cuMemAlloc_v2": 1,
                  "proc_address.empty_name": 500, "memory.alloc_huge": 2, "module.damaged.text.load": 200,
                  "module.damaged.magic.load": 200, "module.ptx.newer_isa.load": 222}
    rows = {
        "7.5": {"module.sm_75.cubin.load": 0, "module.cubin75.fatbin.load": 0, "module.cubin100.fatbin.load": 209,
                "module.ptx75.fatbin.load": 0, "module.ptx100.fatbin.load": 209, "module.all.fatbin.first": 0,
                "module.all.fatbin.absent": 500},
        "9.0": {"module.sm_90.cubin.load": 0, "module.first_only_sm_90.cubin.second": 500, "module.cubin90a.fatbin.load": 0,
                "module.cubin75.fatbin.load": 209, "module.zstd90.fatbin.load": 0, "library.cubin90a.fatbin.launch": 0},
        "10.0": {"module.cubin90a.fatbin.load": 209, "module.cubin100.fatbin.load": 0, "module.sm_100f.cubin.load": 0,
                 "module.all.fatbin.load": 0},
        "12.1": {"module.cubin100.fatbin.load": 209, "module.ptx100.fatbin.load": 0, "module.sm_120.cubin.load": 0},
    }
    for cc, row in rows.items():
        found = facts(program, images, simulator(cc, "13.0"))
        wrong += expect(found, {**everywhere, **row}, cc)
        if len(found) < 300:
            print(f"{cc}: only {len(found)} facts")
            wrong += 1
    off = facts(program, images, {**simulator("9.0", "13.0"), "CUDA_DISABLE_PTX_JIT": "1"})
    wrong += expect(off, {"module.ptx75.fatbin.load": 223, "module.all.fatbin.load": 0}, "CUDA_DISABLE_PTX_JIT")
    forced = facts(program, images, {**simulator("9.0", "13.0"), "CUDA_FORCE_PTX_JIT": "1"})
    wrong += expect(forced, {"module.cubin90a.fatbin.load": 209, "module.ptx75.fatbin.load": 0}, "CUDA_FORCE_PTX_JIT")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit({"real": real, "simulated": simulated}[sys.argv[1]](*sys.argv[2:]))
