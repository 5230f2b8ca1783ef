#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Others that are preloaded as well, before the shim and behind it, and hosts that define libc's functions themselves."""
import glob
import pathlib
import shutil
import subprocess

import e2e
import hostile
from hostile import BOTH, NO_IMAGE

REPLACES = hostile.HERE / "replaces"


def library(pattern):
    """The first that matches in the folders that Debian and others use, or None."""
    for folder in ("/usr/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*/faketime", "/usr/lib64", "/usr/lib64/faketime", "/usr/lib", "/usr/lib/heaptrack",
                   "/usr/lib/*-linux-gnu*/heaptrack"):
        for path in sorted(glob.glob(f"{folder}/{pattern}")):
            return path
    return None


class Preloads(hostile.Case):
    SCENARIOS = {"once": BOTH, "threads": [NO_IMAGE], "handler": [NO_IMAGE, hostile.NOT_FOUND], "exceptions": [NO_IMAGE]}

    def orders(self, path, first=True, **more):
        """In front of the shim and behind it."""
        if path is None:
            self.skipTest("not installed: apt install libjemalloc2 libgoogle-perftools4 libmimalloc2.0 libfaketime libheaptrack heaptrack")
        orders = ((path, e2e.SHIM), (e2e.SHIM, path)) if first else ((path, e2e.SHIM),)
        for order in orders:
            for name, codes in self.SCENARIOS.items():
                with self.subTest(order=order[0], scenario=name):
                    argv = (e2e.PROGRAMS / "e2e_guest", hostile.PLUGIN, name) if name == "exceptions" else self.scenario(name)
                    self.same(*argv, bare_preload=path, shim_preload=":".join(map(str, order)), **more)
                    self.assertEqual(sorted(set(self.codes(self.found()[-1]))), sorted(codes))

    def test_jemalloc(self):
        """jemalloc, before the shim and behind it | nothing | all of it"""
        self.orders(library("libjemalloc.so.2"))

    def test_tcmalloc(self):
        """tcmalloc, the same | nothing | all of it"""
        self.orders(library("libtcmalloc.so.4"))
        self.orders(library("libtcmalloc_minimal.so.4"))

    def test_mimalloc(self):
        """mimalloc, the same | nothing | all of it"""
        self.orders(library("libmimalloc.so.2*"))

    def test_a_dlsym_that_answers_once(self):
        """a tool with a dlsym of its own, which answers NULL where a thread asks `RTLD_NEXT` a second time (HAMi-core), the same | nothing | all of it"""
        path = hostile.HERE / "libasks_once.so"
        self.orders(path if path.exists() else None)

    def test_faketime(self):
        """libfaketime, with time standing still, the same | nothing | all of it; its times are the kernel's"""
        for name in ("libfaketime.so.1", "libfaketimeMT.so.1"):
            self.orders(library(name), variables={"FAKETIME": "2001-01-01 00:00:00"})

    def test_libasan(self):
        """libasan before the shim | nothing | all of it"""
        done = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        path = pathlib.Path(done.stdout.strip())
        self.orders(path.resolve() if path.is_absolute() else None, first=False, variables={"ASAN_OPTIONS": "detect_leaks=0"})

    def test_libasan_behind(self):
        """libasan behind the shim | libasan ends the program, as it does behind any library, unless ASAN_OPTIONS=verify_asan_link_order=0 | all of it with that option"""
        done = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        path = pathlib.Path(done.stdout.strip())
        self.orders(path.resolve() if path.is_absolute() else None, variables={"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})

    def test_heaptrack(self):
        """heaptrack's library, before and behind | nothing (it takes LD_PRELOAD out of the environment, so that children are without the shim) | all of it"""
        self.orders(library("libheaptrack_preload.so"))

    def test_the_heaptrack_command(self):
        """the command heaptrack | nothing | all of it"""
        if shutil.which("heaptrack") is None:
            self.skipTest("not installed: apt install libjemalloc2 libgoogle-perftools4 libmimalloc2.0 libfaketime libheaptrack heaptrack")
        done = self.shimmed("heaptrack", "-o", self.folder / "heap", *self.scenario("once"))
        self.assertIn("0 0 500 209", done.stdout)
        self.assertEqual([self.codes(records) for records in self.found()], [BOTH])

    def test_getauxval(self):
        """a library that stands in for `getauxval` and looks for the next one when it is first asked, the same | nothing | all of it"""
        self.orders(hostile.HERE / "libauxv.so")

    def test_the_valgrind_command(self):
        """the command valgrind (memcheck) | no error that the program has not by itself | all of it"""
        if shutil.which("valgrind") is None:
            self.skipTest("not installed: apt install libjemalloc2 libgoogle-perftools4 libmimalloc2.0 libfaketime libheaptrack heaptrack")
        argv = ("valgrind", "-q", "--error-exitcode=99", *self.scenario("once"))
        done = self.same(*argv)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual([self.codes(records) for records in self.found()], [BOTH])

    def test_race_detectors(self):
        """valgrind's race detectors (helgrind, drd), which know no atomic operations, with `share/kshim/valgrind.supp` | no error in libkshim.so; many without that file | all of it"""
        if shutil.which("valgrind") is None:
            self.skipTest("not installed: apt install libjemalloc2 libgoogle-perftools4 libmimalloc2.0 libfaketime libheaptrack heaptrack")
        others = self.folder / "others.supp"  # the program's own atomic operations, and the plain driver's counter
        others.write_text("".join(f"{{\n{kind}\n{kind}\nobj:*/{name}\n}}\n" for kind in ("Helgrind:Race", "drd:ConflictingAccess") for name in ("plain_host", "libcuda.so*")))
        for tool in ("helgrind", "drd"):
            for ours, status in ((["--suppressions=" + str(e2e.SOURCE / "shim/valgrind.supp")], 0), ([], 99)):
                with self.subTest(f"{tool} {status}"):
                    done = self.shimmed("valgrind", "-q", f"--tool={tool}", f"--suppressions={others}", *ours, "--error-exitcode=99", hostile.PLAIN_HOST, "crowd",
                                        variables={"LD_LIBRARY_PATH": hostile.PLAIN})
                    self.assertEqual((done.returncode, done.stdout), (status, "last: 209\n"))
                    self.assertEqual(len(e2e.of_type(self.only(), "failure")), 241)

    def test_all_at_once(self):
        """mimalloc, the shim and libfaketime at once | nothing | all of it"""
        allocator, clock = library("libmimalloc.so.2*"), library("libfaketime.so.1")
        if allocator is None or clock is None:
            self.skipTest("not installed: apt install libjemalloc2 libgoogle-perftools4 libmimalloc2.0 libfaketime libheaptrack heaptrack")
        self.same(*self.scenario("once"), bare_preload=f"{allocator}:{clock}", shim_preload=f"{allocator}:{e2e.SHIM}:{clock}")
        self.assertEqual(self.codes(self.only()), BOTH)


class Replaces(hostile.Case):
    def test_a_host_with_functions_of_its_own(self):
        """a host that defines getenv, open, write, mmap, fstat and forty more of libc's functions itself | none of them is called from libkshim.so | all of it"""
        done = self.same(REPLACES, hostile.GOOD, hostile.BAD)
        self.assertEqual((done.returncode, done.stdout), (0, "0 0 500 209\n"))
        self.assertEqual(self.codes(self.only()), BOTH)


if __name__ == "__main__":
    e2e.main()
