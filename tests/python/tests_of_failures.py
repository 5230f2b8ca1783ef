#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytest --kshim says of each failure which test it was: real launches of real libraries, on a simulated GPU that one of them
has no code for."""
import re
import sys

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402
from staged import TESTED, findings_in  # noqa: E402

staged.require_modules("pytest", "xdist")
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", staged.LIBRARIES / "libnarrow.so")

CHILD = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).launch(int(sys.argv[2])) != 209)"
IN_PROCESS = TESTED + """
def test_first(): assert lib("narrow").launch(0) == 209
def test_healthy(): assert lib("broad").launch(0) == 0
def test_second(): assert lib("narrow").launch(0) == 209
def test_third(): assert lib("narrow").launch(0) == 209
@pytest.mark.parametrize("n", [1, 2, 3])
def test_several(n): [lib("narrow").launch(0) for _ in range(n)]
@pytest.fixture
def broken():
    lib("narrow").launch(0)
    yield
@pytest.fixture
def leaves():
    yield
    lib("narrow").launch(0)
def test_with_fixture(broken): pass
def test_behind_it(): assert lib("broad").launch(1) == 0
def test_that_leaves(leaves): pass
def test_last(): pass
"""
EXPECTED = ["test_a.py::test_first", "test_a.py::test_second", "test_a.py::test_third", "test_a.py::test_several[1]",
            "test_a.py::test_several[2] (2 times)", "test_a.py::test_several[3] (3 times)",
            "test_a.py::test_with_fixture (setup)", "test_a.py::test_that_leaves (teardown)"]
IN_CHILDREN = TESTED + f"""
import multiprocessing, time
CHILD = {CHILD!r}
""" + """
def child(which, **env):
    env = {**os.environ, **env}
    return subprocess.run([sys.executable, "-c", CHILD, str(FOLDER / "libnarrow.so"), str(which)], env=env).returncode
def test_started(): assert child(0) == 0
def test_nothing(): assert lib("broad").launch(0) == 0
def test_that_does_not_say(): assert child(0, PYTEST_CURRENT_TEST="", PYTEST_XDIST_WORKER="") == 0
def test_through_a_shell():
    line = '"$@"; exit $?'
    argv = ["sh", "-c", line, "sh", sys.executable, "-c", CHILD, str(FOLDER / "libnarrow.so"), "0"]
    assert subprocess.run(argv).returncode == 0
def test_spawned():
    work = multiprocessing.get_context("spawn").Process(target=launch_there)
    work.start(), work.join()
