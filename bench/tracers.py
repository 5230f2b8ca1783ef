# SPDX-License-Identifier: Apache-2.0
"""The launch loop under other tools that see single calls, in the same run as the bare one and the shim's. A tool that is
not there, or sees nothing, is named."""
import os
import pathlib
import re
import shutil
import subprocess

SLOW = ("1000", "5", "1")       # launches, rounds, threads: ltrace and uprobes stop the program at each
FAST = ("20000", "20", "1")
PROBE = "probe_libcuda:cuLaunchKernel"


def run(words, environment, folder, read=None):
    """(nanoseconds a launch, launches the tool saw) or a reason."""
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    times = re.findall(r"^[0-9.]+$", done.stdout, re.MULTILINE)
    if not times:
        return f"ended with {done.returncode}"
    return float(times[0]), read(done) if read else None


def ltrace(bench, runtime, program, environment):
    # By breakpoints: the static runtime calls by address, which only a breakpoint in the driver itself sees.
    log = bench.folder + "/ltrace"
    where = ["-x", "cuLaunchKernel@libcuda.so.1"] if runtime == "static" else ["-e", "__cudaLaunchKernel"]
    seen = lambda _: sum(int(n) for n in re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+) \S*LaunchKernel", pathlib.Path(log).read_text(),
                                                  re.MULTILINE))
    return run(["ltrace", "-c", "-o", log, *where, program, *SLOW], environment, bench.folder, seen)


def uftrace(bench, _, program, environment):
    data = bench.folder + "/uftrace"
    shutil.rmtree(data, ignore_errors=True)

    def seen(_):
        report = subprocess.run(["uftrace", "report", "-d", data], capture_output=True, text=True, check=False).stdout
        return sum(int(calls) for calls in re.findall(r"(\d+)\s+\S*LaunchKernel\S*$", report, re.MULTILINE))
    return run(["uftrace", "record", "--force", "-d", data, program, *FAST], environment, bench.folder, seen)


def uprobe(bench, _, program, environment):
    added = subprocess.run(["perf", "probe", "-q", "-x", str(bench.build / "sim/libcuda.so.1"), "cuLaunchKernel"], capture_output=True,
                           text=True, check=False)
    if added.returncode != 0:
        return "perf may not add a probe"
    try:
        seen = lambda done: int(re.search(r"([\d,]+)\s+" + PROBE, done.stderr).group(1).replace(",", ""))
        return run(["perf", "stat", "-e", PROBE, program, *SLOW], environment, bench.folder, seen)
    finally:
        subprocess.run(["perf", "probe", "-q", "-d", PROBE], capture_output=True, check=False)


def cupti(bench, _, program, environment):
    library = bench.build / "bench/libcupti_subscriber.so"
    if not library.exists():
        return "CUPTI is not installed"

    def seen(done):
        said = re.search(r"callbacks (\d+)", done.stderr)
        return int(said.group(1)) if said else 0
    outcome = run([program, *FAST], dict(environment, CUDA_INJECTION64_PATH=str(library)), bench.folder, seen)
    if isinstance(outcome, tuple) and outcome[1] == 0:
        return "needs NVIDIA's driver, which loads it"
    return outcome


def shim(bench, _, program, environment):
    return run([program, *FAST], dict(environment, LD_PRELOAD=str(bench.shim)), bench.folder)


def bare(bench, _, program, environment):
    return run([program, *FAST], environment, bench.folder)


TOOLS = (("nothing", None, bare), ("kshim", None, shim), ("CUPTI callback (`CUDA_INJECTION64_PATH`)", None, cupti),
         ("`uftrace --force`", "uftrace", uftrace), ("`perf stat` with a uprobe", "perf", uprobe), ("`ltrace -c`", "ltrace", ltrace))


def cell(outcome, reference, launches):
    if isinstance(outcome, str):
        return outcome
    took, seen = outcome
    text = f"{took:,.0f} ns, {took / reference:,.2f}"
    if seen is None:
        return text
    return text + (f", saw {seen:,} of {launches:,}" if seen else ", saw nothing")


def not_here(command, measure, with_uprobe):
    """Why a tool is left out, or None."""
    if command is not None and shutil.which(command) is None:
        return f"{command} is not installed"
    if measure is uprobe and not (with_uprobe and os.geteuid() == 0):
        return "not asked for"
    return None


def table(bench, with_uprobe):
    best = {}
    for turn in range(bench.rounds):
        for title, command, measure in TOOLS:
            slow = measure in (ltrace, uprobe)
            if not_here(command, measure, with_uprobe) or (slow and turn >= 3):
                continue
            for runtime in ("static", "shared"):
                outcome = measure(bench, runtime, str(bench.build / f"bench/launch_loop_{runtime}"), bench.cuda())
                before = best.get((title, runtime))
                if not isinstance(outcome, str) and not isinstance(before, str):
                    outcome = min(outcome, before or outcome, key=lambda one: one[0])
                best[title, runtime] = outcome
    lines = ["| watched by | static runtime | shared runtime |", "| --- | --- | --- |"]
    for title, command, measure in TOOLS:
        why_not = not_here(command, measure, with_uprobe)
        rounds = SLOW if measure in (ltrace, uprobe) else FAST
        launches = (int(rounds[0]) + 1) * int(rounds[1]) + 1
        cells = [why_not or cell(best[title, runtime], best["nothing", runtime][0], launches) for runtime in ("static", "shared")]
        lines.append(f"| {title} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"
