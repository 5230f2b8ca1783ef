#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames as the shim reads them without the GIL, beside what each CPython of this machine says itself.

    python_frames_test.py PROBE.so              every CPython 3.8 to 3.15 that is found
    python_frames_test.py PROBE.so --inside     the comparison, run by each of them
"""
import ctypes
import glob
import json
import os
import subprocess
import sys
import threading

PROBE = None
BUFFERS = threading.local()
MAX_FRAMES = 64


def probe(function="probe_python"):
    entry = getattr(PROBE, function)
    entry.restype = ctypes.c_size_t
    if not hasattr(BUFFERS, "mine"):
        BUFFERS.mine = ctypes.create_string_buffer(1 << 20)
    size = entry(BUFFERS.mine, ctypes.c_size_t(len(BUFFERS.mine)))
    frames = json.loads(ctypes.string_at(BUFFERS.mine, size).decode())
    return [(row["file"], row["line"], row["function"]) for row in frames] if function != "probe_native" else frames


def truth(frame):
    rows = []
    while frame is not None:
        code = frame.f_code
        # Bytes that are no UTF-8 are replaced one by one, as in every text of a report.
        name = os.fsencode(code.co_filename).decode(errors="replace")
        rows.append((name, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return rows


def compare(what):
    # Both on one line: the callers' frames stand at the same instruction. probe() is a frame of its own.
    seen, want = probe()[1:], truth(sys._getframe())
    want = want[:MAX_FRAMES - 1]
    if seen != want:
        print(f"{what}:\n  shim   {seen[:6]}\n  python {want[:6]}")
        sys.exit(1)
    return len(seen)


class Net:
    def forward(self, depth):
        if depth:
            return self.forward(
                depth - 1,
            )
        return compare("method, call over several lines")

    @property
    def loss(self):
        return compare("property")


class Made:
    """From 3.13 on a call of a class that was often called stands on a frame of the interpreter's own."""

    def __init__(self, last):
        if last:
            compare("__init__ of a class that is often made")


def generator():
    yield 1
    yield compare("generator")


def handler():
    try:
        raise ValueError
    except ValueError:
        try:
            pass
        finally:
            return compare("in except and finally")


async def coroutine():
    async def inner():
        return compare("coroutine")
    return await inner()


def deep(depth):
    return deep(depth - 1) if depth else compare("deeper than is recorded")


def run_source(name, lines_before, source):
    scope = {"compare": compare, "name": name}
    exec(compile("\n" * lines_before + source, name, "exec"), scope)


def in_thread(function):
    failed = []

    def run():
        try:
            function()
        except SystemExit:
            failed.append(True)
    worker = threading.Thread(target=run)
    worker.start()
    worker.join()
    if failed:
        sys.exit(1)


def at_once():
    """Without a GIL they run at once, each in its own copy of the bytecode."""
    failed = []

    def run():
        for _ in range(100):
            try:
                compare("threads at once")
                deep(3)
            except SystemExit:
                failed.append(True)
                return
    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(1)


def main_thread_frames():
    """The main thread waits in join(), deep in its own frames, while another one asks for them."""
    answers = []

    def ask():
        import time
        ident = threading.main_thread().ident
        for _ in range(500):  # until the main thread stands still below wait_for()
            before = truth(sys._current_frames()[ident])
            answer = probe("probe_python_main")
            waits = any(function.endswith("wait_for") for _, _, function in before)
            if waits and answer == before == truth(sys._current_frames()[ident]):
                answers.append(answer)
                return
            time.sleep(0.01)
        print(f"main thread's frames:\n  shim   {answer[:6]}\n  python {before[:6]}")

    def wait_for(worker):
        worker.join()
    worker = threading.Thread(target=ask)
    worker.start()
    wait_for(worker)
    if not answers:
        sys.exit(1)
    assert probe("probe_python_main") == [], "the main thread is not another thread"


def inside():
    Net().forward(5)
    Net().loss
    for number in range(100):
        Made(number == 99)
    list(generator())
    handler()
    deep(100)
    (lambda: compare("lambda"))()
    [compare("comprehension") for _ in range(2)]
    sorted([2, 1], key=lambda _: compare("called back from C"))
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    run_source("/tmp/ascii.py", 0, "compare(name)")
    run_source("/tmp/grün/latin.py", 300, "compare(name)")
    run_source("/tmp/日本語/ucs2.py", 70000, "def f():\n  compare(name)\nf()")
    run_source("/tmp/🐍/ucs4.py", 5, "def größe():\n  compare(name)\ngröße()")
    run_source("/tmp/gr\udcfcn/latin1-\udcff\udce4.py", 5, "compare(name)")
    # A line table of many blocks, with lines that go back and forth.
    long = "".join(f"x{i} = (\n  {i} +\n\n\n 1)\n" for i in range(3000)) + "compare(name)\n" + "y = 1\n" * 3000
    run_source("long.py", 0, long)
    run_source("wide.py", 0, "compare(\n" + "\n" * 500 + "  name if name else\n" + "\n" * 200 + " None)")
    in_thread(lambda: compare("another thread"))
    in_thread(lambda: Net().forward(3))
    at_once()
    main_thread_frames()

    frames = probe("probe_native")
    assert frames and all(row["offset"] for row in frames), frames
    assert not any("kshim_frames_probe" in (row["object"] or "") for row in frames[1:]), "own frames"
    assert any("python" in os.path.basename(row["object"] or "") for row in frames), "the interpreter's frames"
    # The command finds symbols in the files, as long as they are there.
    assert not any(row["symbol"] for row in frames if row["object"] and row["object"].startswith("/usr/")), frames


    # Every level goes through C.
    def nested(depth):
        return max([depth], key=lambda _: nested(depth - 1) if depth else native.append(len(probe("probe_native"))) or 0)
    native = []
    nested(80)
    assert native == [MAX_FRAMES], native


def interpreters():
    found = {}
    for pattern in ("/usr/bin/python3", "/usr/bin/python3.[0-9]*", "/usr/local/bin/python3.[0-9]*",
                    os.path.expanduser("~/.pyenv/versions/*/bin/python3"), sys.executable):
        for path in glob.glob(pattern):
            asked = subprocess.run([path, "-c", "import sys; print(sys.implementation.name, *sys.version_info[:2])"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            words = asked.stdout.decode().split()
            if len(words) == 3 and words[0] == "cpython" and (3, 8) <= (int(words[1]), int(words[2])) <= (3, 15):
                found.setdefault(os.path.realpath(path), f"{words[1]}.{words[2]}")
    return found


def of_this_machine(library):
    """Whether this machine's interpreters can load it: in a cross build they cannot."""
    with open(library, "rb") as file, open(sys.executable, "rb") as own:
        return file.read(20)[18:] == own.read(20)[18:]  # e_machine


def main():
    if not of_this_machine(sys.argv[1]):
        print(f"skipped: {sys.argv[1]} is for another machine than the Pythons here")
        return 77
    failures = 0
    for path, version in interpreters().items():
        done = subprocess.run([path, "-B", __file__, sys.argv[1], "--inside"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        print(f"{version} {path}: {'same' if done.returncode == 0 else 'DIFFERS'}")
        if done.returncode != 0:
            failures += 1
            print(done.stdout.decode(errors="replace"))
    return 1 if failures else 0


if __name__ == "__main__":
    if "--inside" in sys.argv:
        PROBE = ctypes.CDLL(sys.argv[1])
        inside()
    else:
        sys.exit(main())
