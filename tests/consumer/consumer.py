#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A project of somebody else finds kshim, attaches it to its tests, and gets the verdicts that its programs deserve."""
import pathlib
import re
import subprocess

import e2e

PROJECT = pathlib.Path(__file__).resolve().parent / "project"
HEALTHY = e2e.SOURCE / "tests" / "golden" / "healthy" / "report.jsonl"
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", e2e.SAMPLES / "07_two_gpus" / "reduce")

EXPECTED = {
    "fits": "Passed", "fits.kshim": "Passed",
    "lacks": "Passed", "lacks.kshim": "Failed",  # WILL_FAIL holds for the program, not for the findings
    "latent": "Passed", "latent.kshim": "Failed",
    "tolerated": "Passed", "tolerated.kshim": "Passed",
    "two of them; odd name": "Passed", "two of them; odd name.kshim": "Failed",
    "no_cuda": "Passed", "no_cuda.kshim": "Passed",
    "gpu.saxpy": "Passed", "gpu.saxpy.kshim": "Passed",
    "gpu-saxpy": "Passed", "gpu-saxpy.kshim": "Passed",
    "lossy": "Passed", "lossy.kshim": "Failed",  # as `kshim run --fail-on` has it
    "lossy_tolerated": "Passed", "lossy_tolerated.kshim": "Passed",
    "not_attached": "Passed",
}


class Consumer(e2e.Case):
    def configure(self, *definitions):
        lossy = self.folder / "lossy.jsonl"
        lossy.write_text(HEALTHY.read_text().replace('"dropped":0', '"dropped":7'))
        return self.run_program("cmake", "-S", PROJECT, "-B", self.folder / "build", f"-DPROGRAMS={e2e.SAMPLES}",
                                f"-DLOSSY={lossy}", *definitions)

    def outcome(self, *definitions):
        done = self.configure(*definitions)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_program("ctest", "--test-dir", self.folder / "build", "-V")
        results = dict(re.findall(r"Test +#\d+: (.*?) \.+ *(?:\*\*\*)?(Passed|Failed)", done.stdout))
        results = {name: result for name, result in results.items() if not name.endswith(".clean")}
        self.assertEqual(results, EXPECTED, done.stdout)
        return done.stdout

    def test_the_build_tree(self):
        said = self.outcome(f"-Dkshim_DIR={e2e.BUILD / 'cmake'}")
        self.assertIn("sm_120", said)  # the analysis itself is in the log
        self.assertIn("incomplete: not all that this test did is in its reports", said)
        # The clean-up of the one must not remove what the other has left.
        self.assertEqual(len(list((self.folder / "build" / "kshim-report").glob("gpu_saxpy-*/*.jsonl"))), 2)

    def test_an_installed_tree(self):
        prefix = self.folder / "prefix"
        for component in ("kshim", "simulator"):
            subprocess.run(["cmake", "--install", e2e.BUILD, "--prefix", prefix, "--component", component], check=True,
                           stdout=subprocess.DEVNULL)
        self.outcome(f"-DCMAKE_PREFIX_PATH={prefix}")
        done = self.run_program("cmake", "--build", self.folder / "build", "--target", "where")
        self.assertIn(f"{prefix}/", done.stdout)
        self.assertIn("/libkshim.so", done.stdout)

    def test_reports_of_an_earlier_run_do_not_count(self):
        self.configure(f"-Dkshim_DIR={e2e.BUILD / 'cmake'}")
        for _ in range(2):
            done = self.run_program("ctest", "--test-dir", self.folder / "build", "-R", "^fits$")
            self.assertIn("100% tests passed, 0 tests failed out of 3", done.stdout)
        reports = list((self.folder / "build" / "kshim-report" / "fits").glob("*.jsonl"))
        self.assertEqual(len(reports), 1)

    def test_only_reports_are_removed(self):
        """Somebody names a folder that holds more, the build folder itself even, or one whose name means something to GLOB."""
        for name in (".", "odd [1] name*"):
            folder = self.folder / "build" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "old.1.jsonl").write_text(HEALTHY.read_text())
            (folder / "mine.txt").write_text("kept")
            (folder / "mine.jsonl").mkdir(exist_ok=True)
            done = self.configure(f"-Dkshim_DIR={e2e.BUILD / 'cmake'}", f'-DMISUSE=TEST not_attached SIMULATE sm_90 REPORT "{name}"')
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.run_program("ctest", "--test-dir", self.folder / "build", "-V", "-R", "^not_attached$")
            self.assertIn("100% tests passed, 0 tests failed out of 3", done.stdout)
            self.assertIn("no process of this test used CUDA", done.stdout)
            self.assertFalse((folder / "old.1.jsonl").exists())
            self.assertEqual((folder / "mine.txt").read_text(), "kept")
            self.assertTrue((folder / "mine.jsonl").is_dir())

    def test_without_the_simulator(self):
        prefix = self.folder / "prefix"
        subprocess.run(["cmake", "--install", e2e.BUILD, "--prefix", prefix, "--component", "kshim"], check=True,
                       stdout=subprocess.DEVNULL)
        done = self.configure(f"-DCMAKE_PREFIX_PATH={prefix}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("simulator", done.stderr)

    def test_misuse_is_said_at_configure_time(self):
        for call, said in (
            ("SIMULATE sm_86", "say which tests"),
            ("TEST nowhere", "there is no test `nowhere`"),
            ("TEST fits SIMULATE turing", "turing: not an architecture"),
            ("TEST fits TARGET 86.1.2", "86.1.2: not an architecture"),
            ("TEST fits FAIL_ON never", "must be error, warning or none"),
            ("TEST fits COLOR red", "COLOR"),
            ("TEST not_attached REPORT kshim-report/fits", "another test's reports"),
        ):
            done = self.configure(f"-Dkshim_DIR={e2e.BUILD / 'cmake'}", f"-DMISUSE={call}")
            self.assertNotEqual(done.returncode, 0, call)
            self.assertIn(said, re.sub(r"\s+", " ", done.stderr))


if __name__ == "__main__":
    e2e.main()
