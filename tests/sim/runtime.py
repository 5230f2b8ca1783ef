# SPDX-License-Identifier: Apache-2.0
"""The unmodified CUDA runtime on the simulated driver: what a program sees in each situation.  runtime.py PROGRAM"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SIMULATOR = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "sim"
wrong = 0


def run(what="", **variables):
    """Facts and stderr of one run; only the variables given here, so that the caller's own cannot mislead."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("KSHIM_SIM", "CUDA_", "KSHIM_LOG"))}
    environment.update(variables, LD_LIBRARY_PATH=f"{SIMULATOR}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    done = subprocess.run([sys.argv[1], what], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{what} {variables}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return dict(line.split(" = ", 1) for line in done.stdout.splitlines()), done.stderr


def expect(label, found, **wanted):
    global wrong
    for name, value in wanted.items():
        name = name.replace("__", ".")
        if found.get(name) != str(value):
            print(f"{label}: {name}: expected {value}, got {found.get(name)}")
            wrong += 1


def check(label, condition, detail=""):
    global wrong
    if not condition:
        print(f"{label} {detail}")
        wrong += 1


# Devices and the errors a program without one sees.
found, errors = run()
expect("no KSHIM_SIM_DEVICES", found, count__result=100)
check("no KSHIM_SIM_DEVICES: says nothing", errors == "", errors)
found, _ = run(KSHIM_SIM_DEVICES="8.6", KSHIM_SIM_DRIVER="12.4")
expect("an older driver", found, count__result=35)
found, _ = run(KSHIM_SIM_DEVICES="8.6", KSHIM_SIM_DRIVER="13.1")
expect("a newer driver", found, count__result=0, count=1)
found, _ = run(KSHIM_SIM_DEVICES="7.5:2080;sm_90a:Best GPU", KSHIM_SIM_MEMORY="1G")
expect("two devices", found, count=2, properties__result=0)
check("a product by name", found.get("device.0", "").startswith("NVIDIA GeForce RTX 2080 Ti (simulated), 7.5, 1073741824"),
      found.get("device.0"))
check("a name of one's own", found.get("device.1", "").startswith("Best GPU (simulated), 9.0, "), found.get("device.1"))
found, _ = run(KSHIM_SIM_DEVICES="7.5;9.0", CUDA_VISIBLE_DEVICES="1")
expect("CUDA_VISIBLE_DEVICES", found, count=1)
check("CUDA_VISIBLE_DEVICES", "9.0" in found.get("device.0", ""), found.get("device.0"))
found, errors = run(KSHIM_SIM_DEVICES="8.6;7.9")
expect("an unknown architecture", found, count__result=100)
check("an unknown architecture is named", errors.count("\n") == 1 and "7.9" in errors, errors)
# A driver that drives the device: R470, of CUDA 11.4, which this runtime refuses; 10.7 has its first with CUDA 13.4.
found, _ = run(KSHIM_SIM_DEVICES="3.5")
expect("the last driver of Kepler", found, count__result=35)
found, _ = run(KSHIM_SIM_DEVICES="3.5", KSHIM_SIM_DRIVER="13.0")
expect("3.5 under a driver that was named", found, count=1)
gpus = json.loads((pathlib.Path(os.environ["KSHIM_SOURCE_DIR"]) / "knowledge/gpus.json").read_text())["gpus"]
for cc in (gpu["cc"] for gpu in gpus if gpu["last_toolkit"] in (None, "12.9")):
    found, _ = run(KSHIM_SIM_DEVICES=cc)
    expect(cc, found, count=1, properties__result=0)
    check(cc, f", {cc}, " in found.get("device.0", ""), found.get("device.0"))

# Memory, streams, events.
found, _ = run("memory", KSHIM_SIM_DEVICES="8.6")
expect("memory", found, malloc=0, to_device=0, to_host=0, same=1, memset=0, memset__inside=9, memset__outside=1, info=0,
       used=1 << 20, pointer=0, pointer__type=2, pointer__host=0, pointer__host__type=0, too_far=1, free=0, free_null=0,
       managed=0, managed__free=0, array=0, array__in=0, array__out=0, array__same=1, array__free=0)
found, _ = run("memory", KSHIM_SIM_DEVICES="8.6", KSHIM_SIM_MEMORY="1000000")
expect("a full device", found, malloc=2, last_error=2)
found, _ = run("streams", KSHIM_SIM_DEVICES="8.6")
expect("streams", found, stream=0, event=0, record=0, malloc_async=0, memset_async=0, host_function=0, free_async=0,
       event_synchronize=0, host_function__seen=7, elapsed=0, elapsed__positive=1, stream__destroy=0)

# Kernels: the program has an image for sm_86 alone.
good = dict(launch=0, synchronize=0, launch__again=0, launch__shared=1, attributes=0, attributes__binary=86, symbol=0,
            symbol__last=4, occupancy=0, occupancy__blocks=1, reset=0, launch__after_reset=0)
bad = dict(launch=209, synchronize=0, launch__again=209, attributes=209, symbol=209, occupancy=209)
for variables in ({}, {"CUDA_MODULE_LOADING": "EAGER"}):
    for cc in ("8.6", "8.9"):
        found, _ = run("kernels", KSHIM_SIM_DEVICES=cc, **variables)
        expect(f"{cc} {variables}", found, **good)
    for cc in ("8.0", "7.5", "9.0", "12.0"):
        found, _ = run("kernels", KSHIM_SIM_DEVICES=cc, **variables)
        expect(f"{cc} {variables}", found, **bad)
found, _ = run("second", KSHIM_SIM_DEVICES="8.6;9.0")
expect("8.6 and 9.0", found, set_device__1=0, launch__1=209, set_device__0=0, launch__0=0, set_device__9=101)

# Processes and threads.
found, _ = run("fork", KSHIM_SIM_DEVICES="8.6")
expect("fork", found, child=3)
found, _ = run("threads", KSHIM_SIM_DEVICES="8.6")
expect("threads", found, threads__failures=0)

# The trace has every call, and a file that cannot be written is named.
with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, "trace")
    run("kernels", KSHIM_SIM_DEVICES="9.0", KSHIM_SIM_TRACE=trace)
    lines = pathlib.Path(trace).read_text(encoding="utf-8").splitlines()
    check("trace", any("cuInit(0) = 0 CUDA_SUCCESS" in line for line in lines))
    check("trace", any("= 209 CUDA_ERROR_NO_BINARY_FOR_GPU" in line for line in lines))
    check("trace", any("cuLibraryGetKernel(" in line and "scale" in line for line in lines))
    check("trace", all(line[0].isdigit() and ") = " in line for line in lines), "a line that is not whole")
    _, errors = run(KSHIM_SIM_DEVICES="8.6", KSHIM_SIM_TRACE=os.path.join(folder, "absent", "trace"))
    check("trace that cannot be written", "KSHIM_SIM_TRACE=" in errors, errors)
sys.exit(1 if wrong else 0)
