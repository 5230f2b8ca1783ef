#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim run`: CMD stays itself (output, input, arguments, status, signals), and what is said about it is right."""
import ctypes.util
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import e2e

GUEST = e2e.PROGRAMS / "e2e_guest"
PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
HEALTHY = e2e.SAMPLES / "08_healthy" / "transpose"
REDUCE = e2e.SAMPLES / "07_two_gpus" / "reduce"
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", GUEST, PLUGIN, HEALTHY, REDUCE)

FAILING = ["--simulate", "sm_75", "--", GUEST, PLUGIN, "once"]
SUCCEEDING_WITH_FINDINGS = ["--simulate", "sm_75", "--", GUEST, PLUGIN, "exceptions"]


class Passing(e2e.Case):
    """Without CUDA, CMD behaves as without kshim."""

    def test_status_and_output(self):
        done = self.kshim("run", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
        self.assertEqual((done.returncode, done.stdout), (42, "out\n"))
        self.assertTrue(done.stderr.startswith("err\n"))
        self.assertEqual(self.files(), [])

    def test_input(self):
        done = self.kshim("run", "--", "cat", stdin=None, input="through\n")
        self.assertEqual((done.returncode, done.stdout), (0, "through\n"))

    def test_the_other_ends_of_pipes_see_them_closed(self):
        """By CMD, which goes on until its file is there."""
        script = f"exec <&- >&-; until [ -e {self.folder}/seen ]; do sleep 0.05; done"
        kshim = subprocess.Popen([e2e.KSHIM, "run", "--", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, cwd=self.folder, env=e2e.clean_environment())
        self.addCleanup(kshim.kill)
        self.assertTrue(select.select([kshim.stdout], [], [], 60)[0], "no end of the output")
        self.assertEqual(kshim.stdout.read(), b"")
        with self.assertRaises(BrokenPipeError):
            while True:
                os.write(kshim.stdin.fileno(), bytes(1 << 16))
        (self.folder / "seen").touch()
        self.assertEqual(kshim.wait(60), 0)
        kshim.stdin.close()
        kshim.stdout.close()

    def test_arguments_arrive_as_they_are(self):
        odd = ["[a,b]", "--simulate", "", "a b", "--", "-o", "{}", "%%", "$HOME"]
        done = self.kshim("run", "--", "sh", "-c", 'for word; do printf "<%s>" "$word"; done', "sh", *odd)
        self.assertEqual(done.stdout, "".join(f"<{word}>" for word in odd))

    def test_the_two_dashes_may_be_left_out(self):
        done = self.kshim("run", "--timeout", "60", "sh", "-c", "echo $#", "sh", "--timeout")
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"))

    def test_a_signal_that_ends_it(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            done = self.kshim("run", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number)

    def test_signals_are_passed_on(self):
        script = 'trap "echo got it; exit 7" TERM; echo ready; while :; do sleep 0.05; done'
        kshim = subprocess.Popen([e2e.KSHIM, "run", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.DEVNULL, cwd=self.folder, env=e2e.clean_environment())
        self.assertEqual(kshim.stdout.readline(), "ready\n")
        kshim.send_signal(signal.SIGTERM)
        self.assertEqual((kshim.communicate(timeout=60)[0], kshim.returncode), ("got it\n", 7))

    def test_without_a_temporary_folder_and_without_proc(self):
        """As in small containers: the socket lies with the reports, and where the command lies its caller says."""
        e2e.not_instrumented(self)
        script = ('for folder in "$TMPDIR" /tmp; do mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder"; done; '
                  '"$@" && mount -t tmpfs -o ro none /proc && "$@" && "$1" path')
        here = pathlib.Path(tempfile.mkdtemp(prefix="kshim-run-", dir="/dev/shm"))  # where the reports can be
        self.addCleanup(shutil.rmtree, here)
        (here / "tmp").mkdir()
        if os.geteuid() != 0 or self.run_program("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt").returncode != 0:
            self.skipTest("no mount namespaces here")
        # By a link, as /usr/bin may hold one.
        (here / "command").symlink_to(e2e.KSHIM)
        done = self.run_program("unshare", "--mount", "sh", "-c", script, "sh", here / "command", "run", "--", "echo", "hello",
                                cwd=here, env=e2e.clean_environment(TMPDIR=here / "tmp"))
        self.assertEqual((done.returncode, done.stdout), (0, f"hello\nhello\n{e2e.SHIM}\n"), done.stderr)
        self.assertNotIn("warning", done.stderr)

    def test_a_service_of_systemd(self):
        """What systemd says to the process that it starts, and to that one alone, CMD hears: its sockets, the watchdog's interval."""
        names = ("LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID", "LISTEN_PIDFDID", "LISTEN_FDS")
        service = 'for name in %s; do eval "echo $name=\\${$name-unset}"; done; echo self=$$; read line <&3; echo "$line"' % " ".join(names)
        with tempfile.TemporaryFile("w+") as socket:  # the descriptor that systemd passes has number 3
            for own in (True, False):
                with self.subTest(own=own):
                    socket.seek(0)
                    socket.write("from the socket\n")
                    socket.flush()
                    socket.seek(0)
                    number = "$$" if own else "1"
                    start = (f"export LISTEN_PID={number} WATCHDOG_PID={number} SYSTEMD_EXEC_PID={number} LISTEN_FDS=1 LISTEN_PIDFDID=77; exec 3<&{socket.fileno()}; "
                             'exec "$@"')
                    done = self.run_program("/bin/sh", "-c", start, "sh", e2e.KSHIM, "run", "--", "/bin/sh", "-c", service, pass_fds=[socket.fileno()])
                    printed = dict(line.split("=") for line in done.stdout.splitlines()[:-1])
                    self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "from the socket"))
                    wanted = printed["self"] if own else "1"
                    self.assertEqual([printed[name] for name in names], [wanted, wanted, wanted, "unset" if own else "77", "1"])

    def test_a_script_without_magic(self):
        script = self.folder / "script"
        script.write_text("echo from a script $1\n")
        script.chmod(0o755)
        done = self.kshim("run", "--", "./script", "one")
        self.assertEqual((done.returncode, done.stdout), (0, "from a script one\n"))

    def test_closed_streams(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            done = self.run_program("sh", "-c", f'"$0" run -- sh -c "exit 9" {closed}', e2e.KSHIM)
            self.assertEqual(done.returncode, 9, closed)

    def test_timeout_ends_all_of_it(self):
        done = self.kshim("run", "--timeout", "0.3", "--", "sh", "-c", "sleep 1000 & echo $!; sleep 1000")
        self.assertEqual(done.returncode, 128 + signal.SIGTERM)
        self.assertIn("(--timeout)", done.stderr)
        self.assertFalse(pathlib.Path("/proc", done.stdout.strip()).exists())

    def test_timeout_of_what_does_not_want_to_end(self):
        done = self.kshim("run", "--timeout", "0.3", "--", "sh", "-c", 'trap "" TERM; while :; do sleep 0.05; done')
        self.assertEqual(done.returncode, 128 + signal.SIGKILL)

    # shows: `kshim run` at its time limit and at SIGTERM: daemons that ignore SIGTERM and hold the pipes
    def test_what_children_leave_behind(self):
        daemon = ("import os, signal, sys, time\n"
                  "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                  "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
                  "for _ in range(2):\n"
                  "    if os.fork():\n"
                  "        os._exit(0)\n"
                  "    os.setsid()\n"
                  "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
                  "time.sleep(1000)\n")
        (self.folder / "daemon.py").write_text(daemon)
        wait = "python3 daemon.py pid & while ! [ -s pid ]; do sleep 0.05; done; echo ready; "
        for options, end in ((["--timeout", "3"], "trap '' TERM; sleep 1000 & sleep 1000 & wait; wait"), ([], "exec sleep 1000"), ([], "exit 3")):
            with self.subTest(end):
                kshim = subprocess.Popen([e2e.KSHIM, "run", *options, "--", "sh", "-c", wait + end], stdout=subprocess.PIPE, text=True,
                                         stderr=subprocess.DEVNULL, cwd=self.folder, env=e2e.clean_environment())
                self.assertEqual(kshim.stdout.readline(), "ready\n")
                pid = int((self.folder / "pid").read_text())
                self.assertTrue(pathlib.Path("/proc", str(pid)).exists())
                if end == "exec sleep 1000":
                    kshim.send_signal(signal.SIGTERM)
                kshim.wait(timeout=60)  # its stdout is still open in the daemon
                self.assertEqual(pathlib.Path("/proc", str(pid)).exists(), not options)
                if not options:
                    os.kill(pid, signal.SIGKILL)
                kshim.stdout.close()
                (self.folder / "pid").unlink()

    # shows: `kshim run` at its time limit: a process that the caller may not end
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a program of root's")
    def test_what_cannot_be_ended(self):
        program = self.folder / "of_root"
        shutil.copy(os.path.realpath("/usr/bin/python3"), program)
        program.chmod(0o4755)
        self.folder.chmod(0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 4711, 4711)
        code = "import os, time; os.setresuid(0, 0, 0); open('/dev/stdout', 'w').write(f'{os.getpid()}\\n'); time.sleep(1000)"
        command = [e2e.KSHIM, "run", "--timeout", "3", "--", program, "-I", "-S", "-c", code]
        try:
            kshim = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home,
                                     user=4711, group=4711, extra_groups=[], env=e2e.clean_environment(HOME=home, TMPDIR=home))
        except PermissionError:
            self.skipTest("another user cannot reach the build's folder")
        first = kshim.stdout.readline().strip()
        if not first.isdigit():
            kshim.kill()
            self.skipTest("no setuid programs here: " + kshim.stderr.read())
        try:
            kshim.wait(timeout=60)
            self.assertEqual(kshim.returncode, 128 + signal.SIGKILL)
            self.assertTrue(pathlib.Path("/proc", first).exists())
        finally:
            os.kill(int(first), signal.SIGKILL)
            kshim.stdout.close()
            kshim.stderr.close()

    def test_an_existing_preload_stays(self):
        third = e2e.PROGRAMS / "libe2e_third.so"
        done = self.kshim("run", "--", "sh", "-c", "echo $LD_PRELOAD", env=e2e.clean_environment(LD_PRELOAD=third))
        self.assertEqual(done.stdout, f"{e2e.SHIM}:{third}\n")

    def test_path(self):
        done = self.kshim("path")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"{e2e.SHIM}\n", ""))


