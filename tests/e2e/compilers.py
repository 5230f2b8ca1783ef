#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVRTC and nvJitLink that refuse an architecture: recorded with the library and what it knows, explained, and the caller
unharmed whichever copy of the library it calls."""
import sys

import e2e

COPY = e2e.PROGRAMS / "e2e_compiler_copy"
REAL = e2e.BUILD / "tests/clients/compilers"
LINKER = e2e.BUILD / "tests/clients/jit_linker"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", COPY)


class Copies(e2e.Case):
    """Two copies of one soname, and one with a wheel's name: each caller reaches the one that it would reach alone."""

    def both(self, *words):
        outputs = []
        for more in ({}, {"LD_PRELOAD": e2e.SHIM, "KSHIM_LOG": "off"}):
            done = self.run_program(COPY, *words, env=e2e.clean_environment(**more))
            outputs.append((done.returncode, done.stdout, done.stderr))
        self.assertEqual(*outputs)
        self.assertEqual(outputs[0][0], 0, outputs[0][1])
        return outputs[0][1].split("\n")

    def test_each_caller_keeps_its_own(self):
        place = e2e.PROGRAMS / "compiler_copies"
        first, second, renamed = place / "one/libnvrtc.so.12", place / "two/libnvrtc.so.12", place / "libnvrtc-1a2b.so.12"
        user, other = place / "libuser_one.so", place / "libuser_renamed.so"
        asked = "nvrtcCompileProgram"
        said = self.both(user, other, f"{first}:{asked}", f"{second}:{asked}", f"{renamed}:{asked}", other, user)
        self.assertEqual([line.split()[-1] for line in said[:7]], ["101", "103", "101", "102", "103", "103", "101"])
        said = self.both(f"{renamed}:{asked}", f"{second}:{asked}", other, user)
        self.assertEqual([line.split()[-1] for line in said[:4]], ["103", "102", "103", "102"])

    def test_who_is_linked_to_it_tells_where_the_caller_does_not(self):
        place = e2e.PROGRAMS / "compiler_copies"
        said = self.both(f"{place / 'one/libnvrtc.so.12'}:nvrtcCompileProgram", f"{place / 'libuser_renamed.so'}:jump")
        self.assertEqual([line.split()[-1] for line in said[:2]], ["101", "103"])

    def test_a_definition_without_versions_that_comes_first_is_everybodys(self):
        """A library that exports an NVRTC linked into it, or somebody's own preload behind the shim."""
        place = e2e.PROGRAMS / "compiler_copies"
        embedded, user = place / "libembedded.so", place / "libuser_one.so"
        asked = [e2e.PROGRAMS / "e2e_compiler_copy", user]
        for order in ([embedded], [e2e.SHIM, embedded], [embedded, e2e.SHIM]):
            done = self.run_program(*asked, env=e2e.clean_environment(LD_PRELOAD=":".join(map(str, order)), KSHIM_LOG="off"))
            self.assertEqual((done.returncode, done.stdout.split("\n")[0]), (0, "call: 104 "), (order, done.stderr))

    def test_absent_is_absent(self):
        said = self.both()
        self.assertEqual(said[:2], ["default: none", "dlerror: set"])


