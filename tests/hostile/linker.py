#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Libraries that come, go, and define what others define."""
import os
import pathlib
import platform
import shutil
import signal
import struct
import sys

import e2e
import hostile

CALLS_BACK = hostile.HERE / "libcalls_back.so"
FILLS_DATA, FORWARDS = hostile.HERE / "libfills_data.so", hostile.HERE / "libforwards.so"


def section(path, name):
    """(offset, size) of a section of a 64-bit ELF file."""
    data = path.read_bytes()
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    rows = [struct.unpack_from("<IIQQQQ", data, table + size * i) for i in range(count)]
    for row in rows:
        start = rows[names][4] + row[0]
        if data[start:data.index(b"\0", start)].decode() == name:
            return row[4], row[5]
    raise AssertionError(f"{path} has no {name}")


class Linker(hostile.Case):
    def damaged(self, name, offset, data):
        """A copy of libcalls_back.so with other bytes in a section."""
        copy = self.folder / "libdamaged.so"
        whole = bytearray(CALLS_BACK.read_bytes())
        at = section(CALLS_BACK, name)[0] + offset
        whole[at:at + len(data)] = data
        copy.write_bytes(whole)
        return copy

    def copies(self, count, library="liblauncher.so", name="l{}.so"):
        folder = self.folder / f"copies-{count}"
        folder.mkdir()
        data = (hostile.HERE / library).read_bytes()
        for number in range(count):
            (folder / name.format(number)).write_bytes(data)
        return folder

    def drivers(self):
        """The plain driver in two places."""
        paths = []
        for name in ("one", "two"):
            (self.folder / name).mkdir()
            paths.append(self.folder / name / "libcuda.so.1")
            shutil.copy(hostile.PLAIN / "libcuda.so.1", paths[-1])
        return paths

    def test_a_driver_that_comes_back_elsewhere(self):
        """a program uses the driver, unloads it, loads it at another address and from another file, and uses it again | nothing | every failure"""
        done = self.plain("reload", *self.drivers())
        self.assertEqual(done.stdout, "0 0 209 209\n" * 4)
        self.assertIn("launch", {record["stage"] for record in e2e.of_type(self.only(), "failure")})

    def test_a_plugin_that_comes_back(self):
        """a plug-in that is linked to the driver or to a runtime, and has no kernels, is closed and opened again; the library that it is linked to is somewhere else then (GPU probes, components of Open MPI) | nothing | every failure"""
        plugins = (hostile.HERE / "libuses_driver.so", hostile.HERE / "libuses_runtime.so")
        for variables in ({"KSHIM_DISABLE": "1"}, {}):
            with self.subTest(**variables):
                done = self.plain("plugin-again", *plugins, variables=variables)
                self.assertEqual(done.stdout, "1 3 0\n" * 6)
        records = self.only()
        counts = {record["id"]: record["count"] for record in e2e.of_type(records, "repeat")}
        self.assertEqual({record["layers"][0]["api"]: counts.get(record["id"], 1) for record in e2e.of_type(records, "failure")},
                         {"cuMemAlloc_v2": 3, "cudaMalloc": 3})

    def test_plugins_that_come_and_go(self):
        """four threads open, use and close plug-ins that are linked to the driver and to a runtime, so that these are unloaded and loaded again all the time | nothing | -"""
        plugins = (hostile.HERE / "libuses_driver.so", hostile.HERE / "libuses_runtime.so")
        for variables in ({"KSHIM_DISABLE": "1"}, {}):
            with self.subTest(**variables):
                self.assertEqual(self.plain("plugins-come-and-go", *plugins, variables=variables).stdout, "0\n")

    def test_runtimes_of_one_version(self):
        """two plug-ins bring a renamed copy of one runtime each (auditwheel), opened with `RTLD_NOW` | nothing: each calls its own | all at the driver; at the runtime, those of the first copy"""
        plugins = [hostile.HERE / f"libown_runtime_{name}.so" for name in ("one", "two")]
        done = self.plain("own-runtimes", *plugins)
        self.assertEqual(done.stdout, "10\n20\n" + "11\n21\n" * 2)

    def test_a_runtime_in_the_default_scope(self):
        """a program looks runtime functions up by `RTLD_DEFAULT` and in `dlopen(NULL)`'s handle, where a runtime was opened with `RTLD_GLOBAL` | nothing | all of it"""
        self.assertEqual(self.plain("default-runtime").stdout, "2\n2\n")
        counts = {record["id"]: record["count"] for record in e2e.of_type(self.only(), "repeat")}
        self.assertEqual(list(counts.values()), [2])

    def test_a_look_up_after_the_driver_has_gone(self):
        """a library looks up a driver function after the driver was unloaded | nothing: the function does not exist | -"""
        done = self.plain("after-close", self.drivers()[0], hostile.HERE / "libasks.so")
        self.assertEqual(done.stdout, "-1 -1\n")

    def test_a_plugin_with_a_function_of_that_name(self):
        """a plug-in opened with `RTLD_LOCAL` defines its own function `cuInit`; another plug-in is linked to the driver | nothing: the second one calls the driver | all of it"""
        done = self.plain("local-plugin", hostile.HERE / "libowns_function.so", hostile.HERE / "libuses_driver.so")
        self.assertEqual(done.stdout, "0\n")

    def test_look_ups_without_a_driver(self):
        """a program with 300 libraries asks a thousand times for a driver that is not there, by `RTLD_DEFAULT`; then it opens and closes one, three times | nothing: a list in which no driver was found is searched again when a library was added | -"""
        for number in range(300):
            shutil.copy(hostile.HERE / "libcalls_back.so", self.folder / f"{number}.so")
        code = f"""
import ctypes, os
libc = ctypes.CDLL(None)
libc.dlsym.restype = libc.dlopen.restype = ctypes.c_void_p
libc.dlsym.argtypes, libc.dlclose.argtypes = [ctypes.c_void_p, ctypes.c_char_p], [ctypes.c_void_p]
def there(handle=None):
    return libc.dlsym(handle, b'cuInit') is not None
kept = [ctypes.CDLL('{self.folder}/%d.so' % number) for number in range(300)]
print(sum(there() for _ in range(1000)))
for _ in range(3):
    driver = libc.dlopen(b'libcuda.so.1', os.RTLD_NOW)
    print(there(driver), libc.cuInit(0) if there() else 'none', ctypes.CDLL('libcuda.so.1').cuInit(0))
    libc.dlclose(driver)
    print(there())
"""
        done = self.same(sys.executable, "-c", code, variables={"LD_LIBRARY_PATH": hostile.PLAIN})
        self.assertEqual(done.stdout.split(), ["0", *["True", "none", "0", "False"] * 3])

    def test_a_plugin_with_a_variable_of_that_name(self):
        """the same, with a variable `cuInit` | nothing | all of it"""
        done = self.plain("local-plugin", hostile.HERE / "libowns_data.so", hostile.HERE / "libuses_driver.so")
        self.assertEqual(done.stdout, "0\n")

    def called(self, library, call, driver=hostile.PLAIN, mode=None, **more):
        """What a function of a library answers in Python, which opens the library or was started with it (mode None)."""
        where = "None" if mode is None else f"{str(library)!r}, {mode}"
        preloads = {} if mode is not None else {"bare_preload": library, "shim_preload": f"{e2e.SHIM}:{library}"}
        variables = {"LD_LIBRARY_PATH": driver} | more
        return self.same(sys.executable, "-c", f"import ctypes\nf = ctypes.CDLL({where}).{call}", variables=variables, **preloads).stdout.strip()

    def test_a_library_whose_variables_have_those_names(self):
        """a library that is opened later keeps the driver's functions in variables of the same names, `cuInit = dlsym(driver, "cuInit")` (slang-rhi, NVIDIA's old samples) | nothing | all of it"""
        call = "fills_data\nprint(f())"
        for mode in (os.RTLD_LOCAL, os.RTLD_GLOBAL):
            for disable in ("0", "1"):
                self.assertNotEqual(self.called(FILLS_DATA, call, mode=mode, KSHIM_DISABLE=disable), "-1")
        self.called(FILLS_DATA, call, mode=os.RTLD_LOCAL)
        self.only()

    def test_a_library_that_clears_such_variables(self):
        """the same library finds no driver, looks up `cuGetErrorString`, which has no hook, and clears its variables (slang-rhi) | nothing | none"""
        for disable in ("0", "1"):
            self.assertEqual(self.called(FILLS_DATA, "clears_data\nprint(f())", "", os.RTLD_LOCAL, KSHIM_DISABLE=disable), "0")
        self.assertEqual(self.found(), [])

    def test_a_library_of_the_start_whose_variables_have_those_names(self):
        """the same, of a library that the process started with, with a driver and without one | nothing | all of it"""
        for driver in (hostile.PLAIN, ""):
            for disable in ("0", "1"):
                said = self.called(FILLS_DATA, "fills_data\nprint(f())", driver, KSHIM_DISABLE=disable)
                self.assertEqual(said != "-1", driver != "")

    def test_a_library_that_forwards(self):
        """a library defines the driver's functions itself, and each opens the driver when it is first called (TensorFlow's and Implib.so's manner); the library is opened later, or was there at the start; with a driver and without | nothing: its own functions are called | all of it"""
        for mode in (os.RTLD_LOCAL, os.RTLD_GLOBAL, None):
            for order in (0, 1):
                for driver in (hostile.PLAIN, ""):
                    with self.subTest(mode=mode, order=order, driver=driver):
                        for disable in ("1", "0"):
                            said = self.called(FORWARDS, f"forwards\nprint(f({order}))", driver, mode, KSHIM_DISABLE=disable)
                            self.assertEqual(said == "1000000", driver != "")
                        self.assertEqual(len(self.found()), 1 if driver else 0)

    def test_such_libraries_come_and_go(self):
        """four threads open and close such libraries, with functions and with variables of these names, with a driver and without | nothing | -"""
        folder = self.folder / "libraries"
        folder.mkdir()
        for number in range(16):
            shutil.copy(FORWARDS if number % 2 else FILLS_DATA, folder / f"l{number}.so")
        self.assertEqual(self.plain("come-and-go", folder).stdout, "0\n")
        for number in range(0, 16, 2):  # without a look-up, a variable cannot be told
            (folder / f"l{number}.so").unlink()
        self.assertEqual(self.plain("come-and-go", folder, variables={"LD_LIBRARY_PATH": ""}).stdout, "0\n")

    def test_a_collector_stops_a_thread_in_dlclose(self):
        """a collector stops a thread by a signal, wherever it is in `dlopen` or `dlclose`, and calls the driver meanwhile | nothing | all of it"""
        self.assertEqual(self.plain("stopped-in-close", hostile.HERE / "libasks.so", timeout=30).stdout, "0\n")

    def test_a_fork_while_a_thread_is_in_dlclose(self):
        """a process without CUDA forks while another thread is in `dlclose`, and the child calls a driver function that is not there | the call answers that there is no device (100), and does not wait | none"""
        code = f"""
import ctypes, os, struct, threading
libc, weak = ctypes.CDLL(None), ctypes.CDLL({str(hostile.HERE / "libweak.so")!r})
stays = ctypes.CDLL({str(hostile.HERE / "libstays.so")!r})
ready, tells = os.pipe()
ctypes.c_int.in_dll(stays, "stays_tells").value = tells
libc.dlclose.argtypes = [ctypes.c_void_p]
threading.Thread(target=libc.dlclose, args=(stays._handle,), daemon=True).start()
os.read(ready, 1)
child = os.fork()
if child == 0:  # nanosleep ends it
    rows = (0x20, 0, 0, 0), (0x15, 0, 1, {dict(x86_64=35, aarch64=101)[platform.machine()]}), (6, 0, 0, 0x80000000), (6, 0, 0, 0x7fff0000)
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(program)))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filters) != 0:
        os._exit(77)
    os._exit(weak.weak() & 255)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""
        for disable in ("0", "1"):
            bare, shimmed = self.effect(code, variables={"LD_LIBRARY_PATH": "", "KSHIM_DISABLE": disable})
            if bare == ["77"]:
                self.skipTest("no seccomp here")
            self.assertEqual((bare, shimmed), (["255"], ["100"]))
            self.assertEqual(self.found(), [])

    def test_what_a_program_finds_in_itself(self):
        """a program without CUDA looks up driver functions in its own handle (`dlopen(NULL)`) and in the default scope | nothing: they do not exist | none"""
        self.plain("null-handle")

    def test_what_python_finds_in_itself(self):
        """`ctypes.CDLL(None).cuInit` | an AttributeError, as without | none"""
        code = "import ctypes\nfor name in ('cuInit', 'cudaMalloc', 'cuLaunchKernel'): print(name, hasattr(ctypes.CDLL(None), name))"
        self.assertIn("cuInit False", self.same(sys.executable, "-c", code).stdout)

    def test_a_function_that_is_patched(self):
        """a program overwrites the first bytes of a driver function with a jump (UCX, Frida) | nothing: every caller takes the jump | -"""
        self.plain("patched", hostile.HERE / "libuses_driver.so")

    def test_two_drivers_at_once(self):
        """two files of the driver are loaded at once; a program calls both (a stub of the toolkit, a compatibility package) | nothing: each call reaches its own driver | the failures in the first, and in the second after the first was unloaded"""
        self.assertEqual(self.plain("two-drivers", *self.drivers()).stdout, "209\n500\n209\n0\n500\n")
        self.assertEqual(self.codes(self.only()), [209, 500])

    def test_a_driver_under_another_name(self):
        """a program opens the driver by a link, as a copy with another name, or as a file in memory (bundles, sandboxes) | nothing | every failure"""
        driver = hostile.PLAIN / "libcuda.so.1"
        link, copy = self.folder / "driver-link.so", self.folder / "libcuda-580.so"
        link.symlink_to(driver)
        shutil.copy(driver, copy)
        with open(os.memfd_create("driver"), "wb") as memory:
            memory.write(driver.read_bytes())
            memory.flush()
            self.plain("reload", link, copy, f"/proc/{os.getpid()}/fd/{memory.fileno()}")
        records = self.only()
        self.assertEqual({record["soname"] for record in e2e.of_type(records, "library")}, {"libcuda.so.1"})
        repeats = {record["id"]: record["count"] for record in e2e.of_type(records, "repeat")}
        self.assertEqual(sum(repeats.get(record["id"], 1) for record in e2e.of_type(records, "failure")), 2 * 3 * 2)

    def test_libraries_by_the_thousand(self):
        """a program opens libraries by the thousand; each loads device code and looks up a kernel (Triton, Inductor) | nothing: the cost of each does not grow | every load"""
        self.cost_of_each_is_constant("libraries", "liblauncher.so", recorded=True)

    def test_default_look_ups_by_the_thousand(self):
        """the same libraries look a driver function up in the default scope (`dlsym(RTLD_DEFAULT)`) | nothing: the cost of each does not grow | -"""
        self.cost_of_each_is_constant("default-look-ups", "libasks.so", hostile.HERE / "libuses_driver.so")

    def cost_of_each_is_constant(self, scenario, library, *words, recorded=False):
        few, many = 100, 1000
        cost = {}
        for count in (few, many):
            self.plain(scenario, self.copies(count, library), "cost", *words)
            bare, shim = (float((self.folder / kind / "cost").read_text()) for kind in ("bare", "shim"))
            cost[count] = max(shim - bare, 0.0001 * count)  # what is less is the clock's
            if recorded:
                self.assertEqual(self.only()[-1]["modules"], count)
        self.assertLess(cost[many], 4 * cost[few] * many / few)

    def test_many_files_of_device_code(self):
        """a program loads 9,000 device code files by name, then opens a library, in which a call fails | nothing | the failure with its library"""
        folder = self.folder / "files"
        folder.mkdir()
        for number in range(9000):
            (folder / f"{number}.ptx").write_bytes(b".version 8.0\n.target sm_90\n.address_size 64\n")
        self.plain("paths", folder, CALLS_BACK, CALLS_BACK)
        self.assertIn("libcalls_back.so", str(self.failure(self.only(), "inside_1_0")["native"]))

    def test_libraries_of_cudnn_come_and_go(self):
        """other threads open and close libraries named like cuDNN's | nothing | all of it"""
        folder = self.copies(1200, "libcalls_back.so", "libcudnn_{}.so.9")
        self.plain("cudnn", folder)

    def test_device_code_from_a_pipe(self):
        """cuModuleLoad of a FIFO, which the driver does not open | nothing: a process that waits to write into it goes on waiting | the load"""
        folder = self.folder / "code"
        folder.mkdir()
        self.beside_a_writer(folder / "pipe", lambda: self.plain("paths", folder, CALLS_BACK, CALLS_BACK))
        self.failure(self.only(), "inside_1_0")

    def test_more_files_than_are_numbered(self):
        """a program opens and closes 17,000 library files before it uses the driver | nothing | frames have path and build id, but no record refers to their files; one line on stderr says so"""
        folder = self.folder / "files"
        folder.mkdir()
        shutil.copy(hostile.HERE / "libasks.so", folder / "0.so")
        for number in range(1, 17_000):
            os.link(folder / "0.so", folder / f"{number}.so")
        done = self.plain("many-files", folder, CALLS_BACK, CALLS_BACK)
        self.assertEqual(done.stderr.count("have no object record"), 1)
        failure = self.failure(self.only(), "inside_1_0")
        self.assertIsNone(failure["object"])
        self.assertIn(str(CALLS_BACK), [frame["object"] for frame in failure["native"]])

    def test_a_damaged_symbol_table(self):
        """a library with a damaged symbol hash table, which ld.so never has to read | nothing | all of it"""
        for offset, word in ((0, 0x7fffffff), (4, 0xffffff00), (16, 0xffffffff)):
            with self.subTest(offset):
                library = self.damaged(".gnu.hash", offset, struct.pack("<I", word))
                self.assertIn("opened: 1", self.plain("damaged", library).stdout)

    def test_libraries_of_odd_places(self):
        """a call fails inside a library whose path has a line feed, quotes, a long name, or ends in " (deleted)" | nothing | the failure with its library"""
        for name in ("a\nb", 'q"\\012', "x (deleted)", "long" * 60, "\u00fc \u2028"):
            with self.subTest(name):
                folder = self.folder / name
                folder.mkdir()
                shutil.copy(CALLS_BACK, folder / "libodd.so")
                self.plain("inside", folder / "libodd.so", CALLS_BACK)
                frames = self.failure(self.found()[-1], "inside_1_0")["native"]
                self.assertIn(str(folder / "libodd.so"), [frame["object"] for frame in frames])

    def test_the_shim_twice(self):
        """two copies of libkshim.so are preloaded | nothing | -"""
        copy = self.folder / "copy" / "libkshim.so"
        copy.parent.mkdir()
        shutil.copy(e2e.SHIM, copy)
        self.plain("inside", CALLS_BACK, CALLS_BACK, shim_preload=f"{e2e.SHIM}:{copy}")

    def test_a_library_with_many_symbols(self):
        """calls fail in 64 threads, 60 frames deep in a library with 100,000 symbols | nothing | all of it"""
        self.plain("inside", hostile.HERE / "libmany_symbols.so", CALLS_BACK, 64)
        self.assertEqual(self.only()[-1]["dropped"], 0)


