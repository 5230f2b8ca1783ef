#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shim as a guest: whatever the host does, the host's behavior is its own, and every failure that a call returned is
in the report."""
import os
import signal

import e2e

GUEST = e2e.PROGRAMS / "e2e_guest"
CHAIN = e2e.PROGRAMS / "e2e_chain"
SECOND = e2e.PROGRAMS / "libe2e_second.so"
THIRD = e2e.PROGRAMS / "libe2e_third.so"
PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
FATBIN = e2e.SAMPLES / "05_driver_api" / "kernels.fatbin"
BLUR = e2e.SAMPLES / "05_driver_api" / "blur"
HEALTHY = e2e.SAMPLES / "08_healthy" / "transpose"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", GUEST, CHAIN, SECOND, PLUGIN, BLUR, HEALTHY)

NO_IMAGE = 209  # CUDA_ERROR_NO_BINARY_FOR_GPU


class Guest(e2e.Case):
    def scenario(self, name, env=None, **more):
        return self.run_program(GUEST, PLUGIN, name, env=env or e2e.preloaded(), **more)

    def assert_failure_in(self, records):
        self.assertEqual(records[0]["type"], "process")
        codes = [layer["code"] for failure in e2e.of_type(records, "failure") for layer in failure["layers"]]
        self.assertIn(NO_IMAGE, codes)

    def only_report(self):
        found = self.reports()
        self.assertEqual(len(found), 1, self.files())
        return found[0]

    def same_without(self, name, **more):
        """Output and status with the shim, checked to be those without it."""
        bare = self.scenario(name, env=e2e.simulated("7.5"), **more)
        with_shim = self.scenario(name, **more)
        self.assertEqual((with_shim.returncode, with_shim.stdout), (bare.returncode, bare.stdout))
        return with_shim

    def test_the_alarm_is_one_screen_and_names_what_to_do(self):
        done = self.same_without("once")
        self.assertEqual(done.returncode, 1)
        self.assertIn("libscale.so", done.stderr)
        self.assertIn("kshim analyze", done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 24)
        self.assert_failure_in(self.only_report())

    def test_a_healthy_program_is_silent(self):
        done = self.run_program(HEALTHY, env=e2e.preloaded("8.6"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "transpose: done\n", ""))
        records = self.only_report()
        self.assertEqual(e2e.of_type(records, "failure"), [])
        self.assertEqual(records[-1]["type"], "end")

    def test_disabled_it_does_nothing(self):
        done = self.scenario("once", env=e2e.preloaded(KSHIM_DISABLE="1"))
        self.assertEqual((done.returncode, done.stderr, self.files()), (1, "", []))

    def test_a_bad_setting_is_named_once(self):
        done = self.scenario("once", env=e2e.preloaded(KSHIM_BACKTRACE="everything"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("KSHIM_BACKTRACE"), 1)
        self.assert_failure_in(self.only_report())

    def test_exceptions_of_the_host(self):
        done = self.same_without("exceptions")
        self.assertEqual(done.stdout.count("caught CUDA error 209"), 1)
        self.assertEqual(done.stdout.count("carried CUDA error 209"), 1)
        self.assertEqual(done.stdout.count("unwound"), 2)
        self.assert_failure_in(self.only_report())

    def test_fork(self):
        self.assertEqual(self.same_without("fork").returncode, 0)
        reports = self.reports()
        self.assertEqual(len(reports), 2)
        self.assertEqual(len({records[0]["pid"] for records in reports}), 2)
        for records in reports:
            self.assert_failure_in(records)

    def test_exec(self):
        done = self.same_without("exec")
        self.assertEqual(done.returncode, 1)
        reports = self.reports()
        self.assertEqual(len(reports), 2, self.files())
        self.assertEqual(len({records[0]["pid"] for records in reports}), 1)
        for records in reports:
            self.assert_failure_in(records)

    def test_underscore_exit(self):
        self.assertEqual(self.same_without("_exit").returncode, 3)
        self.assert_failure_in(self.only_report())

    def test_kill_after_the_first_failure(self):
        self.assertEqual(self.scenario("kill").returncode, -signal.SIGKILL)
        self.assert_failure_in(self.only_report())

    def test_threads(self):
        self.assertEqual(self.same_without("threads").returncode, 0)
        records = self.only_report()
        self.assert_failure_in(records)
        self.assertEqual(sorted(record["seq"] for record in records), list(range(len(records))))

    def test_repeats_are_counted(self):
        done = self.run_program(GUEST, FATBIN, "repeat", env=e2e.preloaded())
        self.assertEqual(done.returncode, 0, done.stdout)
        records = self.only_report()
        self.assertEqual(len(e2e.of_type(records, "failure")), 1)
        self.assertEqual([record["count"] for record in e2e.of_type(records, "repeat")], [2, 10, 100, 150])
        self.assertEqual(done.stderr.count("kshim analyze"), 1)

    def test_each_repeat(self):
        done = self.run_program(GUEST, FATBIN, "repeat", env=e2e.preloaded(KSHIM_REPEATS="each"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([record["count"] for record in e2e.of_type(self.only_report(), "repeat")], list(range(2, 151)))

    def test_closed_stderr(self):
        done = self.run_program("sh", "-c", 'exec "$0" "$1" once 2>&-', GUEST, PLUGIN, env=e2e.preloaded())
        self.assertEqual(done.returncode, 1)
        self.assert_failure_in(self.only_report())

    def test_a_file_that_took_stderrs_number(self):
        done = self.run_program("sh", "-c", 'exec "$0" "$1" stderr 2>&-', GUEST, PLUGIN, env=e2e.preloaded())
        self.assertEqual(done.returncode, 0)
        self.assertEqual((self.folder / "mine.txt").read_text(), "mine\n")

    def test_a_host_that_closes_everything(self):
        self.assertEqual(self.scenario("close").returncode, 0)
        self.assertEqual((self.folder / "mine.txt").read_text(), "mine\n")
        self.assert_failure_in(self.reports()[0])

    def test_unwritable_folders(self):
        (self.folder / "file").write_text("")
        for pattern in ("file/%p.jsonl", "/proc/nowhere/%p.jsonl"):
            for fallback in ("file", "elsewhere"):
                done = self.scenario("once", env=e2e.preloaded(KSHIM_REPORT=pattern, TMPDIR=self.folder / fallback))
                self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1))
                self.assertEqual(done.stderr.count("cannot write the report"), 1, done.stderr)
                self.assertIn(pattern.split("%")[0], done.stderr)
        self.assertEqual(len(self.reports()), 2)  # in elsewhere/

    def test_the_working_folder_cannot_be_written(self):
        done = self.scenario("once", env=e2e.preloaded(TMPDIR=self.folder), cwd="/proc/self")
        self.assertEqual(done.returncode, 1)
        self.assert_failure_in(self.only_report())

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        (self.folder / "report.jsonl").symlink_to("/dev/full")
        done = self.scenario("once", env=e2e.preloaded(KSHIM_REPORT="report.jsonl"))
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1))

    def test_sanitizers(self):
        """They ask dlsym for libc's functions while their own stand-ins cannot answer yet."""
        # gcc's ASan wants to be first; ThreadSanitizer does not know how runtime and simulator synchronize.
        e2e.not_instrumented(self)
        options = {"ASAN_OPTIONS": "verify_asan_link_order=0", "TSAN_OPTIONS": "report_bugs=0"}
        for sanitizer in ("address", "thread"):
            program = e2e.PROGRAMS / f"e2e_guest_{sanitizer}"
            if not program.exists():
                continue
            with self.subTest(sanitizer):
                folder = self.folder / sanitizer
                folder.mkdir()
                bare = self.run_program(program, PLUGIN, "exceptions", env=e2e.simulated("7.5", **options))
                if "unexpected memory mapping" in bare.stderr:
                    self.skipTest("ThreadSanitizer does not run on this kernel")
                self.assertEqual((bare.returncode, bare.stdout.count("caught")), (0, 1), bare.stderr)
                done = self.run_program(program, PLUGIN, "exceptions", env=e2e.preloaded(**options), cwd=folder)
                self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), done.stderr)
                self.assert_failure_in(self.reports(folder)[0])

    def test_no_gpu_leaves_no_alarm(self):
        env = e2e.clean_environment(LD_PRELOAD=e2e.SHIM, LD_LIBRARY_PATH=e2e.SIMULATOR)
        done = self.run_program(HEALTHY, env=env)
        self.assertEqual((done.returncode, done.stderr), (1, ""))


