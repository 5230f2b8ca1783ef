#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of many modules on a GPU that nothing fits: the report stays small, and what it leaves out is left out nowhere else. A stack
is written once, and named by failures that have the same; names of kernels are listed up to a number of bytes, and of a module in which a
launch fails all of them."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import e2e
import report_check

NVCC = pathlib.Path(os.environ.get("KSHIM_NVCC", "/nowhere")) / "nvcc"
if not NVCC.exists():
    print("skipped: no nvcc")
    sys.exit(e2e.SKIPPED)
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")

PARTS, KERNELS = 5, 36
IN_FULL = report_check.IN_FULL
LONG = "x" * 1990  # two parts' names are more than gaps list in full (shim/failure/gaps.cpp)
MAIN = """
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
%s
void* const* const parts[] = {%s};
void limit(rlim_t bytes) {
  rlimit now{};
  getrlimit(RLIMIT_FSIZE, &now);
  now.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &now);
}
int main(int count, char** words) {
  float* x = nullptr;
  if (cudaMalloc(&x, 16) != cudaSuccess) return 2;
  void* arguments[] = {&x};
  for (int i = 1; i < count; ++i) {
    if (strcmp(words[i], "kill") == 0) raise(SIGKILL);
    if (strcmp(words[i], "limit") == 0) { limit(1); continue; }
    if (strcmp(words[i], "unlimit") == 0) { limit(RLIM_INFINITY); continue; }
    if (strcmp(words[i], "fork") == 0) {
      if (fork() == 0) continue;
      wait(nullptr);
      return 0;
    }
    if (strcmp(words[i], "end") == 0) {
      fflush(stdout);
      _exit(0);
    }
    const bool ask = words[i][0] == '?';
    char* at = words[i] + ask;
    const int part = static_cast<int>(strtol(at, &at, 10));
    const void* kernel = parts[part][atoi(at + 1)];
    if (ask) {
      cudaFuncAttributes found;
      printf("%%d\\n", cudaFuncGetAttributes(&found, kernel));
      continue;
    }
    printf("%%d\\n", cudaLaunchKernel(kernel, dim3(1), dim3(1), arguments, 0, nullptr));
  }
}
"""
BUILT = {}


def kernel(part, number):
    return f"k{part}_{number}_{LONG}"


def mangled(part, number):
    name = kernel(part, number)
    return f"_Z{len(name)}{name}Pf"


def setUpModule():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-many-"))
    BUILT["folder"] = folder
    for part in range(PARTS):
        bodies = "\n".join(f"__global__ void {kernel(part, number)}(float* x) {{ x[0] = {number}; }}" for number in range(KERNELS))
        table = ", ".join(f"(void*){kernel(part, number)}" for number in range(KERNELS))
        (folder / f"part{part}.cu").write_text(f"{bodies}\nvoid* part{part}[] = {{{table}}};\n")
    (folder / "main.cu").write_text(MAIN % ("\n".join(f"extern void* part{part}[];" for part in range(PARTS)),
                                            ", ".join(f"part{part}" for part in range(PARTS))))
    sources = sorted(folder.glob("*.cu"))
    libraries = os.environ.get("KSHIM_CUDA_LIB", "")
    built = subprocess.run([NVCC, "-Xptxas", "-O0", "-gencode", "arch=compute_75,code=sm_75", "-cudart", "shared", f"-L{libraries}",
                            f"-L{os.environ.get('KSHIM_CUDA_STUBS', '')}", "-Xlinker", f"-rpath={libraries}", "-o", folder / "program", *sources],
                           capture_output=True, text=True, timeout=300)
    if built.returncode != 0:
        raise RuntimeError(built.stdout + built.stderr)


def tearDownModule():
    shutil.rmtree(BUILT["folder"], ignore_errors=True)


