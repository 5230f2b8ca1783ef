#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much memory there is of the shim's, and what is in the host's."""
import os
import pathlib
import re
import resource
import signal
import struct
import sys

import e2e
import hostile

KIB = 1024
SMALL = 64  # KiB: data of the shim's in a process without CUDA
CODE = 1024  # KiB: the shim's file, mapped


class Memory(hostile.Case):
    def kib(self, kind, file, field):
        return int(re.search(rf"^{field}:\s+(\d+)", (self.folder / kind / file).read_text(), re.M)[1])

    def more(self, field, file="status"):
        return self.kib("shim", file, field) - self.kib("bare", file, field)

    def test_data_of_its_own(self):
        """every process with the preload | less than 64 KiB of variables in libkshim.so | -"""
        done = self.run_program("readelf", "-lW", e2e.SHIM)
        sizes = [int(line.split()[5], 16) for line in done.stdout.splitlines() if line.split()[:1] == ["LOAD"] and "RW" in line]
        self.assertLess(sum(sizes), SMALL * KIB)

    def test_a_process_without_cuda(self):
        """a process without CUDA | less than 64 KiB more of writable memory | none"""
        self.plain("memory", "plain", "status")
        self.assertLess(self.more("VmData"), SMALL)

    def test_a_process_with_cuda(self):
        """a process with a failure | less than 4 MiB more of memory in use | all of it"""
        self.plain("memory", "cuda", "status")
        self.assertLess(self.more("RssAnon"), 4 * KIB)

    def test_a_process_like_pytorch(self):
        """a process that registers as many kernels as PyTorch (100,500 in 1,500 fatbins), loads 300 images and fails | less than 4 MiB more of memory in use | all of it, with the failing kernel's name"""
        self.plain("registers-many", "status")
        self.assertLess(self.more("RssAnon"), 4 * KIB)
        records = self.only()
        self.failure(records, "kernel100499")
        self.assertEqual(len(e2e.of_type(records, "module")), 300)

    def test_a_process_that_locks_its_memory(self):
        """`mlockall` | the shim's file and less than 64 KiB more are locked | none"""
        self.plain("memory", "plain", "status", "locked")
        self.assertLess(self.more("VmLck"), CODE + SMALL)

    def test_a_limit_for_data(self):
        """`ulimit -d` with 1 MiB more than the host needs alone | nothing | -"""
        self.plain("memory", "plain", "status")
        limit = self.kib("bare", "status", "VmData") + KIB
        self.plain("-c", f'ulimit -d {limit}; exec {hostile.PLAIN_HOST} memory plain status', program=e2e.pathlib.Path("/bin/bash"))

    def test_a_limit_for_addresses(self):
        """`ulimit -v` with 4 MiB more than the host needs alone, without CUDA | nothing | -"""
        self.plain("memory", "plain", "status")
        def script(limit):
            return "-c", f"ulimit -v {limit}; exec {hostile.PLAIN_HOST} memory plain status"
        peak = self.kib("bare", "status", "VmPeak")
        least = next(limit for limit in range(peak, 8 * peak, KIB)
                     if self.bare("/bin/bash", *script(limit), variables={"LD_LIBRARY_PATH": hostile.PLAIN}).returncode == 0)
        self.plain(*script(least + 4 * KIB), program=e2e.pathlib.Path("/bin/bash"))

    def test_no_memory_when_the_driver_is_used(self):
        """no address space, no data, or no lockable memory (`mlockall`) is left at the first use of the driver; a process that is not dumpable | nothing | what could be written"""
        for kind in ("addresses", "data", "locked", "not-dumpable"):
            if kind in ("locked", "not-dumpable") and hostile.os.geteuid() != 0:
                continue
            with self.subTest(kind):
                done = self.plain("tight", kind, 16 * KIB).stdout
                if not done.startswith("0 "):
                    self.skipTest(f"{kind}: this limit cannot be set here")
                self.assertEqual(done, "0 209 209\n")

    def test_a_core_dump(self):
        """a core dump after a failure | less than 1 MiB more | the failure"""
        if "/" in (pattern := hostile.pathlib.Path("/proc/sys/kernel/core_pattern").read_text()) or "|" in pattern:
            self.skipTest(f"core dumps do not go to the working folder: {pattern.strip()}")
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        self.same(hostile.PLAIN_HOST, "ends", "abort", variables={"LD_LIBRARY_PATH": hostile.PLAIN})
        self.failure(self.found(complete=False)[0], "ends")
        sizes = {kind: [path.stat().st_size for path in (self.folder / kind).glob("core*")] for kind in ("bare", "shim")}
        if not sizes["bare"]:
            self.skipTest("this process may not dump core")
        self.assertLess(sizes["shim"][0] - sizes["bare"][0], KIB * KIB)

    def test_files_that_shrink(self):
        """a loaded library's file and a mapped device code file are truncated while in use | nothing | the failures"""
        for folder in ("bare", "shim"):
            (self.folder / folder).mkdir()
            (self.folder / folder / "library.so").write_bytes((hostile.HERE / "libcalls_back.so").read_bytes())
            (self.folder / folder / "image").write_bytes(hostile.GOOD.read_bytes())
        self.assertEqual(self.plain("truncated", "./library.so", "image").stdout, "0 209 0 209\n")
        self.failure(self.only(), "truncated")

    def test_very_many_mappings(self):
        """200 different failures in a process with 60,000 mappings | nothing: the cost does not depend on their number | all of it"""
        cost = {}
        for count in (60, 60_000):
            self.plain("mappings", count, "cost")
            cost[count] = max(*(float((self.folder / kind / "cost").read_text()) for kind in ("bare", "shim")), 0.01)
        self.assertLess(cost[60_000], 4 * cost[60])

    def test_few_mappings(self):
        """a program has used all but 40, or all but 0 to 9, of the mappings that `vm.max_map_count` allows when it first uses the driver | up to ten fewer are left; stderr may say that nothing is recorded | all of it with 40 left, else what could be written"""
        if int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) > 500_000:
            self.skipTest("vm.max_map_count is large here")
        for spare in (40, *range(10)):
            with self.subTest(spare):
                self.plain("few-mappings", spare, "left")
                bare, shim = (int((self.folder / kind / "left").read_text()) for kind in ("bare", "shim"))
                self.assertLessEqual(bare - shim, 10)
                if spare == 40:
                    self.assertEqual(len(e2e.of_type(self.only(), "failure")), 3)

    def test_a_load_that_fails_again_and_again(self):
        """20,000 loads of one image that the GPU cannot use, then a look-up fails in the module that was loaded first | nothing | the look-up with its module"""
        code = f"""
import ctypes
cuda, context, module = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p(), ctypes.c_void_p()
good, bad = open({str(hostile.GOOD)!r}, 'rb').read(), open({str(hostile.BAD)!r}, 'rb').read()
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context))
print(cuda.cuModuleLoadData(ctypes.byref(module), good))
print({{cuda.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), bad) for _ in range(20000)}})
print(cuda.cuModuleGetFunction(ctypes.byref(ctypes.c_void_p()), module, b'none'))
"""
        self.assertEqual(self.same(sys.executable, "-c", code).stdout, "0 0 0\n0\n{209}\n500\n")
        self.assertEqual(self.failure(self.only(), "none")["module"], 1)

    def test_images_in_one_buffer(self):
        """a program loads two images from one static buffer, one after the other | nothing | two modules"""
        self.plain("one-buffer", hostile.GOOD, hostile.BAD)
        modules = e2e.of_type(self.only(), "module")
        self.assertEqual(len(modules), 2)
        self.assertEqual(len({(module["object"], module["offset"], module["content_hash"]) for module in modules}), 2)

    def test_what_is_no_image_in_fresh_buffers(self):
        """1,500 loads of the same text, a file of Git LFS and not an image, each from a buffer of its own, with a context and without one; then another call fails | nothing | one failing load with its repetitions, and the other failure"""
        for code in (200, 201):
            with self.subTest(code):
                self.plain("fresh-buffers", 1500, code)
                records = self.only()
                self.failure(records, "after")
                self.assertEqual((len(e2e.of_type(records, "failure")), records[-1]["dropped"]), (2, 0))

    def test_handles_that_come_back(self):
        """three million look-ups of different names; the driver reuses the handles | nothing: memory does not grow | a failing launch with its kernel's name"""
        self.plain("handles", 3_000_000, "before", "after")
        grown = {kind: self.kib(kind, "after", "VmRSS") - self.kib(kind, "before", "VmRSS") for kind in ("bare", "shim")}
        self.assertLess(grown["shim"] - grown["bare"], 4 * KIB)
        self.failure(self.only(), "a_kernel_with_a_name_of_a_usual_length_2999999")

    def many_failures(self, count, kind):
        self.plain("many-failures", count, kind, "before", "after")
        grown = {side: self.kib(side, "after", "VmRSS") - self.kib(side, "before", "VmRSS") for side in ("bare", "shim")}
        self.assertLess(grown["shim"] - grown["bare"], KIB)
        return self.only()

    def test_very_many_repeats(self):
        """one call fails a million times | nothing: memory does not grow | the failure, and how often it was repeated"""
        records = self.many_failures(1_000_000, "same")
        self.assertEqual(len(e2e.of_type(records, "failure")), 1)
        self.assertEqual([record["count"] for record in e2e.of_type(records, "repeat")], [2] + [10 ** power for power in range(1, 7)])

    def test_very_many_kernels(self):
        """100,000 different kernels fail | nothing: memory does not grow | the first 1,024; the rest are counted"""
        records = self.many_failures(100_000, "different")
        self.assertEqual((len(e2e.of_type(records, "failure")), records[-1]["dropped"]), (1024, 100_000 - 1024))

    def test_an_environment_that_is_not_readable(self):
        """`environ` points to memory that is not readable | nothing | all of it"""
        self.assertEqual(self.plain("environment").stdout, "209 209\n")

    def test_a_barrier_over_all_memory(self):
        """all writable memory is made read-only and opened page by page by a SIGSEGV handler on a signal stack (an incremental checkpointer) | nothing | all of it"""
        self.plain("barrier", "stack")
        self.assertEqual({record["kernel"] for record in e2e.of_type(self.only(), "failure")}, {"before", "after"})

    def test_a_barrier_without_a_signal_stack(self):
        """the same, and the handler has no signal stack | SIGSEGV ends the program: the kernel has to write to the shim's own stack | the failures before"""
        found = [start(hostile.PLAIN_HOST, "barrier", variables={"LD_LIBRARY_PATH": hostile.PLAIN}) for start in (self.bare, self.shimmed)]
        self.assertEqual([done.returncode for done in found], [0, -signal.SIGSEGV])
        self.assertEqual([record["kernel"] for record in e2e.of_type(self.only(complete=False), "failure")], ["before"])

    def test_an_image_of_untouched_pages(self):
        """an image in a mapping whose pages are read when they are touched (a file of a server, userfaultfd); the driver refuses it by its first bytes | the shim touches all of it | its size and its hash"""
        image = self.folder / "image.fatbin"
        image.write_bytes(hostile.BAD.read_bytes()[:4] + struct.pack("<HHQ", 1, 16, 4 << 20) + bytes(4 << 20))
        code = ("import ctypes, mmap, re\n"
                f"file = open({str(image)!r}, 'rb')\nmemory = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)\n"
                "place = ctypes.addressof(ctypes.c_char.from_buffer(memory))\n"
                "driver = ctypes.CDLL('libcuda.so.1')\ndriver.cuInit(0)\nctypes.c_int.in_dll(driver, 'plain_driver').value = 209\n"
                "print(driver.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), ctypes.c_void_p(place)))\n"
                "print(re.search('^%x-.*?Rss: +([0-9]+)' % place, open('/proc/self/smaps').read(), re.M | re.S).group(1))\n")
        bare, shimmed = self.effect(code)
        self.assertEqual((bare[0], shimmed[0]), ("209", "209"))
        self.assertLess(int(bare[1]), 1024)
        self.assertGreaterEqual(int(shimmed[1]), 4 * KIB)

    def test_a_large_file_of_device_code(self):
        """a device code file of 60 MB loads without an error | nothing: the shim reads only its headers | the load"""
        path = self.folder / "large.cubin"
        size = 60 << 20
        names = b"\0.shstrtab\0.text.k\0"
        header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1\x33\7", 2, 190, 1, 0, 0, 64, 0x5a055a, 64, 0, 0, 64, 3, 1)
        null = bytes(64)
        strings = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 256, len(names), 0, 0, 1, 0)
        text = struct.pack("<IIQQQQIIQQ", 11, 1, 6, 0, 512, size - 512, 0, 0, 1, 0)
        with open(path, "wb") as out:
            out.write((header + null + strings + text).ljust(256, b"\0") + names)
            out.seek(size - 1)
            out.write(b"\0")
        self.plain("big-file", path, "io")
        self.assertLess(self.more("rchar", "io"), 1 << 20)
        self.assertLess(self.more("minflt", "io"), 2000)  # a page each, where it is mapped


if __name__ == "__main__":
    e2e.main()
