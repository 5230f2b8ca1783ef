#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compilers that packages bring as programs, on GPUs that they do not know: Triton's ptxas, cuTile's tileiras. `tools/clients --compilers`
fetches them. With `--torch` before it: what PyTorch compiles, on a GPU that Triton and the toolkit's nvcc have no code for."""
import os
import pathlib
import subprocess
import unittest

import client_checks
import e2e

HOME = e2e.SOURCE / "build/deps/clients/compilers"
PYTHON = HOME / "bin/python"
TORCH = e2e.SOURCE / "build/deps/clients/torch"
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


@unittest.skipUnless((TORCH / ".requirements").exists(), "tools/clients --torch fetches PyTorch")
class PyTorch(e2e.Case):
    def error_of(self, script, gpu="6.1", **env):
        env = e2e.clean_environment(TORCHINDUCTOR_CACHE_DIR=self.folder / "cache", TORCH_EXTENSIONS_DIR=self.folder / "extensions", **env)
        analysis, _ = self.analysis("--simulate", gpu, "--", TORCH / "bin/python", PROGRAMS / script, env=env, status=1)
        errors = [row for row in analysis["findings"] if row["severity"] == "error"]
        self.assertEqual(len(errors), 1, [(row["cause"], row["object"]) for row in errors])
        return errors[0]

    def test_torch_compile_on_pascal(self):
        """Triton's own refusal, and no library that was only loaded."""
        finding = self.error_of("with_torch_compile.py")
        self.assertEqual((finding["cause"], pathlib.Path(finding["object"]).name), ("library-refuses", "libtriton.so"))
        self.assertIn("TORCHDYNAMO_DISABLE=1", finding["fixes"][0]["commands"][0])

    def test_an_extension_built_with_a_toolkit_that_lacks_the_gpu(self):
        nvcc = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin/nvcc"
        if not nvcc.exists() or "release 13" not in subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout:
            self.skipTest("needs an nvcc of CUDA 13, which has no 6.1")
        script = "with_torch_extension.py"
        finding = self.error_of(script, CUDA_HOME=nvcc.parent.parent)
        self.assertEqual((finding["cause"], pathlib.Path(finding["object"]).name), ("nvrtc-arch-unsupported", "nvcc"))
        self.assertIn("61", finding["need"])
        lines = client_checks.marked_lines(PROGRAMS / script, client_checks.REFUSED)
        self.assertEqual((pathlib.Path(finding["where"]["file"]).name, finding["where"]["line"] in lines), (script, True))

    def test_jax_with_a_ptxas_that_lacks_the_gpu(self):
        """XLA's `ptxas too old`. It reads the version first, and its LLVM writes no PTX that this one cannot read: so an old ptxas tells a newer
        one. The fix ends the failure, which XLA's own flag does not: JAX overwrites it."""
        old = next(HOME.glob("lib/python*/site-packages/triton/backends/nvidia/bin/ptxas"))
        told = self.folder / "bin/ptxas"
        told.parent.mkdir()
        told.write_text(f"#!/bin/sh\n[ $1 != --version ] && exec {old} \"$@\"\n{old} $1 | sed s/12[.]8/12.9/g\n")
        told.chmod(0o755)
        env = dict(PATH=f"{self.folder}/bin:{os.environ['PATH']}", JAX_PLATFORMS="cuda", JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
                   XLA_FLAGS="--xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false")
        script = "with_jax.py"
        finding = self.error_of(script, gpu="12.1", **env)
        self.assertEqual((finding["cause"], finding["object"]), ("nvrtc-arch-unsupported", os.path.realpath(old)))
        lines = client_checks.marked_lines(PROGRAMS / script, client_checks.REFUSED)
        self.assertIn(finding["where"]["line"], lines)
        newer = next(HOME.glob("lib/python*/site-packages/nvidia/cuda_nvcc"))
        self.analysis("--simulate", "12.1", "--", TORCH / "bin/python", PROGRAMS / script, env=e2e.clean_environment(CUDA_ROOT=newer, **env), status=0)


if __name__ == "__main__":
    e2e.main()