class Many(e2e.Case):
    def records(self, *words, complete=True, killed=False, loading="LAZY", devices="12.0"):
        done = self.run_program(BUILT["folder"] / "program", *words, env=e2e.preloaded(devices, CUDA_MODULE_LOADING=loading))
        self.assertEqual(done.returncode, -9 if killed else 0, done.stderr)
        return [report_check.load(path, complete, killed) for path in sorted(self.folder.rglob("*.jsonl"))]

    def test_each_stack_is_written_once(self):
        records, = self.records(*[f"{part}.{number}" for part in range(3) for number in range(30)])
        failures = e2e.of_type(records, "failure")
        launches = [failure for failure in failures if failure["kernel"]]
        self.assertEqual({failure["kernel"] for failure in launches}, {mangled(part, number) for part in range(3) for number in range(30)})
        self.assertTrue(all(failure["native"] for failure in failures[:IN_FULL]))
        self.assertLess(sum(failure["native"] is not None for failure in failures), IN_FULL + 6)
        self.assertGreater(sum(failure["native_of"] is not None for failure in failures), 60)
        self.assertTrue(all(failure["native"] or failure["native_of"] for failure in failures))
        self.assertFalse(any(failure["python"] or failure["python_of"] for failure in failures), "there is no Python")

    def gaps_by_module(self, *words):
        """{offset: gaps} of modules with kernels, in the order of the report, and all records."""
        records, = self.records(*words, loading="EAGER")
        found = {}
        for gap in e2e.of_type(records, "gap"):
            if gap["total"]:
                found.setdefault(gap["offset"], []).append(gap)
        return found, records

    def test_gaps_name_a_few_kernels_and_all_where_a_launch_fails(self):
        loaded, _ = self.gaps_by_module()
        self.assertEqual([len(gaps) for gaps in loaded.values()], [1] * PARTS)
        listed = [(len(set(gap["kernels"])), gap["total"], gap["complete"]) for gaps in loaded.values() for gap in gaps]
        self.assertEqual(listed, [(KERNELS, KERNELS, True)] * 2 + [(2, KERNELS, False)] * (PARTS - 2))
        self.assertLess(max(path.stat().st_size for path in self.folder.rglob("*.jsonl")), 3 * KERNELS * len(LONG))

    def test_a_launch_that_fails_brings_the_rest_once(self):
        words = [f"{part}.{number}" for part in range(PARTS) for number in (3, 4, 5)]
        modules, records = self.gaps_by_module(*words)
        failed = {failure["kernel"]: failure["seq"] for failure in e2e.of_type(records, "failure")}
        self.assertEqual(len(failed), len(words))
        self.assertEqual(sorted(len(gaps) for gaps in modules.values()), [1] * 2 + [2] * (PARTS - 2))
        for gaps in modules.values():
            last = gaps[-1]
            self.assertEqual((len(set(last["kernels"])), last["complete"]), (KERNELS, True))
            launched = [name for name in last["kernels"] if name in failed]
            self.assertEqual(len(launched), 3)
            for gap in gaps[1:]:
                self.assertGreater(gap["seq"], min(failed[name] for name in launched))
            for gap in gaps[:-1]:
                self.assertEqual((len(gap["kernels"]), gap["complete"]), (2, False))

    def test_a_fork_s_child_names_no_failure_of_its_parent(self):
        words = [f"0.{number}" for number in range(IN_FULL + 4)]
        reports = self.records(*words, "fork", *words, "end")
        self.assertEqual(len(reports), 2)  # whose references report_check follows
        for records in reports:
            failures = e2e.of_type(records, "failure")
            self.assertTrue(failures[0]["native"])
            self.assertTrue(failures[-1]["native_of"])
        stacks = [[failure["native"] for failure in e2e.of_type(records, "failure") if failure["native"]] for records in reports]
        self.assertTrue([frames for frames in stacks[0] if frames in stacks[1]], "one stack of both, written in both")

    def test_a_record_that_could_not_be_written_is_not_named(self):
        asked = [f"?1.{number}" for number in range(IN_FULL)]
        records, = self.records("?0.9", *asked, "limit", "0.0", "unlimit", "0.1", "0.2")
        self.assertGreater(records[-1]["dropped"], 0)
        launches = [failure for failure in e2e.of_type(records, "failure") if failure["stage"] == "launch"]
        self.assertEqual([failure["kernel"] for failure in launches], [mangled(0, 1), mangled(0, 2)])
        self.assertTrue(launches[0]["native"])
        self.assertEqual(launches[1]["native_of"], launches[0]["id"])

    def test_killed(self):
        records, = self.records("0.0", "0.1", "1.0", "kill", complete=False, killed=True)
        self.assertNotEqual(records[-1]["type"], "end")
        self.assertEqual(len([failure for failure in e2e.of_type(records, "failure") if failure["kernel"]]), 3)

    def analyzed(self, *options):
        done = self.kshim("analyze", "--format", "json", *options, *self.folder.rglob("*.jsonl"))
        return [finding for finding in json.loads(done.stdout)["findings"] if finding["cause"] == "no-image-for-arch"]

    def test_the_finding_where_the_file_is_there_and_where_it_is_gone(self):
        self.records(*[f"{part}.3" for part in range(PARTS)], loading="EAGER")
        there, = self.analyzed()
        path, = self.folder.rglob("*.jsonl")
        path.write_text(path.read_text().replace(str(BUILT["folder"] / "program"), "/gone/program"))
        gone, = self.analyzed()
        self.assertEqual((there["kernels_total"], there["kernels_complete"]), (PARTS * KERNELS, True))
        self.assertEqual(sorted(gone["kernels"]), sorted(there["kernels"]))
        for name in ("kernels_total", "kernels_complete", "failed_kernel", "count", "have", "need"):
            self.assertEqual(gone[name], there[name])
        self.assertTrue(gone["where"])


PYTHON = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, module = ctypes.c_void_p(), ctypes.c_void_p()
def text(number):
    return (".version 7.8\\n.target sm_90\\n.address_size 64\\n.visible .entry k%d() { ret; }\\n" % number).encode()
def load(number):
    if number < 20:
        return cuda.cuModuleLoadData(ctypes.byref(module), text(number))
    return cuda.cuModuleLoadData(ctypes.byref(module), text(number))
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
for number in range(23):
    load(number)
"""


class Python(e2e.Case):
    def test_python_frames_are_compared_by_themselves(self):
        (self.folder / "loads.py").write_text(PYTHON)
        done = self.run_program(sys.executable, "loads.py", env=e2e.preloaded("8.6"))
        self.assertEqual(done.returncode, 0, done.stderr)
        path, = self.folder.rglob("*.jsonl")
        failures = e2e.of_type(report_check.load(path, True), "failure")
        self.assertEqual(len(failures), 23)
        own = [failure for failure in failures if failure["python"]]
        self.assertEqual([[frame["function"] for frame in failure["python"]] for failure in own], [["load", "<module>"]] * (IN_FULL + 1))
        self.assertEqual([failure["python"][0]["line"] for failure in own], [9] * IN_FULL + [10], "one line apart is another stack")
        self.assertEqual([failure["python_of"] for failure in failures], [None] * IN_FULL + [1] * 4 + [None] + [21] * 2)
        for failure in failures[IN_FULL:]:
            self.assertEqual((failure["native_of"], failure["native"]), (1, None))


if __name__ == "__main__":
    e2e.main()
