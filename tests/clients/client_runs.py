# SPDX-License-Identifier: Apache-2.0
"""One run of a client on the simulator, with or without the shim: its output, the driver calls it made, the report. And what
two runs' driver calls differ in."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

import e2e
import report_check

# What the shim asks the driver itself, once a device or once a failure; nothing else may differ.
OWN_CALLS = {"cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
             "cuDeviceGetUuid_v2", "cuDeviceGetPCIBusId", "cuCtxGetDevice", "cuCtxGetCurrent"}
# Clients run in a folder of their own, so a build folder given from here has to be made absolute.
BUILD, SHIM, SIMULATOR = (path.resolve() for path in (e2e.BUILD, e2e.SHIM, e2e.SIMULATOR))


class Seen:
    """One run."""

    def __init__(self, output, status, trace, records):
        self.output, self.status, self.trace, self.records = output, status, trace, records

    def of(self, kind):
        return [record for record in self.records if record["type"] == kind]


def run(route, devices, with_shim, folder):
    trace, home = pathlib.Path(folder, "trace"), pathlib.Path(folder, "home")
    trace.unlink(missing_ok=True)
    # A home of its own, empty each time: CuPy and Triton keep what they have compiled, and two runs should do the same work.
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    libraries = [str(SIMULATOR)] + route.env.get("LD_LIBRARY_PATH", "").split(":")
    env = e2e.clean_environment(**{**route.env, "KSHIM_SIM_DEVICES": devices, "KSHIM_SIM_TRACE": trace,
                                   "CUDA_CACHE_DISABLE": "1", "LD_LIBRARY_PATH": ":".join(filter(None, libraries)), "HOME": home})
    for name in [name for name in env if name.startswith(("PYTHON", "VIRTUAL_ENV", "XDG_"))]:
        del env[name]
    if with_shim:
        env.update(LD_PRELOAD=str(SHIM), KSHIM_REPORT=f"{folder}/report.%p.jsonl", KSHIM_LOG="off")
    argv = [str(BUILD / word) if isinstance(word, pathlib.Path) else word for word in route.argv]
    done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, errors="replace",
                          timeout=300, stdin=subprocess.DEVNULL)
    records = []
    for path in sorted(pathlib.Path(folder).glob("report.*.jsonl")):
        records += report_check.with_frames([json.loads(line) for line in path.read_text().splitlines()])
        path.unlink()
    calls = trace.read_text(errors="replace").splitlines() if trace.exists() else []
    return Seen(done.stdout + done.stderr, done.returncode, [plain(call) for call in calls], records)


def plain(call):
    """(thread, the call without time and addresses) of a line of the trace."""
    _, thread, call = call.split(" ", 2)
    return thread, re.sub(r"0x[0-9a-f]+", "P", call)


def own(call):
    return call.split("(")[0] in OWN_CALLS


def differences(without, with_shim):
    """Calls that one trace has and the other has not; the shim's own are passed over. The thread that called first, which is
    the program's, is compared call by call. What the others do (NCCL's; the rest have none) is compared as a bag: which of them
    comes first and does what all wait for is a matter of luck. So a call that the shim adds, drops or makes end otherwise is
    found on every thread, one that it only moves is found on the first."""
    first = [[call for thread, call in trace if thread == trace[0][0]] if trace else [] for trace in (without, with_shim)]
    out = differences_in_order(*first)
    bag, other_bag = (collections.Counter(call for _, call in trace) for trace in (without, with_shim))
    out += [f"{count} times only with the shim: {call}" for call, count in (other_bag - bag).items() if not own(call)][:3]
    out += [f"{count} times only without the shim: {call}" for call, count in (bag - other_bag).items()][:3]
    return out


def differences_in_order(without, with_shim):
    out, at = [], 0
    for call in with_shim:
        if at < len(without) and call == without[at]:
            at += 1
        elif not own(call):
            out.append(f"only with the shim: {call}")
            if at < len(without):
                out.append(f"expected: {without[at]}")
            return out
    out += [f"only without the shim: {call}" for call in without[at:at + 3]]
    return out
