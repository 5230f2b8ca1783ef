#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""KSHIM_IMAGES: an image in memory that the driver refuses is kept beside the report, and the command reads it there."""
import json
import os
import pathlib
import resource
import shutil
import stat
import sys

import e2e

CLIENTS = e2e.BUILD / "tests/clients"
IMAGES = {kind: CLIENTS / f"kernels.{kind}" for kind in ("cubin", "ptx", "fatbin")}
HOST_OF_LIBRARY = e2e.SAMPLES / "06_dlopen_library" / "host"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", e2e.KSHIM, *IMAGES.values())

# A real host: Python, by ctypes. Each image lies on the heap while it is loaded. "file:": the driver reads the file.
HOST = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
module = ctypes.c_void_p()
if sys.argv[1] != "no-context":
    assert cuda.cuInit(0) == 0
    device, context = ctypes.c_int(), ctypes.c_void_p()
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
else:
    cuda.cuInit(0)
for path in sys.argv[2:]:
    if path.startswith("file:"):
        print(cuda.cuModuleLoad(ctypes.byref(module), path[5:].encode()))
    else:
        image = ctypes.create_string_buffer(open(path, "rb").read())
        print(cuda.cuModuleLoadData(ctypes.byref(module), image))
"""
# The same with what NVRTC makes.
NVRTC = """
import ctypes, sys
cuda, nvrtc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(sys.argv[1])
source, program, size, module = b'extern "C" __global__ void made(float* x) { *x = 1; }', ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
device, context = ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"made.cu", 0, None, None) == 0
assert nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"-arch=sm_90")) == 0
for kind in ("CUBIN", "PTX"):
    assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
    image = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{kind}")(program, image) == 0
    print(cuda.cuModuleLoadData(ctypes.byref(module), image))
