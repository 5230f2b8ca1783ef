#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet: what DuckDB answers from exported reports is what the reports say."""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import fleet
from fleet import KSHIM, PYTHON, SOURCE

GOLDEN = SOURCE / "tests/golden"

if not fleet.usable():
    print("skipped: no DuckDB in build/deps/venv; tools/setup installs it")
    sys.exit(77)


class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-fleet-"))
        cls.package = fleet.package(cls.folder)
        cls.reports = cls.folder / "reports"
        cls.reports.mkdir()
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        # 12 processes of three users' programs, two of them after a driver update on another day.
        for number in range(12):
            process, rest = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
            process.update(pid=1000 + number, exe=f"/opt/bin/app{number % 3}", env={"SLURM_JOB_ID": str(number // 4)}, run=f"run{number // 6}")
            late = number >= 10
            process["time"] = "2026-11-2%dT10:00:00Z" % (2 if late else 1)
            for record in rest:
                if record["type"] == "driver":
                    record["cuda_version"] = "13.0" if late else "12.8"
                if record["type"] == "object":
                    record["images"] = [{"kind": "cubin", "arch": "sm_90", "isa": None, "count": 1, "bytes": 4096}]
            (cls.reports / f"{number}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in [process, *rest]))
        cls.lake = cls.folder / "lake"
        cls.ingested = cls.fleet("ingest", cls.reports, cls.lake).stdout
        cls.gpu = json.loads(subprocess.run([KSHIM, "analyze", "--format", "json", cls.reports / "0.jsonl"], capture_output=True, check=False).stdout)["findings"][0]["device"]["compute_capability"]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def fleet(cls, *arguments, status=0):
        return fleet.run(cls.package, *arguments, status=status)

    def answer(self, question, *values):
        return json.loads(self.fleet("ask", self.lake, question, *values, "--format", "json").stdout)["rows"]

    def test_who_breaks(self):
        rows = self.answer("1_breaks_on", f"gpu={self.gpu}")
        self.assertEqual({(row["exe"], row["processes"], row["runs"]) for row in rows}, {(f"/opt/bin/app{n}", 4, 2) for n in range(3)})
        self.assertEqual(self.answer("1_breaks_on", "gpu=99.9"), [])

    def test_counts(self):
        row, = self.answer("0_breaks_on_counts", f"gpu={self.gpu}")
        self.assertEqual([row[name] for name in ("processes", "that_break", "not_known", "programs", "programs_that_break", "jobs", "jobs_that_break", "runs", "runs_that_break")],
                         [12, 12, 0, 3, 3, 3, 3, 2, 2])
        row, = self.answer("0_breaks_on_counts", "gpu=9.0")
        self.assertEqual([row[name] for name in ("that_break", "programs_that_break", "jobs_that_break", "runs_that_break")], [0, 0, 0, 0])

    def test_builds(self):
        row, = self.answer("7_builds_needed")
        self.assertEqual([row["build_for"], row["breaks_today"], row["processes"]], [self.gpu, 1, 12])

    # Healthy processes that compile PTX on 8.0 and would not run on 5.0, with and without an end; one that fails with a later driver.
    def test_a_sampled_process_stands_for_many(self):
        lake, reports = self.folder / "lake3", self.folder / "sampled"
        reports.mkdir()
        lines = (GOLDEN / "jit-tax/report.jsonl").read_text().splitlines()
        failing = [line.replace('"13.0"', '"13.1"') for line in (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()]
        for number, (sample, rows) in enumerate(((100, lines), (None, lines), (50, lines[:-1]), (7, failing))):
            process = {**json.loads(rows[0]), "pid": number + 1, "sample": sample, "exe": "/opt/bin/app"}
            (reports / f"{number}.jsonl").write_text("\n".join([json.dumps(process), *rows[1:]]) + "\n")
        self.fleet("ingest", "--settle", "0", reports, lake)

        def ask(question, *values):
            return json.loads(self.fleet("ask", lake, question, *values, "--format", "json").stdout)["rows"]
        healthy, failed = 100 + 1 + 50, 1  # a process that failed was not chosen by chance
        row, = ask("0_breaks_on_counts", "gpu=5.0")
        self.assertEqual([row["processes"], row["that_break"], row["not_known"]], [healthy + failed, healthy, failed])  # its file is not there
        self.assertEqual([row["processes"] for row in ask("1_breaks_on", "gpu=5.0")], [healthy])
        self.assertEqual([row["processes"] for row in ask("2_breaks_on_rows", "gpu=5.0")], [healthy])
        self.assertEqual([row["processes"] for row in ask("3_broke_since")], [failed])
        row, = ask("4_broke_with_driver", "before=13.0", "after=13.1")
        self.assertEqual([row["processes_before"], row["failed_before"], row["processes_after"], row["failed_after"]], [healthy, 0, failed, failed])
        self.assertEqual([row["processes"] for row in ask("5_libraries_without_sass", "gpu=5.0")], [healthy])
        jit = json.loads(self.fleet("sql", lake, "select max(ms) as ms, max(count) as n from loads where jit", "--format", "json").stdout)["rows"][0]
        row, = ask("6_jit_minutes")
        self.assertEqual([row["loads"], row["minutes"]], [jit["n"] * healthy, round(jit["ms"] * healthy / 60000, 3)])
        self.assertEqual({row["processes"] for row in ask("7_builds_needed")}, {healthy})
        row, = ask("8_unwatched")
        self.assertEqual([row["processes"], row["incomplete"]], [50, 50])

    def test_users_and_jobs(self):
        rows = self.answer("2_breaks_on_rows", f"gpu={self.gpu}")
        self.assertEqual(sum(row["processes"] for row in rows), 12)

    def test_since_a_date(self):
        self.assertEqual([row["processes"] for row in self.answer("3_broke_since", "since=2026-01-01")], [12])
        self.assertEqual(self.answer("3_broke_since", "since=2026-11-22"), [], "it failed before that day, too")

    def test_all_questions_and_the_page(self):
        page = self.fleet("report", self.lake).stdout
        for line in self.fleet("questions").stdout.splitlines():
            if not line.startswith(" "):
                self.answer(line.split(":")[0])
                self.assertIn(line.split(": ", 1)[1].replace("'", "&#x27;"), page)

    def test_ingesting_again_changes_nothing(self):
        self.assertIn("processes 12", self.ingested)
        self.assertIn("nothing new", self.fleet("ingest", self.reports, self.lake).stdout)

    def test_a_report_that_grew_is_there_once(self):
        lake = self.folder / "lake2"
        reports = self.folder / "grown"
        shutil.copytree(self.reports, reports)
        first, *rest = (reports / "0.jsonl").read_text().splitlines()
        for queue in ("c", "a", "b"):
            (reports / "0.jsonl").write_text("\n".join([json.dumps({**json.loads(first), "job": {"queue": queue}}), *rest]) + "\n")
            self.fleet("ingest", reports, lake)
        rows = json.loads(self.fleet("sql", lake, "select count(*) as n, max(queue) as queue from processes", "--format", "json").stdout)["rows"]
        self.assertEqual(rows, [{"n": 12, "queue": "b"}], "the newest counts")

    def test_a_hash_outlives_later_rows_without_one(self):
        lake = self.folder / "hashed-lake"
        for at, with_hash in enumerate((True, False)):
            objects = [{"path": path, "member": None, "build_id": build_id, "images": [{"kind": "cubin", "arch": "sm_80", "isa": None, "count": at, "bytes": 1}],
                        **({"sha256": digit * 32} if with_hash else {})} for build_id, path, digit in (("aa", "/a.so", "1f"), (None, "/b.so", "2f"))]
            scan = self.folder / f"{at}.json"
            scan.write_text(json.dumps({"schema": "kshim-scan/1", "objects": objects}))
            self.fleet("ingest", scan, lake)
        rows = json.loads(self.fleet("sql", lake, "select path, sha256, count from images order by path", "--format", "json").stdout)["rows"]
        # A file without a build id may be another one by now.
        self.assertEqual(rows, [{"path": "/a.so", "sha256": "1f" * 32, "count": 1}, {"path": "/b.so", "sha256": None, "count": 1}])

    def test_names_are_no_patterns(self):
        folder = self.folder / "pattern[1]*"
        folder.mkdir()
        lines = subprocess.run([KSHIM, "analyze", "--format", "jsonl", "--full", self.reports], stdout=subprocess.PIPE, check=False).stdout
        (folder / "l*.analyses.jsonl").write_bytes(lines)
        (folder / "lother.analyses.jsonl").mkdir()
        self.fleet("ingest", folder, folder / "lake?")
        rows = json.loads(self.fleet("sql", folder / "lake?", "select count(*) as n from processes", "--format", "json").stdout)["rows"]
        self.assertEqual(rows, [{"n": 12}])

    def test_a_link_in_the_lake_is_not_followed(self):
        lake = self.folder / "linked-lake"
        outside = self.folder / "outside"
        outside.mkdir()
        (lake / "processes").mkdir(parents=True)
        (lake / "processes/date=2026-11-21").symlink_to(outside)
        self.assertIn("date=2026-11-21", self.fleet("ingest", self.reports, lake, status=2).stderr)
        self.assertEqual(list(outside.iterdir()), [])

    def test_what_does_not_fit_into_memory_goes_into_a_folder_of_its_own(self):
        code = ("import os; from kshim.fleet import _duckdb; place = _duckdb.connect().execute(\"select current_setting('temp_directory')\").fetchone()[0]; "
                "print(place, oct(os.stat(place).st_mode & 0o777))")
        done = subprocess.run([PYTHON, "-c", code], cwd=self.package, capture_output=True, text=True, check=True)
        place, mode = done.stdout.split()
        self.assertEqual(mode, "0o700")
        self.assertFalse(pathlib.Path(place).exists())

    def test_a_formula_is_no_formula(self):
        said = self.fleet("sql", self.lake, "select '=HYPERLINK(1)' as a, -1 as b", "--format", "csv").stdout
        self.assertEqual(list(csv.reader(io.StringIO(said)))[1], ["'=HYPERLINK(1)", "-1"])

    def test_mistakes(self):
        self.assertIn("1_breaks_on", self.fleet("ask", self.lake, "1_break_on", status=2).stderr)
        self.assertIn("gpu", self.fleet("ask", self.lake, "1_breaks_on", "cc=9.0", status=2).stderr)
        self.assertIn("nowhere", self.fleet("ask", self.folder / "nowhere", "1_breaks_on", status=2).stderr)
        self.assertIn("selct", self.fleet("sql", self.lake, "selct 1", status=2).stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