class Judging(e2e.Case):
    def test_a_failure_keeps_the_programs_status(self):
        analysis, done = self.analysis(*FAILING, status=1)
        self.assertEqual(done.stdout, "libscale.so: no kernel image is available for execution on the device\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(analysis["schema"], "kshim-analysis/1")
        self.assertEqual(analysis["verdict"], "gap")

    def test_fail_on(self):
        for severity, arguments, status in (
            (None, SUCCEEDING_WITH_FINDINGS, 0),
            ("error", SUCCEEDING_WITH_FINDINGS, 1),
            ("warning", SUCCEEDING_WITH_FINDINGS, 1),
            ("error", FAILING, 1),
            ("error", ["--simulate", "sm_86", "--", HEALTHY], 0),
            ("error", ["--simulate", "sm_86", "--", "sh", "-c", f"{HEALTHY}; exit 5"], 5),
        ):
            done = self.kshim("run", *([] if severity is None else ["--fail-on", severity]), *arguments)
            self.assertEqual(done.returncode, status, f"{severity} {arguments}\n{done.stderr}")

    def test_a_program_that_uses_no_kernel_is_idle(self):
        counts = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); raise SystemExit(d.cuInit(0))"
        analysis, _ = self.analysis("--simulate", "sm_86", "--", sys.executable, "-c", counts, status=0)
        self.assertEqual((analysis["verdict"], analysis["findings"], analysis["exit_status"]), ("idle", [], 0))
        for fail_on, status in ((None, 0), ("error", 0), ("warning", 0), ("idle", 1)):
            gate = [] if fail_on is None else ["--fail-on", fail_on]
            self.assertEqual(self.kshim("run", *gate, "--simulate", "sm_86", "--", sys.executable, "-c", counts).returncode, status, fail_on)
        self.assertEqual(self.kshim("run", "--fail-on", "idle", "--simulate", "sm_86", "--", HEALTHY).returncode, 0)
        analysis, _ = self.analysis("--report", "kept", "--simulate", "sm_86", "--", sys.executable, "-c", counts.replace("cuInit(0)", "cuInit(0) or 3"), status=3)
        self.assertEqual((analysis["verdict"], analysis["findings"]), ("failure", []))
        done = self.kshim("analyze", "--format", "json", "kept")
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (1, "failure"), "the report knows how it ended")

    def test_status_findings(self):
        for arguments, status in (
            (SUCCEEDING_WITH_FINDINGS, 1),
            (FAILING, 1),
            (["--simulate", "sm_86", "--", "sh", "-c", f"{HEALTHY}; exit 5"], 0),
            (["--simulate", "sm_86", "--", "sh", "-c", f"{HEALTHY}; kill -9 $$"], 0),
        ):
            done = self.kshim("run", "--status", "findings", *arguments)
            self.assertEqual(done.returncode, status, f"{arguments}\n{done.stderr}")

    def test_a_healthy_program(self):
        analysis, done = self.analysis("--simulate", "sm_86", "--", HEALTHY, status=0)
        self.assertEqual((done.stdout, done.stderr), ("transpose: done\n", ""))
        self.assertEqual(analysis["verdict"], "ok")
        self.assertEqual([f for f in analysis["findings"] if f["severity"] != "info"], [])

    def test_a_program_without_cuda(self):
        analysis, done = self.analysis("--", "true", status=0)
        self.assertEqual((analysis["verdict"], analysis["findings"]), ("no-cuda", []))
        self.assertEqual(self.files(), [])

    def test_a_static_runtime_without_a_driver(self):
        """The runtime answers 35 by itself: nothing asks a driver, and there is no report."""
        if ctypes.util.find_library("cuda"):
            self.skipTest("this machine has a driver")
        analysis, done = self.analysis("--", HEALTHY, status=1)
        self.assertEqual(self.files(), [])
        self.assertEqual((analysis["verdict"], [f["cause"] for f in analysis["findings"]]), ("failure", ["no-device"]))
        self.assertTrue(analysis["findings"][0]["fixes"])
        self.assertEqual(self.analysis("--", "false", status=1)[0]["verdict"], "no-cuda", "no device code: nothing to do with CUDA")

    def test_several_devices(self):
        analysis, done = self.analysis("--simulate", "sm_86,name=Old desk", "--simulate", "sm_75", "--simulate",
                                       "sm_86,driver=13.0", "--", REDUCE, status=1)
        self.assertEqual([d["compute_capability"] for d in analysis["devices"]], ["8.6", "7.5", "8.6"])
        self.assertIn("Old desk (simulated)", done.stdout)
        self.assertEqual(done.stdout.count(": done"), 2)
        self.assertEqual(len([f for f in analysis["findings"] if f["severity"] == "error"]), 1)

    def test_the_output_file_and_the_report_folder(self):
        done = self.kshim("run", "--report", "here", "--format", "json", "-o", "analysis.json", *FAILING)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads((self.folder / "analysis.json").read_text())["verdict"], "gap")
        self.assertEqual(len(self.reports(self.folder / "here")), 1)

    def test_two_runs_share_a_folder(self):
        self.kshim("run", "--report", "here", *FAILING)
        analysis, _ = self.analysis("--report", "here", "--simulate", "sm_86", "--", HEALTHY, status=0)
        self.assertEqual(analysis["verdict"], "ok")
        self.assertEqual(len(self.reports(self.folder / "here")), 2)

    def test_the_folder_where_nothing_can_be_written(self):
        """The reports go to TMPDIR then, and the analysis is the same."""
        (self.folder / "temporary").mkdir()
        done = self.kshim("run", *FAILING, cwd="/proc/self", env=e2e.clean_environment(TMPDIR=self.folder / "temporary"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("libscale.so", done.stderr)
        self.assertEqual(len(self.reports(self.folder / "temporary")), 1)

    def test_analyze_says_the_same_later(self):
        now, _ = self.analysis("--report", "here", *FAILING)
        later = self.kshim("analyze", "--format", "json", "here")
        self.assertEqual(later.returncode, 1)
        self.assertEqual(json.loads(later.stdout)["findings"], now["findings"])


class Blind(e2e.Case):
    def named(self, analysis, name):
        blind = [process for process in analysis["blind"] if pathlib.Path(process["exe"]).name == name]
        self.assertEqual(len(blind), 1, json.dumps(analysis, indent=1))
        return blind[0]["reason"]

    def test_static(self):
        silent = e2e.PROGRAMS / "e2e_silent"
        analysis, done = self.analysis("--", silent, status=0)
        self.assertEqual(done.stdout, "silent\n")
        self.assertEqual(analysis["verdict"], "blind")
        self.assertIn("statically linked", self.named(analysis, "e2e_silent"))
        done = self.kshim("run", "--", silent)
        self.assertIn("e2e_silent", done.stderr)
        self.assertIn("statically linked", " ".join(done.stderr.split()))  # where the line breaks is the path's doing

    def test_a_gate_that_cannot_look_does_not_pass(self):
        done = self.kshim("run", "--fail-on", "error", "--", e2e.PROGRAMS / "e2e_silent")
        self.assertEqual(done.returncode, 125)

    def test_cleaned_environment(self):
        analysis, _ = self.analysis("--simulate", "sm_75", "--", "env", "-u", "LD_PRELOAD", GUEST, PLUGIN, "linger")
        self.assertEqual(analysis["verdict"], "blind")
        self.assertIn("LD_PRELOAD", self.named(analysis, "e2e_guest"))

    def test_setuid(self):
        if os.getuid() != 0:
            self.skipTest("only root can give a file away")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-e2e-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o755)
        program = folder / "borrowed"
        shutil.copy(shutil.which("sleep"), program)
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{folder} is mounted nosuid")
        analysis, _ = self.analysis("--", program, "0", status=0)
        self.assertEqual(analysis["verdict"], "blind")
        self.assertIn("setuid", self.named(analysis, "borrowed"))


if __name__ == "__main__":
    e2e.main()
