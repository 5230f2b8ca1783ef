#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim_guard.py, the file that projects copy: for every file and target it says what `kshim scan` says."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402

sys.path.insert(0, str(e2e.SOURCE / "python/guard"))
import kshim_guard  # noqa: E402

e2e.require(e2e.KSHIM)

TARGETS = [gpu["cc"] for gpu in json.loads((e2e.SOURCE / "knowledge/gpus.json").read_text())["gpus"]]
LIBRARIES = [path for path in (e2e.BUILD / "tests/python").glob("lib*.so")]
TOOLKITS = [path for path in pathlib.Path("/usr/local").glob("cuda*/lib*/*.so*") if not path.is_symlink() and path.is_file()]
NVCC_SECTIONS = (b".nv_fatbin", b"__nv_relfatbin", b".nvFatBinSegment")


def is_nvccs(path):
    """Has the file a section of nvcc's? The guard leaves out files that only keep a loose cubin in their data (libcupti)."""
    headers = subprocess.run(["readelf", "-SW", path], capture_output=True, check=False).stdout
    return any(name in headers for name in NVCC_SECTIONS)


class Guard(e2e.Case):
    def assert_agrees(self, files):
        files = sorted({str(path.resolve()) for path in files if is_nvccs(path)})
        self.assertTrue(files)
        done = self.kshim("scan", "--format", "json", "--target", ",".join(TARGETS), *files, timeout=300)
        refused = {target: set() for target in TARGETS}
        for each in json.loads(done.stdout)["objects"]:
            for target, on in zip(TARGETS, each["targets"]):
                if on["lacking"] and not on["sass"] and not on["jit"]:
                    refused[target].add(each["path"])
        for target in TARGETS:
            with self.subTest(target=target):
                self.assertEqual({file.path for file in kshim_guard.uncovered(target, files)}, refused[target])

    def test_programs(self):
        programs = [path for path in e2e.SAMPLES.rglob("*") if path.is_file() and os.access(path, os.X_OK)]
        self.assert_agrees(LIBRARIES + programs)

    @unittest.skipUnless(TOOLKITS, "no CUDA toolkit's libraries below /usr/local")
    def test_libraries_of_the_toolkit(self):
        self.assert_agrees(TOOLKITS)

    def test_what_a_file_has_instead(self):
        narrow = [path for path in LIBRARIES if path.name == "libnarrow.so"]
        if not narrow:
            self.skipTest("no nvcc: the test's libraries were not built")
        self.assertEqual([file.have for file in kshim_guard.uncovered((12, 0), narrow)], [("sm_90",)])
        self.assertEqual(kshim_guard.uncovered("sm_90", narrow), [])

    def test_a_module_without_kernels_does_not_count(self):
        nvcc = shutil.which("nvcc")
        if not nvcc:
            self.skipTest("no nvcc")
        (self.folder / "kernel.cu").write_text("__global__ void scale(float* x) { *x *= 2; }\n")
        (self.folder / "empty.cu").write_text("__device__ int unused_value;\n")
        flags = ["-Xcompiler", "-fPIC", "-c"]
        for source, arch in (("kernel", "90"), ("empty", "75")):
            self.run_program(nvcc, *flags, "-gencode", f"arch=compute_{arch},code=[sm_{arch},compute_{arch}]"
                             if source == "empty" else "arch=compute_90,code=sm_90", f"{source}.cu", check=True)
        self.run_program(nvcc, "-shared", "-arch=sm_75", "-o", "libboth.so", "kernel.o", "empty.o", check=True)
        self.assert_agrees([self.folder / "libboth.so"])
        self.assertEqual([file.have for file in kshim_guard.uncovered("8.0", [self.folder / "libboth.so"])], [("sm_90",)])

    def test_what_is_packed_and_cannot_be_unpacked(self):
        """Without a decompressor, the size tells modules without kernels, with variables too, from the smallest kernel."""
        nvcc = shutil.which("nvcc")
        if not nvcc:
            self.skipTest("no nvcc")
        for name, text, found in (("empty", "__device__ int unused_value;\n", 0), ("least", "__global__ void least() {}\n", 1)):
            (self.folder / f"{name}.cu").write_text(text)
            for codes in ("75 80", "90", "100 120"):
                flags = [f"-gencode=arch=compute_{each},code=[sm_{each},compute_{each}]" for each in codes.split()]
                self.run_program(nvcc, "-shared", "-Xcompiler", "-fPIC", "-Xfatbin", "-compress-all", "--compress-mode=size", *flags,
                                 "-cudart=none", "-o", f"lib{name}.so", f"{name}.cu", check=True)
                with self.subTest(name, codes=codes), unittest.mock.patch.object(kshim_guard, "_unpack_zstd", lambda packed: None):
                    self.assertEqual(len(kshim_guard.uncovered("6.1", [self.folder / f"lib{name}.so"])), found)

    def test_rules(self):
        for image, gpus in (("sm_80", "80 86 89"), ("sm_86", "86 89"), ("sm_87", "87"), ("sm_90a", "90"), ("sm_100f", "100 103"), ("sm_120", "120 121"),
                            ("sm_121f", "121"), ("sm_101", "110"), ("compute_90a", "90"), ("compute_100f", "100 103"), ("compute_89", "89 90 100 103 110 120 121")):
            prefix, _, rest = image.partition("_")
            number, suffix = rest.rstrip("af"), rest[len(rest.rstrip("af")):]
            kind = kshim_guard.CUBIN if prefix == "sm" else kshim_guard.PTX
            candidate = kshim_guard.Image(kind, int(number), suffix, (8, 0), 0, 0, 0, "", 0)
            runs = [gpu for gpu in (70, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121) if kshim_guard.runs(candidate, gpu)]
            self.assertEqual(runs, [int(gpu) for gpu in gpus.split()], image)

    def test_spellings_of_a_gpu(self):
        for spelling in ("12.1", "sm_121", "SM_121", (12, 1), [12, 1], "121"):
            self.assertEqual(kshim_guard._number(spelling), 121)

    def test_a_driver_that_is_too_old_for_the_ptx(self):
        ptx = kshim_guard.Image(kshim_guard.PTX, 80, "", (8, 8), 0, 0, 0, "", 0)
        for driver, runs in ((None, True), ("12.9", True), ("13.0", True), ("12.8", False), ((12, 2), False), ("11.8", False)):
            self.assertEqual(kshim_guard.runs(ptx, 90, kshim_guard._isa(driver)), runs, driver)

    def test_isa_of_each_release(self):
        for row in json.loads((e2e.SOURCE / "knowledge/toolkits.json").read_text())["toolkits"]:
            if row["cuda"].startswith(("11.", "12.", "13.")):
                self.assertEqual(kshim_guard._isa(row["cuda"]), tuple(int(part) for part in row["isa"].split(".")), row["cuda"])

    def test_this_process(self):
        narrow = [path for path in LIBRARIES if path.name == "libnarrow.so"]
        if not narrow:
            self.skipTest("no nvcc: the test's libraries were not built")
        program = ("import ctypes, os, sys; sys.path.insert(0, sys.argv[1]); import kshim_guard\n"
                   "ctypes.CDLL(sys.argv[2], os.RTLD_LAZY); print([file.path for file in kshim_guard.uncovered('12.0')])")
        done = self.run_program(sys.executable, "-c", program, e2e.SOURCE / "python/guard", narrow[0])
        self.assertIn(str(narrow[0].resolve()), done.stdout, done.stderr)

    def test_command(self):
        guard = e2e.SOURCE / "python/guard/kshim_guard.py"
        self.assertEqual(self.run_program(sys.executable, guard).returncode, 2)
        self.assertEqual(self.run_program(sys.executable, guard, "12.0", sys.executable).returncode, 0)
        for path in LIBRARIES:
            if path.name == "libnarrow.so":
                done = self.run_program(sys.executable, guard, "12.0", path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(str(path), done.stdout)

    def test_what_is_no_elf_file_or_damaged(self):
        for number, content in enumerate((b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(58), b"text\n" * 100)):
            path = self.folder / str(number)
            path.write_bytes(content)
            self.assertEqual(kshim_guard.uncovered("9.0", [path, self.folder / "missing", self.folder]), [])
        for path in LIBRARIES[:1]:
            whole = path.read_bytes()
            for size in range(0, len(whole), max(len(whole) // 200, 1)):
                cut = self.folder / "cut.so"
                cut.write_bytes(whole[:size])
                kshim_guard.uncovered("9.0", [cut])

    def test_size_and_version(self):
        lines = (e2e.SOURCE / "python/guard/kshim_guard.py").read_text().splitlines()
        self.assertLessEqual(len(lines), 300)


e2e.main()
