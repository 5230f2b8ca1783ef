# SPDX-License-Identifier: Apache-2.0
"""What the tests of hostile hosts share. A test method's docstring has three parts between bars: the situation, what the host
sees of the shim, and what the report has. docs/hostile-hosts.md has the tests of software that has a name."""
import os
import pathlib
import select
import shutil
import subprocess
import sys
import time

import e2e
import known
import report_check

HERE = e2e.BUILD / "tests" / "hostile"
IMAGES = e2e.BUILD / "tests" / "stress"
GOOD, BAD = IMAGES / "stress_90.fatbin", IMAGES / "stress_75.fatbin"
HOST = HERE / "host"
PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", HOST, GOOD, BAD, PLUGIN)

# An instrumented simulator needs room, stack and functions of libc that these hosts do not give it.
if os.environ.get("KSHIM_SANITIZED"):
    print(f"skipped: the simulator of this build is instrumented ({os.environ['KSHIM_SANITIZED']})")
    sys.exit(e2e.SKIPPED)

NOT_FOUND, NO_IMAGE = 500, 209
BOTH = [NOT_FOUND, NO_IMAGE]  # what host.cpp's use() makes fail


def without_ours(stderr):
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("kshim: "))


LISTED = known.Known(f"hostile.{pathlib.Path(sys.argv[0]).stem}")
PLAIN, PLAIN_HOST = HERE / "plain", HERE / "plain_host"


class Case(e2e.Case):
    def __init__(self, name="runTest"):
        """A test of the list known_failures: unittest fails where it passes."""
        super().__init__(name)
        how = LISTED.how(f"{type(self).__name__}.{name}")
        if how == "always":
            self.__unittest_expecting_failure__ = True
        elif how == "sometimes":
            setattr(self, name, self.reported(getattr(self, name)))

    def reported(self, test):
        def run():
            try:
                test()
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                self.skipTest(f"known failure: {error}")
        return run

    def bare(self, *argv, preload="", cwd=None, **more):
        return self.start("bare", argv, preload, cwd, more)

    def shimmed(self, *argv, preload="", cwd=None, **more):
        return self.start("shim", argv, preload or e2e.SHIM, cwd, more)

    def start(self, kind, argv, preload, cwd, more):
        """In a folder of its own, which is also where the report is."""
        folder = pathlib.Path(cwd) if cwd else self.folder / kind
        if not cwd:
            folder.mkdir(exist_ok=True)
        if not (folder / "kshim-report").is_symlink():
            shutil.rmtree(folder / "kshim-report", ignore_errors=True)  # of the program before
        env = e2e.simulated("9.0") | {name: str(value) for name, value in more.pop("variables", {}).items()}
        if preload:
            env["LD_PRELOAD"] = str(preload)
        for name in more.pop("unset", ()):
            env.pop(name, None)
        return self.run_program(*argv, env=env, cwd=folder, **more)

    def scenario(self, name, *argument):
        return (HOST, GOOD, BAD, name, *argument)

    def same(self, *argv, bare_preload="", shim_preload="", **more):
        """Runs it without the shim and with it: output and end must be the same but for the shim's own lines on stderr."""
        one = self.bare(*argv, preload=bare_preload, **more)
        two = self.shimmed(*argv, preload=shim_preload, **more)
        self.assertEqual((two.returncode, two.stdout, without_ours(two.stderr)), (one.returncode, one.stdout, one.stderr))
        return two

    def found(self, folder=None, complete=True):
        """Each report, checked line by line, in the order of their processes' starts."""
        paths = sorted((folder or self.folder / "shim").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        return [report_check.load(path, complete=complete) for path in paths]

    def codes(self, records):
        return [failure["layers"][0]["code"] for failure in e2e.of_type(records, "failure")]

    def only(self, complete=True):
        found = self.found(complete=complete)
        self.assertEqual(len(found), 1, self.files())
        return found[0]

    def plain(self, scenario, *words, program=PLAIN_HOST, **more):
        """same(), with the plain driver; the path in a word may contain %s, which is the run's folder."""
        e2e.require(program, PLAIN / "libcuda.so.1")
        more["variables"] = {"LD_LIBRARY_PATH": PLAIN} | more.get("variables", {})
        done = self.same(program, *filter(None, (scenario,)), *words, **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done

    def effect(self, code, **more):
        """What Python code prints beside the plain driver, without the shim and with it: for what is not the same."""
        more["variables"] = {"LD_LIBRARY_PATH": PLAIN} | more.pop("variables", {})
        found = [start(sys.executable, "-c", code, **more) for start in (self.bare, self.shimmed)]
        self.assertEqual([done.returncode for done in found], [0, 0], [done.stderr for done in found])
        return [done.stdout.split() for done in found]

    def failure(self, records, kernel):
        """The failure of the look-up of that name."""
        found = [record for record in e2e.of_type(records, "failure") if record.get("kernel") == kernel]
        self.assertEqual(len(found), 1, f"no failure of {kernel!r} among {len(e2e.of_type(records, 'failure'))}")
        return found[0]

    def settle(self, pid):
        """Waits until the process sleeps for good, or has ended."""
        idle = 0
        while idle < 30:
            idle = idle + 1 if pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] in "SZ" else 0
            time.sleep(0.01)

    def beside_a_writer(self, pipe, run):
        """Calls run() while a process waits to open the FIFO for writing; it must still wait afterwards."""
        os.mkfifo(pipe)
        with subprocess.Popen(["sh", "-c", f"echo .version 8.0 > {pipe}"]) as writer:
            self.settle(writer.pid)
            try:
                run()
            finally:
                self.settle(writer.pid)
                reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
                ready = select.select([reader], [], [], 20)[0]
                text = os.read(reader, 100) if ready else b""
                os.close(reader)
        self.assertEqual(text, b".version 8.0\n")

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
