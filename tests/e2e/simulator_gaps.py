#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim run --simulate` names what the simulator lacks where the program failed after it had called it, and only then."""
import e2e

e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
for name in sys.argv[2:]:
    code = cuda[name](None, None, None, None)
    print(name, code)
sys.exit(int(sys.argv[1]))
"""


class Gaps(e2e.Case):
    def notes(self, status, *names):
        found, done = self.analysis("--simulate", "8.6", "--", "python3", "-c", PROGRAM, str(status), *names, status=status)
        return [note for note in found["notes"] if "801" in note], done

    def test_named_where_the_program_failed(self):
        notes, done = self.notes(3, "cuGreenCtxDestroy", "cuIpcCloseMemHandle", "cuGreenCtxDestroy", "cuDriverGetVersion")
        self.assertEqual(len(notes), 1)
        self.assertIn("cuGreenCtxDestroy, cuIpcCloseMemHandle", notes[0])
        self.assertIn("801", done.stdout)

    def test_not_named_otherwise(self):
        self.assertEqual(self.notes(0, "cuGreenCtxDestroy")[0], [])
        self.assertEqual(self.notes(3, "cuDriverGetVersion")[0], [])


if __name__ == "__main__":
    e2e.main()
