#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim diff` on what nvcc built two ways: files, folders, wheels, scans kept as JSON, reports of runs before and after a rebuild. What
it calls lost is what the simulated driver then refuses."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import e2e
import schemas

NVCC = pathlib.Path(os.environ.get("KSHIM_NVCC", "/nowhere")) / "nvcc"
if not NVCC.exists():
    print("skipped: no nvcc")
    sys.exit(e2e.SKIPPED)
e2e.require(e2e.KSHIM, e2e.SIMULATOR / "libcuda.so.1")
schemas.jsonschema_or_skip()

PROGRAM = """
#include <cstdio>
__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
#ifdef WITH_SHIFT
__global__ void shift(float* x) { x[threadIdx.x] += 1; }
#endif
int main() {
  float* x = nullptr;
  cudaMalloc(&x, 4 * sizeof(float));
  scale<<<1, 4>>>(x);
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
#ifdef WITH_SHIFT
  shift<<<1, 4>>>(x);
#endif
  printf("%s\\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
"""
BUILT = {}


def setUpModule():
    """old: sm_75, sm_80 and PTX for 8.0, two kernels. new: sm_80 and sm_90, one kernel."""
    import tempfile
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-diff-"))
    BUILT["folder"] = folder
    (folder / "p.cu").write_text(PROGRAM)
    for name, flags in (("old", ["-DWITH_SHIFT", "-gencode=arch=compute_75,code=sm_75", "-gencode=arch=compute_80,code=[sm_80,compute_80]"]),
                        ("new", ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"])):
        (folder / name).mkdir()
        subprocess.run([NVCC, "-O1", *flags, f"-L{os.environ.get('KSHIM_CUDA_LIB', '')}", f"-L{os.environ.get('KSHIM_CUDA_STUBS', '')}",
                        "-o", folder / name / "program", folder / "p.cu"], check=True, capture_output=True, timeout=300)


def tearDownModule():
    shutil.rmtree(BUILT["folder"], ignore_errors=True)


class Diff(e2e.Case):
    def diff(self, *argv, status=None):
        done = self.kshim("diff", "--format", "json", *argv)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        data = json.loads(done.stdout)
        self.assertEqual(schemas.errors(schemas.validator("diff"), data), [])
        self.assertEqual(done.returncode, 1 if data["verdict"] == "lost" else 0)
        return data

    def causes(self, data, effect, side):
        return [change[side] for change in data["changes"] if (change["effect"], change["what"]) == (effect, "finding")]

    def said(self, data, effect):
        return {(change["what"], change["arch"]) for change in data["changes"] if change["effect"] == effect}

    def old(self):
        return BUILT["folder"] / "old" / "program"

    def new(self):
        return BUILT["folder"] / "new" / "program"

    def test_two_programs(self):
        data = self.diff("--kernels", self.old(), self.new(), status=1)
        lost = self.said(data, "lost")
        self.assertLessEqual({("architecture", "sm_75"), ("ptx", "compute_80"), ("kernel", None)}, lost)
        self.assertIn(("architecture", "sm_90"), self.said(data, "gained"))
        (kernels,) = [change["kernels"] for change in data["changes"] if change["effect"] == "lost" and change["what"] == "kernel"]
        self.assertEqual(kernels, ["shift(float*)"])
        gpus = ", ".join(arch for what, arch in lost if what == "gpu").split(", ")
        self.assertLessEqual({"7.5", "12.0"}, set(gpus))
        self.assertNotIn("8.6", gpus)

    def test_the_other_way_and_the_same(self):
        self.assertEqual(self.diff(self.old(), self.old(), status=0)["changes"], [])
        back = self.diff(self.new(), self.old(), status=1)
        self.assertEqual({arch for what, arch in self.said(back, "lost") if what == "architecture"}, {"sm_90"})

    def test_targets_decide(self):
        self.assertEqual(self.said(self.diff("--target", "7.5,8.6", self.old(), self.new(), status=1), "lost"), {("target", "sm_75")})
        self.diff("--target", "8.6,9.0", self.old(), self.new(), status=0)
        # A GPU that only PTX served is served by nothing now: what the simulated driver says as well.
        self.diff("--target", "12.0", self.old(), self.new(), status=1)
        for arch, served in (("7.5", (0, 1)), ("8.6", (0, 0)), ("9.0", (0, 0)), ("12.0", (0, 1))):
            for program, status in zip((self.old(), self.new()), served):
                self.assertEqual(self.kshim("run", "--simulate", arch, program).returncode, status, f"{program} on {arch}")

    def test_wheels_of_two_versions_member_by_member(self):
        wheels = []
        for version, built in (("2.9.1+cu126", self.old()), ("2.9.1+cu128", self.new())):
            wheels.append(self.folder / f"things-{version}-cp311-cp311-linux_x86_64.whl")
            with zipfile.ZipFile(wheels[-1], "w", zipfile.ZIP_DEFLATED) as wheel:
                wheel.write(built, "things/lib/libthings.so")
                wheel.write(self.old(), "things/_C.so")
                wheel.writestr(f"things-{version}.dist-info/METADATA", f"Name: things\nVersion: {version}\n")
        data = self.diff(*wheels, status=1)
        self.assertEqual([each["match"] for each in data["objects"]], ["package", "package"])
        self.assertEqual({change["object"]["b"].rsplit("!")[1] for change in data["changes"]}, {"things/lib/libthings.so"})
        self.assertIn(("architecture", "sm_75"), self.said(data, "lost"))

    def test_folders_lose_and_gain_files(self):
        for side in ("a", "b"):
            (self.folder / side / "lib").mkdir(parents=True)
            shutil.copy(self.new(), self.folder / side / "lib" / "libsame.so")
        shutil.copy(self.old(), self.folder / "a" / "gone")
        data = self.diff(self.folder / "a", self.folder / "b", status=1)
        self.assertEqual(self.said(data, "lost"), {("object", None)})
        self.assertEqual(self.said(self.diff(self.folder / "b", self.folder / "a", status=0), "gained"), {("object", None)})

    def test_scans_kept_as_json_say_what_files_say(self):
        for name, built in (("a", self.old()), ("b", self.new())):
            done = self.kshim("scan", "--kernels", "--format", "json", "-o", self.folder / f"{name}.json", built)
            self.assertEqual(done.returncode, 0, done.stderr)
        kept = self.diff(self.folder / "a.json", self.folder / "b.json", status=1)
        fresh = self.diff("--kernels", self.old(), self.new(), status=1)
        self.assertEqual([dict(change, object=None) for change in kept["changes"]], [dict(change, object=None) for change in fresh["changes"]])

    def record(self, name, program, arch):
        done = self.kshim("run", "--simulate", arch, "--report", self.folder / name, "--format", "json", "-o", self.folder / f"{name}.json", program)
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_reports_before_and_after_a_rebuild(self):
        self.record("before", self.new(), "7.5")
        self.record("after", self.old(), "7.5")
        fixed = self.diff(self.folder / "before", self.folder / "after", status=0)
        self.assertEqual(self.causes(fixed, "gained", "before"), ["no-image-for-arch"])
        self.assertEqual(fixed["a"]["kind"], "reports")
        broken = self.diff(self.folder / "after", self.folder / "before", status=1)
        self.assertEqual(self.causes(broken, "lost", "after"), ["no-image-for-arch"])
        self.assertEqual(self.said(self.diff(self.folder / "before", self.folder / "before", status=0), "same"), {("finding", "sm_75")})
        # The same of two analyses kept as JSON.
        kept = self.diff(self.folder / "before.json", self.folder / "after.json", status=0)
        self.assertEqual(self.causes(kept, "gained", "before"), ["no-image-for-arch"])
        self.record("elsewhere", self.new(), "9.0")
        notes = self.diff(self.folder / "before", self.folder / "elsewhere", status=0)["notes"]
        self.assertTrue(any("the GPUs differ" in note for note in notes), notes)

    def test_what_cannot_be_compared(self):
        self.record("before", self.new(), "7.5")
        self.assert_says(self.kshim("diff", self.folder / "before", self.old()), 2, "compare two of a kind")
        self.assert_says(self.kshim("diff", self.old(), self.folder / "missing"), 3, "missing")
        (self.folder / "x.json").write_text('{"schema":"kshim-scan/9"}')
        self.assert_says(self.kshim("diff", self.old(), self.folder / "x.json"), 3, "kshim-scan/9")
        (self.folder / "notes.txt").write_text("nothing of interest\n")
        self.assert_says(self.kshim("diff", self.old(), self.folder / "notes.txt"), 3, "notes.txt")
        self.assert_says(self.kshim("diff", self.old()), 2, "B")
        self.assert_says(self.kshim("diff", "--format", "sarif", self.old(), self.new()), 2, "sarif", "text, json, markdown, html, github")
        self.assert_says(self.kshim("diff", "-o", self.folder / "x.json", self.folder / "x.json", self.new()), 2, "x.json")

    def test_every_format_names_what_is_lost(self):
        for name in ("text", "markdown", "html", "github"):
            done = self.kshim("diff", "--format", name, self.old(), self.new())
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            for part in ("sm_75", "sm_90" if name != "github" else "sm_75", "compute_80"):
                self.assertIn(part, done.stdout, name)
        self.assertTrue(self.kshim("diff", self.old(), self.new()).stdout.startswith("lost: B lacks what A had\n"))
        self.assertTrue(self.kshim("diff", self.old(), self.old()).stdout.startswith("same: B lacks nothing that A had\n"))
        self.assertIn("Examples:\n  kshim diff ", self.kshim("diff", "--help").stdout)


if __name__ == "__main__":
    e2e.main()
