#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""toolkit.py LIBRARY CUDA: the answers of libkshim-query.so are those of `kshim scan`, on what nvcc built and on the libraries in CUDA,
for every compute capability that kshim knows."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import e2e
from ask import covers, use

LIBRARY, CUDA = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
e2e.require(e2e.KSHIM, LIBRARY, e2e.SAMPLES / "01_missing_architecture" / "saxpy")
use(LIBRARY)

GPUS = json.loads((e2e.SOURCE / "knowledge" / "gpus.json").read_text())["gpus"]
CAPABILITIES = [tuple(map(int, gpu["cc"].split("."))) for gpu in GPUS]
PROGRAMS = ["01_missing_architecture/saxpy", "02_ptx_newer_than_gpu/histogram", "03_arch_specific_sm_90a/attention",
            "04_kernel_absent_from_one_image/convert", "05_driver_api/kernels.fatbin", "06_dlopen_library/libscale.so", "08_healthy/transpose"]
RELOCATABLE, DEVICE_LAUNCH = (e2e.BUILD / "tests" / "query" / name for name in ("relocatable", "device_launch"))
NAMES = ["cublas", "cusolver", "cusolverMg", "cufft", "curand", "cusparse", "nccl", "npp*", "nvjpeg", "cudnn_ops"]
MOST_KERNELS = 100  # asked for by name, of a file


def libraries():
    """One of each, by its real name."""
    found = {path.resolve() for name in NAMES for path in CUDA.glob(f"lib{name}.so*")}
    return sorted(path for path in found if path.is_file())


