#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments | nothing | whole lines but possibly the last, and every failure that a call had returned

    killed.py [--moments N] [--seed N]

A program makes 300 failing calls that differ, in one thread and in eight, and says of each on a pipe when it has come back. It is killed
at a random moment between its start and a little after its last call. Then: each line of its report but the last is whole and right,
and each failure that it spoke of is there."""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import hostile
import report_check


def start(folder, threads):
    env = hostile.e2e.preloaded("9.0", KSHIM_LOG="off", KSHIM_REPORT=folder / "r.jsonl")
    return subprocess.Popen([hostile.HOST, hostile.GOOD, hostile.BAD, "until-killed", str(threads)], env=env, cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def duration(threads):
    """Of a run that nobody ends, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        process = start(pathlib.Path(folder), threads)
        for line in process.stdout:
            if line == b"done\n":
                break
        took = time.monotonic() - begin
        process.kill()
        process.communicate()
    return took


def kill_at(delay, threads, tally):
    """One host; what is wrong with its report."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        process = start(folder, threads)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        if process.returncode != -signal.SIGKILL or err:
            return [f"ended with {process.returncode}: {err.decode()}"]
        told = out.decode().split("\n")[:-1]  # the last may be half a line
        complete = told[-1:] == ["done"]
        path = folder / "r.jsonl"
        if not path.exists():
            tally["before the report"] += 1
            return [] if not told else ["there is no report"]
        data = path.read_bytes()
        whole, _, torn = data.rpartition(b"\n")
        tally["torn last line"] += torn != b""
        tally["no whole line yet"] += whole == b""
        tally["after the last call" if complete else "amid the calls" if told else "before the first call"] += 1
        tally["failures told"] += len(told) - complete
        try:
            records = report_check.load(path, killed=True) if whole else []
        except report_check.ReportError as error:
            return str(error).splitlines()
        names = {record["kernel"] for record in records if record["type"] == "failure"}
        return [f"{name} came back and is not in the report" for name in told if name != "done" and name not in names]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    choose = random.Random(options.seed)
    tally = dict.fromkeys(("before the report", "no whole line yet", "before the first call", "amid the calls", "after the last call", "torn last line",
                           "failures told"), 0)
    took = {threads: sorted(duration(threads) for _ in range(3))[1] for threads in (1, 8)}
    wrong = []
    for number in range(options.moments):
        threads = (1, 8)[number % 2]
        delay = choose.uniform(0, took[threads] * 1.1)
        wrong += [f"moment {number}, {threads} threads, {delay * 1000:.2f} ms: {fault}" for fault in kill_at(delay, threads, tally)]
    print(json.dumps({"moments": options.moments, "seed": options.seed, "faults": len(wrong), **tally}))
    for fault in wrong[:50]:
        print("FAILED:", fault)
    # A machine so slow, or so fast, that nothing was hit shows nothing.
    if tally["amid the calls"] < options.moments // 20:
        print("FAILED: the moments were not amid the calls")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
