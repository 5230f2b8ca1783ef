#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet ingest: rows have the columns of the schema and say what `kshim analyze` says, what was taken once is not taken again,
what cannot be read is a row of `rejected`."""
import datetime
import gzip
import hashlib
import hmac
import importlib.util
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import fleet
import schemas
from fleet import KSHIM, SOURCE

GOLDEN = SOURCE / "tests/golden"
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "docs/schema/facts").glob("*.json")}

if not fleet.usable():
    print("skipped: no DuckDB in build/deps/venv; tools/setup installs it")
    sys.exit(77)


class Ingest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.of_package = pathlib.Path(tempfile.mkdtemp(prefix="kshim-package-"))
        cls.package = fleet.package(cls.of_package)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.of_package)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-ingest-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.reports = self.folder / "reports"
        self.lake = self.folder / "lake"
        self.reports.mkdir()
        self.processes = 0
        self.read = {}

    def ingest(self, *arguments, status=0, **options):
        return fleet.run(self.package, "ingest", *arguments, self.lake, status=status, **options)

    def put(self, case, name=None):
        target = self.reports / f"{name or case}.jsonl"
        first, rest = (GOLDEN / case / "report.jsonl").read_text().split("\n", 1)
        self.processes += 1
        target.write_text(json.dumps({**json.loads(first), "start": self.processes}) + "\n" + rest)
        return target

    def rows(self, table):
        if not any(self.lake.glob("*/date=*")):
            return []
        state = str(self.files())
        if state not in self.read:
            self.read[state] = fleet.rows(self.package, self.lake)
        return self.read[state][table]

    def files(self):
        return {str(path.relative_to(self.lake)): path.stat().st_mtime_ns for path in self.lake.rglob("*") if path.is_file()}

    def test_rows_have_the_columns_of_the_schema(self):
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"schema": "kshim-analysis/1", "fleet": [
            {"object": "/sw/liba.so", "build_id": None, "gpus": ["8.0", "9.0"], "cmake": "80-real;90", "toolkits": ["12.4"],
             "smallest": {"archs": [{"arch": "sm_80"}, {"arch": "sm_90"}]}}, {}, 7]}))
        self.ingest("--settle", "0", GOLDEN, plan)
        self.assertEqual([(row["file_id"], row["smallest"], row["cmake"]) for row in self.rows("plans")], [("/sw/liba.so", ["sm_80", "sm_90"], "80-real;90")])
        self.assertEqual({path.name for path in self.lake.iterdir()} - {".lock", "manifest"}, set(SCHEMAS))
        for table, schema in SCHEMAS.items():
            checker = schemas.validator(f"facts/{table}") if importlib.util.find_spec("jsonschema") else None
            for row in self.rows(table):
                self.assertEqual(list(row), list(schema["properties"]), table)
                self.assertEqual(schemas.errors(checker, row) if checker else [], [], table)

    def test_what_analyze_says_is_what_the_tables_say(self):
        self.put("no-image-for-arch")
        self.ingest(self.reports)
        said = json.loads(subprocess.run([KSHIM, "analyze", "--format", "json", self.reports], capture_output=True, check=False).stdout)
        finding, = self.rows("findings")
        self.assertEqual([finding["cause"], finding["need"], finding["path"], finding["fix"]],
                         [said["findings"][0]["cause"], said["findings"][0]["need"], said["findings"][0]["object"], said["findings"][0]["fixes"][0]["id"]])
        process, = self.rows("processes")
        self.assertEqual(process["verdict"], said["verdict"])
        for failure in self.rows("failures"):
            self.assertEqual(failure["process_id"], process["row_id"])
            self.assertEqual([failure["cause"], failure["finding_id"]], [finding["cause"], finding["row_id"]])

    def test_a_report_says_the_same_beside_others(self):
        alone = []
        for number in range(12):
            path = self.put("python-package", f"{number}")
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for row in lines:
                row.update({"process": {"pid": number + 1}, "driver": {"cuda_version": f"{11 + number % 3}.0"}}.get(row["type"], {}))
            path.write_text("".join(json.dumps(row) + "\n" for row in lines))
            self.lake = self.folder / f"{number}"
            self.ingest("--settle", "0", path)
            alone += self.rows("findings")
        self.lake = self.folder / "facts"
        self.ingest("--settle", "0", self.reports)
        self.assertEqual(sorted(self.rows("findings"), key=str), sorted(alone, key=str))
        self.assertGreater(len({row["command"] for row in alone}), 1)

    def test_a_second_ingestion_writes_nothing(self):
        self.put("no-image-for-arch")
        self.ingest(self.reports)
        before = self.files()
        self.ingest(self.reports)
        self.assertEqual(self.files(), before)

    def test_a_folder_and_what_is_in_it_count_once(self):
        self.put("no-image-for-arch")
        (self.reports / "deeper").mkdir()
        shutil.copy(GOLDEN / "several-findings" / "report.jsonl", self.reports / "deeper" / "b.jsonl")
        inside = [self.reports / "deeper", self.reports / "deeper" / "b.jsonl", next(self.reports.glob("*.jsonl"))]
        self.ingest("--settle", "0", self.reports, f"{self.reports}/", *inside)
        self.assertEqual(len(self.rows("processes")), 2)

    def test_only_what_is_new_is_taken(self):
        self.put("no-image-for-arch")
        self.ingest(self.reports)
        self.put("two-gpus")
        self.ingest(self.reports)
        self.assertEqual(len(self.rows("processes")), 2)

    def test_a_process_that_may_still_run_waits(self):
        path = self.put("killed")
        self.ingest(self.reports)
        self.assertEqual(self.rows("processes"), [])
        old = time.time() - 3600
        os.utime(path, (old, old))
        self.ingest(self.reports)
        self.assertEqual([row["complete"] for row in self.rows("processes")], [False])

    def test_a_scan_gives_images(self):
        scan = self.folder / "scan.json"
        image = {"kind": "cubin", "arch": "sm_80", "isa": None, "count": 2, "bytes": 4096, "stored": 100}
        scan.write_text(json.dumps({"schema": "kshim-scan/1", "findings": [], "objects": [
            {"path": "/sw/lib\"a\n.so", "member": None, "build_id": "aa", "sha256": "1f" * 32, "fatbins": 1, "images": [image], "package": "torch 2.9.1"},
            {"path": "/sw/b.whl", "member": "b/lib.so", "build_id": None, "fatbins": 1, "images": [image], "package": None}, 7, {}]}))
        self.ingest(scan)
        self.assertEqual([(row["path"], row["file_id"], row["package"], row["version"], row["arch"], row["count"]) for row in reversed(self.rows("images"))],
                         [("/sw/lib\"a\n.so", "aa", "torch", "2.9.1", "sm_80", 2), ("/sw/b.whl/b/lib.so", "/sw/b.whl/b/lib.so", None, None, "sm_80", 2)])
        self.assertEqual([row["sha256"] for row in self.rows("images")], [None, "1f" * 32])
        how = {(row["file_id"], row["compute_capability"]): (row["how"], row["family"]) for row in self.rows("serves")}
        self.assertEqual([how["aa", gpu] for gpu in ("8.0", "8.6", "9.0", "8.7")], [("sass", "8.0"), ("sass", "8.0"), ("none", "9.0"), ("none", "8.7")])
        self.assertIn("nothing new", self.ingest(scan).stdout)

    # shows: `kshim.fleet ingest`: user names, with a key that it alone reads
    def test_users_are_hashed_with_a_key_of_ones_own(self):
        key = self.folder / "key"
        key.write_bytes(b"0123456789abcdef\n")
        path = self.put("no-image-for-arch")
        user = pwd.getpwuid(os.geteuid())
        mine = self.reports / user.pw_name
        mine.mkdir()
        path.rename(mine / path.name)
        wanted = hmac.new(b"0123456789abcdef", str(os.geteuid()).encode(), hashlib.sha256).hexdigest()
        records = [json.loads(line) for line in (mine / path.name).read_text().splitlines()]
        for uid, hidden in ((str(os.geteuid()), None), (None, True)):
            records[0].update(uid=uid, hidden=hidden)
            (mine / path.name).write_text("".join(json.dumps(record) + "\n" for record in records))
            for private, said in ((str(key), wanted), ("1", None)):
                with self.subTest(hidden=hidden, private=private):
                    shutil.rmtree(self.lake, ignore_errors=True)
                    self.ingest(self.reports, env={"KSHIM_PRIVATE": private})
                    process, = self.rows("processes")
                    self.assertEqual(process["user"], said)
                    self.assertNotIn(user.pw_name, process["report"].split("/"))
        self.assertIn("KSHIM_PRIVATE", self.ingest(self.reports, status=2, env={"KSHIM_PRIVATE": str(self.folder / "none")}).stderr)

    # One program's advice for all its reports that say the same; two programs' commands never mix.
    def test_fixes_are_those_of_analyze(self):
        wanted = {}
        for number, case in enumerate(["no-image-for-arch", "python-package", "no-image-for-arch", "jit-tax", "python-package"]):
            path = self.put(case, f"{number}")
            lines = path.read_text().splitlines()
            path.write_text("\n".join([json.dumps({**json.loads(lines[0]), "pid": number + 1}), *lines[1:]]) + "\n")
            said = json.loads(subprocess.run([KSHIM, "analyze", "--format", "json", path], capture_output=True, check=False).stdout)
            for finding in said["findings"]:
                fix = finding["fixes"][0] if finding["fixes"] else {"id": None, "commands": []}
                wanted[str(path), finding["cause"]] = fix["id"], "\n".join(fix["commands"]) or None
        self.ingest(self.reports)
        reports = {row["row_id"]: row["report"] for row in self.rows("processes")}
        self.assertEqual({(reports[row["process_id"]], row["cause"]): (row["fix"], row["command"]) for row in self.rows("findings")}, wanted)

    def test_a_full_disk_leaves_no_half_table(self):
        if os.geteuid() != 0 or shutil.which("mount") is None:
            self.skipTest("only root can mount a small file system")
        for number in range(60):
            self.put("several-findings", f"r{number}")
        self.lake.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", self.lake], capture_output=True, check=False).returncode != 0:
            self.skipTest("mount of a tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", self.lake], check=False)
        done = self.ingest(self.reports, status=2)
        self.assertIn("No space left on device", done.stderr)
        for path in self.lake.rglob("*"):
            if path.is_file() and path.name != ".lock":
                self.assertEqual((path.name, path.read_bytes()[-4:]), ("rows.parquet", b"PAR1"))

    def test_what_is_no_report_is_rejected(self):
        self.put("no-image-for-arch")
        (self.reports / "letter.jsonl").write_text("Dear Ada,\n")
        os.mkfifo(self.reports / "pipe.jsonl")
        self.ingest(self.reports, timeout=60)
        self.assertEqual(len(self.rows("processes")), 1)
        self.assertEqual({pathlib.Path(row["path"]).name for row in self.rows("rejected")}, {"letter.jsonl", "pipe.jsonl"})

    def test_hostile_text_comes_through_as_data(self):
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        evil = "/tmp/a\"b\n\u0000\u2028',\\x"
        process = json.loads(lines[0])
        process["exe"], process["time"] = evil, "../../../../etc/x"
        (self.reports / "evil.jsonl").write_text("\n".join([json.dumps(process), *lines[1:]]) + "\n")
        self.ingest(self.reports)
        row, = self.rows("processes")
        self.assertEqual(row["exe"], evil)
        # But those of the last month.
        self.assertLess(len(list((self.lake / "processes").iterdir())), 4)

    def test_values_that_no_column_holds(self):
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        times = ["hello", "2026-02-31T00:00:00Z", "2026-11-21T25:00:00Z", "2026-11-21T09:00:00", "2026-11-21T09:00:00.5+01:00", "2026-11-21T09:00:00.Z"]
        for number, text in enumerate([*times, "2026-02-28T23:59:59Z"]):
            process, end = {**json.loads(lines[0]), "pid": number + 1, "time": text}, {**json.loads(lines[-1]), "dropped": 2**64 - 1}
            (self.reports / f"{number}.jsonl").write_text("\n".join([json.dumps(process), *lines[1:-1], json.dumps(end)]) + "\n")
        self.ingest(self.reports)
        rows = {row["pid"]: row for row in self.rows("processes")}
        self.assertEqual([rows[pid]["time"] for pid in sorted(rows)], [None] * len(times) + ["2026-02-28T23:59:59Z"])
        self.assertEqual({row["dropped"] for row in rows.values()}, {None})
        self.assertEqual(len({row["path"] for row in self.rows("rejected") if "`time`" in row["reason"]}), len(times))

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a file away")
    def test_another_users_report_is_his(self):
        paths = self.put("no-image-for-arch", "root"), self.put("no-image-for-arch", "other")
        for path in paths:
            first, rest = path.read_text().split("\n", 1)
            path.write_text(json.dumps({**json.loads(first), "uid": "0"}) + "\n" + rest)
        os.chown(paths[1], 12345, -1)
        self.ingest(self.reports)
        rows = {pathlib.Path(row["report"]).stem: row for row in self.rows("processes")}
        self.assertEqual([rows["root"]["user"], rows["other"]["user"]], ["root", "12345"])
        self.assertNotEqual(rows["root"]["row_id"], rows["other"]["row_id"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a file away")
    def test_a_forged_report_replaces_no_rows_but_its_owners(self):
        """A build id is what a report says. Whose rows are whose does not depend on the order of reports, scans and exports."""
        def write(name, arch, path, owner):
            target = self.reports / f"{name}.jsonl"
            records = [json.loads(line) for line in (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()]
            for row in records:
                if row["type"] == "object":
                    row.update(path=path, build_id="ab" * 20, images=[{"kind": "cubin", "arch": arch, "isa": None, "count": 1, "bytes": 9}])
            records[0].update(pid=owner + 1)
            target.write_text("".join(json.dumps(row) + "\n" for row in records))
            os.chown(target, owner, owner)

        scan = self.folder / "scan.json"
        scan.write_text(json.dumps({"schema": "kshim-scan/1", "objects": [
            {"path": "/sw/libtorch.so", "member": None, "build_id": "ab" * 20, "sha256": "cd" * 32, "images": [{"kind": "cubin", "arch": "sm_90", "count": 1, "bytes": 9}]}]}))
        write("a_forged", "sm_120", "/home/u/payload.so", 4711)
        write("b_other", "sm_80", "/sw/libtorch.so", 4712)
        self.ingest(scan, self.reports)
        other = self.folder / "theirs.json"
        shutil.copy(scan, other)
        other.write_text(other.read_text().replace("sm_90", "sm_121").replace("/sw/libtorch.so", "/home/u/scanned.so"))
        os.chown(other, 4711, 4711)
        self.ingest(other)
        images = self.rows("images")
        self.assertEqual({(row["file_id"], row["arch"], row["path"]) for row in images}, {
            ("ab" * 20, "sm_90", "/sw/libtorch.so"), ("ab" * 20 + ".4711", "sm_120", "/home/u/payload.so"),
            ("ab" * 20 + ".4712", "sm_80", "/sw/libtorch.so"), ("ab" * 20 + ".4711", "sm_121", "/home/u/scanned.so")})
        how = {(row["file_id"], row["compute_capability"]): row["how"] for row in self.rows("serves") if row["compute_capability"] in ("9.0", "12.0")}
        self.assertEqual((how["ab" * 20, "12.0"], how["ab" * 20, "9.0"], how["ab" * 20 + ".4712", "12.0"]), ("none", "sass", "none"))
        # The rows of a report join.
        ids = {row["file_id"] for row in images}
        for table in ("failures", "findings"):
            for row in self.rows(table):
                if row["file_id"]:
                    self.assertIn(row["file_id"], ids)
                    self.assertTrue(row["file_id"].endswith(".4711" if "payload" in row["path"] else ".4712"))

    def test_invented_days_make_few_folders(self):
        first, rest = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().split("\n", 1)
        for day in range(400):
            time_of = datetime.date(1990, 1, 1) + datetime.timedelta(days=33 * day)
            (self.reports / f"{day}.jsonl").write_text(json.dumps({**json.loads(first), "pid": day + 1, "time": f"{time_of}T00:00:00Z"}) + "\n" + rest)
        self.ingest(self.reports)
        rows = self.rows("processes")
        self.assertEqual((len({row["row_id"] for row in rows}), len({row["time"] for row in rows})), (400, 400))
        self.assertLess(len({path.name for path in self.lake.glob("*/date=*")}), 150)
        if os.geteuid() != 0:
            return
        shutil.rmtree(self.lake)
        for path in self.reports.iterdir():
            os.chown(path, 4711, 4711)
        self.ingest(self.reports)
        # But those of the last month.
        self.assertLess(len(list((self.lake / "processes").iterdir())), 4)

    # What the reports of one export share is read once: no report gets another one's answer.
    def test_reports_that_are_alike(self):
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        process, device = json.loads(lines[0]), json.loads(lines[2])
        changes = [({}, {}), ({"pid": 2, "time": "2026-11-22T09:00:00.000Z", "env": {"SLURM_JOB_ID": "7"}, "host": "b"}, {}),
                   ({"pid": 3, "argv": ["/other/program"]}, {}), ({"pid": 4}, {"compute_capability": "7.0"}), ({"pid": 5, "rank": 3}, {})]
        said = {}
        for number, (of_process, of_device) in enumerate(changes * 2):
            path = self.reports / f"{number}.jsonl"
            path.write_text("\n".join([json.dumps({**process, "start": number, **of_process}), lines[1], json.dumps({**device, **of_device}), *lines[3:]]) + "\n")
            analysis = json.loads(subprocess.run([KSHIM, "analyze", "--format", "json", path], capture_output=True, check=False).stdout)
            fixes = [(finding["fixes"] or [{"id": None, "commands": []}])[0] for finding in analysis["findings"]]
            said[str(path)] = [analysis["verdict"], *[[finding["cause"], finding["need"], fix["id"], "\n".join(fix["commands"]) or None]
                                                      for finding, fix in zip(analysis["findings"], fixes)]]
        self.ingest(self.reports)
        findings = self.rows("findings")
        self.assertEqual({row["report"]: [row["verdict"], *[[finding["cause"], finding["need"], finding["fix"], finding["command"]]
                                                            for finding in findings if finding["process_id"] == row["row_id"]]]
                          for row in self.rows("processes")}, said)
        self.assertGreater(len({json.dumps(answer) for answer in said.values()}), 1)

    def test_how_the_program_of_kshim_run_ended(self):
        simulator = KSHIM.parents[1] / "sim/libcuda.so.1"
        if not simulator.exists() or shutil.which("cc") is None:
            self.skipTest("no simulator was built, or there is no compiler")
        program = self.folder / "program"
        (self.folder / "program.c").write_text("""#include <signal.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            #include <unistd.h>
            int cuInit(unsigned);
            int main(int argc, char** argv) {
              int status = 0, child = argc > 2 ? fork() : -1;
              cuInit(0);
              if (child == 0) exit(4);
              if (child > 0) waitpid(child, &status, 0);
              if (argv[1][0] == 's') signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
              return atoi(argv[1]); }""")
        subprocess.run(["cc", "-o", program, self.folder / "program.c", simulator, f"-Wl,-rpath,{simulator.parent}"], check=True)
        for number, arguments in enumerate((["0"], ["3"], ["segfault"], ["0", "with a child"])):
            folder = self.reports / f"{number}"
            subprocess.run([KSHIM, "run", "--simulate", "9.0", "--report", folder, "--", program, *arguments], stderr=subprocess.PIPE, check=False)
            self.lake = self.folder / f"{number}"
            self.ingest("--settle", "0", folder)
            ended = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines() if '"type":"exit"' in line]
            wanted = {"0": (0, None), "3": (3, None), "segfault": (None, signal.SIGSEGV)}[arguments[0]]
            self.assertEqual([(row["status"], row["signal"]) for row in ended], [wanted])
            status = wanted[0] if wanted[1] is None else 128 + wanted[1]
            self.assertEqual(sorted([row["exit"] for row in self.rows("processes")], key=str), [status] + [None] * (len(arguments) - 1))
            self.assertEqual(self.rows("rejected"), [])

    def test_a_folder_that_takes_nothing(self):
        self.put("no-image-for-arch")
        self.lake.write_text("a file")
        self.assertIn("lake", self.ingest(self.reports, status=2).stderr)

    # shows: `kshim.fleet ingest`: a user's folders within each other, deeper than descriptors reach
    def test_a_deep_folder_costs_itself_alone(self):
        import resource
        deep = self.reports / "a"
        for _ in range(300):
            deep /= "a"
        deep.mkdir(parents=True)
        for number in range(20):  # folders have no order
            (self.reports / str(number)).mkdir()
            self.put("no-image-for-arch", f"{number}/r")
        done = self.ingest("--settle", "0", self.reports, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.assertEqual(len(self.rows("processes")), 20, done.stderr)

    # shows: `kshim.fleet ingest`: links of another user among the reports and in the folder of the tables
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_links_of_another_user(self):
        somebody = 4711

        def link(path, target):
            path.symlink_to(target)
            os.chown(path, somebody, somebody, follow_symlinks=False)

        private = self.folder / "private.jsonl"
        shutil.copy(GOLDEN / "no-image-for-arch" / "report.jsonl", private)
        link(self.reports / "a.jsonl", private)
        for path in (self.reports, self.reports / "a.jsonl"):
            self.ingest("--settle", "0", path, status=0 if path.is_file() else 3)
            self.assertFalse(self.rows("processes"))
            self.assertEqual(len(self.rows("rejected")), 1)
        own = self.put("no-image-for-arch")
        victim = self.folder / "victim"
        victim.mkdir()
        for name in ("manifest", "processes"):
            shutil.rmtree(self.lake)
            self.lake.mkdir()
            link(self.lake / name, victim)
            self.ingest("--settle", "0", own, status=2)
            self.assertEqual(list(victim.iterdir()), [], name)
        (self.lake / "processes").unlink()
        link(self.folder / "way", self.lake)
        self.lake = self.folder / "way"
        self.ingest("--settle", "0", own, status=2)
        self.lake = self.folder / "lake"
        shutil.rmtree(self.lake)
        self.ingest("--settle", "0", own)
        [manifest] = (self.lake / "manifest").iterdir()
        shutil.rmtree(self.lake / "processes")
        os.chown(manifest, somebody, somebody)  # another user says that all is known
        self.ingest("--settle", "0", own)
        self.assertTrue(self.rows("processes"))

    # A reader looks all the time while hosts write; one more writer is killed on the way.
    def test_many_write_into_one_lake(self):
        writers = []
        for number in range(4):
            folder = self.folder / f"host{number}"
            folder.mkdir()
            for report in range(150):
                process, *rest = (GOLDEN / "several-findings/report.jsonl").read_text().splitlines()
                (folder / f"{report}.jsonl").write_text("\n".join([json.dumps({**json.loads(process), "host": f"n{number}", "pid": report + 1}), *rest]) + "\n")
            writers.append(subprocess.Popen(fleet.command("ingest", "--settle", "0", folder, self.lake), stdout=subprocess.DEVNULL, cwd=self.package,
                                            env=fleet.environment()))
        while not self.lake.exists():
            time.sleep(0.02)
        writers[-1].kill()
        while any(writer.poll() is None for writer in writers):
            for path in self.lake.glob("*/date=*/rows.parquet"):
                self.assertEqual(path.read_bytes()[-4:], b"PAR1", path)
        self.assertEqual([writer.wait() for writer in writers[:-1]], [0] * 3)
        rows = [row["row_id"] for row in self.rows("processes") if not row["row_id"].startswith("n3.")]
        self.assertEqual([len(rows), len(set(rows))], [450, 450])
        self.ingest("--settle", "0", *(self.folder / f"host{number}" for number in range(4)))
        self.assertEqual(len(self.rows("processes")), 600)

    # As a node of a site writes them, for the host that has the lake.
    def test_lines_say_the_same(self):
        for case in ("no-image-for-arch", "healthy", "killed", "two-gpus"):
            path = self.put(case)
            process, *rest = path.read_text().splitlines()
            path.write_text("\n".join([json.dumps({**json.loads(process), "host": case}), *rest]) + "\n")
        self.ingest("--settle", "0", self.reports)
        wanted = {table: self.rows(table) for table in SCHEMAS}
        lines = subprocess.run([KSHIM, "analyze", "--format", "jsonl", "--full", self.reports], stdout=subprocess.PIPE, check=False).stdout
        facts = self.folder / "facts"
        facts.mkdir()
        with gzip.open(facts / "node7.analyses.jsonl.gz", "wb") as file:
            file.write(lines + b'{"schema": "kshim-analysis/1", "verd')
        self.lake = self.folder / "other"
        self.ingest(facts)
        found = {table: self.rows(table) for table in SCHEMAS}
        torn = [row for row in found["rejected"] if row["path"] == str(facts / "node7.analyses.jsonl.gz")]
        self.assertEqual(len(torn), 1)
        self.assertEqual({**found, "rejected": [row for row in found["rejected"] if row not in torn]}, wanted)

    def test_nothing_there(self):
        self.ingest(self.reports, status=3)

if __name__ == "__main__":
    sys.exit(unittest.main())
