#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_facts with the simulator in place of the driver: it builds its programs, asks everything, and finds nothing that
differs from the simulator; what does differ is found."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
sys.path.insert(0, str(SOURCE / "tests" / "gpu"))
import gpu_report  # noqa: E402


def run(*argv, **environment):
    return subprocess.run([sys.executable, "-B", SOURCE / "tools" / "gpu_facts", *map(str, argv)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}, check=False)


class GpuFacts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="kshim-gpu-facts-test-")
        done = run("--simulate", "9.0", "--build", BUILD, "--quick", "--out", cls.folder.name)
        if done.returncode == 77:
            print(done.stdout)
            cls.folder.cleanup()
            sys.exit(77)
        assert done.returncode == 0, done.stdout
        cls.found = json.loads(pathlib.Path(cls.folder.name, "gpu-facts.json").read_text())
        cls.page = pathlib.Path(cls.folder.name, "gpu-facts.md").read_text()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_nothing_differs_from_itself(self):
        self.assertEqual(self.found["differences"], [])
        self.assertEqual(self.found["problems"], [])

    def test_everything_was_asked(self):
        real = self.found["real"]
        addresses = [name for name in real["questions"] if name.startswith("address.")]
        text = (SOURCE / "shim" / "cuda" / "hooks.def").read_text()
        self.assertEqual(len(addresses), text.count("\nKSHIM_HOOK(driver,"))
        self.assertGreater(len(real["facts"]["default"]), 150)
        self.assertEqual(len(real["clients"]), 20)
        for name, client in real["clients"].items():
            self.assertGreater(len(client["calls"]), 5, name)
            self.assertEqual(client["status"] == 0, "fitting" in name, f"{name}: {client['output']}")

    def test_the_missing_image_is_traced_to_its_call(self):
        for name, client in self.found["real"]["clients"].items():
            failure = gpu_report.first_failure(client)
            if "foreign" in name:
                self.assertEqual(failure[1], 209, name)
            else:
                self.assertIsNone(failure, name)

    def test_what_differs_is_found(self):
        changed = copy.deepcopy(self.found)
        real = changed["real"]
        real["facts"]["default"]["module.all.fatbin.load"] = "999"
        real["facts"]["default"]["attribute.13"] = "1"  # a clock
        real["questions"]["address.cuInit"] = "different | because"
        client = real["clients"]["static runtime, fitting (sm_90), lazy"]
        client["calls"][3][1] = 777
        other = real["clients"]["static runtime, fitting (sm_90), eager"]
        other["output"] = other["output"][:-1]
        found = gpu_report.differences(changed)
        self.assertEqual([(where, what) for where, what, _, _ in found],
                         [("questions", "address.cuInit"), ("driver_facts, default", "module.all.fatbin.load"),
                          ("static runtime, fitting (sm_90), lazy", "call 3"), ("static runtime, fitting (sm_90), eager", "what it prints")])

    def test_the_page(self):
        self.assertIn("This is the simulator and no GPU", self.page)
        self.assertIn("## What differs from the simulator\n\nNothing.", self.page)
        for line in self.page.splitlines():
            if line.startswith("|"):
                self.assertIn(line.count("|"), (3, 4, 5), line)

    def test_without_a_device(self):
        done = run("--out", self.folder.name, LD_LIBRARY_PATH="/nowhere", KSHIM_SIM_DEVICES="")
        self.assertIn(done.returncode, (0, 77), done.stdout)  # 0 where there is a GPU
        done = run("--nvcc", "/nowhere", "--out", self.folder.name, PATH="/usr/bin", CUDA_HOME="", CUDA_PATH="", LD_LIBRARY_PATH="/nowhere")
        self.assertIn(done.returncode, (0, 77), done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
