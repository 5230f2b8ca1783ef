#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts that hold, lose or use up what the shim once relied on: each hung or died with the shim."""
import e2e
import hostile

FAULTS = hostile.HERE / "faults"


class Faults(hostile.Case):
    def test_fork_child_exits_while_linker_lock_is_held(self):
        """a child of fork ends with `exit` while a thread of its parent is inside a `dl_iterate_phdr` callback | nothing | nothing: no CUDA"""
        self.same(FAULTS, "fork_exit")
        self.assertEqual(self.found(), [])

    def test_immediate_exit_while_linker_lock_is_held(self):
        """`_exit` while another thread is inside a `dl_iterate_phdr` callback for ever | nothing | all of it, with its end"""
        done = self.same(FAULTS, "immediate")
        self.assertEqual(done.returncode, 5)
        self.assertEqual(self.only()[-1]["type"], "end")

    def test_unwind_tables_that_cannot_be_read(self):
        """a failing call comes out of a library with a damaged `.eh_frame_hdr`; then another thread opens a library | nothing | the frames that could be read"""
        self.same(FAULTS, "unwind", hostile.HERE / "libcall_through.so", hostile.HERE / "libimage.so")
        self.assertEqual(len(e2e.of_type(self.only(), "failure")), 1)

    def test_driver_is_unloaded_and_loaded_elsewhere(self):
        """a driver is used, closed with `dlclose`, opened at another address and used again | nothing | the failures of all its lives"""
        self.same(FAULTS, "reload", hostile.HERE / "reload" / "libcuda.so.1")
        self.assertEqual(set(self.codes(self.only())), {200})


if __name__ == "__main__":
    e2e.main()
