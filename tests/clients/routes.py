#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every client of route_table.py on the simulator, on a device on which it works and on one on which it does not, with
and without the shim, and checks that the shim saw the load, the failure, the kernel and the file, and that the client saw
nothing of the shim: same output, same exit status, same driver calls with the same results (several threads: see differences()).

  ctest --test-dir build/dev -R clients.routes -V                         as a test
  KSHIM_BUILD_DIR=build/dev KSHIM_SOURCE_DIR=. PYTHONPATH=tests/support \\
      python3 tests/clients/routes.py --table                             prints the table of docs/routes.md
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import e2e
import route_table

# What the shim asks the driver itself, once a device or once a failure; nothing else may differ.
OWN_CALLS = {"cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
             "cuDeviceGetUuid_v2", "cuDeviceGetPCIBusId", "cuCtxGetDevice", "cuCtxGetCurrent"}
# Clients run in a folder of their own, so a build folder given from here has to be made absolute.
BUILD, SHIM, SIMULATOR = (path.resolve() for path in (e2e.BUILD, e2e.SHIM, e2e.SIMULATOR))
FAMILY = {98, 200, 209, 218, 221, 222, 223, 300, 500}


class Seen:
    """One run."""

    def __init__(self, output, status, trace, records):
        self.output, self.status, self.trace, self.records = output, status, trace, records

    def of(self, kind):
        return [record for record in self.records if record["type"] == kind]


def run(route, devices, with_shim, folder):
    trace = pathlib.Path(folder, "trace")
    trace.unlink(missing_ok=True)
    libraries = [str(SIMULATOR)] + route.env.get("LD_LIBRARY_PATH", "").split(":")
    env = e2e.clean_environment(KSHIM_SIM_DEVICES=devices, KSHIM_SIM_TRACE=trace, CUDA_CACHE_DISABLE="1",
                                LD_LIBRARY_PATH=":".join(filter(None, libraries)))
    if with_shim:
        env.update(LD_PRELOAD=str(SHIM), KSHIM_REPORT=f"{folder}/report.%p.jsonl", KSHIM_LOG="off")
    argv = [str(BUILD / word) if isinstance(word, pathlib.Path) else word for word in route.argv]
    done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, errors="replace",
                          timeout=300, stdin=subprocess.DEVNULL)
    records = []
    for path in sorted(pathlib.Path(folder).glob("report.*.jsonl")):
        records += [json.loads(line) for line in path.read_text().splitlines()]
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


def named(records, object_name):
    paths = {record["id"]: record["path"] or "" for record in records if record["type"] == "object"}
    return [key for key, path in paths.items() if os.path.basename(path) == object_name]


def check(route, folder):
    """{column: problems}; an empty list is a yes."""
    out = {column: [] for column in ("load", "failure", "kernel", "object", "host")}
    seen = {}
    for devices in filter(None, (route.works, route.fails)):
        seen[devices] = run(route, devices, True, folder)
        bare = run(route, devices, False, folder)
        if (bare.output, bare.status) != (seen[devices].output, seen[devices].status):
            out["host"].append(f"on {devices}: prints or ends otherwise: {bare.status} {bare.output!r}, "
                               f"with the shim {seen[devices].status} {seen[devices].output!r}")
        out["host"] += differences(bare.trace, seen[devices].trace)
    good = seen[route.works]
    if good.status != 0:
        out["load"].append(f"the client fails on {route.works}: {good.status} {good.output.strip()[-300:]!r}")
    if not [module for module in good.of("module") if module["result"] == 0]:
        out["load"].append("no load was seen")
    bad_launches = [failure for failure in good.of("failure") if failure["stage"] == "launch"]
    if bad_launches:
        out["failure"].append(f"a failure on {route.works}: {bad_launches[0]}")
    if not route.fails:
        return out
    bad = seen[route.fails]
    failures = [failure for failure in bad.of("failure") if {layer["code"] for layer in failure["layers"]} & FAMILY]
    if route.refuses:
        if failures:
            out["failure"].append(f"a failure where the library refuses by itself: {failures[0]}")
        return out
    if bad.status == 0:
        out["failure"].append(f"the client does not fail on {route.fails}")
    if not failures:
        out["failure"].append(f"no failure was recorded on {route.fails}: {bad.output.strip()[-300:]!r}")
    known = {failure["kernel"] or "" for failure in failures} | {name for gap in bad.of("gap") for name in gap["kernels"] or []}
    missing = [kernel for kernel in route.kernels if not any(kernel in name for name in known)]
    if missing:
        out["kernel"].append(f"not named: {missing}; named: {sorted(known)[:8]}")
    if not route.kernels and not route.unnamed and not any(known):
        out["kernel"].append("no kernel is named")
    if route.object:
        ids = named(bad.records, route.object)
        if not any(failure["object"] in ids for failure in failures):
            files = {record["id"]: record["path"] for record in bad.of("object")}
            out["object"].append(f"no failure names {route.object}: {sorted({str(files.get(f['object'])) for f in failures})}")
    else:
        modules = {module["id"]: module for module in bad.of("module")}
        loose = [failure for failure in failures if (modules.get(failure["module"]) or {}).get("content_hash")]
        if not loose:
            out["object"].append("no failure leads to a module with a content hash")
    return out


def found_runtimes():
    out = {}
    for folder in sorted((e2e.SOURCE.resolve() / "build/deps/runtimes").glob("*/nvidia/cuda_runtime/lib")):
        out[folder.parts[-4]] = str(folder)
    return out


def missing_parts(route):
    return [str(word) for word in [*route.argv, *route.needs] if isinstance(word, pathlib.Path) and not (BUILD / word).exists()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="Markdown on stdout")
    parser.add_argument("--cuda-lib", help="folder of the toolkit's libraries")
    parser.add_argument("--only", default="", help="rows whose route or client has this text")
    options = parser.parse_args()
    e2e.require(SHIM, SIMULATOR / "libcuda.so.1")
    failed, ran, skipped = 0, 0, 0
    if options.table:
        print("| route | client | load seen | failure seen | kernel named | object named | host unchanged |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
    for route in route_table.routes(found_runtimes()):
        title = f"{route.name}: {route.client}"
        if options.only and options.only not in title:
            continue
        missing = missing_parts(route)
        if missing:
            skipped += 1
            print(f"skipped: {title}: not built: {', '.join(missing)}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="kshim-clients-") as folder:
            found = check(route, folder)
        ran += 1
        problems = [f"{column}: {problem}" for column, each in found.items() for problem in each]
        failed += bool(problems)
        if options.table:
            cells = {column: "no" if each else "yes" for column, each in found.items()}
            if route.refuses:
                cells.update(failure="the library refuses first", kernel="-", object="-")
            if route.unnamed:
                cells.update(kernel="-")
            print(f"| {route.name} | {route.client} | " + " | ".join(cells.values()) + " |", flush=True)
        else:
            print(f"{'FAILED' if problems else 'ok'}: {title}", flush=True)
        for problem in problems:
            print(f"  {problem}", file=sys.stderr)
    print(f"{ran} routes, {failed} failed, {skipped} skipped", file=sys.stderr)
    if ran == 0:
        print("skipped: no client was built")
        return e2e.SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
