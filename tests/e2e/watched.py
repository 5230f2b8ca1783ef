#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which processes of a site are watched: KSHIM_PROGRAMS, KSHIM_SAMPLE, and what a report says of user, job and GPU."""
import json
import os
import pathlib
import shutil
import sys

import e2e

e2e.require(e2e.SHIM, e2e.KSHIM, e2e.SIMULATOR / "libcuda.so.1")

PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
if "fail" in sys.argv:
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), b"nothing of the kind" + bytes(64)) != 0
"""
PYTHON = pathlib.Path(sys.executable).resolve()


class Watched(e2e.Case):
    def reports(self, *arguments, program=PYTHON, times=1, devices="7.5", **changes):
        folder = self.folder / "reports"
        shutil.rmtree(folder, ignore_errors=True)
        (self.folder / "program.py").write_text(PROGRAM)
        env = e2e.preloaded(devices, KSHIM_REPORT=folder / "%p.jsonl", **changes)
        for _ in range(times):
            done = self.run_program(program, "program.py", *arguments, env=env, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
        return [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.glob("*"))]

    def test_instance_of_a_split_gpu(self):
        """MIG: the UUID is the instance's, written as nvidia-smi and CUDA_VISIBLE_DEVICES have it."""
        names = ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB"]
        devices = ";".join(f"8.0:{name}" for name in names)
        records, = self.reports(devices=devices)
        instance, gpu = e2e.of_type(records, "device")
        self.assertEqual([instance["name"], gpu["name"]], [name + " (simulated)" for name in names])
        uuid = "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        self.assertRegex(instance["uuid"], f"^MIG{uuid}$")
        self.assertRegex(gpu["uuid"], f"^GPU{uuid}$")
        # The name that the report has is one that the driver takes.
        records, = self.reports(devices=devices, CUDA_VISIBLE_DEVICES=instance["uuid"])
        (shown,) = e2e.of_type(records, "device")
        self.assertEqual((shown["name"], shown["uuid"]), (instance["name"], instance["uuid"]))

    def test_programs(self):
        name = PYTHON.name
        for patterns, watched in (("", True), (name, True), ("py*", True), ("lmp", False), (f"lmp;{name}", True), (f"!{name}", False), ("!lmp", True),
                                  (f"py*;!{name}", False), (f"!py*;{name}", True), (str(PYTHON), True), (f"!{PYTHON.parent}/*", False),
                                  ("?" * len(name), True), ("?" * (len(name) + 1), False), (" lmp ; py* ", True), ("!;", True)):
            with self.subTest(patterns=patterns):
                self.assertEqual(len(self.reports("fail", KSHIM_PROGRAMS=patterns)), int(watched))

    def test_a_program_that_is_left_alone_does_nothing(self):
        self.assertEqual(self.reports("fail", KSHIM_PROGRAMS="!*", KSHIM_LOG="debug", KSHIM_TARGET="12.0"), [])

    # A user who asks for one run wants all of it, whatever the site's settings are.
    def test_a_run_is_watched(self):
        (self.folder / "program.py").write_text(PROGRAM)
        done = self.kshim("run", "--simulate", "7.5", "--report", self.folder / "r", "--", PYTHON, "program.py", "fail", cwd=self.folder,
                          env=e2e.clean_environment(KSHIM_PROGRAMS="!*", KSHIM_SAMPLE="100000"))
        self.assertEqual(len(list((self.folder / "r").glob("*.jsonl"))), 1, done.stderr)

    def test_a_sample_of_healthy_processes(self):
        self.assertEqual(self.reports(KSHIM_SAMPLE="1000000", times=3), [])
        # Of 16 with one in two: none with a probability of 2^-16.
        some = self.reports(KSHIM_SAMPLE="2", times=16)
        self.assertIn(len(some), range(1, 17))
        self.assertEqual({report[0]["sample"] for report in some}, {2})
        self.assertEqual([report[0]["sample"] for report in self.reports()], [None])

    def test_a_failure_is_always_there_and_whole(self):
        report, = self.reports("fail", KSHIM_SAMPLE="1000000")
        types = [record["type"] for record in report]
        for kind in ("process", "driver", "device", "failure", "end"):
            self.assertEqual(types.count(kind), 1, types)
        self.assertIsNone(report[0]["sample"])
        self.assertEqual([record["seq"] for record in report], list(range(len(report))))
        end = report[-1]
        self.assertEqual((end["failures"], end["modules"], end["dropped"]), (1, 1, 0))

    def test_the_weight_of_a_row(self):
        for arguments, sample in (((), 2), (("fail",), 1)):
            self.reports(*arguments, KSHIM_SAMPLE="2", times=16)
            said = self.kshim("analyze", "--format", "jsonl", self.folder / "reports").stdout
            self.assertEqual({json.loads(line)["processes"][0]["sample"] for line in said.splitlines()}, {sample})

    def test_bad_values(self):
        report, = self.reports("fail", KSHIM_SAMPLE="-3")
        self.assertIsNone(report[0]["sample"])

    def test_user_and_job(self):
        for given, job in ((dict(SLURM_JOB_ID="77", SLURM_JOB_ACCOUNT="physics", SLURM_JOB_PARTITION="gpu"),
                            {"scheduler": "slurm", "id": "77", "account": "physics", "queue": "gpu"}),
                           (dict(PBS_JOBID="1.server", PBS_QUEUE="long"), {"scheduler": "pbs", "id": "1.server", "queue": "long"}),
                           (dict(LSB_JOBID="5", LSB_QUEUE="q", LSB_PROJECT_NAME="p"), {"scheduler": "lsf", "id": "5", "account": "p", "queue": "q"}),
                           (dict(POD_NAME="train-0", POD_NAMESPACE="ml"), {"scheduler": "kubernetes", "id": "train-0", "account": "ml"}),
                           ({}, None)):
            with self.subTest(job=job):
                report, = self.reports(**given)
                self.assertEqual(report[0]["job"], job)
                self.assertEqual(report[0]["uid"], str(os.geteuid()))
                row = json.loads(self.kshim("analyze", "--format", "jsonl", self.folder / "reports").stdout)["facts"]
                self.assertEqual((row["job"], row["account"], row["queue"]), tuple((job or {}).get(name) for name in ("id", "account", "queue")))

    def test_the_group_may_read(self):
        self.reports(KSHIM_MODE="0640")
        path, = (self.folder / "reports").iterdir()
        self.assertEqual(path.stat().st_mode & 0o777, 0o640)


if __name__ == "__main__":
    e2e.main()