class Names(hostile.Case):
    def test_only_reserved_names(self):
        """a program may define any name that C does not reserve | nothing: libkshim.so imports reserved names only | -"""
        done = self.run_program("nm", "-D", "--undefined-only", e2e.SHIM)
        names = [line.split()[-1].split("@")[0] for line in done.stdout.splitlines()]
        self.assertEqual([name for name in names if not name.startswith("_")], [])

    def test_a_variable_named_uname(self):
        """a program defines variables named `uname`, `clock_gettime`, `dladdr` | nothing | all of it"""
        self.assertEqual(self.plain(None, program=hostile.HERE / "own_uname").stdout, "0 209 209\n")

    def test_functions_of_its_own(self):
        """a program defines its own functions `syscall`, `uname`, `getauxval`, `sigaddset` | nothing: the shim calls none of them | all of it"""
        self.assertEqual(self.plain(None, program=hostile.HERE / "own_calls").stdout, "0 209 209\n")

    def test_a_list_of_libraries_of_its_own(self):
        """a program defines its own `dl_iterate_phdr`, which lists only what was loaded at the start (ClickHouse, Seastar) | nothing | all of it"""
        self.assertEqual(self.plain(None, program=hostile.HERE / "own_iterate").stdout, "0 209 209\n")
        self.assertEqual(len(self.codes(self.only())), 2)

    def test_ways_to_end_of_its_own(self):
        """a library defines `_exit` or `_Exit`, also one by means of the other | its own are called, as without the shim | -"""
        for library in ("own_lower", "own_upper", "own_both_ways"):
            path = hostile.HERE / f"lib{library}.so"
            for way in ("_exit", "_Exit"):
                for disable in ("0", "1"):
                    with self.subTest(library=library, way=way, disable=disable):
                        done = self.same(hostile.HERE / "quick_ends", way, bare_preload=path, shim_preload=f"{e2e.SHIM}:{path}",
                                         variables={"KSHIM_DISABLE": disable})
                        self.assertEqual(done.returncode, 3)

    def test_a_preload_behind_with_a_resolver(self):
        """a preload behind the shim has an `_exit` that a resolver chooses (IFUNC) | it is not called | -"""
        path = hostile.HERE / "libown_resolver.so"
        self.assertIn("own _exit\n", self.bare(hostile.HERE / "quick_ends", "_exit", preload=path).stdout)
        self.assertEqual(self.shimmed(hostile.HERE / "quick_ends", "_exit", preload=f"{e2e.SHIM}:{path}").stdout, "")

    def test_whose_a_function_is(self):
        """a program asks in which file a function is (`dladdr`) that the shim hooks, or writes over its beginning | it is the shim's: the driver's functions, and `_exit` and `dlsym` | -"""
        names = "cuLaunchKernel", "_exit", "dlsym"
        bare, shimmed = self.effect(
            "import ctypes, os\n"
            "class Info(ctypes.Structure): _fields_ = [('file', ctypes.c_char_p), ('base', ctypes.c_void_p), ('name', ctypes.c_char_p), ('at', ctypes.c_void_p)]\n"
            "c, driver, info = ctypes.CDLL(None), ctypes.CDLL('libcuda.so.1'), Info()\n"
            f"for name in {names}:\n"
            "    c.dladdr(getattr(driver if name.startswith('cu') else c, name), ctypes.byref(info))\n"
            "    print(os.path.basename(os.fsdecode(info.file)))\n")
        self.assertEqual(bare[0], "libcuda.so.1")
        self.assertNotIn(e2e.SHIM.name, bare)
        self.assertEqual(shimmed, [e2e.SHIM.name] * len(names))

    def test_a_weak_reference(self):
        """a library tests for the driver by a weak reference (`if (cuInit)`) in a program without a driver | the function is there, also with `KSHIM_DISABLE=1`; a call answers that there is no device (100) | none"""
        code = f"import ctypes\nprint(ctypes.CDLL({str(hostile.HERE / 'libweak.so')!r}).weak())\n"
        for disable in ("0", "1"):
            bare, shimmed = self.effect(code, variables={"LD_LIBRARY_PATH": "", "KSHIM_DISABLE": disable})
            self.assertEqual((bare, shimmed), (["-1"], ["100"]))
            self.assertEqual(self.found(), [])

    def test_variables_that_are_set_without_a_look_up(self):
        """a library that is opened later has a variable `cuInit`, and sets it before it looks a driver function up | the program ends by SIGSEGV, also with `KSHIM_DISABLE=1` | none"""
        code = f"import ctypes\nprint(ctypes.CDLL({str(FILLS_DATA)!r}).fills_data())"
        bare, shimmed = (start(sys.executable, "-c", code, variables={"LD_LIBRARY_PATH": ""}) for start in (self.bare, self.shimmed))
        self.assertEqual((bare.returncode, bare.stdout.strip(), shimmed.returncode), (0, "-1", -signal.SIGSEGV))

    def test_the_text_of_an_error(self):
        """`dlerror` after a look-up by `RTLD_DEFAULT` that fails | its text names libkshim.so instead of the caller | -"""
        bare, shimmed = self.effect("import ctypes\nc = ctypes.CDLL(None)\nc.dlerror.restype = ctypes.c_char_p\n"
                                    "print(c.dlsym(None, b'cuInit'), c.dlerror().decode())\n")
        self.assertEqual((bare[0], shimmed[0]), ("0", "0"))
        self.assertEqual([e2e.SHIM.name in " ".join(found) for found in (bare, shimmed)], [False, True])

    def test_a_version_of_its_own(self):
        """a library has its own `_exit` and `dlsym`, with a symbol version of its own | libc's are called, as without the shim | -"""
        path = hostile.HERE / "libown_version.so"
        for way in ("_exit", "dlsym"):
            with self.subTest(way):
                done = self.same(hostile.HERE / "quick_ends", way, bare_preload=path, shim_preload=f"{e2e.SHIM}:{path}")
                self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_a_libc_in_a_long_path(self):
        """libc in a folder with a name of more than 512 bytes (a bundle) | nothing | -"""
        folder = self.folder.joinpath(*["d" * 100] * 6)
        folder.mkdir(parents=True)
        mapped = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()}
        loader, = (path for path in mapped if os.path.basename(path).startswith("ld-linux-"))
        for path in [loader] + [path for path in mapped if os.path.basename(path).startswith(("libc.so.", "libdl.so."))]:
            shutil.copy(path, folder)
        for way in ("_exit", "dlsym"):
            with self.subTest(way):
                done = self.same(folder / os.path.basename(loader), "--library-path", folder, hostile.HERE / "quick_ends", way)
                self.assertEqual(done.returncode, 3)


if __name__ == "__main__":
    e2e.main()