"""


def ptx_of(size, number=0):
    """A text of that many bytes for a GPU that is not there."""
    head = f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry kernel_{number}() {{ ret; }}\n//"
    return head + "x" * (size - len(head) - 1) + "\n"


class Kept(e2e.Case):
    def setUp(self):
        super().setUp()
        self.report = self.folder / "r"

    def host(self, *images, devices="7.5", first="load", **more):
        env = e2e.preloaded(devices, KSHIM_REPORT=f"{self.report}/%p.jsonl", KSHIM_LOG="off", **more.pop("variables", {}))
        done = self.run_program(sys.executable, "-c", HOST, first, *images, env=env, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(line) for line in done.stdout.split()]

    def kept(self):
        """What lies beside the reports."""
        return sorted(path for path in self.report.iterdir() if path.suffix != ".jsonl")

    def records(self, kind):
        return [record for report in self.reports(self.report) for record in e2e.of_type(report, kind)]

    def analyze(self, *more):
        return self.kshim("analyze", *more, self.report).stdout

    def errors(self):
        return [row for row in json.loads(self.analyze("--format", "json"))["findings"] if row["severity"] == "error"]

    def test_cubin_ptx_and_fatbin(self):
        for kind, path in IMAGES.items():
            with self.subTest(kind):
                self.report = self.folder / kind
                self.host(path)
                file, = self.kept()
                module, = self.records("module")
                self.assertEqual((file.name, file.name), (module["kept"], f"{module['content_hash']}.{kind}"))
                self.assertEqual(file.read_bytes().rstrip(b"\0"), path.read_bytes().rstrip(b"\0"))
                self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
                error, = self.errors()
                self.assertEqual(sorted(error["kernels"]), ["scale", "shift"])
                self.assertTrue(error["kernels_complete"])
                for more in (["-v"], ["--format", "markdown"], ["--format", "html"], ["--format", "json"]):
                    self.assertIn(file.name, self.analyze(*more), more)

    def test_what_nvrtc_makes(self):
        library = next(iter(sorted(pathlib.Path(os.environ.get("KSHIM_CUDA_LIB", "/")).glob("libnvrtc.so*"))), None)
        if library is None:
            self.skipTest("the toolkit has no NVRTC here")
        done = self.run_program(sys.executable, "-c", NVRTC, library, env=e2e.preloaded("7.5", KSHIM_REPORT=f"{self.report}/%p.jsonl"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.suffix for path in sorted(self.kept(), key=lambda path: path.suffix)], [".cubin", ".ptx"])
        self.assertEqual([error["kernels"] for error in self.errors()], [["made"], ["made"]])

    def test_none(self):
        for variables in ({"KSHIM_IMAGES": "0"}, {"KSHIM_PRIVATE": "1"}):
            self.report = self.folder / next(iter(variables))
            self.host(*IMAGES.values(), variables=variables)
            self.assertEqual(self.kept(), [])
            self.assertEqual([row["kept"] for row in self.records("module")], [None] * 3)
            self.assertEqual([len(row["kernels"]) for row in self.records("gap")], [2, 2, 0], "names are recorded, too")

    def test_only_what_the_driver_refused_and_no_file_has(self):
        self.assertEqual(self.host(*IMAGES.values(), devices="9.0"), [0, 0, 0])
        self.assertEqual([code != 0 for code in self.host(*(f"file:{path}" for path in IMAGES.values()))], [True] * 3)
        self.assertNotIn(0, self.host(IMAGES["cubin"], first="no-context"))
        (self.folder / "no.image").write_bytes(b"nothing that is known" * 99)
        self.assertNotIn(0, self.host(self.folder / "no.image"))
        self.assertEqual(self.kept(), [])

    def test_of_a_library(self):
        if not HOST_OF_LIBRARY.exists():
            self.skipTest(f"{HOST_OF_LIBRARY} was not built")
        env = e2e.preloaded("6.1", KSHIM_REPORT=f"{self.report}/%p.jsonl")
        self.run_program(HOST_OF_LIBRARY, env=env)
        self.assertEqual(len(self.records("failure")), 1)
        self.assertEqual(self.kept(), [])

    def test_once(self):
        for _ in range(2):
            self.host(*[IMAGES["cubin"]] * 3, devices="7.5;8.0")
        file, = self.kept()
        self.assertEqual([row["kept"] for row in self.records("module")], [file.name] * 2)

    def test_limits(self):
        mib = 1 << 20
        sizes = [16 * mib, 16 * mib + 1, 20 * mib]
        for number, size in enumerate(sizes):
            (self.folder / f"{number}.ptx").write_text(ptx_of(size, number))
        self.host(*(self.folder / f"{number}.ptx" for number in range(len(sizes))))
        self.assertEqual([path.stat().st_size for path in self.kept()], [16 * mib])
        self.assertEqual([row["kept"] is not None for row in self.records("module")], [True, False, False])
        shutil.rmtree(self.report)
        for number in range(6):
            (self.folder / f"{number}.ptx").write_text(ptx_of(15 * mib, number))
        self.host(*(self.folder / f"{number}.ptx" for number in range(6)))
        self.assertEqual(sum(path.stat().st_size for path in self.kept()), 60 * mib)
        self.assertEqual([row["kept"] is not None for row in self.records("module")], [True] * 4 + [False] * 2)

    def check_without(self):
        """The record names none, nothing is left of it, and the rest is there."""
        self.assertEqual([row["kept"] for row in self.records("module")], [None])
        self.assertEqual(self.kept(), [])
        self.assertEqual(len(self.records("failure")), 1)

    def test_the_size_of_files_is_limited(self):
        (self.folder / "large.ptx").write_text(ptx_of(1 << 20))
        self.host(self.folder / "large.ptx", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)))
        self.check_without()

    def test_the_disk_is_full(self):
        (self.folder / "large.ptx").write_text(ptx_of(1 << 20))
        self.report.mkdir()
        inside = f"mount -t tmpfs -o size=256k none {self.report} && {{ \"$@\"; status=$?; cp -r {self.report} {self.folder}/copy; exit $status; }}"
        env = e2e.preloaded("7.5", KSHIM_REPORT=f"{self.report}/%p.jsonl", KSHIM_LOG="off")
        if self.run_program("unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=256k none {self.report}").returncode != 0:
            self.skipTest("no mount namespaces here")
        preload = env.pop("LD_PRELOAD")
        done = self.run_program("unshare", "-rm", "sh", "-c", inside, "sh", "env", f"LD_PRELOAD={preload}", sys.executable, "-c", HOST, "load",
                                self.folder / "large.ptx", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.report = self.folder / "copy"
        self.check_without()

    def test_a_link_of_that_name_is_not_followed(self):
        self.host(IMAGES["cubin"])
        file, = self.kept()
        victim = self.folder / "victim"
        victim.write_bytes(b"mine")
        shutil.rmtree(self.report)
        self.report.mkdir()
        file.symlink_to(victim)
        self.host(IMAGES["cubin"])
        self.assertEqual(victim.read_bytes(), b"mine")
        self.assertEqual([row["kept"] for row in self.records("module")], [None])

    def test_kept_files_that_are_not_what_they_were(self):
        """What the command makes of them: the same cause, by what the report holds, and the reason."""
        self.host(IMAGES["cubin"])
        file, = self.kept()
        image = file.read_bytes()
        other = self.folder / "other.cubin"
        other.write_bytes(image)
        report, = self.report.glob("*.jsonl")
        records = report.read_text()

        def rename(name):
            report.write_text(records.replace(file.name, name))

        changes = {
            "gone": lambda: None,
            "truncated": lambda: file.write_bytes(image[:-1]),
            "empty": lambda: file.write_bytes(b""),
            "longer": lambda: file.write_bytes(image + b"\0"),
            "another": lambda: file.write_bytes(b"\xff" + image[1:]),
            "sparse": lambda: (file.write_bytes(image), os.truncate(file, 1 << 40)),
            "link": lambda: file.symlink_to(other),
            "pipe": lambda: os.mkfifo(file),
            "folder": file.mkdir,
            "elsewhere": lambda: rename("../other.cubin"),
            "absolute": lambda: rename(str(other)),
            "of another kind": lambda: (file.write_bytes(image), rename(file.name.replace(".cubin", ".so"))),
        }
        for name, change in changes.items():
            with self.subTest(name):
                file.unlink()
                report.write_text(records)
                change()
                error, = self.errors()
                self.assertEqual((error["cause"], error["have"], sorted(error["kernels"])), ("no-image-for-arch", ["sm_90"], ["scale", "shift"]))
                ids = [row["id"] for row in error["evidence_items"]]
                self.assertEqual(("kept-image" in ids, "unread-file" in ids), (False, True))
                if file.is_dir():
                    file.rmdir()
                file.unlink(missing_ok=True)
                file.write_bytes(image)


if __name__ == "__main__":
    e2e.main()
