#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What CMD writes to stderr, `kshim run` reads and changes nothing of it: order, files, terminals, what children write later. A
refusal that is said there is the finding; how a program ended accuses nobody."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import e2e

PLUGIN = e2e.BUILD / "tests" / "blind" / "libplugin_shared.so"
LAUNCHES = e2e.SAMPLES / "01_missing_architecture" / "saxpy"
e2e.require(PLUGIN, LAUNCHES, e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1")

# Initializes CUDA, writes the lines to stderr, ends with a status.
SAYS = """
import ctypes, sys
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
sys.stderr.write(sys.argv[2] + "\\n")
sys.exit(int(sys.argv[1]))
"""
# Loads a library with device code, launches nothing of it, and ends as an uncaught exception of Thrust ends.
THROWS = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
runtime = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart.so" in line)
assert ctypes.CDLL(runtime).cudaFree(None) == 0
sys.stderr.write("terminate called after throwing an instance of 'thrust::THRUST_200802_SM_870_NS::system::system_error'\\n"
                 "  what():  parallel_for failed: cudaErrorInvalidDeviceFunction: invalid device function\\n")
sys.exit(1)
"""
# Asks for the driver's version by way of a runtime, and goes on without it.
ASKS = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
runtime = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart.so" in line)
assert ctypes.CDLL(runtime).cudaDriverGetVersion(ctypes.byref(ctypes.c_int())) == 0
sys.stderr.write("x.py:200: UserWarning: [13:03:49] WARNING: /__w/xgboost/xgboost/src/context.cc:53: No visible GPU is found, setting device to CPU.\\n")
"""
FLASH = "RuntimeError: FlashAttention only supports Ampere GPUs or newer."


class Streams(e2e.Case):
    def sh(self, script, **more):
        return subprocess.run(["sh", "-c", script, e2e.KSHIM], capture_output=True, text=True, timeout=60, cwd=self.folder,
                              env=e2e.clean_environment(), check=False, **more)

    def test_order_with_stdout(self):
        words = "".join(f"out{i}\nerr{i}\n" for i in range(50))
        loop = "'i=0; while [ $i -lt 50 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done'"
        for where in ("2>&1 | cat", "> log 2>&1; cat log"):
            with self.subTest(where):
                self.assertTrue(self.sh(f'"$0" run -- sh -c {loop} {where}').stdout.startswith(words))

    def test_a_file_stays_the_file(self):
        done = self.sh('"$0" run -- sh -c "stat -L -c %F:%i /proc/self/fd/2; exit 3" 2> log; stat -c %F:%i log')
        kind, now = done.stdout.splitlines()
        self.assertEqual(kind.split(":")[1], now.split(":")[1])

    def test_children_that_stay_write_on(self):
        """After the run's end, into the same place, and their writes succeed."""
        done = self.sh('"$0" run -- sh -c "(sleep 1; echo late >&2; echo \\$? > status) & echo first >&2"; echo ended >&2')
        first, late, ended = (done.stderr.index(word) for word in ("first\n", "late\n", "ended\n"))
        self.assertTrue(first < ended < late, done.stderr)
        self.assertEqual((self.folder / "status").read_text(encoding="utf-8"), "0\n")

    def test_a_run_that_is_killed_takes_nothing_along(self):
        run = subprocess.Popen([e2e.KSHIM, "run", "--", "sh", "-c", "echo $$ >&2; sleep 1; echo on >&2; echo $? > status"],
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=self.folder, env=e2e.clean_environment())
        run.stderr.readline()
        run.kill()
        run.wait(60)
        self.assertEqual(run.stderr.read(), "on\n")
        run.stderr.close()
        self.assertEqual((self.folder / "status").read_text(encoding="utf-8"), "0\n")

    def test_a_reader_that_is_gone(self):
        """CMD meets it at its next write, as without kshim."""
        done = self.sh('"$0" run -- sh -c "trap \\"\\" PIPE; sleep 0.5; echo x >&2 && touch went; sleep 0.1" 2>&1 >&- | true; sleep 1; ls')
        self.assertNotIn("went", done.stdout.split())

    def test_what_writes_without_end_does_not_hold_the_run(self):
        done = self.sh('timeout 20 "$0" run -- sh -c "(timeout 3 yes >&2) & sleep 0.2" 2> /dev/null; echo $?')
        self.assertEqual(done.stdout, "0\n")

    def test_much(self):
        done = self.sh('"$0" run -- sh -c "head -c 5000000 /dev/zero >&2; echo out" 2>&1 | wc -c')
        self.assertGreaterEqual(int(done.stdout), 5_000_004)


class Screen:
    """A terminal with a shell in it."""

    def __init__(self, case):
        self.case = case
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(case.folder)
            os.execve("/bin/bash", ["bash", "--norc", "--noediting", "-i"], {**e2e.clean_environment(KSHIM=e2e.KSHIM), "PS1": "READY$ ", "TERM": "xterm"})
        self.text = b""
        self.resize(40, 100)
        self.until(rb"READY\$ $")

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, pattern):
        got, end = b"", time.monotonic() + 60
        while not re.search(pattern, got):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                self.case.fail(f"{pattern!r} never came: {got!r}")
            got += os.read(self.fd, 65536)
        return got.decode()

    def keys(self, text):
        os.write(self.fd, text.encode())

    def do(self, line, until=rb"\nREADY\$ $"):
        self.keys(line + "\n")
        return self.until(until)

    def modes(self):
        return termios.tcgetattr(self.fd)

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)


