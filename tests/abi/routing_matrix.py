# SPDX-License-Identifier: Apache-2.0
"""Every hooked driver function x every way to look it up, with and without the shim: a pointer is the shim's exactly where it
would have been the driver's function of that name, anything else is what it was; errno, dlerror() and status are untouched,
and a call reaches the function that it would have reached."""
import collections
import os
import re
import subprocess
import sys
import tempfile

from shim_file import hook_rows

probe, library, shim, simulator = sys.argv[1:5]
HOOKED = {name for layer, name, _, _ in hook_rows() if layer == "driver"}
failures = collections.Counter()
examples = []


def run(preload, *mode, trace=None):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(simulator), LD_PRELOAD=preload, KSHIM_SIM_DEVICES="9.0",
                           KSHIM_LOG="off", KSHIM_REPORT=folder + "/%p.jsonl")
        if trace:
            environment["KSHIM_SIM_TRACE"] = folder + "/trace"
        done = subprocess.run([probe, *mode], env=environment, cwd=folder, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            sys.exit(f"FAILED: {mode} with LD_PRELOAD={preload!r} ended with {done.returncode}: {done.stderr[-500:]}")
        calls = open(folder + "/trace").read() if trace else ""
    return done.stdout.splitlines(), calls


def expected(key, before):
    """libcuda.so.1:NAME is a hooked function of the driver's."""
    return re.sub(r"^libcuda\.so\.1:\w+", "libkshim.so", before)


def compare(mode, fewest, *more):
    bare, watched = run("", mode, *more)[0], run(shim, mode, *more)[0]
    if len(bare) != len(watched) or len(bare) < fewest:
        sys.exit(f"FAILED: {mode}: {len(bare)} answers without the shim, {len(watched)} with it")
    routed = set()
    for one, other in zip(bare, watched):
        key, before = one.split("\t")
        key_too, after = other.split("\t")
        if key != key_too:
            sys.exit(f"FAILED: {mode}: asked {key} and {key_too}")
        variant = re.match(r"libcuda\.so\.1:(\w+)", before)
        if variant:
            routed.add(variant.group(1))
        if after != expected(key, before):
            failures[mode] += 1
            examples.append(f"{mode} {key}: {after}; without the shim {before}")
    print(f"{mode}: {len(bare)} answers, {len(routed)} functions of the driver's that are hooked")
    return routed


def main():
    found = compare("lookups", 5000, library)
    if found != HOOKED:
        failures["lookups"] += 1
        examples.append(f"the driver lacks hooked functions, or two names are one: {sorted(HOOKED ^ found)}")
    asked = compare("questions", 50000)
    never = HOOKED - asked
    print(f"never an answer of cuGetProcAddress: {', '.join(sorted(never)) or 'none'}")

    (bare_said, bare_calls), (said, calls) = run("", "calls", trace=True), run(shim, "calls", trace=True)
    reached = [re.findall(r"^\S+ \d+ (\w+)\(", text, re.MULTILINE) for text in (bare_calls, calls)]
    kinds = {name for name in reached[0] if not name.startswith("cuGetProcAddress")}
    print(f"calls: {len(bare_said)} functions called, {len(kinds)} reached in the driver")
    if bare_said != said or reached[0] != reached[1] or not HOOKED - kinds <= {"cuInit", "cuGetProcAddress", "cuGetProcAddress_v2",
                                                                             "cuGetExportTable"}:
        failures["calls"] += 1
        first = next((pair for pair in zip(*reached) if pair[0] != pair[1]), "none")
        examples.append(f"calls: first difference {first}; {len(bare_said)} and {len(said)} calls; not reached {HOOKED - kinds}")
    for example in examples[:20]:
        print("FAILED:", example)
    print(f"failures: {dict(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
