# SPDX-License-Identifier: Apache-2.0
"""threads.py PROGRAM PLUGIN [SHIM]: 64 threads that load, fail, launch and unload get the answers that one alone would get,
and leave a report in which every line is whole, every load is counted and every kind of failure is there once. Where a
sanitizer is built in, it finds nothing."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import report_check

THREADS, ROUNDS = 64, 36
# The calls that stress.cpp makes fail, with what the driver answers.
FAILURES = {("cuLaunchKernel", 1), ("cuLaunchKernel", 400), ("cuModuleGetFunction", 500), ("cuModuleLoadData", 209),
            ("cuModuleLoadData", 200), ("cuModuleLoad", 301)}


def sanitized(build):
    return re.search(r"^KSHIM_SANITIZE:\w+=.", (build / "CMakeCache.txt").read_text(), re.MULTILINE) is not None


def main():
    program, plugin = pathlib.Path(sys.argv[1]), sys.argv[2]
    build = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KSHIM_", "LD_"))}
    environment.update(LD_LIBRARY_PATH=str(build / "sim"), KSHIM_SIM_DEVICES="9.0;8.6", KSHIM_TARGET="7.0;12.0",
                       ASAN_OPTIONS="detect_leaks=0")
    if len(sys.argv) > 3:
        environment["LD_PRELOAD"] = sys.argv[3]
    images = [str(program.parent / f"stress_{arch}.fatbin") for arch in (90, 75)]
    with tempfile.TemporaryDirectory() as folder:
        environment["KSHIM_REPORT"] = folder + "/report.jsonl"
        # The simulator is not instrumented: of its own initializations ThreadSanitizer sees the memory and not the guards.
        # Two readers copy what may change meanwhile and check a version number afterwards, behind a fence.
        suppressions = ("libcuda.so.1", "copy_record", "node_of_load")
        pathlib.Path(folder, "suppressions").write_text("".join(f"race:{name}\n" for name in suppressions), encoding="utf-8")
        environment["TSAN_OPTIONS"] = f"halt_on_error=0 exitcode=66 second_deadlock_stack=1 suppressions={folder}/suppressions"
        done = subprocess.run([str(program), str(THREADS), str(ROUNDS), *images, plugin], env=environment, cwd=folder,
                              capture_output=True, text=True, timeout=280)
        print(done.stdout, done.stderr[-12000:])
        if done.returncode != 0:
            print(f"FAILED: ended with {done.returncode}")
            return 1
        records = report_check.load(pathlib.Path(folder) / "report.jsonl", complete=True)
    loads = int(re.search(r"^loads (\d+)$", done.stdout, re.MULTILINE).group(1))
    end = records[-1]
    # One failure at both flavors of a launch is one record.
    failures = [(record["layers"][0]["api"].replace("_ptsz", ""), record["layers"][0]["code"]) for record in records if record["type"] == "failure"]
    print(f"{loads} loads, {end['modules']} counted, {end['dropped']} records dropped, failures {sorted(set(failures))}")
    wrong = []
    if end["modules"] != loads:
        wrong.append("loads are missing")
    # A sanitizer makes everything slow: a thread that waits longer than the shim is patient drops its record.
    if end["dropped"] != 0 and not sanitized(build):
        wrong.append("records were dropped")
    if not FAILURES <= set(failures):
        wrong.append(f"no record of {FAILURES - set(failures)}")
    for fault in wrong:
        print("FAILED:", fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
