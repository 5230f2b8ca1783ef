#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""While another thread holds a lock forever, what returns without the shim returns with it: each cell of table.py in a process of its own.

    run.py [HOLD [ENTRY]]       the cells named alone
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import e2e
import table
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import known

HERE = e2e.BUILD / "tests" / "hostile"
CELL, PLAIN, LIBRARY = HERE / "cell", HERE / "plain", HERE / "libcell.so"
e2e.require(e2e.SHIM, CELL, PLAIN / "libcuda.so.1", LIBRARY)

# A process waits forever if no thread of it and of its children ran during so long. Nothing here sleeps longer.
STILL = 1.5
IN_PYTHON = """
import ctypes, sys
words = sys.argv[1:]
ctypes.PyDLL(words[0]).cell_main(len(words), (ctypes.c_char_p * len(words))(*(word.encode() for word in words)))
"""


def tasks(pid):
    """What each thread of the process and of its descendants has done: (state, switches), by its number."""
    found = {}
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            text = (task / "status").read_text()
            state = re.search(r"^State:\s(\w)", text, re.M)[1]
            found[task.name] = (state, *re.findall(r"ctxt_switches:\s(\d+)", text))
            for child in (task / "children").read_text().split():
                found.update(tasks(child))
    except (OSError, TypeError):
        pass  # ended meanwhile
    return found


def ends(process):
    """False once nothing moves in it any more."""
    before, since = None, time.monotonic()
    while True:
        try:
            process.wait(0.002 if before is None else 0.05)
            return True
        except subprocess.TimeoutExpired:
            now = tasks(process.pid)
            if now != before or any(state[0] not in "St" for state in now.values()):
                before, since = now, time.monotonic()
            elif time.monotonic() - since > STILL:
                return False


class Run:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-locks-"))
        self.lock = threading.Lock()
        self.count = 0

    def cell(self, hold, entry, state, shim):
        """(how it went on, what it printed)"""
        with self.lock:
            self.count += 1
            folder = self.folder / str(self.count)
        folder.mkdir()
        env = e2e.clean_environment(LD_LIBRARY_PATH=f"{PLAIN}:{HERE}", KSHIM_LOG="off")
        if shim:
            env["LD_PRELOAD"] = str(e2e.SHIM)
        if hold == "audit":
            env["LD_AUDIT"] = str(HERE / "libhold_auditor.so")
        words = [hold, entry, state]
        argv = [CELL, *words] if hold != "gil" else [sys.executable, "-c", IN_PYTHON, LIBRARY, *words]
        with open(folder / "out", "w+b") as out:
            process = subprocess.Popen(argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
            over = ends(process)
            if not over:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            text = out.read().decode("utf-8", "replace").strip()
        shutil.rmtree(folder, ignore_errors=True)
        if "no seccomp" in text:
            return "skipped", text
        return (f"ends {process.returncode}" if over else "waits"), text

    def compare(self, hold, entry, state):
        """None, or what is different."""
        bare = self.cell(hold, entry, state, shim=False)
        if bare[0] == "waits" and entry != "calls" or bare[0] == "skipped":
            return None
        shim = self.cell(hold, entry, state, shim=True)
        if shim == bare:
            return None
        reached = shim[1].splitlines()[-1:] or [""]
        return f"without the shim: {bare[0]}; with it: {shim[0]}, after {reached[0]!r}"


def functions():
    """Each name of hooks.def, as the program prints them."""
    text = (e2e.SOURCE / "shim/cuda/hooks.def").read_text()
    return re.findall(r"^KSHIM_HOOK\(\w+, (\w+),", text, re.M)


def cells():
    for hold in table.HOLDS:
        for entries in table.ENTRIES.values():
            for entry in entries:
                if hold == "gil" and entry in table.NOT_WITH_GIL:
                    continue
                for state in table.STATES:
                    yield hold, entry, state
        if hold in table.FRESH:
            for name in functions():
                yield hold, f"call:{name}", "first"


def main():
    wanted = sys.argv[1:]
    chosen = [cell for cell in cells() if list(cell[:len(wanted)]) == wanted and all(word in table.HOLDS for word in wanted[:1])]
    run = Run()
    listed = known.Known("hostile.locks")
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        results = dict(zip(chosen, pool.map(lambda cell: run.compare(*cell), chosen)))
    shutil.rmtree(run.folder, ignore_errors=True)
    status = 0
    for cell, difference in results.items():
        verdict = listed.verdict(" ".join(cell), difference)
        if verdict:
            print(f"{verdict}: {' '.join(cell)}: {difference or 'as without the shim'}")
            status |= verdict != known.EXPECTED
    print(f"{len(chosen)} cells, {run.count} processes, {sum(map(bool, results.values()))} differ")
    return status


if __name__ == "__main__":
    sys.exit(main())