class Refusals(e2e.Case):
    """The toolkit's own libraries, on a GPU that they do not compile for."""

    def setUp(self):
        super().setUp()
        if not REAL.exists():
            self.skipTest("the toolkit has no NVRTC and nvJitLink here")

    def finding(self, *argv):
        analysis, done = self.analysis("--simulate", "6.1", "--", *argv)
        bare = self.run_program(*argv, env=e2e.simulated("6.1"))
        self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout))
        found = [row for row in analysis["findings"] if row["severity"] == "error"]
        self.assertEqual([row["cause"] for row in found], ["nvrtc-arch-unsupported"], found)
        return found[0]

    def test_nvrtc(self):
        finding = self.finding(REAL, "61")
        self.assertIn("/libnvrtc.so.", finding["object"])
        self.assertEqual((finding["code"], finding["need"]), (5, "compute_61"))
        self.assertIn("compute_75", finding["have"])
        self.assertNotIn("compute_61", finding["have"])
        self.assertGreater(finding["confidence"], 0.9)
        self.assertIn("CUDA 12.9", finding["fixes"][0]["title"])
        self.assertEqual([row["action"] for row in finding["dead_ends"]][0], "updating the driver")
        self.assertIn("::compile(", finding["where"]["function"])

    def test_a_newer_gpu(self):
        finding = self.finding(REAL, "199")
        self.assertEqual(finding["need"], "compute_199")
        self.assertEqual(finding["fixes"], [], "no toolkit is known to compile for it")

    def test_nvjitlink(self):
        finding = self.finding(LINKER, "sm_61")
        self.assertIn("/libnvJitLink.so.", finding["object"])
        self.assertEqual((finding["code"], finding["code_name"]), (17, "NVJITLINK_ERROR_UNSUPPORTED_ARCH"))

    def test_a_service_that_loads_it_for_each_job(self):
        """40 times, at another address, by the name that nvJitLink.h makes of nvJitLinkCreate."""
        linked = self.run_program("ldd", LINKER, env=e2e.clean_environment()).stdout
        path = next(line.split("=>")[1].split()[0] for line in linked.splitlines() if "libnvJitLink" in line)
        code = ("import ctypes, _ctypes, mmap, sys\n"
                "ctypes.CDLL('libcuda.so.1').cuInit(0)\n"
                "options, handle, places = (ctypes.c_char_p * 1)(b'-arch=sm_61'), ctypes.c_void_p(), []\n"
                "for _ in range(40):\n"
                "    library = ctypes.CDLL(sys.argv[1])\n"
                "    names = [f'__nvJitLinkCreate_{major}_{minor}' for major in (12, 13) for minor in range(10)]\n"
                "    create = next(getattr(library, name) for name in names if hasattr(library, name))\n"
                "    print(create(ctypes.byref(handle), 1, options))\n"
                "    _ctypes.dlclose(library._handle)\n"
                "    places.append(mmap.mmap(-1, 256 << 20))\n")
        done = self.run_program(sys.executable, "-c", code, path, env=e2e.preloaded("6.1", KSHIM_REPEATS="each"))
        self.assertEqual(done.stdout, "17\n" * 40, done.stderr)
        (report,) = self.reports()
        self.assertEqual(len(e2e.of_type(report, "failure")), 1)
        self.assertEqual(max(row["count"] for row in e2e.of_type(report, "repeat")), 40)

    def test_another_option_is_none_of_our_business(self):
        analysis, _ = self.analysis("--simulate", "6.1", "--", LINKER, "sm_90", "-no-such-option")
        self.assertEqual([row for row in analysis["findings"] if row["severity"] == "error"], [])

    def test_on_stderr(self):
        done = self.run_program(REAL, "61", env=e2e.preloaded("6.1"))
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], r"^kshim: NVRTC [0-9.]+ does not compile for sm_61$")
        self.assertEqual(len([line for line in lines if line.startswith("kshim: NVRTC")]), 1)
        self.assertTrue(any(line.startswith("kshim:   compiles   compute_75,") for line in lines), done.stderr)

    def test_in_a_process_that_a_sample_left_out(self):
        self.run_program(REAL, "61", env=e2e.preloaded("6.1", KSHIM_SAMPLE="1000000"))
        (report,) = self.reports()
        self.assertEqual(([row["asked"] for row in e2e.of_type(report, "failure")], report[0]["sample"]), (["sm_61", "compute_61"], None))

    def test_without_the_driver_no_report(self):
        done = self.run_program(LINKER, "sm_61", "--no-driver", env=e2e.preloaded("6.1"))
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    e2e.main()
