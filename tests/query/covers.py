#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim.covers() of the installed package: its results, this machine's GPU through the driver, and no driver."""
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0] + "/tests/python/support")
import e2e  # noqa: E402
import staged  # noqa: E402

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
HISTOGRAM = e2e.SAMPLES / "02_ptx_newer_than_gpu" / "histogram"  # compute_90
e2e.require(e2e.KSHIM, SAXPY, e2e.BUILD / "query" / "libkshim-query.so.1")
KERNEL = "_Z5saxpyifPKfPf"


class Covers(staged.Staged):
    simulator = (e2e.SIMULATOR / "libcuda.so.1").exists()

    def asked(self, code, env=None):
        done = self.python("-c", f"import kshim, pathlib\nfile, kernel = {str(SAXPY)!r}, {KERNEL!r}\n{code}", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_answers(self):
        self.assertEqual(self.asked("print(kshim.covers(file, kernel, '8.6'), kshim.covers(pathlib.Path(file), capability=(7, 5)))"), "sass none")
        self.assertEqual(self.asked("print([bool(kshim.covers(file, kernel, c)) for c in ('9.0', '12.0')])"), "[True, False]")
        self.assertEqual(self.asked("print(kshim.covers(file, 'other', '9.0').reason)"), "kernel_not_found")
        self.assertEqual(self.asked("print(bool(kshim.covers('/nowhere', None, '9.0')), kshim.covers('/nowhere', None, '9.0') == 'unknown')"), "False True")
        self.assertEqual(self.asked("a = kshim.covers(file, kernel, '12.0'); print(a.reason, a.have, a.lacking, len(a.text) > 20)"),
                         "nothing_fits ('sm_80', 'sm_90') 1 True")
        self.assertEqual(self.asked("a = kshim.covers(file, kernel, '8.9'); print(a.image, a.sass, a.jit, a.modules)"), "sm_80 1 0 1")

    def test_driver(self):
        ask = f"print(kshim.covers({str(HISTOGRAM)!r}, capability='9.0', driver={{}}).reason)"
        self.assertEqual(self.asked(ask.format("'12.4'")), "ptx_isa_gate")
        self.assertEqual(self.asked(ask.format("(13, 0)")), "ptx_forward")

    def test_bad_arguments(self):
        for arguments in ("capability='hopper'", "capability='9'", "capability=(9,)", "capability='9.0', driver='new'"):
            done = self.python("-c", f"import kshim; kshim.covers('/nowhere', {arguments})")
            self.assertIn("ValueError", done.stderr, arguments)
        self.assertEqual(self.asked("print(kshim.covers(file, '', '9.0').reason)"), "bad_question")
        for arguments in ("file + '\\0b'", "file, 'scale\\0'"):
            done = self.python("-c", f"import kshim\nfile = {str(SAXPY)!r}\nkshim.covers({arguments}, capability='9.0')")
            self.assertIn("ValueError", done.stderr, arguments)

    def test_this_gpu(self):
        if not self.simulator:
            self.skipTest("the simulator was not built")
        e2e.not_instrumented(self)

        def simulated(devices, **changes):
            return self.environment(LD_LIBRARY_PATH=e2e.SIMULATOR, KSHIM_SIM_DEVICES=devices, **changes)

        ask = "print(kshim.covers(file), kshim.covers(file, kernel).image)"
        self.assertEqual(self.asked(ask, simulated("8.6")), "sass sm_80")
        self.assertEqual(self.asked(ask, simulated("12.0;8.6")), "none")
        self.assertEqual(self.asked(ask, simulated("8.6", CUDA_FORCE_PTX_JIT="1")), "none")
        self.assertEqual(self.asked(ask, simulated("8.6", CUDA_FORCE_PTX_JIT="0")), "sass sm_80")
        ptx = f"print(kshim.covers({str(HISTOGRAM)!r}).reason)"
        self.assertEqual(self.asked(ptx, simulated("9.0", KSHIM_SIM_DRIVER="12.4")), "ptx_isa_gate")
        self.assertEqual(self.asked(ptx, simulated("9.0", KSHIM_SIM_DRIVER="13.0")), "ptx_forward")
        done = self.python("-c", f"import kshim; kshim.covers({str(SAXPY)!r})", env=simulated(""))
        self.assertIn("kshim._covers.NoGpu: the CUDA driver names no GPU (error 100)", done.stderr)

    def test_no_driver(self):
        code = f"import kshim\ntry:\n  kshim.covers({str(SAXPY)!r})\nexcept kshim.NoGpu as error:\n  print(error)"
        out = self.asked(code)
        self.assertRegex(out, "give capability=")


if __name__ == "__main__":
    e2e.main()
