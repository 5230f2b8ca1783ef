#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python where it is not simply /usr/bin/python3: embedded, in several interpreters, in greenlets, stripped, in a sandbox, unknown to
the shim, and not there at all. The frames are right, or there are none; nothing dies.

    python_hosts_test.py PROBE.so
"""
import ctypes
import glob
import os
import pathlib
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

import python_frames_test

HERE = pathlib.Path(__file__).resolve().parent
PROBE = sys.argv[1]
FRAMES = HERE / "python_frames_test.py"
COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
FAILED, RAN = [], []


def skipped(what, why):
    print(f"skipped: {what}: {why}")


def check(what, command, env=None, says="", preexec=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})},
                          preexec_fn=preexec, timeout=120)
    text = done.stdout.decode(errors="replace")
    good = done.returncode == 0 and says in text
    RAN.append(what)
    print(f"{what}: {'same' if good else f'FAILED ({done.returncode})'}")
    if not good:
        FAILED.append(what)
        print(text)


def flags(config, *words):
    """None where this Python cannot be embedded: its headers are a package of their own."""
    if not os.path.exists(config):
        return None
    done = subprocess.run([config, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return shlex.split(done.stdout.decode()) if done.returncode == 0 else None


def embedded(folder, python, version):
    """Shared; static, which gives its names away (as python itself) or keeps them."""
    config = f"{os.path.dirname(os.path.realpath(python))}/python{version}-config"
    compile_with, link_with = flags(config, "--embed", "--includes"), flags(config, "--embed", "--ldflags")
    if not COMPILER or not compile_with or link_with is None:
        return skipped(f"{version} embedded", "no compiler, or no python-config of it")
    archive = glob.glob(f"{flags(config, '--embed', '--configdir')[0]}/libpython{version}.a")
    ways = {"shared": (link_with, "")}
    if archive:
        rest = [word for word in link_with if not word.startswith(("-lpython", "-L"))]
        more = [word for word in ("-lz", "-lexpat") if python.startswith("/usr/bin/")]
        whole = ["-Wl,--whole-archive", archive[0], "-Wl,--no-whole-archive", *rest, *more, "-lpthread", "-lutil"]
        ways.update({"static": ([*whole, "-rdynamic"], ""), "static, without names": (whole, "--blind")})
    for way, (link, argument) in ways.items():
        program = folder / f"embedded-{version}-{way.split(',')[0]}{len(argument)}"
        built = subprocess.run([COMPILER, "-O1", *(["-no-pie"] if way != "shared" else []), "-o", program, HERE / "hosts/embedded.c", *compile_with, *link, "-ldl"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        if built.returncode != 0:
            skipped(f"{version} embedded, {way}", f"it does not link: {built.stdout.decode(errors='replace').strip()[-200:]}")
            continue
        script = HERE / "hosts/script.py"
        if argument:
            script = folder / "blind.py"
            script.write_text((HERE / "hosts/script.py").read_text().replace('"--blind" in sys.argv', "True"))
        env = {"PYTHONHOME": subprocess.check_output([python, "-c", "import sys; print(sys.base_prefix)"]).decode().strip()}
        check(f"{version} embedded, {way}", [program, PROBE, script], env, "same")


def stripped(folder, python, version):
    """Its dynamic symbols are what is left."""
    if not shutil.which("strip"):
        return skipped("stripped", "no strip")
    real = pathlib.Path(os.path.realpath(python))
    copy = folder / "stripped" / version
    copy.mkdir(parents=True)
    libraries = [*real.parent.parent.glob(f"lib/libpython{version}.so.1.0")]
    for file in (real, *libraries):
        subprocess.run(["strip", "--strip-all", "-o", copy / file.name, file], check=True)
    env = {"LD_LIBRARY_PATH": str(copy), "PYTHONHOME": str(real.parent.parent)}
    check(f"{version} stripped", [copy / real.name, "-B", FRAMES, PROBE, "--inside"], env)


class Filter:
    """A seccomp filter that answers system calls with an error: x86-64, as the shim calls them."""
    NUMBERS = {"process_vm_readv": 310}

    def __init__(self, error, names, only_probes=False):
        # struct sock_filter: code, jt, jf, k. BPF_LD|W|ABS 0x20, JMP|JEQ|K 0x15, RET|K 0x06.
        rows = [(0x20, 0, 0, 0)]
        for name in names:
            rows += [(0x15, 0, 1, self.NUMBERS[name]), (0x06, 0, 0, 0x00050000 | error)]
        rows.append((0x06, 0, 0, 0x7FFF0000))
        self.code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
        self.program = ctypes.create_string_buffer(struct.pack("@HxxxxxxP", len(rows), ctypes.addressof(self.code)))
        self.prctl = ctypes.CDLL(None, use_errno=True).prctl

    def __call__(self):
        none = ctypes.c_ulong(0)
        assert self.prctl(38, ctypes.c_ulong(1), none, none, none) == 0  # PR_SET_NO_NEW_PRIVS
        assert self.prctl(22, ctypes.c_ulong(2), self.program, none, none) == 0  # PR_SET_SECCOMP, MODE_FILTER


EMPTY = ("import ctypes, sys; p = ctypes.CDLL(sys.argv[1]).probe_python; p.restype = ctypes.c_size_t; b = ctypes.create_string_buffer(65536); "
         "n = p(b, ctypes.c_size_t(65536)); assert b.raw[:n] == b'[]', b.raw[:n]; print('none')")


def sandboxes(python, version):
    if os.uname().machine != "x86_64":
        return skipped("sandboxes", "the filter is made for x86-64")
    for name, error in (("EPERM", 1), ("ENOSYS", 38), ("EACCES", 13)):
        check(f"{version} where process_vm_readv gives {name}", [python, "-B", FRAMES, PROBE, "--inside"], preexec=Filter(error, ["process_vm_readv"]))


GREENLETS = """
import sys
sys.path.insert(0, %r)
sys.argv = ["x", %r]
import python_frames_test as frames, ctypes, greenlet
frames.PROBE = ctypes.CDLL(sys.argv[1])
def worker(depth):
    if depth:
        return worker(depth - 1)
    frames.compare("in a greenlet")
    main.switch()
    frames.compare("in a greenlet, back again")
    greenlet.greenlet(lambda: frames.compare("in a greenlet of a greenlet")).switch()
