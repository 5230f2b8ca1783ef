#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A count from hardware: cusparseLtInit of nvidia-cusparselt-cu12 0.6.2 offers 2,494 fat binaries; on an RTX 4090 with CUDA 13.3 the
driver loaded 274 and answered CUDA_ERROR_NO_BINARY_FOR_GPU to 2,220, and the library went on (github.com/lupinemachines/lupine, pull
requests 805 and 806). `tools/clients` fetches the wheel."""
import collections
import pathlib
import sys

import e2e

HOME = e2e.SOURCE / "build/deps/clients/cusparselt"
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/with_cusparselt.py"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", HOME / ".requirements")
LIBRARY = next(HOME.rglob("libcusparseLt.so.0"))


class OnAda(e2e.Case):
    def test_each_fat_binary_as_on_the_card(self):
        trace = self.folder / "trace"
        env = e2e.clean_environment(KSHIM_SIM_TRACE=trace)
        found, _ = self.analysis("--simulate", "sm_89", "--report", self.folder / "report", "--", sys.executable, PROGRAM, LIBRARY, env=env,
                                 status=0)
        answers = collections.Counter(line.rsplit(") = ", 1)[1].split(" ")[0] for line in trace.read_text().splitlines()
                                      if " cuModuleLoadFatBinary(" in line)
        self.assertEqual(answers, {"0": 274, "209": 2220})
        self.assertEqual(found["verdict"], "ok")
        self.assertFalse([row["cause"] for row in found["findings"] if row["severity"] == "error"])
        # The report says the same of the same run.
        (records,) = self.reports(self.folder / "report")
        self.assertEqual(sum(row["type"] == "module" and row["result"] == 0 for row in records), 274)
        self.assertEqual(sum(row["type"] == "gap" for row in records), 2220)

    def test_a_gpu_that_it_refuses(self):
        """It asks for the compute capability and loads nothing, though it has PTX of helpers for every GPU."""
        for device, need in (("7.5", "sm_75"), ("12.0", "sm_120")):
            for ends, status in ((";", 1), ("|| true", 0)):
                with self.subTest(device=device, status=status):
                    found, _ = self.analysis("--simulate", device, "--", "sh", "-c", f'"$0" "$1" "$2" {ends} test $? = 0', sys.executable, PROGRAM, LIBRARY,
                                             status=status)
                    refuses, = found["findings"]
                    self.assertEqual((refuses["cause"], refuses["severity"], refuses["need"], refuses["object"]),
                                     ("library-refuses", "warning", need, str(LIBRARY)))
                    self.assertEqual(found["verdict"], "failure" if status else "idle")


if __name__ == "__main__":
    e2e.main()