class Toolkit(e2e.Case):
    def scan(self, path, *options):
        targets = ",".join(f"{major}.{minor}" for major, minor in CAPABILITIES)
        done = self.kshim("scan", "--format", "json", "--target", targets, *options, path)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)["objects"][0]

    def compare(self, path):
        scanned = self.scan(path)
        self.assertEqual(len(scanned["targets"]), len(CAPABILITIES))
        for target, capability in zip(scanned["targets"], CAPABILITIES):
            with self.subTest(file=path.name, target=target["target"]):
                answer = covers(path, capability=capability)
                for count in ("sass", "jit", "lacking"):
                    self.assertEqual(getattr(answer, count), target[count], count)
                self.assertEqual(answer.modules, answer.sass + answer.jit + answer.lacking)
                self.assertEqual(answer, "sass" if answer.sass else "jit" if answer.jit else "none")
                archs = {image["arch"] for image in scanned["images"]}
                self.assertLessEqual(set(answer.have), archs)
                self.assertIn(answer.image, archs | {""})

    def compare_kernels(self, path):
        kernels = self.scan(path, "--kernels")["kernels"]
        self.assertTrue(kernels)
        for kernel in kernels[::len(kernels) // MOST_KERNELS + 1]:
            for capability in CAPABILITIES:
                with self.subTest(file=path.name, kernel=kernel["name"], capability=capability):
                    answer = covers(path, kernel["name"], capability)
                    cubin = "sm_%d%d" % capability
                    if answer:
                        self.assertIn(answer.image, kernel["archs"])
                        self.assertEqual(answer, "jit" if answer.image.startswith("compute_") else "sass")
                    else:
                        self.assertEqual(answer, "none")
                        self.assertNotEqual(answer.reason, "kernel_not_found")
                        self.assertTrue(cubin not in kernel["archs"] or answer.reason == "kernel_missing_from_image")
        self.assertEqual(covers(path, "no_such_kernel", "9.0").reason, "kernel_not_found")

    def test_programs(self):
        for name in PROGRAMS:
            self.compare(e2e.SAMPLES / name)
            self.compare_kernels(e2e.SAMPLES / name)

    def test_relocatable_program(self):
        if not RELOCATABLE.exists():
            self.skipTest("there is no nvcc")
        self.compare(RELOCATABLE)
        self.compare_kernels(RELOCATABLE)
        self.assertEqual([str(covers(RELOCATABLE, "_Z11relocatablePf", arch)) for arch in ("7.5", "8.6", "9.0", "10.0")],
                         ["none", "sass", "sass", "jit"])

    def test_program_with_a_part_of_nvidias(self):
        """The part has PTX for GPUs that the program has no code for."""
        if not DEVICE_LAUNCH.exists():
            self.skipTest("there is no nvcc")
        self.compare(DEVICE_LAUNCH)
        self.assertEqual([image["arch"] for image in self.scan(DEVICE_LAUNCH)["images"]], ["sm_90"])
        for arch, answer in (("9.0", "sass"), ("10.0", "none"), ("12.1", "none")):
            self.assertEqual(covers(DEVICE_LAUNCH, "_Z8launchesv", arch), answer)
        found, _ = self.analysis("--simulate", "sm_121", "--", DEVICE_LAUNCH)
        self.assertEqual([finding["cause"] for finding in found["findings"]], ["no-image-for-arch"])
        modules = [record for report in self.reports() for record in e2e.of_type(report, "module")]
        self.assertEqual({module["selected"] for module in modules}, {None})

    def test_libraries(self):
        found = libraries()
        if not found:
            self.skipTest(f"no libraries in {CUDA}")
        print(", ".join(path.name for path in found), flush=True)
        for path in found:
            self.compare(path)

    def test_kernels_of_a_library(self):
        for name in ("curand", "cublas"):
            for path in {path.resolve() for path in CUDA.glob(f"lib{name}.so")}:
                self.compare_kernels(path)

    def test_what_is_foretold_happens(self):
        """The real runtime on the simulated driver launches where the answer says so, and fails where it does not."""
        if not (e2e.SIMULATOR / "libcuda.so.1").exists():
            self.skipTest("the simulator was not built")
        e2e.not_instrumented(self)
        for name, kernel, architectures in (("01_missing_architecture/saxpy", "_Z5saxpyifPKfPf", ("7.5", "8.0", "8.6", "9.0", "12.0")),
                                            ("03_arch_specific_sm_90a/attention", None, ("9.0", "10.0")),
                                            ("08_healthy/transpose", "_Z9transposePKfPfi", ("7.5", "8.9", "12.1"))):
            for architecture in architectures:
                program = e2e.SAMPLES / name
                done = self.run_program(program, env=e2e.simulated(architecture))
                self.assertEqual(done.returncode == 0, bool(covers(program, kernel, architecture)), (name, architecture, done.stdout))

    def test_cut_off(self):
        """A real library of some size, cut at many places."""
        whole = (e2e.SAMPLES / "06_dlopen_library" / "libscale.so").read_bytes()
        for at in range(120):
            size = len(whole) * at // 120
            path = self.folder / "libscale.so"
            path.write_bytes(whole[:size])
            self.assertEqual(str(covers(path, capability="8.0")), "unknown", f"{size} of {len(whole)} bytes")
        path.write_bytes(whole)
        self.assertEqual(str(covers(path, capability="8.0")), "sass")

    def test_only_the_file_is_opened(self):
        strace = shutil.which("strace")
        guard = e2e.SAMPLES / "09_guard" / "guard"
        if strace is None or not guard.exists() or not (e2e.SIMULATOR / "libcuda.so.1").exists():
            self.skipTest("needs strace and the sample 09_guard")
        log = self.folder / "calls"
        done = self.run_program(strace, "-f", "-o", log, "-e", "trace=file,desc", guard, env=e2e.simulated("12.0"))
        if not log.exists() or "ptrace" in done.stderr:
            self.skipTest("strace may not trace here")
        calls = log.read_text().splitlines()
        first = next(n for n, call in enumerate(calls) if "stat" in call and "libfast.so" in call)
        last = next(n for n, call in enumerate(calls) if "guard: on the CPU" in call)
        asked = [re.sub(r"^\d+ +", "", call) for call in calls[first:last]]
        opened = [call for call in asked if call.startswith("open")]
        self.assertEqual(len(opened), 1, asked)
        self.assertRegex(opened[0], r"libfast\.so\", O_RDONLY\|O_NOCTTY\|O_NONBLOCK\|O_CLOEXEC\)")
        number = opened[0].rpartition("= ")[2]
        mapped = [call for call in asked if call.startswith("mmap") and re.search(r", -?%s, 0" % number, call)]
        self.assertEqual(mapped, [])
        self.assertTrue(any(call.startswith(("pread64", "pread")) for call in asked), asked)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
