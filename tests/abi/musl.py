# SPDX-License-Identifier: Apache-2.0
"""libkshim.so in programs of musl, which ends a program at its start over any symbol that it does not find: they must go on as
without it. Needs musl's loader (Debian's package musl)."""
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOADER = pathlib.Path(f"/lib/ld-musl-{platform.machine()}.so.1")


def run(command, **environment):
    env = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def main():
    shim, compiler = sys.argv[1:]
    if not LOADER.exists():
        print(f"skipped: no {LOADER}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program")
        subprocess.run([compiler, "-O1", "-fPIE", "-pie", "-fno-stack-protector", "-nostdlib", "-nostartfiles", f"-Wl,--dynamic-linker={LOADER}", "-o", program,
                        HERE / "musl_program.c", LOADER], check=True)
        failed = False
        for settings in ({}, {"KSHIM_DISABLE": "1"}, {"KSHIM_COVERAGE": "1", "KSHIM_TARGET": "9.0"}):
            # The loader as a command is a program without PT_PHDR.
            for command in ([program], [program, "1"], [LOADER, program], [LOADER, program, "1"]):
                plain = run(command)
                preloaded = run(command, LD_PRELOAD=shim, KSHIM_REPORT=f"{folder}/report.jsonl", **settings)
                good = plain == preloaded and plain[1] == "as ever\n" and plain[0] in (3, 4)
                print("good" if good else "FAILED:", settings, [str(part) for part in command], plain, preloaded)
                failed = failed or not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
