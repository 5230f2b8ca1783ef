#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver, a toolkit and PTX that are newer than the tables: each answer that depends on one says so, with its number and the newest
that the tables have. What the tables know is not said to be new."""
import json

import e2e

e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")
TABLES = json.loads((e2e.SOURCE / "tests/knowledge/toolkits.json").read_text(encoding="utf-8"))["toolkits"]
NEWEST, NEWEST_ISA = TABLES[-1]["cuda"], TABLES[-1]["isa"]
NEXT = f"{int(NEWEST.split('.')[0]) + 1}.0"
NEXT_ISA = f"{NEWEST_ISA.split('.')[0]}.{int(NEWEST_ISA.split('.')[1]) + 2}"
LOAD = """
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
context, module = ctypes.c_void_p(), ctypes.c_void_p()
assert cu.cuInit(0) == 0 and cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cu.cuCtxSetCurrent(context) == 0
sys.exit(cu.cuModuleLoad(ctypes.byref(module), sys.argv[1].encode()) != 0)
"""


def ptx(isa, target):
    return f".version {isa}\n.target sm_{target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


class NewerWorld(e2e.Case):
    def setUp(self):
        super().setUp()
        self.known, self.new = self.folder / "known.ptx", self.folder / "new.ptx"
        self.known.write_text(ptx(NEWEST_ISA, 90), encoding="ascii")
        self.new.write_text(ptx(NEXT_ISA, 80), encoding="ascii")
        self.host = self.folder / "host.py"
        self.host.write_text(LOAD, encoding="utf-8")

    def says(self, done, asked, newest):
        """Whether one sentence of the answer has both numbers."""
        strings = []

        def collect(value):
            if isinstance(value, dict):
                value = list(value.values())
            if isinstance(value, list):
                for each in value:
                    collect(each)
            elif isinstance(value, str):
                strings.append(value)

        collect(json.loads(done.stdout))
        return any(f"{asked} is newer" in text and newest in text for text in strings)

    def json_of(self, *argv, status=(0, 1)):
        done = self.kshim(*argv)
        self.assertIn(done.returncode, status, done.stderr)
        return done

    def test_scan(self):
        run = ("scan", "--format", "json", "--target", "8.0")
        self.assertTrue(self.says(self.json_of(*run, "--driver", NEXT, self.known), NEXT, NEWEST))
        self.assertTrue(self.says(self.json_of(*run, self.new), NEXT_ISA, NEWEST_ISA))
        for known in (self.json_of(*run, "--driver", NEWEST, self.known), self.json_of(*run, self.known)):
            self.assertNotIn("is newer than this", known.stdout)

    def test_explain(self):
        for option in ("--assume-driver", "--assume-toolkit"):
            asked = ("explain", "--format", "json", "--assume-cc", "8.0", option)
            self.assertTrue(self.says(self.json_of(*asked, NEXT, "209"), NEXT, NEWEST), option)
            self.assertNotIn("is newer than this", self.json_of(*asked, NEWEST, "209").stdout)
        words = f"ptxas application ptx input, line 9; fatal   : Unsupported .version {NEXT_ISA}; current version is '9.0'"
        self.assertTrue(self.says(self.json_of("explain", "--format", "json", words), NEXT_ISA, NEWEST_ISA))

    def test_run_and_analyze(self):
        report = self.folder / "r"
        self.kshim("run", "--simulate", f"8.0,driver={NEXT}", "--report", report, "--", "/usr/bin/env", "python3", self.host, self.known)
        self.assertTrue(self.says(self.json_of("analyze", "--format", "json", report), NEXT, NEWEST))
        again = self.folder / "again"
        self.kshim("run", "--simulate", "8.0", "--report", again, "--", "/usr/bin/env", "python3", self.host, self.known)
        self.assertNotIn("is newer than this", self.json_of("analyze", "--format", "json", again).stdout)
        self.assertTrue(self.says(self.json_of("analyze", "--format", "json", "--assume-driver", NEXT, again), NEXT, NEWEST))


if __name__ == "__main__":
    e2e.main()