main = greenlet.getcurrent()
def start():
    task = greenlet.greenlet(worker)
    task.switch(3)
    frames.compare("beside a greenlet")
    task.switch()
    frames.compare("after a greenlet")
start()
print("same")
"""


def greenlets(python, version):
    if subprocess.run([python, "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode != 0:
        return skipped(f"{version} greenlets", "this Python has no greenlet: tools/setup brings it")
    check(f"{version} greenlets", [python, "-B", "-c", GREENLETS % (str(HERE), PROBE)], says="same")


def unknown(folder):
    if not COMPILER:
        return skipped("an unknown interpreter", "no compiler")
    asks = folder / "asks"
    subprocess.run([COMPILER, "-o", asks, HERE / "hosts/asks.c", "-ldl"], check=True)
    check("a program without Python", [asks, PROBE, "-", "-1"], says="as it should")
    for minor in (7, 8, 10, 11, 12, 13, 14, 15, 16, 99):
        library = folder / f"libunknown{minor}.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", f"-DMINOR={minor}", "-o", library, HERE / "hosts/unknown.c"], check=True)
        check(f"something that says it is CPython 3.{minor}", [asks, PROBE, library, "6" if minor in (13, 14, 15) else "-1"], says="as it should")


def foreign():
    for name in ("pypy3", "python3.13t", "python3.14t", "graalpy"):
        path = shutil.which(name)
        if path is None:
            skipped(name, "not installed")
        else:
            free = name.endswith("t")  # CPython without the GIL: its frames are right; of the others there are none
            command = [path, "-B", FRAMES, PROBE, "--inside"] if free else [path, "-c", EMPTY, PROBE]
            check(name, command, says="" if free else "none")


def main():
    if not python_frames_test.of_this_machine(PROBE):
        print(f"skipped: {PROBE} is for another machine than the Pythons here")
        return 77
    with tempfile.TemporaryDirectory(prefix="kshim-hosts-") as name:
        folder = pathlib.Path(name)
        newest = {}
        for path, version in python_frames_test.interpreters().items():
            newest.setdefault(version, path)
        for version, path in sorted(newest.items(), key=lambda row: int(row[0][2:])):
            embedded(folder, path, version)
            stripped(folder, path, version)
            sandboxes(path, version)
        greenlets(sys.executable, "{}.{}".format(*sys.version_info))
        unknown(folder)
        foreign()
    print(f"{len(RAN) - len(FAILED)} of {len(RAN)} as they should be")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