def launch_there(): lib("narrow").launch(0)
@pytest.fixture(scope="module")
def server():
    code = "import ctypes, sys\\nfor line in sys.stdin: print(ctypes.CDLL(sys.argv[1]).launch(0), flush=True)"
    with subprocess.Popen([sys.executable, "-c", code, str(FOLDER / "libnarrow.so")], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        yield process
        process.stdin.close()
def asked(server):
    server.stdin.write("\\n"), server.stdin.flush()
    return int(server.stdout.readline())
def test_that_starts_the_server(server): assert server.poll() is None
def test_that_asks_the_server(server): assert asked(server) == 209
def test_that_asks_nothing(server): time.sleep(0.05)
def test_that_asks_again(server): assert asked(server) == 209
"""
LEFT_BEHIND = TESTED + '''
CODE = "import ctypes, sys; sys.stdin.readline(); print(ctypes.CDLL(sys.argv[1]).launch(0))"
left = []
def test_that_leaves_a_child():
    left.append(subprocess.Popen([sys.executable, "-c", CODE, str(FOLDER / "libnarrow.so")], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE))
def test_behind(): assert left[0].communicate("go")[0] == "209\\n"
'''
OF_CHILDREN = ["test_a.py::test_started", "test_a.py::test_that_does_not_say", "test_a.py::test_through_a_shell",
               "test_a.py::test_spawned", "test_a.py::test_that_asks_the_server", "test_a.py::test_that_asks_again"]


class TestsOfFailures(staged.Staged):
    def listed_in(self, done, kernel=None):
        found, _ = findings_in(done.stdout)
        found = [rows for _, rows in found if kernel is None or kernel in rows.get("kernel", [""])[0]]
        self.assertEqual(len(found), 1, done.stdout + done.stderr)
        return found[0].get("tests")

    def test_in_the_process(self):
        self.write(test_a=IN_PROCESS)
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.listed_in(done), EXPECTED)

    def test_in_workers(self):
        self.write(test_a=IN_PROCESS)
        done = self.pytest("--kshim-simulate", "sm_120", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(self.listed_in(done)), sorted(EXPECTED))

    def test_in_children(self):
        self.write(test_a=IN_CHILDREN)
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(self.listed_in(done)), sorted(OF_CHILDREN))

    def test_in_children_of_workers(self):
        self.write(test_a=IN_CHILDREN)
        done = self.pytest("--kshim-simulate", "sm_120", "-n", "2", "--dist", "loadfile")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(self.listed_in(done)), sorted(OF_CHILDREN))

    def test_a_child_that_outlives_its_test(self):
        self.write(test_a=LEFT_BEHIND)
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.listed_in(done), ["test_a.py::test_that_leaves_a_child"])

    def test_import_of_a_test_file(self):
        self.write(test_a=TESTED + 'lib("narrow").launch(0)\ndef test_it(): pass\n', test_b="def test_other(): pass\n")
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(self.listed_in(done), ["test_a.py (import)"])

    def test_outside_of_tests(self):
        self.write(conftest=TESTED + 'lib("narrow").launch(0)\n', test_b="def test_other(): pass\n")
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(self.listed_in(done), ["none: it failed outside of any test"])

    def test_a_static_runtime(self):
        """It remembers that it has no kernel, and asks the driver once a process."""
        self.write(test_a=TESTED + '''
def test_one(): assert lib("static").launch(0) == 209
def test_two(): assert lib("static").launch(0) == 209
def test_other_kernel(): assert lib("static").launch(1) == 209
''')
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(self.listed_in(done), ["test_a.py::test_one", "test_a.py::test_other_kernel"])

    def test_a_loop_does_not_hide_a_later_test(self):
        self.write(test_a=TESTED + """
import time
def test_loop(): [lib("narrow").launch(0) for _ in range(3000)]
def test_after(): time.sleep(0.01); lib("narrow").launch(0)
""")
        done = self.pytest("--kshim-simulate", "sm_120")
        tests = self.listed_in(done)
        self.assertEqual([re.sub(r"\d+ times", "N times", test) for test in tests][0], "test_a.py::test_loop (N times)")
        self.assertTrue(tests[1].startswith("test_a.py::test_after"), tests)

    def test_a_worker_that_dies(self):
        self.write(test_a=TESTED + """
def test_before(): pass
def test_dies(): lib("narrow").launch(0); os.abort()
def test_behind(): pass
""")
        done = self.pytest("--kshim-simulate", "sm_120", "-n", "1")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.listed_in(done), ["test_a.py::test_dies"])

    def test_names_that_look_like_something_else(self):
        self.write(test_a=TESTED + """
@pytest.mark.parametrize("n", ["a (call)", "##[error]x", "\\x1b[31m", "::error::"])
def test_named(n): assert subprocess.run([sys.executable, "-c", %r, str(FOLDER / "libnarrow.so"), "0"]).returncode == 0
""" % CHILD)
        done = self.pytest("--kshim-simulate", "sm_120")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tests = self.listed_in(done)
        self.assertEqual(len(tests), 4, tests)
        self.assertIn("test_a.py::test_named[a (call)]", tests)
        section = done.stdout[done.stdout.index(" kshim ="):]
        self.assertNotIn("##[", section)


if __name__ == "__main__":
    e2e.main()
