# SPDX-License-Identifier: Apache-2.0
"""Whichever way a program looks a driver function up, it gets the shim's where there is one and the driver's otherwise."""
import os
import subprocess
import sys
import tempfile

from shim_file import hook_rows

probe, shim, simulator = sys.argv[1:4]
failures = []


def check(good, message):
    if not good:
        failures.append(message)


def answers(preload):
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(simulator), LD_PRELOAD=preload, KSHIM_SIM_DEVICES="9.0")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([probe], env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"the probe ended with {done.returncode}: {done.stderr}")
        check(not os.listdir(folder), f"looking up made files: {os.listdir(folder)}")
    return {tuple(line.split()[:2]): line.split()[2:] for line in done.stdout.splitlines()}


def main():
    bare, watched = answers(""), answers(shim)
    hooked = {name for layer, name, _, _ in hook_rows() if layer == "driver"}
    check(set(bare) == set(watched) and len(bare) > 200, "the two runs did not ask the same")
    for (how, name), before in bare.items():
        after = watched.get((how, name))
        if how.startswith("ask"):
            expected = ["libkshim.so"] if before == ["libcuda.so.1"] and name != "cuDeviceGetName" else before
        elif how == "handle":
            expected = ["libkshim.so"] if name in hooked and before != ["null"] else before
        else:
            expected = before
        check(after == expected, f"{how} {name}: {after}, expected {expected} (without the shim {before})")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
