#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compilers that packages bring as programs, on GPUs that they do not know: Triton's ptxas, cuTile's tileiras. `tools/clients --compilers`
fetches them."""
import pathlib
import subprocess

import client_checks
import e2e

HOME = e2e.SOURCE / "build/deps/clients/compilers"
PYTHON = HOME / "bin/python"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", HOME / ".requirements")


class Packages(e2e.Case):
    def run_client(self, simulated, script, *words, status=1, **env):
        env = e2e.clean_environment(TRITON_CACHE_DIR=self.folder / "cache", **env)
        return self.analysis("--simulate", simulated, "--", PYTHON, script, *words, env=env, status=status)[0]

    def refusal(self, *run, program):
        """The finding: about that program, and the line of the script that asked."""
        found = [row for row in self.run_client(*run)["findings"] if row["severity"] == "error"]
        self.assertEqual([row["cause"] for row in found], ["nvrtc-arch-unsupported"])
        finding = found[0]
        self.assertTrue(finding["object"].endswith(program), finding["object"])
        lines = client_checks.marked_lines(run[1], client_checks.REFUSED)
        self.assertEqual(finding["where"]["file"], str(run[1]))
        self.assertIn(finding["where"]["line"], lines)
        return finding

    def test_triton(self):
        """The fix names the ptxas of the environment that can, and ends the failure."""
        script = PROGRAMS / "with_triton_ptxas.py"
        finding = self.refusal("12.1", script, "121", program="/triton/backends/nvidia/bin/ptxas")
        self.assertEqual((finding["need"], finding["package"]), ("sm_121a", "triton 3.4.0 (pip)"))
        self.assertIn("sm_120a", finding["have"])
        fix = finding["fixes"][0]
        self.assertEqual(fix["id"], "select-compiler")
        name, value = fix["commands"][0].removeprefix("export ").split("=", 1)
        self.assertEqual(name, "TRITON_PTXAS_PATH")
        said = subprocess.run([value, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn("release 12.9", said)
        self.assertEqual(self.run_client("12.1", script, "121", status=0, **{name: value})["findings"], [])

    def test_cutile_on_turing(self):
        finding = self.refusal("7.5", PROGRAMS / "with_cutile.py", program="/nvidia/cu13/bin/tileiras")
        self.assertEqual(finding["need"], "sm_75")
        self.assertIn("sm_80", finding["have"])
        self.assertNotIn("select-compiler", [fix["id"] for fix in finding["fixes"]])
        self.assertIn("installing another tileiras", [row["action"] for row in finding["dead_ends"]])


if __name__ == "__main__":
    e2e.main()