class Terminal(e2e.Case):
    def setUp(self):
        super().setUp()
        self.screen = Screen(self)
        self.addCleanup(self.screen.close)
        self.modes = self.screen.modes()

    def run_until(self, script, pattern=rb"\r\nready\r\n"):
        return self.screen.do(f"$KSHIM run -- sh -c '{script}'", pattern)

    def test_all_streams_are_terminals_of_its_size(self):
        got = self.screen.do("$KSHIM run -- sh -c 'for i in 0 1 2; do test -t $i && stty size <&$i; done; tty -s < /dev/tty && echo own; exit 7'; echo status=$?")
        self.assertEqual(re.findall(r"40 100", got), ["40 100"] * 3)
        self.assertIn("own\r\n", got)
        self.assertIn("status=7", got)
        self.assertEqual(self.screen.modes(), self.modes)

    def test_a_window_that_changes(self):
        self.run_until('trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done')
        self.screen.resize(33, 77)
        self.assertIn("33 77", self.screen.until(rb"READY\$ $"))

    def test_interrupt(self):
        # A shell that has forked and not yet started the program loses the signal: exec instead.
        self.run_until("echo ready; exec sleep 100")
        self.screen.keys("\x03")
        self.screen.until(rb"READY\$ $")
        self.assertIn("status=130", self.screen.do("echo status=$?"))

    def test_stop_and_go_on(self):
        self.run_until("echo ready; read line; echo got $line")
        self.screen.keys("\x1a")
        self.assertIn("Stopped", self.screen.until(rb"READY\$ $"))
        self.screen.do("fg", rb"fg\r\n.*\r\n")
        self.screen.keys("hello\n")
        self.assertIn("got hello", self.screen.until(rb"READY\$ $"))
        self.assertEqual(self.screen.modes(), self.modes)

    def test_in_the_background_and_to_the_front(self):
        self.run_until("echo ready; read line; echo got $line")
        self.screen.keys("\x1a")
        self.screen.until(rb"READY\$ $")
        self.screen.do("bg")
        self.assertIn("Running", self.screen.do("jobs"))
        self.screen.do("fg", rb"fg\r\n.*\r\n")
        self.screen.keys("hello\n")
        self.assertIn("got hello", self.screen.until(rb"READY\$ $"))

    def test_begun_in_the_background(self):
        # What the shell's line editor has set at that time is not for the program.
        self.screen.do("stty -icanon -echo")
        self.screen.do("$KSHIM run -- sh -c 'echo ready; read line; echo got $line' &", rb"ready\r\n")
        self.screen.do("stty icanon echo", rb"READY\$ $")
        self.screen.do("fg", rb"fg\r\n.*\r\n")
        time.sleep(1)  # until kshim sees that the terminal is its own
        self.screen.keys("hex\x7fllo\n")
        self.assertIn("got hello\r\n", self.screen.until(rb"(?s)got.*READY\$ $"))
        self.assertEqual(self.screen.modes(), self.modes)

    def test_modes_that_it_sets_stay(self):
        self.screen.do("$KSHIM run -- stty -echo")
        self.assertFalse(self.screen.modes()[3] & termios.ECHO)

    def test_a_run_that_is_killed_leaves_a_usable_terminal(self):
        self.run_until("echo $PPID > monitor; echo ready; sleep 1; echo on > went_on; echo still here")
        monitor = int((self.folder / "monitor").read_text(encoding="utf-8"))
        stat = (e2e.pathlib.Path("/proc") / str(monitor) / "stat").read_text(encoding="utf-8")
        os.kill(int(stat[stat.rindex(")") + 2:].split()[1]), signal.SIGKILL)
        self.screen.until(rb"(?s)READY\$ .*still here\r\n|still here\r\n.*READY\$ ")
        self.assertEqual((self.folder / "went_on").read_text(encoding="utf-8"), "on\n")
        self.assertEqual(self.screen.modes(), self.modes)

    def test_pipelines(self):
        for line, wanted in (("$KSHIM run -- sh -c 'test -t 2 && echo err >&2; echo out' | tr o 0", ("err\r\n", "0ut\r\n")),
                             ("echo in | $KSHIM run -- sh -c 'cat; test -t 1 && test -t 2 && echo both'", ("in\r\nboth\r\n",)),
                             ("$KSHIM run -- sh -c 'stty size <&2' | cat", ("40 100\r\n",))):
            with self.subTest(line):
                got = self.screen.do(line)
                for words in wanted:
                    self.assertIn(words, got)
        self.screen.do("(echo started >&2; sleep 100) | $KSHIM run -- cat", rb"\nstarted\r\n")
        time.sleep(0.5)
        self.screen.keys("\x03")
        self.screen.until(rb"READY\$ $")
        self.assertEqual(self.screen.modes(), self.modes)

    def test_the_refusal_is_heard(self):
        (self.folder / "says.py").write_text(SAYS, encoding="utf-8")
        self.screen.do(f"$KSHIM run --simulate 7.5 --format json -o out.json -- {sys.executable} says.py 1 '{FLASH}'")
        analysis = e2e.json.loads((self.folder / "out.json").read_text(encoding="utf-8"))
        self.assertEqual([finding["cause"] for finding in analysis["findings"]], ["library-refuses"])


