#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the kernel's, and stacks that are nearly used up."""
import json
import os
import platform
import resource

import e2e
import hostile
from hostile import BOTH, NO_IMAGE

STACKS = hostile.HERE / "stacks"
STEPS = {"nothing": 0, "dlsym": 0, "dlsym-default": 0, "init": 0, "load": 0, "failing-load": 209, "lookup": 0, "failing-lookup": 500, "launch": 0,
         "failing-launch": 1}
SMALLEST = 16384 if platform.machine() == "x86_64" else 131072  # PTHREAD_STACK_MIN
# Of the shim's own on the stack of a thread that has no room: the wrapper, the test, the first frames of what follows.
MOST = 2048


class Limits(hostile.Case):
    def test_descriptors(self):
        """RLIMIT_NOFILE of 32, used up by the host | one number less, from the upper half of what is allowed | all of it"""
        for limit in (32, 64, 1024):
            with self.subTest(limit):
                one, two = self.bare(*self.scenario("descriptors", limit)), self.shimmed(*self.scenario("descriptors", limit))
                ours, theirs = two.stdout.splitlines(), one.stdout.splitlines()
                self.assertEqual((ours[0], ours[2], two.returncode), (theirs[0], theirs[2], one.returncode))
                self.assertEqual(int(ours[1]), int(theirs[1]) - 1)
                self.assertEqual(self.codes(self.found()[-1]), BOTH)

    def without_descriptors(self, *words):
        done = self.plain("no-descriptors", *words)
        self.assertIn("too many open files; nothing is recorded", done.stderr)
        self.assertIn("CUDA_ERROR_NO_BINARY_FOR_GPU", done.stderr)  # once a kind, for parent and child
        return self.found()

    def test_no_descriptor_at_all(self):
        """RLIMIT_NOFILE 0 before the first use of the driver | nothing; stderr says so, and has the failure | none; `kshim run` says so"""
        self.assertEqual(self.without_descriptors(), [])
        if not e2e.KSHIM.exists():  # in the root folders of tools/roots, the shim alone is tried
            return
        done = self.kshim("run", "--format", "json", "-o", "analysis.json", "--", hostile.PLAIN_HOST, "no-descriptors",
                          env=e2e.clean_environment(LD_LIBRARY_PATH=hostile.PLAIN))
        self.assertEqual(done.returncode, 0)
        self.assertIn("CUDA_ERROR_NO_BINARY_FOR_GPU", done.stderr)
        found = json.loads((self.folder / "analysis.json").read_text())
        self.assertEqual(found["verdict"], "blind", found)

    def test_a_child_without_descriptors(self):
        """a child of fork sets RLIMIT_NOFILE 0 | nothing; stderr says so | the parent's failure, none of the child's"""
        (parent,) = self.without_descriptors("child")
        self.assertEqual([record["kernel"] for record in e2e.of_type(parent, "failure")], ["of the parent"])

    def test_file_size(self):
        """RLIMIT_FSIZE, down to nothing | no SIGXFSZ | what fits; a record that does not is taken back and counted"""
        for limit, failures in ((0, None), (1000, []), (1 << 20, BOTH)):
            with self.subTest(limit):
                folder = self.folder / str(limit)
                self.same(*self.scenario("file-size", limit), variables={"KSHIM_REPORT": folder / "r.jsonl"})
                if failures is None:
                    self.assertEqual((folder / "r.jsonl").read_bytes(), b"")
                else:
                    lines = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
                    self.assertEqual((self.codes(lines), lines[0]["type"]), (failures, "process"))

    def test_address_space(self):
        """RLIMIT_AS, with 32 MiB more than the host alone needs | nothing | all of it"""
        def works(start, limit):
            return "0 0 500 209" in start(*self.scenario("address-space", limit)).stdout
        step = 16 << 20
        least = next(limit for limit in range(step, 1 << 36, step) if works(self.bare, limit))
        self.same(*self.scenario("address-space", least + 2 * step))
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_address_space_that_is_too_small(self):
        """RLIMIT_AS below that | the host's own failures come sooner; the shim adds no end of its own | what could be written"""
        for limit in range(8 << 20, 1 << 30, 48 << 20):
            one, two = (start(*self.scenario("address-space", limit)) for start in (self.bare, self.shimmed))
            if one.returncode == 0:
                self.assertIn(two.returncode, (0, 1), f"{limit}: {two.stderr}")

    def test_processes(self):
        """RLIMIT_NPROC of 1 | nothing: the shim makes no thread and no process | all of it"""
        self.same(*self.scenario("processes", 1))
        self.assertEqual(self.codes(self.only()), BOTH)

    def test_processes_of_a_user(self):
        """RLIMIT_NPROC for a user whose it binds | nothing | all of it"""
        self.need_root()
        self.folder.chmod(0o755)
        for name in ("bare", "shim"):
            (self.folder / name).mkdir()
            os.chown(self.folder / name, 65534, -1)
        if self.bare("/bin/true", user=65534).returncode != 0 or not self.can_enter():
            self.skipTest("the build lies in a folder that others may not enter")
        self.same(*self.scenario("processes", 1), user=65534)
        self.assertEqual(self.codes(self.only()), BOTH)

    def can_enter(self):
        return self.run_program("test", "-r", e2e.SHIM, "-a", "-x", hostile.HOST, user=65534).returncode == 0


