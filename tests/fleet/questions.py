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

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer/kshim"
GOLDEN = SOURCE / "tests/golden"
PYTHON = SOURCE / "build/deps/venv/bin/python3"


def usable():
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import duckdb"], capture_output=True, check=False).returncode == 0


if not usable():
    print("skipped: no DuckDB in build/deps/venv; tools/setup installs it")
    sys.exit(77)


class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-fleet-"))
        # The package beside a version of its own, as a build gives it.
        shutil.copytree(SOURCE / "python/kshim", cls.folder / "package/kshim")
        (cls.folder / "package/kshim/_version.py").write_text('version = "0.0"\n')
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
        subprocess.run([KSHIM, "export", cls.reports, "-o", cls.folder / "facts"], check=True, capture_output=True)
        cls.lake = cls.folder / "lake"
        cls.ingested = cls.fleet("ingest", cls.folder / "facts", cls.lake).stdout

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def fleet(cls, *arguments, status=0):
        done = subprocess.run([PYTHON, "-m", "kshim.fleet", *map(str, arguments)], cwd=cls.folder / "package", capture_output=True, text=True,
                              check=False)
        if done.returncode != status:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def answer(self, question, *values):
        return json.loads(self.fleet("ask", self.lake, question, *values, "--format", "json").stdout)["rows"]

    def test_rows_are_those_of_the_export(self):
        for table in ("processes", "findings", "failures", "loads"):
            lines = sum(len(path.read_text().splitlines()) for path in (self.folder / f"facts/table={table}").rglob("*.ndjson"))
            rows = json.loads(self.fleet("sql", self.lake, f"select count(*) as n from {table}", "--format", "json").stdout)["rows"]
            self.assertEqual(rows, [{"n": lines}], table)

    def test_who_breaks(self):
        finding = json.loads(next((self.folder / "facts/table=findings").rglob("*.ndjson")).read_text().splitlines()[0])
        rows = self.answer("1_breaks_on", f"gpu={finding['compute_capability']}")
        self.assertEqual({(row["exe"], row["processes"], row["runs"]) for row in rows}, {(f"/opt/bin/app{n}", 4, 2) for n in range(3)})
        self.assertEqual(self.answer("1_breaks_on", "gpu=99.9"), [])

    def test_counts(self):
        finding = json.loads(next((self.folder / "facts/table=findings").rglob("*.ndjson")).read_text().splitlines()[0])
        row, = self.answer("0_breaks_on_counts", f"gpu={finding['compute_capability']}")
        self.assertEqual([row[name] for name in ("processes", "that_break", "not_known", "programs", "programs_that_break", "jobs", "jobs_that_break", "runs", "runs_that_break")],
                         [12, 12, 0, 3, 3, 3, 3, 2, 2])
        row, = self.answer("0_breaks_on_counts", "gpu=9.0")
        self.assertEqual([row[name] for name in ("that_break", "programs_that_break", "jobs_that_break", "runs_that_break")], [0, 0, 0, 0])

    def test_builds(self):
        finding = json.loads(next((self.folder / "facts/table=findings").rglob("*.ndjson")).read_text().splitlines()[0])
        row, = self.answer("7_builds_needed")
        self.assertEqual([row["build_for"], row["breaks_today"], row["processes"]], [finding["compute_capability"], 1, 12])

    # Healthy processes that compile PTX on 8.0 and would not run on 5.0, with and without an end; one that fails with a later driver.
    def test_a_sampled_process_stands_for_many(self):
        facts, lake, reports = self.folder / "facts3", self.folder / "lake3", self.folder / "sampled"
        reports.mkdir()
        lines = (GOLDEN / "jit-tax/report.jsonl").read_text().splitlines()
        failing = [line.replace('"13.0"', '"13.1"') for line in (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()]
        for number, (sample, rows) in enumerate(((100, lines), (None, lines), (50, lines[:-1]), (7, failing))):
            process = {**json.loads(rows[0]), "pid": number + 1, "sample": sample, "exe": "/opt/bin/app"}
            (reports / f"{number}.jsonl").write_text("\n".join([json.dumps(process), *rows[1:]]) + "\n")
        subprocess.run([KSHIM, "export", "--settle", "0", reports, "-o", facts], check=True, capture_output=True)
        self.fleet("ingest", facts, lake)

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
        finding = json.loads(next((self.folder / "facts/table=findings").rglob("*.ndjson")).read_text().splitlines()[0])
        rows = self.answer("2_breaks_on_rows", f"gpu={finding['compute_capability']}")
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
        self.assertIn("nothing new", self.fleet("ingest", self.folder / "facts", self.lake).stdout)

    def test_a_report_that_grew_is_there_once(self):
        facts, lake = self.folder / "facts2", self.folder / "lake2"
        reports = self.folder / "grown"
        shutil.copytree(self.reports, reports)
        first, *rest = (reports / "0.jsonl").read_text().splitlines()
        for queue in ("c", "a", "b"):
            (reports / "0.jsonl").write_text("\n".join([json.dumps({**json.loads(first), "job": {"queue": queue}}), *rest]) + "\n")
            subprocess.run([KSHIM, "export", reports, "-o", facts], check=True, capture_output=True)
        self.fleet("ingest", facts, lake)
        rows = json.loads(self.fleet("sql", lake, "select count(*) as n, max(queue) as queue from processes", "--format", "json").stdout)["rows"]
        self.assertEqual(rows, [{"n": 12, "queue": "b"}], "the newest counts")

    def test_a_hash_outlives_later_rows_without_one(self):
        facts, lake = self.folder / "hashed", self.folder / "hashed-lake"
        folder = facts / "table=images/date=2026-11-21"
        folder.mkdir(parents=True)
        for at, (build_id, path, sha256) in enumerate((("aa", "/a.so", "1f" * 32), (None, "/b.so", "2f" * 32), ("aa", "/a.so", None), (None, "/b.so", None))):
            row = {"row_id": path, "file_id": path, "build_id": build_id, "path": path, "sha256": sha256, "kind": "cubin", "arch": "sm_80", "count": at}
            (folder / f"{at}.ndjson").write_text(json.dumps(row) + "\n")
            os.utime(folder / f"{at}.ndjson", (at, at))
        self.fleet("ingest", facts, lake)
        rows = json.loads(self.fleet("sql", lake, "select path, sha256, count from images order by path", "--format", "json").stdout)["rows"]
        # A file without a build id may be another one by now.
        self.assertEqual(rows, [{"path": "/a.so", "sha256": "1f" * 32, "count": 2}, {"path": "/b.so", "sha256": None, "count": 3}])

    def copied(self, name):
        facts = self.folder / name
        shutil.copytree(self.folder / "facts", facts)
        return facts, next((facts / "table=processes").glob("date=2026-11-21/*.ndjson")), self.folder / f"{name}-lake"

    def test_a_value_of_another_type_does_not_end_the_ingestion(self):
        facts, path, lake = self.copied("odd")
        row, *rest = path.read_text().splitlines()
        odd = [{**json.loads(row), "row_id": "a", "time": "hello"}, {**json.loads(row), "row_id": "b", "dropped": 2**64 - 1}, 7]
        path.write_text("\n".join([json.dumps(line) for line in odd] + ['{"row_id": "torn', *rest]) + "\n")
        self.fleet("ingest", facts, lake)
        rows = json.loads(self.fleet("sql", lake, "select count(*) as n, count(time) as t, count(dropped) as d from processes", "--format", "json").stdout)["rows"]
        self.assertEqual(rows, [{"n": 13, "t": 12, "d": 12}])

    def test_names_are_no_patterns(self):
        facts, path, lake = self.copied("pattern[1]*")
        secret = self.folder / "secret"
        secret.write_text(json.dumps({**json.loads(path.read_text().splitlines()[0]), "row_id": "secret"}) + "\n")
        (path.parent / "linked.ndjson").symlink_to(secret)
        (path.parent / "l*.ndjson").write_bytes(path.read_bytes())
        self.fleet("ingest", facts, lake)
        rows = json.loads(self.fleet("sql", lake, "select count(*) as n from processes", "--format", "json").stdout)["rows"]
        self.assertEqual(rows, [{"n": 12}])

    def test_a_link_in_the_lake_is_not_followed(self):
        facts, path, lake = self.copied("linked")
        outside = self.folder / "outside"
        outside.mkdir()
        (lake / "processes").mkdir(parents=True)
        (lake / "processes" / path.parent.name).symlink_to(outside)
        self.assertIn(path.parent.name, self.fleet("ingest", facts, lake, status=2).stderr)
        self.assertEqual(list(outside.iterdir()), [])

    def test_what_does_not_fit_into_memory_goes_into_a_folder_of_its_own(self):
        code = ("import os; from kshim.fleet import _duckdb; place = _duckdb.connect().execute(\"select current_setting('temp_directory')\").fetchone()[0]; "
                "print(place, oct(os.stat(place).st_mode & 0o777))")
        done = subprocess.run([PYTHON, "-c", code], cwd=self.folder / "package", capture_output=True, text=True, check=True)
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