class Words(e2e.Case):
    def said(self, status, text, *more):
        host = self.folder / "says.py"
        host.write_text(SAYS, encoding="utf-8")
        analysis, _ = self.analysis("--simulate", "7.5", "--report", self.folder / "r", *more, "--", sys.executable, host, status, text, status=status)
        return analysis

    def test_a_refusal_is_the_finding(self):
        finding, = self.said(1, FLASH)["findings"]
        self.assertEqual((finding["cause"], finding["severity"]), ("library-refuses", "error"))
        self.assertIn("said", [row["id"] for row in finding["evidence_items"]])
        self.assertEqual(finding["device"]["compute_capability"], "7.5")

    def test_what_both_tell_of_is_one_finding(self):
        analysis, done = self.analysis("--simulate", "7.5", "--", "sh", "-c", f"{LAUNCHES} >&2")
        self.assertIn("no kernel image", done.stderr)
        finding, = (each for each in analysis["findings"] if each["severity"] == "error")
        ids = [row["id"] for row in finding["evidence_items"]]
        self.assertEqual(finding["cause"], "no-image-for-arch")
        self.assertIn("failed-call", ids)
        self.assertIn("said", ids)

    def test_what_a_library_throws_without_a_failed_call(self):
        """As CUB does: the file is the one whose modules lack the GPU."""
        host = self.folder / "throws.py"
        host.write_text(THROWS, encoding="utf-8")
        analysis, _ = self.analysis("--simulate", "7.5", "--", sys.executable, host, PLUGIN, status=1, env=e2e.clean_environment(CUDA_MODULE_LOADING="EAGER"))
        finding, = (each for each in analysis["findings"] if each["severity"] == "error")
        ids = [row["id"] for row in finding["evidence_items"]]
        self.assertEqual((finding["code"], finding["object"], finding["need"]), (98, str(PLUGIN), "sm_75"))
        self.assertIn("said", ids)
        self.assertIn("ended-silently", ids)
        self.assertEqual(analysis["verdict"], "gap")

    def test_the_drivers_lines_name_the_kernel(self):
        """As PyTorch 2.15 prints them."""
        lines = ("RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
                 "The CUDA driver logged these messages, which may provide useful details:\n"
                 "[22:21:32.099][25642][CUDA][E] No device code available for GPU ISA 75\n"
                 "[22:21:32.099][25642][CUDA][E] Kernel (_Z5scalePf) cannot be found in library due to compilation error\n"
                 "[22:21:32.099][25642][CUDA][E] Returning 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) from cuLibraryGetKernel")
        finding, = self.said(1, lines)["findings"]
        self.assertEqual((finding["cause"], finding["code"], finding["failed_kernel"], finding["need"]), ("no-image-for-arch", 209, "scale(float*)", "sm_75"))

    def test_an_ending_is_nobodys_fault(self):
        for words in ("dataset is empty", "FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'",
                      "KeyError: 'cuda'", "Killed", "AssertionError"):
            with self.subTest(words):
                analysis = self.said(1, words)
                self.assertEqual((analysis["verdict"], analysis["findings"]), ("failure", []))

    def test_left_alone(self):
        self.assertEqual(self.said(1, FLASH, "--no-capture")["findings"], [])

    def test_a_program_that_went_on(self):
        """On the CPU: a warning."""
        finding, = self.said(0, "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: "
                                "No such file or directory")["findings"]
        self.assertEqual((finding["cause"], finding["severity"]), ("library-not-found", "warning"))
        self.assertEqual(self.said(0, "epoch 1: loss 0.5")["findings"], [])
        self.assertEqual(self.said(0, "INFO: skipping GPU tests: CUDA driver version is insufficient (expected on CI)")["findings"], [])

    def test_a_warning_at_the_start_is_not_why_it_ended(self):
        warning = ("UserWarning: NVIDIA GeForce GTX 1080 with CUDA capability sm_61 is not compatible with the current PyTorch installation.\n"
                   "The current PyTorch install supports CUDA capabilities sm_75 sm_80 sm_86 sm_90.\n")
        self.assertNotIn("error", [finding["severity"] for finding in self.said(1, warning + "dataset is empty")["findings"]])

    def test_the_exception_is_named(self):
        """And no hint at the simulator, which has nothing to do with it."""
        for text, last in (("Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\nFileNotFoundError: [Errno 2] No such file: 'x'", "FileNotFoundError: [Errno 2] No such file: 'x'"),
                           ("[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t.py\", line 1\n[rank0]: ValueError: shapes\n[rank0]: (2, 3) and (4,)", "ValueError: shapes"),
                           ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  no such table", "what():  no such table"),
                           ("thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds", "index out of bounds"),
                           ("dataset is empty", "dataset is empty")):
            with self.subTest(text):
                analysis = self.said(1, text)
                self.assertEqual((analysis["verdict"], analysis["findings"], analysis["last_words"]), ("failure", [], last))
        shown = self.kshim("run", "--simulate", "7.5", "--", sys.executable, self.folder / "says.py", "1", "Traceback (most recent call last):\nKeyError: 'x'").stderr
        self.assertIn("KeyError: 'x', which is no failure of CUDA's", " ".join(shown.split()))
        self.assertNotIn("zeros", shown)

    def test_what_needs_a_kernel_module_fails_with_every_simulated_gpu(self):
        for words, what in (("open /dev/nvidia0: No such file or directory", "/dev/nvidia0"),
                            ("RuntimeError: no NVIDIA driver found: /proc/driver/nvidia/version does not exist", "/proc/driver/nvidia"),
                            ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Found no NVIDIA driver", "NVIDIA-SMI")):
            with self.subTest(words):
                analysis = self.said(1, words)
                self.assertEqual((analysis["findings"], analysis["needs_kernel_module"]), ([], what))

    def test_what_jax_looks_for_is_said_of_jax_alone(self):
        environment = self.folder / "env"
        site = environment / "lib/python3.11/site-packages"
        site.mkdir(parents=True)
        (environment / "pyvenv.cfg").touch()
        program = environment / "bin/job"
        program.parent.mkdir()
        (self.folder / "says.py").write_text(SAYS, encoding="utf-8")
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {self.folder}/says.py 0 hello\n")
        program.chmod(0o755)
        for package, told in (("flax", False), ("jax", True)):
            (site / package).mkdir()
            said = self.kshim("run", "--simulate", "7.5", "--", program).stderr
            self.assertEqual("/dev/nvidia0" in said, told and not os.path.exists("/dev/nvidia0"), said)

    def test_a_library_that_is_there_is_not_missing(self):
        """CUPTI answers 999 where there is no kernel module, as where its file is missing."""
        site = self.folder / "env/lib/python3.11/site-packages"
        (self.folder / "env/pyvenv.cfg").parent.mkdir()
        (self.folder / "env/pyvenv.cfg").touch()
        (site / "jax/_src").mkdir(parents=True)
        said = (f'  File "{site}/jax/_src/xla_bridge.py", line 508, in discover_pjrt_plugins\n'
                "RuntimeError: operation cuptiGetVersion(&version) failed: Unknown CUPTI error 999.\n"
                "RuntimeError: Unable to load cuPTI. Is it installed?")
        missing = self.said(1, said)
        self.assertEqual(([row["cause"] for row in missing["findings"]], missing["needs_kernel_module"]), (["library-not-found"], None))
        (site / "nvidia/cu13/lib").mkdir(parents=True)
        (site / "nvidia/cu13/lib/libcupti.so.13").touch()
        there = self.said(1, said)
        self.assertEqual((there["findings"], there["needs_kernel_module"]), ([], "CUPTI"))

    def test_no_gpu_where_the_driver_showed_one(self):
        self.assertEqual(self.said(0, "x.py:200: UserWarning: [13:03:49] WARNING: /__w/xgboost/xgboost/src/context.cc:53: No visible GPU is found, setting device to CPU.")["findings"], [])
        finding, = self.said(0, "cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.\n"
                                "W0000 gpu_device.cc:2365] Cannot dlopen some GPU libraries. Skipping registering GPU devices...")["findings"]
        self.assertEqual((finding["cause"], finding["severity"]), ("library-not-found", "warning"))

    def test_no_gpu_where_a_runtime_asked_an_old_driver(self):
        host = self.folder / "asks.py"
        host.write_text(ASKS, encoding="utf-8")
        analysis, _ = self.analysis("--simulate", "3.7", "--", sys.executable, host, PLUGIN)
        finding, = analysis["findings"]
        self.assertEqual((finding["cause"], finding["severity"]), ("driver-too-old", "warning"))
        self.assertNotIn("upgrade-driver", [fix["kind"] for fix in finding["fixes"]])  # no newer driver has this GPU

    def test_more_names_a_command_that_has_more(self):
        """Where no report is, `kshim analyze` has nothing to read."""
        host = self.folder / "says.py"
        host.write_text("import sys\nsys.stderr.write(sys.argv[1])\nsys.exit(1)\n", encoding="utf-8")
        shown = self.kshim("run", "--simulate", "7.5", "--", sys.executable, host, FLASH).stderr
        command = shown[shown.index("More:") + 5:].strip().replace("\\\n", " ")
        self.assertNotIn("analyze", command)
        again = subprocess.run(["bash", "-c", command.replace("kshim", str(e2e.KSHIM), 1)], capture_output=True, text=True, cwd=self.folder,
                               env=e2e.clean_environment(), timeout=60, check=False)
        self.assertIn("library-refuses", again.stderr)

    def test_secrets_are_not_quoted(self):
        finding, = self.said(1, FLASH[:-1] + " token=ghp_x8Kd02mQzL9vTnB3rYwE7uHsJ5aPcF1gVi6o")["findings"]
        self.assertNotIn("ghp_x8Kd02mQzL9vTnB3rYwE7uHsJ5aPcF1gVi6o", str(finding))


class Installed(e2e.Case):
    """What is installed has its say in a fix."""

    def setUp(self):
        super().setUp()
        self.env = self.folder / "env"
        self.site = self.env / f"lib/python3.{sys.version_info.minor}/site-packages"
        self.site.mkdir(parents=True)
        (self.env / "bin").mkdir()
        (self.env / "bin/python").symlink_to(pathlib.Path(sys.executable).resolve())
        (self.env / "pyvenv.cfg").write_text(f"home = {pathlib.Path(sys.executable).resolve().parent}\n", encoding="utf-8")
        (self.folder / "says.py").write_text(SAYS, encoding="utf-8")

    def install(self, name, version, *lines):
        folder = self.site / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("\n".join([f"Name: {name}", f"Version: {version}", *lines, "", "Text"]), encoding="utf-8")

    def commands(self, gpu, text, status=1):
        analysis, _ = self.analysis("--simulate", gpu, "--", self.env / "bin/python", self.folder / "says.py", status, text, status=status)
        return [command for fix in analysis["findings"][0]["fixes"] for command in fix["commands"]]

    def test_a_library_that_lies_in_a_folder_that_is_not_searched(self):
        text = "ImportError: libcusolver.so.11: cannot open shared object file: No such file or directory"
        self.assertNotIn("LD_LIBRARY_PATH=", self.commands("8.9", text)[0])
        (self.site / "nvidia/cusolver/lib").mkdir(parents=True)
        (self.site / "nvidia/cusolver/lib/libcusolver.so.12").touch()
        self.assertNotIn("nvidia/cusolver", self.commands("8.9", text)[0])
        (self.site / "nvidia/cusolver/lib/libcusolver.so.11").touch()
        self.assertTrue(self.commands("8.9", text)[0].startswith(f"export LD_LIBRARY_PATH={self.site}/nvidia/cusolver/lib$"))
        (self.site / "nvidia/cublas/lib").mkdir(parents=True)  # its own libraries are missing next
        self.assertTrue(self.commands("8.9", text)[0].startswith(f"export LD_LIBRARY_PATH={self.site}/nvidia/cusolver/lib:{self.site}/nvidia/cublas/lib$"))

    def test_what_pins_a_package_goes_along(self):
        text = ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
                "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\n"
                "RuntimeError: CUDA error: no kernel image is available for execution on the device")
        self.install("torch", "2.3.1+cu121")
        self.install("loose", "1.0", "Requires-Dist: torch>=2")
        self.install("other", "1.0", "Requires-Dist: torch==2.3.1; extra == 'x'")
        alone = self.commands("12.0", text)
        self.install("xformers", "0.0.27", "Requires-Dist: torch (==2.3.1)")
        both = self.commands("12.0", text)
        self.assertEqual([command for command in both if "xformers" not in command], alone)
        held = next(command for command in both if "xformers" in command)
        self.assertIn("--upgrade", held)
        self.assertIn("torch==", held)
        self.assertNotIn("loose", str(both))
        self.assertNotIn("other", str(both))

    def place(self, file, package, version, *lines):
        """A file, which the RECORD of a distribution lists."""
        path = self.site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.install(package, version, *lines)
        (self.site / f"{package}-{version}.dist-info/RECORD").write_text(f"{file},,\n", encoding="utf-8")
        return path

    def without_cuda(self, text):
        (self.folder / "fails.py").write_text("import sys\nsys.stderr.write(sys.argv[1])\nsys.exit(1)\n", encoding="utf-8")
        analysis, _ = self.analysis("--simulate", "8.6", "--", self.env / "bin/python", self.folder / "fails.py", text, status=1)
        return analysis

    def test_an_extension_that_was_built_for_another_pytorch(self):
        """The owner is the one whose RECORD lists the file; no process initialized CUDA."""
        symbol = "undefined symbol: _ZN3c104cuda9SetDeviceEi"
        self.install("torch", "2.9.1")
        for file, package, version, lines, command in (
                ("fast_ext.cpython-311-x86_64-linux-gnu.so", "fast_things", "1.0", (), "--upgrade-package fast_things fast_things"),
                ("old/_C.abi3.so", "pinned", "2.0", ("Requires-Dist: torch (==2.6.0)",), "'pinned==2.0' 'torch==2.6.0'"),
                ("autogptq_cuda_64.cpython-311-x86_64-linux-gnu.so", "auto_gptq", "0.7.1", (), "'auto_gptq==0.7.1' 'torch==2.2.*'"),
                ("sgl_kernel/common_ops.abi3.so", "sgl-kernel", "0.3.5", (), "'sgl-kernel==0.3.21.*'")):
            with self.subTest(package):
                path = self.place(file, package, version, *lines)
                analysis = self.without_cuda(f"Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nImportError: {path}: {symbol}\n")
                self.assertEqual((analysis["verdict"], analysis["findings"]), ("no-cuda", []))
                printed, = analysis["not_cuda"]["fix"]["commands"]
                self.assertTrue(printed.endswith(command), printed)
                explained = self.kshim("explain", f"ImportError: {path}: {symbol}").stdout
                self.assertIn(command, " ".join(explained.replace("\\\n", " ").split()))
        self.assertIsNone(self.without_cuda("KeyError: 'x'")["not_cuda"])

    def test_an_extension_that_was_built_for_another_tensorflow(self):
        self.install("tensorflow", "2.15.0")
        path = self.place("addons/_ops.so", "addons", "0.9", "Requires-Dist: tensorflow<2.12")
        analysis = self.without_cuda(f"OSError: {path}: undefined symbol: _ZN10tensorflow8OpKernel11TraceStringERKNS_15OpKernelContextEb")
        self.assertIn("'tensorflow<2.12'", analysis["not_cuda"]["fix"]["commands"][0])

    def test_what_is_said_of_another_release_where_no_cuda_was_used(self):
        self.install("torch", "2.8.0")
        analysis = self.without_cuda("WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
                                     "    PyTorch 2.3.1+cu121 with CUDA 1201 (you have 2.8.0+cu128)\n    Python  3.11.9 (you have 3.11.7)\nAttributeError: module has no attribute 'src'")
        self.assertEqual([row["cause"] for row in analysis["findings"]], ["mixed-cuda-libraries"])

    def test_the_name_of_a_library_names_its_package(self):
        """And the one that asks for it is not installed again: its metadata does not name it."""
        for file, package, version, line, wheel, folder in (
                ("ctranslate2/__init__.py", "ctranslate2", "4.8.5", "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded", "nvidia-cublas-cu12", "nvidia/cublas/lib"),
                ("mxnet/base.py", "mxnet_cu112", "1.9.1", "OSError: libcudnn.so.8: cannot open shared object file: No such file or directory", "nvidia-cudnn-cu11<9", "nvidia/cudnn/lib"),
                ("tool/x.py", "tool_cu12", "1", "OSError: libcudnn.so.8: cannot open shared object file: No such file or directory", "nvidia-cudnn-cu12<9", "nvidia/cudnn/lib"),
                ("solver/x.py", "solver_cuda11x", "1", "OSError: libcusolver.so.11: cannot open shared object file: No such file or directory", "nvidia-cusolver-cu11", "nvidia/cusolver/lib"),
                ("other/x.py", "other", "1", "OSError: libnvrtc.so.13: cannot open shared object file: No such file or directory", "nvidia-cuda-nvrtc", "nvidia/cu13/lib")):
            with self.subTest(package):
                path = self.place(file, package, version)
                commands = self.commands("8.9", f"Traceback (most recent call last):\n  File \"{path}\", line 5, in load\n    y()\n{line}\n")
                self.assertTrue(commands[0].endswith(f"'{wheel}'"), commands)
                self.assertTrue(commands[1].startswith(f"export LD_LIBRARY_PATH={self.site}/{folder}"), commands)
                self.assertNotIn("--force-reinstall", str(commands))

    def test_a_release_goes_with_what_it_needs(self):
        """An older release in place of the one that is there: with the PyTorch that it was built for; what excludes what is there goes
        into a new environment."""
        for file, package, version, other, target, command in (
                ("sgl_kernel/common_ops.abi3.so", "sgl-kernel", "0.3.21", ("torch", "2.9.1"), "7.5", "'torch==2."),
                ("qiskit_aer/backends/controller_wrappers.cpython-311-x86_64-linux-gnu.so", "qiskit-aer-gpu", "0.18.2", ("qiskit", "2.6.2"), "6.1", "'qiskit<1'")):
            with self.subTest(package):
                self.install(*other)
                path = self.place(file, package, version, "Requires-Dist: numpy")
                path.write_bytes(PLUGIN.read_bytes())
                scanned = json.loads(self.kshim("scan", "--format", "json", "--target", target, path).stdout)
                fixes = scanned["findings"][0]["fixes"]
                install = next((each for fix in fixes for each in fix["commands"] if f"{package}==" in each), None)
                self.assertIsNotNone(install, fixes)
                self.assertIn(command, install)
                self.assertEqual("--python new-env" in install, other[0] == "qiskit")

    def test_an_extra_that_the_installed_release_lacks(self):
        text = ("[E:onnxruntime:Default, provider_bridge_ort.cc:2195 TryGetProviderInfo_CUDA] Failed to load library libonnxruntime_providers_cuda.so with error: "
                "libcublasLt.so.11: cannot open shared object file: No such file or directory\n"
                "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*. Please install all dependencies")
        self.install("onnxruntime-gpu", "1.16.3")
        self.assertTrue(any("--upgrade" in command and "onnxruntime-gpu[cuda,cudnn]" in command for command in self.commands("8.9", text)))
        self.install("again", "1", "Provides-Extra: cuda")
        for path in self.site.glob("onnxruntime*/METADATA"):
            path.write_text("Name: onnxruntime-gpu\nVersion: 1.22.0\nProvides-Extra: cuda\nProvides-Extra: cudnn\n", encoding="utf-8")
        self.assertFalse(any("--upgrade" in command for command in self.commands("8.9", text)))


if __name__ == "__main__":
    e2e.main()