class Stacks(hostile.Case):
    def step(self, start, step, size, *measure):
        return start(STACKS, hostile.GOOD, hostile.BAD, step, size, *measure)

    def test_the_smallest_stack_of_a_thread(self):
        """threads with a stack of 16 KiB (PTHREAD_STACK_MIN) that initialize, load, look up, launch and fail | nothing: the work is done on a stack of the shim's | all of it, with the host's frames"""
        for step, code in STEPS.items():
            with self.subTest(step):
                done = self.step(self.same, step, SMALLEST)
                self.assertEqual((done.returncode, done.stdout), (0, f"{code}\n"))
                records = self.found()[-1] if step not in ("nothing", "dlsym", "dlsym-default") else []
                failures = e2e.of_type(records, "failure")
                self.assertEqual(self.codes(records), [code] if code else [])
                for failure in failures:  # the walk went from the shim's stack to the thread's
                    self.assertIn("stacks", [os.path.basename(frame["object"] or "") for frame in failure["native"]])

    def test_a_runtime_on_the_smallest_stack(self):
        """the same with the runtime of CUDA 13, static and shared, which starts, loads and fails there | nothing; at most 2 KiB more of the stack | the failure with its kernel and the plug-in's frame"""
        for kind in ("static", "shared"):
            with self.subTest(kind):
                plugin = e2e.BUILD / "tests" / "blind" / f"libplugin_{kind}.so"
                argv = (STACKS, hostile.GOOD, plugin, "runtime", SMALLEST)
                variables = {"KSHIM_SIM_DEVICES": "7.5"}
                self.assertEqual(self.same(*argv, variables=variables).stdout, f"plugin: {NO_IMAGE}\n{NO_IMAGE}\n")
                failure, = e2e.of_type(self.only(), "failure")
                self.assertEqual((failure["layers"][0]["code"], failure["kernel"]), (NO_IMAGE, "plugin_kernel"))
                self.assertIn(plugin.name, [os.path.basename(frame["object"] or "") for frame in failure["native"]])
                one, two = (int(start(*argv, "measure", variables=variables).stdout.split()[-1]) for start in (self.bare, self.shimmed))
                print(f"{kind} runtime: {one} bytes of stack, {two} with the shim")
                self.assertLess(two, one + MOST)

    def test_what_it_takes_of_a_stack(self):
        """the same, measured: the bytes of the thread's stack that are touched | at most 2 KiB more than without | -"""
        for step in STEPS:
            with self.subTest(step):
                one, two = (int(self.step(start, step, SMALLEST, "measure").stdout) for start in (self.bare, self.shimmed))
                print(f"{step}: {one} bytes of stack, {two} with the shim")
                self.assertLess(two, one + MOST)

    def test_a_stack_that_is_nearly_used_up(self):
        """a recursion with 16 KiB left of the main thread's stack | nothing | all of it"""
        for left in (16384, 40000, 300_000):
            with self.subTest(left):
                done = self.same(*self.scenario("recursion", left))
                self.assertEqual(done.stdout, "209\n")
                self.assertEqual(self.codes(self.found()[-1]), [NO_IMAGE])

    def test_exit_on_a_small_stack(self):
        """a fiber with a stack of 1 KiB above an unmapped page calls exit, in a process without CUDA | nothing; at most 2 KiB more of the stack | none"""
        def smallest(start):
            return min(size for size in range(512, 12_288, 512) if start(hostile.HERE / "quick_ends", size).returncode == 3)
        self.assertLessEqual(smallest(self.shimmed), smallest(self.bare) + MOST)

    def test_a_small_limit_for_the_stack(self):
        """RLIMIT_STACK of 128 KiB | nothing | all of it"""
        def small():
            resource.setrlimit(resource.RLIMIT_STACK, (131072, 131072))
        done = self.same(*self.scenario("recursion", 16384), preexec_fn=small)
        self.assertEqual(done.stdout, "209\n")
        self.assertEqual(self.codes(self.only()), [NO_IMAGE])


if __name__ == "__main__":
    e2e.main()