class OtherPreloads(e2e.Case):
    def order(self, *preloads):
        env = e2e.clean_environment(LD_PRELOAD=":".join(str(library) for library in preloads))
        return self.run_program(CHAIN, env=env).stdout.splitlines()

    def test_rtld_next_is_that_of_the_asker(self):
        for preloads in ((e2e.SHIM, SECOND, THIRD), (SECOND, e2e.SHIM, THIRD), (SECOND, THIRD, e2e.SHIM)):
            self.assertEqual(self.order(*preloads), ["second third ", "dlerror is ours"])
        self.assertEqual(self.order(e2e.SHIM), ["none", "dlerror is ours"])

    def test_another_that_hides_the_driver(self):
        """A profiler's hook is called, and what the driver answered is still recorded."""
        for preloads in ((e2e.SHIM, SECOND), (SECOND, e2e.SHIM)):
            folder = self.folder / preloads[0].name
            folder.mkdir()
            env = e2e.simulated("8.6", LD_PRELOAD=":".join(map(str, preloads)))
            done = self.run_program(BLUR, env=env, cwd=folder)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr.count("second: cuModuleLoad"), 1, preloads)
            records = self.reports(folder)[0]
            self.assertEqual([f["layers"][0]["code"] for f in e2e.of_type(records, "failure")], [NO_IMAGE])


if __name__ == "__main__":
    e2e.main()
