#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/hostile-hosts.md out of the tests: a row is the docstring of a test, in three parts between bars.

    tests/hostile/page.py            rewrite
    tests/hostile/page.py --check    exit 1 where the page is stale, or a row names a test that is not there
"""
import ast
import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True
import known

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "hostile-hosts.md"
BEGIN, END = "<!-- table: tests/hostile/page.py -->\n", "<!-- end -->"
SCRIPTS = ("processes", "children", "threads", "linker", "memory", "limits", "files", "sandbox", "preloads")
TITLES = {"Processes": "Processes, threads, signals", "Ends": "Processes, threads, signals", "Waits": "Children and compilers",
          "CompilerEnds": "Children and compilers", "Threads": "Threads, fibers, collectors", "Linker": "Libraries",
          "Names": "Names of its own", "Memory": "Memory", "OtherWorlds": "Programs of another kind", "Limits": "Limits", "Stacks": "Stacks",
          "Places": "Where the report is to be", "Disks": "Disks", "Roots": "Roots and users", "Sandbox": "Sandboxes",
          "Preloads": "Others that are preloaded", "Replaces": "Hosts that replace libc's functions"}
# Tests that were there before, or need what other folders build: title, situation, host, report, script, test.
ELSEWHERE = (
    ("Processes, threads, signals", "fork after a failure", "nothing", "a report for each process", "tests/e2e/guest.py", "test_fork"),
    ("Processes, threads, signals", "`_exit` after a failure", "nothing", "all of it, with its end", "tests/e2e/guest.py", "test_underscore_exit"),
    ("Processes, threads, signals", "fork while other threads write", "nothing", "a report for each; what a child could not write is counted",
     "tests/unit/shim/report_file_test.py", "test_fork_while_threads_write"),
    ("Processes, threads, signals", "libraries are unloaded by other threads while what is mapped is searched", "nothing", "-", "tests/e2e/attack.py",
     "test_libraries_are_unloaded_beside_a_search"),
    ("Processes, threads, signals", "exit from a handler on a signal stack of 8 KiB", "nothing", "all of it, with its end", "tests/e2e/attack.py",
     "test_exit_on_a_small_signal_stack"),
    ("Processes, threads, signals", "C++ exceptions through the shim's frames, and from thread to thread", "nothing", "all of it", "tests/e2e/guest.py",
     "test_exceptions_of_the_host"),
    ("Processes, threads, signals", "stderr is a pipe that nobody reads, or that is full", "no SIGPIPE, no waiting", "all of it",
     "tests/unit/shim/report_file_test.py", "test_stderr_that_is_full"),
    ("Programs of another kind", "a plug-in opened with `RTLD_DEEPBIND`", "nothing", "`bypass` names the file; seen with `kshim run --audit`", "tests/blind/run.py",
     "test_deepbind"),
    ("Programs of another kind", "a plug-in in a namespace of its own (`dlmopen`)", "nothing", "`bypass` names the file", "tests/blind/run.py", "test_dlmopen"),
    ("Programs of another kind", "a setuid program that uses CUDA", "nothing: the shim is not there", "none; `kshim run` names it", "tests/blind/run.py",
     "test_a_setuid_program_that_uses_cuda"),
    ("Programs of another kind", "built with `-fsanitize=address` or `thread`", "nothing", "all of it", "tests/e2e/guest.py", "test_sanitizers"),
    ("Others that are preloaded", "a tool with hooks of its own for `dlsym` and the driver, before the shim and behind it", "its hooks are called", "all of it",
     "tests/e2e/guest.py", "test_another_that_hides_the_driver"),
)


def methods(path):
    """(class, method, docstring) of each test in a script."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name.startswith("test_"):
                    yield node.name, method.name, ast.get_docstring(method) or ""


def rows(faults):
    """{title: [row]}"""
    found = {title: [] for title in TITLES.values()}
    for script in SCRIPTS:
        listed = known.Known(f"hostile.{script}")
        for group, name, text in methods(HERE / f"{script}.py"):
            parts = [part.strip() for part in text.split(" | ")]
            if len(parts) != 3:
                faults.append(f"{script}.{name}: the docstring has {len(parts)} parts, not three")
                continue
            fails = ", known to fail" if listed.how(f"{group}.{name}") else ""
            found[TITLES[group]].append((*parts, f"`hostile.{script}` {name[5:]}{fails}"))
    killed = ast.get_docstring(ast.parse((HERE / "killed.py").read_text())).splitlines()[0]
    found[TITLES["Processes"]].append((*[part.strip() for part in killed.split(" | ")], "`hostile.killed`"))
    for title, situation, host, report, path, test in ELSEWHERE:
        if test not in {name for _, name, _ in methods(ROOT / path)}:
            faults.append(f"{path} has no {test}")
        found[title].append((situation, host, report, f"`{path}` {test[5:]}"))
    return found


def lock_table():
    """The matrix of locks/table.py; a row that known_failures has a line for says so."""
    spec = importlib.util.spec_from_file_location("table", HERE / "locks" / "table.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    open_rows = {pattern.split()[1] for pattern, *_ in known.rows() if pattern.startswith("hostile.locks ")}
    text = ("\n### Locks that others hold\n\nWhile another thread holds a lock forever, what returns without the shim returns with it (`hostile.locks`): "
            + "; ".join(table.ENTRIES) + ". Each once as the first that the shim hears of CUDA and once after a call has failed.\n\n"
            "| what is held | what the host sees of the shim |\n| --- | --- |\n")
    for hold, words in table.HOLDS.items():
        text += f"| {words} | {'it waits in places (tests/hostile/known_failures)' if hold in open_rows else 'nothing'} |\n"
    return text


def main():
    faults = []
    text = lock_table()
    for title, group in rows(faults).items():
        text += f"\n### {title}\n\n| situation | what the host sees of the shim | what the report has | test |\n| --- | --- | --- | --- |\n"
        text += "".join(f"| {' | '.join(row)} |\n" for row in group)
    page = PAGE.read_text()
    head, tail = page.index(BEGIN) + len(BEGIN), page.index(END)
    fresh = page[:head] + text + "\n" + page[tail:]
    if "--check" not in sys.argv:
        PAGE.write_text(fresh)
    elif fresh != page:
        faults.append(f"{PAGE.relative_to(ROOT)} is stale: run tests/hostile/page.py")
    for fault in faults:
        print("FAILED:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
