#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kshim run --fail-on`: a failure whose report is somewhere else, or gone, passes no gate."""
import json
import os
import pathlib
import shutil
import tempfile

import e2e

GUEST = e2e.PROGRAMS / "e2e_guest"
PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
e2e.require(e2e.KSHIM, e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", GUEST, PLUGIN)

FAILS = f"{GUEST} {PLUGIN} exceptions >/dev/null"  # and ends with 0 all the same
FINDINGS, UNSEEN = 1, 125


class Gates(e2e.Case):
    def setUp(self):
        super().setUp()
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="kshim-gates-"))
        self.place.chmod(0o777)
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def gate(self, script, **environment):
        env = e2e.clean_environment(TMPDIR=str(self.place), **environment)
        return self.kshim("run", "--simulate", "sm_75", "--fail-on", "error", "--", "sh", "-c", script, env=env)

    def judged(self, done, status, *said):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn("no CUDA", done.stderr)
        text = " ".join(done.stderr.split())
        for part in said:
            self.assertIn(part, text)

    def test_as_expected(self):
        self.judged(self.gate(FAILS), FINDINGS, "has no code for")

    def test_another_user(self):
        """As gosu and su do: the report is where that user may write, and is read there."""
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        nobody = ("setpriv", "--reuid", "65534", "--clear-groups")
        if self.run_program(*nobody, "test", "-r", e2e.SHIM, "-a", "-x", GUEST).returncode != 0:
            self.skipTest("another user cannot reach this build: a folder above it is closed to others")
        self.folder.chmod(0o755)
        done = self.gate(f"{' '.join(nobody)} sh -c '{FAILS}'")
        self.judged(done, FINDINGS, "has no code for", "kshim-report-65534")

    def test_the_folder_is_removed(self):
        self.judged(self.gate(f"{FAILS}; rm -rf kshim-report"), UNSEEN, "its report", "is not there")

    def test_nothing_can_be_written(self):
        self.judged(self.gate(f"(ulimit -f 0; trap '' XFSZ; exec {FAILS})"), UNSEEN, "its report", "is empty")

    def test_switched_off(self):
        done = self.gate(FAILS, KSHIM_DISABLE="1")
        self.judged(done, UNSEEN, "KSHIM_DISABLE")

    def test_many_at_once(self):
        """More than a queue of datagrams holds: each is read, wherever it lies."""
        count, place = 60, self.place / "elsewhere"
        done = self.kshim("run", "--simulate", "sm_75", "--format", "json", "-o", self.folder / "a.json", "--", "sh", "-c",
                          f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); KSHIM_REPORT={place}/%p.jsonl {FAILS} & done; wait",
                          env=e2e.clean_environment(TMPDIR=str(self.place)))
        self.assertEqual(done.returncode, 0, done.stderr)
        analysis = json.loads((self.folder / "a.json").read_text())
        self.assertEqual((len(list(place.glob("*.jsonl"))), len(analysis["processes"]), analysis["blind"]), (count, count, []))

    def test_the_name_of_the_socket(self):
        """Other users do not see it: /proc/net/unix has the name that it was bound to."""
        done = self.kshim("run", "--", "sh", "-c", 'echo "$KSHIM_RUN_SOCKET"; cat /proc/net/unix')
        name, _, shown = done.stdout.partition("\n")
        self.assertIn(os.path.dirname(name), shown)
        self.assertNotIn(name, shown)

    def test_one_in_another(self):
        """The inner one has the report, and tells the outer one."""
        inner = f"{e2e.KSHIM} run -- sh -c '{FAILS}'"
        self.judged(self.gate(inner), FINDINGS, "has no code for")
        self.judged(self.gate(inner.replace("run --", "run --status child --")), FINDINGS)

    def test_a_folder_with_a_long_name(self):
        deep = self.folder
        for _ in range(16):
            deep /= "n" * 200
            os.mkdir(deep) if len(str(deep)) < 4000 else None
        deep = pathlib.Path(str(self.folder) + ("/" + "n" * 200) * 16)
        env = e2e.clean_environment(TMPDIR=str(self.place))
        done = self.kshim("run", "--simulate", "sm_75", "--fail-on", "error", "--", "sh", "-c", FAILS, env=env, cwd=deep)
        self.judged(done, FINDINGS, "has no code for")


if __name__ == "__main__":
    e2e.main()
