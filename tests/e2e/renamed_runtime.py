#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels give the libraries they bring names of their own (libcudart-e409450e.so.11.0). The runtime in such a file is found by
the version of its symbols: a call that found nobody would be answered 35, and the program ended by it."""
import e2e

PROGRAM = e2e.PROGRAMS / "e2e_renamed_runtime"
e2e.require(e2e.SHIM, PROGRAM)


class Renamed(e2e.Case):
    def test_calls_reach_it(self):
        bare = self.run_program(PROGRAM)
        self.assertEqual((bare.returncode, bare.stdout), (0, "42 43\n"), bare.stderr)
        done = self.run_program(PROGRAM, env=e2e.clean_environment(LD_PRELOAD=e2e.SHIM, KSHIM_LOG="off"))
        self.assertEqual((done.returncode, done.stdout), (0, "42 43\n"), done.stderr)


if __name__ == "__main__":
    e2e.main()
