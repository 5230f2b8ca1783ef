# SPDX-License-Identifier: Apache-2.0
"""Starts pytest again with libkshim.so preloaded: the dynamic linker reads LD_PRELOAD when a program starts and never again.
The process stays the same one, with its id, terminal, input and parent."""
import os
import subprocess
import sys
from typing import Any, Dict, List

from kshim import __main__ as command_line
from kshim import _files, _places

# Process id that was started again: exec keeps it, a child has another.
MARK = "KSHIM_PYTEST"
# Programs that do nothing but hand their arguments to pytest, so that starting them twice does no harm: pytest's own
# scripts, PyCharm's runner, that of VS Code.
LAUNCHERS = frozenset(["pytest", "py.test", "_jb_pytest_runner.py", "run_pytest_script.py"])


class CannotStart(Exception):
    """A sentence for the person that started pytest."""


def shim_is_mapped() -> bool:
    try:
        return any(line.rstrip().endswith("/libkshim.so") for line in _files.text("/proc/self/maps").splitlines())
    except OSError:
        return False


def is_restarted() -> bool:
    return os.environ.get(MARK) == str(os.getpid())


def _command_line() -> List[str]:
    original = getattr(sys, "orig_argv", None)  # since Python 3.10
    if original is None:
        with _files.open_to_read("/proc/self/cmdline") as file:
            original = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    # With its folder, so that the interpreter of a virtual environment finds that again.
    return [sys.executable, *original[1:]]


def _is_pytest_itself() -> bool:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name.split(".")[0] in ("pytest", "py"):
        return True
    return os.path.basename(getattr(main, "__file__", None) or "") in LAUNCHERS


def _environment_under_shim(options: Any) -> Dict[str, str]:
    """What `kshim run` gives its program. It is asked, so that one place knows how: which preloads go first, what an
    architecture is called, where reports can be written."""
    argv = [_places.command(), "run", "--format", "json", "-o", os.devnull]
    for name, values in (("--simulate", options.kshim_simulate), ("--target", options.kshim_target)):
        for value in values:
            argv += [name, value]
    if options.kshim_report:
        argv += ["--report", os.path.abspath(options.kshim_report)]
    done = subprocess.run([*argv, "--", "cat", "/proc/self/environ"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=command_line.environment(), check=False)
    if done.returncode != 0:
        lines = os.fsdecode(done.stderr).strip().splitlines() or [f"kshim run ended with {done.returncode}"]
        raise CannotStart(lines[-1].replace("kshim: error: ", ""))
    pairs = (os.fsdecode(entry).partition("=") for entry in done.stdout.split(b"\0"))
    environment = {name: value for name, _, value in pairs if name}
    environment.pop("KSHIM_RUN_SOCKET", None)  # nobody listens there any more
    return environment


def start_under_shim(options: Any) -> None:
    """Does not come back, unless this process is under the shim already or cannot be."""
    if is_restarted() or "PYTEST_XDIST_WORKER" in os.environ:
        return
    # `kshim run -- pytest --kshim`, or a preload set by hand: its reports are the ones to read.
    if shim_is_mapped() and "KSHIM_REPORT" in os.environ and not (options.kshim_simulate or options.kshim_report):
        return
    if not _is_pytest_itself():
        raise CannotStart("pytest was called by another program, which is not started a second time; start it as "
                          "`kshim run -- PROGRAM`, or with LD_PRELOAD=$(kshim path) and KSHIM_REPORT")
    try:
        environment = _environment_under_shim(options)
        # Which test it was that failed again shows only where each time is told.
        environment.setdefault("KSHIM_REPEATS", "each")
        environment[MARK] = str(os.getpid())
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.execve(sys.executable, _command_line(), environment)
    except (_places.NotInstalled, OSError) as error:
        raise CannotStart(str(error)) from None
