#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim export: rows have the columns of the schema, a second export writes nothing, what cannot be read is a row of `rejected`, and a
failed export leaves no table."""
import datetime
import hashlib
import hmac
import importlib.util
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import schemas

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer/kshim"
GOLDEN = SOURCE / "tests/golden"
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "docs/schema/facts").glob("*.json")}


class Export(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-export-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.reports = self.folder / "reports"
        self.out = self.folder / "facts"
        self.reports.mkdir()

    def export(self, *arguments, status=0, **options):
        done = subprocess.run([KSHIM, "export", *arguments, "-o", self.out], capture_output=True, text=True, check=False, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def put(self, case, name=None):
        target = self.reports / f"{name or case}.jsonl"
        shutil.copy(GOLDEN / case / "report.jsonl", target)
        return target

    def rows(self, table):
        return [json.loads(line) for path in sorted((self.out / f"table={table}").rglob("*.ndjson")) for line in path.read_text().splitlines()]

    def files(self):
        return {str(path.relative_to(self.out)): path.stat().st_mtime_ns for path in self.out.rglob("*") if path.is_file()}

    def test_rows_have_the_columns_of_the_schema(self):
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"schema": "kshim-analysis/1", "fleet": [
            {"object": "/sw/liba.so", "build_id": None, "gpus": ["8.0", "9.0"], "cmake": "80-real;90", "toolkits": ["12.4"],
             "smallest": {"archs": [{"arch": "sm_80"}, {"arch": "sm_90"}]}}, {}, 7]}))
        self.export("--settle", "0", GOLDEN, plan)
        self.assertEqual([(row["file_id"], row["smallest"], row["cmake"]) for row in self.rows("plans")], [("/sw/liba.so", ["sm_80", "sm_90"], "80-real;90")])
        self.assertEqual({path.name for path in self.out.glob("table=*")}, {f"table={table}" for table in SCHEMAS})
        for table, schema in SCHEMAS.items():
            checker = schemas.validator(f"facts/{table}") if importlib.util.find_spec("jsonschema") else None
            for row in self.rows(table):
                self.assertEqual(list(row), list(schema["properties"]), table)
                self.assertEqual(schemas.errors(checker, row) if checker else [], [], table)

    def test_what_analyze_says_is_what_the_tables_say(self):
        self.put("no-image-for-arch")
        self.export(self.reports)
        said = json.loads(subprocess.run([KSHIM, "analyze", "--format", "json", self.reports], capture_output=True, check=False).stdout)
        finding, = self.rows("findings")
        self.assertEqual([finding["cause"], finding["need"], finding["path"], finding["fix"]],
                         [said["findings"][0]["cause"], said["findings"][0]["need"], said["findings"][0]["object"], said["findings"][0]["fixes"][0]["id"]])
        process, = self.rows("processes")
        self.assertEqual(process["verdict"], said["verdict"])
        for failure in self.rows("failures"):
            self.assertEqual(failure["process_id"], process["row_id"])
            self.assertEqual([failure["cause"], failure["finding_id"]], [finding["cause"], finding["row_id"]])

    # Spaces make reports that cannot be compared: each is read whole and judged by itself.
    def test_reports_that_are_alike_are_judged_once_and_say_the_same(self):
        cases = ["no-image-for-arch", "jit-tax", "healthy", "device-fault", "nvrtc-arch-unsupported", "python-package", "two-gpus"]
        lines = {case: [json.loads(line) for line in (GOLDEN / case / "report.jsonl").read_text().splitlines()] for case in cases}
        # Which file's compilation took longest decides the order of findings, all of it how severe they are.
        again = {"object": {"id": 77, "path": "/sw/again.so", "build_id": "77"}, "module": {"id": 77, "object": 77}}
        *first, last = lines["jit-tax"]
        more = [{**row, **again[row["type"]]} for row in first if row["type"] in again] + [{**last, "modules": 2}]
        lines["several"] = [*first, *({**row, "seq": len(first) + at} for at, row in enumerate(more))]
        cases.append("several")
        # Some commands name the program; the release of Python decides which wheels serve it.
        programs = [("/usr/bin/python3.12", ["python", "train.py"]), ("/usr/bin/python3.8", ["python", "train.py"]), ("/home/ada/fast", ["./fast", "{device}"]),
                    ("/home/ada/fast", ["PROGRAM"]), ("/home/bob/e/bin/python3.12", ["/home/bob/e/bin/python", "-m", "train"])]
        draw = random.Random(1)
        rows = {}
        reports = []
        for number in range(1600):
            case = cases[number % len(cases)]
            exe, argv = programs[number // len(cases) % len(programs)]
            changed = []
            for row in lines[case]:
                new = {"process": {"pid": number + 1, "host": f"n{number % 3}", "start": number, "rank": None if number % 3 else number % 8,
                                   "time": f"2026-01-0{1 + number % 9}T00:00:00Z", "sample": number % 4 or None, "exe": exe, "argv": argv},
                       "module": {"ms": draw.randrange(2 * 10 ** 6) / 1000}, "failure": {"tid": number}, "end": {"time": f"2026-02-0{1 + number % 9}T00:00:00Z"},
                       "device": {"uuid": f"GPU-{number}" if number % 5 else None, "pci": f"0000:{number % 100:02}:00.0"}}.get(row["type"], {})
                changed.append({**row, **new, "t": row["t"] and number * 1000})
            reports.append((self.reports / f"{number:04}.jsonl", changed))
        for name, separators in (("alike", (",", ":")), ("apart", (", ", ": "))):
            for path, changed in reports:
                path.write_text("".join(json.dumps(row, separators=separators) + "\n" for row in changed))
            self.out = self.folder / name
            self.export("--settle", "0", self.reports)
            rows[name] = {table: self.rows(table) for table in SCHEMAS}
        self.assertEqual(len(rows["alike"]["processes"]), len(reports))
        for table, about in rows["apart"].items():
            self.assertEqual(rows["alike"][table], about, table)

    # Reports that are alike, files that several name first, damaged ones and a scan, in far more batches than threads.
    def test_any_number_of_threads_writes_the_same(self):
        cases = [case for case in sorted(path.parent for path in GOLDEN.glob("*/report.jsonl")) if case.name != "large"]
        image = {"kind": "cubin", "arch": "sm_80", "isa": None, "count": 2, "bytes": 4096}
        for number in range(900):
            first, *rest = (cases[number % len(cases)] / "report.jsonl").read_text(errors="replace").splitlines()
            process = {**json.loads(first), "pid": number + 1, "time": f"2026-01-0{1 + number % 3}T00:00:00Z"}
            file = {"type": "object", "seq": 10 ** 6, "t": 1, "id": 10 ** 6, "path": f"/sw/{number}/lib.so", "build_id": f"b{number % 40}", "images": [image]}
            lines = [json.dumps(process, separators=(",", ":")), json.dumps(file), *rest]
            (self.reports / f"{number:04}.jsonl").write_text("\n".join(lines)[:-1 if number % 50 == 0 else None] + "\n")
        (self.reports / "none.jsonl").write_text("no report\n")
        (self.folder / "scan.json").write_text(json.dumps({"schema": "kshim-scan/1", "objects": [
            {"path": "/sw/c.so", "build_id": f"b{number}", "images": [image]} for number in range(3)]}))
        said = set()
        for jobs in "1", "2", "7":
            self.out = self.folder / jobs
            done = self.export("--settle", "0", "-j", jobs, self.reports, self.folder / "scan.json")
            content = {path.relative_to(self.out): path.read_bytes() for path in sorted(self.out.rglob("*")) if path.is_file()}
            said.add((done.stdout, json.dumps({str(path): hashlib.sha256(text).hexdigest() for path, text in content.items()})))
        self.assertEqual(len(said), 1)
        self.assertIn("1 rejected", done.stdout)
        ids = [row["file_id"] for row in self.rows("images")]
        self.assertEqual(len([id for id in ids if re.fullmatch(r"b\d+", id)]), 40)

    def test_a_report_says_the_same_beside_others(self):
        alone = []
        for number in range(12):
            path = self.put("python-package", f"{number}")
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for row in lines:
                row.update({"process": {"pid": number + 1}, "driver": {"cuda_version": f"{11 + number % 3}.0"}}.get(row["type"], {}))
            path.write_text("".join(json.dumps(row) + "\n" for row in lines))
            self.out = self.folder / f"{number}"
            self.export("--settle", "0", path)
            alone += self.rows("findings")
        self.out = self.folder / "facts"
        self.export("--settle", "0", self.reports)
        self.assertEqual(sorted(self.rows("findings"), key=str), sorted(alone, key=str))
        self.assertGreater(len({row["command"] for row in alone}), 1)

    def test_a_table_is_rolled(self):
        lines = (GOLDEN / "healthy/report.jsonl").read_text().splitlines()
        first = self.folder / "large.jsonl"
        first.write_text("\n".join([json.dumps({**json.loads(lines[0]), "argv": ["x" * 60000] * 60}), *lines[1:]]) + "\n")
        for number in range(76):  # 270 MB of rows
            (self.reports / f"{number}.jsonl").symlink_to(first)
        self.assertIn("76 reports", self.export(self.reports, "--zstd").stdout)
        names = [re.sub(r"^\w+", "", path.name) for path in sorted((self.out / "table=processes").rglob("*.zst"))]
        self.assertEqual(sorted(names), [".1.ndjson.zst", ".ndjson.zst"])

    # shows: `kshim export`: memory for any number of reports
    def test_memory_does_not_grow_with_the_number_of_reports(self):
        process, *rest = (GOLDEN / "healthy/report.jsonl").read_text().splitlines()

        def peak_kb(count):
            """Of exports of so many reports of 28 days: the first one, and one that finds nothing new."""
            self.out = self.folder / f"facts{count}"
            for number in range(count):
                record = {**json.loads(process), "pid": number + 1, "time": f"2026-01-{1 + number % 28:02}T00:00:00Z"}
                (self.reports / f"{number}.jsonl").write_text("\n".join([json.dumps(record, separators=(",", ":")), *rest]) + "\n")
            peaks = []
            for _ in range(2):
                with subprocess.Popen([KSHIM, "export", "-j", "2", self.reports, "-o", self.out], stdout=subprocess.DEVNULL) as export:
                    _, status, usage = os.wait4(export.pid, 0)
                    export.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(export.returncode, 0)
                peaks.append(usage.ru_maxrss)
            return peaks

        few, many = 6000, 30000
        for before, after in zip(peak_kb(few), peak_kb(many)):
            self.assertLess((after - before) * 1024 / (many - few), 150, f"bytes a report: {before} KB, {after} KB")

    def test_a_second_export_writes_nothing(self):
        self.put("no-image-for-arch")
        self.export(self.reports)
        before = self.files()
        self.export(self.reports)
        self.assertEqual(self.files(), before)

    def test_a_folder_and_what_is_in_it_count_once(self):
        self.put("no-image-for-arch")
        (self.reports / "deeper").mkdir()
        shutil.copy(GOLDEN / "several-findings" / "report.jsonl", self.reports / "deeper" / "b.jsonl")
        inside = [self.reports / "deeper", self.reports / "deeper" / "b.jsonl", next(self.reports.glob("*.jsonl"))]
        self.export("--settle", "0", self.reports, f"{self.reports}/", *inside)
        self.assertEqual(len(self.rows("processes")), 2)

    def test_only_what_is_new_is_exported(self):
        self.put("no-image-for-arch")
        self.export(self.reports)
        self.put("two-gpus")
        self.export(self.reports)
        self.assertEqual(len(self.rows("processes")), 2)

    def test_a_process_that_may_still_run_waits(self):
        path = self.put("killed")
        self.export(self.reports)
        self.assertEqual(self.rows("processes"), [])
        old = time.time() - 3600
        os.utime(path, (old, old))
        self.export(self.reports)
        self.assertEqual([row["complete"] for row in self.rows("processes")], [False])

    def test_a_scan_gives_images(self):
        scan = self.folder / "scan.json"
        image = {"kind": "cubin", "arch": "sm_80", "isa": None, "count": 2, "bytes": 4096, "stored": 100}
        scan.write_text(json.dumps({"schema": "kshim-scan/1", "findings": [], "objects": [
            {"path": "/sw/lib\"a\n.so", "member": None, "build_id": "aa", "sha256": "1f" * 32, "fatbins": 1, "images": [image], "package": "torch 2.9.1"},
            {"path": "/sw/b.whl", "member": "b/lib.so", "build_id": None, "fatbins": 1, "images": [image], "package": None}, 7, {}]}))
        self.export(scan)
        self.assertEqual([(row["path"], row["file_id"], row["package"], row["version"], row["arch"], row["count"]) for row in self.rows("images")],
                         [("/sw/lib\"a\n.so", "aa", "torch", "2.9.1", "sm_80", 2), ("/sw/b.whl/b/lib.so", "/sw/b.whl/b/lib.so", None, None, "sm_80", 2)])
        self.assertEqual([row["sha256"] for row in self.rows("images")], ["1f" * 32, None])
        how = {(row["file_id"], row["compute_capability"]): (row["how"], row["family"]) for row in self.rows("serves")}
        self.assertEqual([how["aa", gpu] for gpu in ("8.0", "8.6", "9.0", "8.7")], [("sass", "8.0"), ("sass", "8.0"), ("none", "9.0"), ("none", "8.7")])
        self.assertIn("1 exported before", self.export(scan).stdout)

    # shows: `kshim export`: user names, with a key that the export alone reads
    def test_users_are_hashed_with_the_exporters_own_key(self):
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
                    shutil.rmtree(self.out, ignore_errors=True)
                    self.export(self.reports, env={**os.environ, "KSHIM_PRIVATE": private})
                    process, = self.rows("processes")
                    self.assertEqual(process["user"], said)
                    self.assertNotIn(user.pw_name, process["report"].split("/"))
        self.assertIn("KSHIM_PRIVATE", self.export(self.reports, status=2, env={**os.environ, "KSHIM_PRIVATE": str(self.folder / "none")}).stderr)

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
        self.export(self.reports)
        reports = {row["row_id"]: row["report"] for row in self.rows("processes")}
        self.assertEqual({(reports[row["process_id"]], row["cause"]): (row["fix"], row["command"]) for row in self.rows("findings")}, wanted)

    def test_a_full_disk_leaves_no_half_table(self):
        if os.geteuid() != 0 or shutil.which("mount") is None:
            self.skipTest("only root can mount a small file system")
        for number in range(60):
            self.put("several-findings", f"r{number}")
        self.out.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.out], capture_output=True, check=False).returncode != 0:
            self.skipTest("mount of a tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", self.out], check=False)
        done = self.export(self.reports, status=2)
        self.assertIn("No space left on device", done.stderr)
        self.assertIn("facts", done.stderr)
        self.assertEqual([path for path in self.out.rglob("*") if path.is_file()], [])

    def test_what_is_no_report_is_rejected(self):
        self.put("no-image-for-arch")
        (self.reports / "letter.jsonl").write_text("Dear Ada,\n")
        os.mkfifo(self.reports / "pipe.jsonl")
        self.export(self.reports, timeout=60)
        self.assertEqual(len(self.rows("processes")), 1)
        self.assertEqual({pathlib.Path(row["path"]).name for row in self.rows("rejected")}, {"letter.jsonl", "pipe.jsonl"})

    def test_hostile_text_comes_through_as_data(self):
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        evil = "/tmp/a\"b\n\u0000\u2028',\\x"
        process = json.loads(lines[0])
        process["exe"], process["time"] = evil, "../../../../etc/x"
        (self.reports / "evil.jsonl").write_text("\n".join([json.dumps(process), *lines[1:]]) + "\n")
        self.export(self.reports)
        row, = self.rows("processes")
        self.assertEqual(row["exe"], evil)
        # But those of the last month.
        self.assertLess(len(list((self.out / "table=processes").iterdir())), 4)

    def test_values_that_no_column_holds(self):
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        times = ["hello", "2026-02-31T00:00:00Z", "2026-11-21T25:00:00Z", "2026-11-21T09:00:00", "2026-11-21T09:00:00.5+01:00", "2026-11-21T09:00:00.Z"]
        for number, text in enumerate([*times, "2026-02-28T23:59:59Z"]):
            process, end = {**json.loads(lines[0]), "pid": number + 1, "time": text}, {**json.loads(lines[-1]), "dropped": 2**64 - 1}
            (self.reports / f"{number}.jsonl").write_text("\n".join([json.dumps(process), *lines[1:-1], json.dumps(end)]) + "\n")
        self.export(self.reports)
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
        self.export(self.reports)
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
        self.export(scan, self.reports)
        other = self.folder / "theirs.json"
        shutil.copy(scan, other)
        other.write_text(other.read_text().replace("sm_90", "sm_121").replace("/sw/libtorch.so", "/home/u/scanned.so"))
        os.chown(other, 4711, 4711)
        self.export(other)
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
        self.export(self.reports)
        rows = self.rows("processes")
        self.assertEqual((len({row["row_id"] for row in rows}), len({row["time"] for row in rows})), (400, 400))
        self.assertLess(len({path.name for path in self.out.glob("table=*/date=*")}), 150)
        if os.geteuid() != 0:
            return
        shutil.rmtree(self.out)
        for path in self.reports.iterdir():
            os.chown(path, 4711, 4711)
        self.export(self.reports)
        # But those of the last month.
        self.assertLess(len(list((self.out / "table=processes").iterdir())), 4)

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
        self.export(self.reports)
        findings = self.rows("findings")
        self.assertEqual({row["report"]: [row["verdict"], *[[finding["cause"], finding["need"], finding["fix"], finding["command"]]
                                                            for finding in findings if finding["process_id"] == row["row_id"]]]
                          for row in self.rows("processes")}, said)
        self.assertGreater(len({json.dumps(answer) for answer in said.values()}), 1)

    # shows: processes.exit
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
            self.out = self.folder / f"{number}"
            self.export("--settle", "0", folder)
            ended = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines() if '"type":"exit"' in line]
            wanted = {"0": (0, None), "3": (3, None), "segfault": (None, signal.SIGSEGV)}[arguments[0]]
            self.assertEqual([(row["status"], row["signal"]) for row in ended], [wanted])
            status = wanted[0] if wanted[1] is None else 128 + wanted[1]
            self.assertEqual(sorted([row["exit"] for row in self.rows("processes")], key=str), [status] + [None] * (len(arguments) - 1))
            self.assertEqual(self.rows("rejected"), [])

    def test_compressed(self):
        self.put("no-image-for-arch")
        self.export("--zstd", self.reports)
        path, = (self.out / "table=processes").rglob("*.zst")
        self.assertEqual(path.read_bytes()[:4], b"\x28\xb5\x2f\xfd")

    def test_a_folder_that_takes_nothing(self):
        self.put("no-image-for-arch")
        self.out.write_text("a file")
        self.assertIn("facts", self.export(self.reports, status=2).stderr)

    def test_no_half_table_when_the_disk_is_full(self):
        for number in range(40):
            self.put("several-findings", f"r{number}")

        def limited():
            import resource
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        done = self.export(self.reports, status=2, preexec_fn=limited)
        self.assertIn("too large", done.stderr)
        self.assertEqual([path for path in self.out.rglob("*") if path.is_file()], [])

    # shows: `kshim export`: a user's folders within each other, deeper than descriptors reach
    def test_a_deep_folder_costs_itself_alone(self):
        import resource
        deep = self.reports / "a"
        for _ in range(300):
            deep /= "a"
        deep.mkdir(parents=True)
        for number in range(20):  # folders have no order
            (self.reports / str(number)).mkdir()
            self.put("no-image-for-arch", f"{number}/r")
        done = self.export("--settle", "0", self.reports, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.assertEqual(len(self.rows("processes")), 20, done.stderr)
        self.assertIn(str(self.reports), done.stderr)

    # shows: `kshim export`: links of another user among the reports and in the folder of the tables
    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make what is another user's")
    def test_links_of_another_user(self):
        somebody = 4711

        def link(path, target):
            path.symlink_to(target)
            os.chown(path, somebody, somebody, follow_symlinks=False)

        private = self.folder / "private.jsonl"
        shutil.copy(GOLDEN / "no-image-for-arch" / "report.jsonl", private)
        link(self.reports / "a.jsonl", private)
        done = self.export("--settle", "0", self.reports, status=3)
        self.assertIn("another user", done.stderr)
        self.assertFalse(self.rows("processes"))
        self.export("--settle", "0", self.reports / "a.jsonl", status=3)
        self.assertFalse(self.rows("processes"))
        self.assertEqual(len(self.rows("rejected")), 1)
        own = self.put("no-image-for-arch")
        victim = self.folder / "victim"
        victim.mkdir()
        for name in ("manifest", "table=processes"):
            shutil.rmtree(self.out)
            self.out.mkdir()
            link(self.out / name, victim)
            self.export("--settle", "0", own, status=2)
            self.assertEqual(list(victim.iterdir()), [], name)
        (self.out / "table=processes").unlink()
        link(self.folder / "way", self.out)
        self.out = self.folder / "way"
        self.export("--settle", "0", own, status=2)
        self.out = self.folder / "facts"
        self.export("--settle", "0", own)
        [manifest] = (self.out / "manifest").iterdir()
        shutil.rmtree(self.out / "table=processes")
        os.chown(manifest, somebody, somebody)  # another user says that all is known
        self.export("--settle", "0", own)
        self.assertTrue(self.rows("processes"))

    # A reader looks all the time while six hosts write; one more writer is killed on the way.
    def test_many_write_into_one_folder(self):
        writers = []
        for number in range(7):
            folder = self.folder / f"host{number}"
            folder.mkdir()
            for report in range(150):
                process, *rest = (GOLDEN / "several-findings/report.jsonl").read_text().splitlines()
                (folder / f"{report}.jsonl").write_text("\n".join([json.dumps({**json.loads(process), "host": f"n{number}", "pid": report + 1}), *rest]) + "\n")
            writers.append(subprocess.Popen([KSHIM, "export", "--settle", "0", folder, "-o", self.out], stdout=subprocess.DEVNULL))
        time.sleep(0.05)
        writers[-1].kill()
        looks = 0
        while True:
            running = any(writer.poll() is None for writer in writers)
            for path in self.out.rglob("*.ndjson"):
                text = path.read_text()
                self.assertTrue(text.endswith("\n"), path)
                for line in text.splitlines():
                    json.loads(line)
                looks += 1
            if not running:
                break
        self.assertEqual([writer.wait() for writer in writers[:-1]], [0] * 6)
        self.assertGreater(looks, 6)
        rows = [row["row_id"] for row in self.rows("processes") if not row["row_id"].startswith("n6.")]
        self.assertEqual([len(rows), len(set(rows))], [900, 900])
        self.export("--settle", "0", *(self.folder / f"host{number}" for number in range(7)))
        self.assertEqual(len({row["row_id"] for row in self.rows("processes")}), 1050)

    def test_nothing_there(self):
        self.export(self.reports, status=3)

    def test_watch_ends_when_it_is_told(self):
        self.put("no-image-for-arch")
        with subprocess.Popen([KSHIM, "export", "--watch", self.reports, "-o", self.out], stdout=subprocess.PIPE, text=True) as watch:
            self.assertIn("1 reports", watch.stdout.readline())
            watch.terminate()
            self.assertEqual(watch.wait(60), 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
