#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/site offers to the administrator of a site: the epilog script is run, the SQL is asked of a MariaDB with XALT's columns, the
statements for other engines are parsed, the collector's configuration names what is there."""
import datetime
import gzip
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import fleet

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
GOLDEN = SOURCE / "tests/golden"
SITE = SOURCE / "docs/site"
FACTS = json.loads((SOURCE / "python/kshim/fleet/facts.json").read_text())
PYTHON = os.environ.get("KSHIM_FLEET_PYTHON", str(SOURCE / "build/deps/venv/bin/python3"))
# An unpacked tree of Debian's mariadb-server, -server-core, -client-core and their libraries; / where it is installed.
MARIADB = pathlib.Path(os.environ.get("KSHIM_MARIADB_ROOT", "/"))
# An OpenTelemetry Collector with filelog and otlphttp.
COLLECTOR = os.environ.get("KSHIM_OTELCOL", "")


def has(module):
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


class Site(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-site-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.spool, self.facts = self.folder / "spool", self.folder / "facts"
        self.spool.mkdir()
        self.spool.chmod(0o1777)

    def put(self, name, case="no-image-for-arch", days=0.0):
        path = self.spool / name
        path.parent.mkdir(exist_ok=True)
        shutil.copy(GOLDEN / case / "report.jsonl", path)
        old = time.time() - days * 86400 - 3600
        os.utime(path, (old, old))
        return path

    def epilog(self, status=0, **changes):
        env = dict(os.environ, PATH=f"{BUILD / 'analyzer'}:{os.environ['PATH']}", KSHIM_SPOOL=str(self.spool), KSHIM_FACTS=str(self.facts),
                   KSHIM_LOCK=str(self.folder / "lock"), **{"KSHIM_SETTLE": "0", **changes})
        done = subprocess.run(["bash", SITE / "epilog.sh"], env=env, capture_output=True, text=True, check=False, timeout=100)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)

    def exported(self):
        return len(list(self.facts.glob("*.analyses.jsonl.gz")))

    def test_rotation(self):
        old, new = self.put("ada/old.jsonl", days=9), self.put("bob/new file's.jsonl")
        outside = self.folder / "outside.jsonl"
        shutil.copy(new, outside)
        os.utime(outside, (1, 1))
        (self.spool / "ada/link.jsonl").symlink_to(outside)
        (self.spool / "eve").symlink_to(self.folder)
        self.epilog()
        self.assertEqual((old.exists(), new.exists(), outside.exists()), (False, True, True))
        self.assertEqual(self.exported(), 1)
        self.epilog()
        self.assertEqual(self.exported(), 1)
        left = [self.facts / f".{days}.unfinished" for days in (0, 2)]
        for days, path in zip((0, 2), left):
            path.touch()
            os.utime(path, (time.time() - days * 86400 - 60,) * 2)
        self.epilog()
        self.assertEqual([path.exists() for path in left], [True, False])
        [lines] = self.facts.glob("*.analyses.jsonl.gz")
        said = [json.loads(line) for line in gzip.decompress(lines.read_bytes()).splitlines()]
        self.assertEqual([row["processes"][0]["report"] for row in said], [str(old), str(new)])
        for days, there in ((13.5, True), (14.5, False)):
            os.utime(lines, (time.time() - days * 86400,) * 2)
            self.epilog()
            self.assertEqual(lines.exists(), there, days)

    def test_a_report_that_has_just_changed_is_left_for_the_next_time(self):
        self.put("ada/old.jsonl", days=9)
        self.epilog(KSHIM_SETTLE="600")
        self.assertEqual(self.exported(), 0)
        self.assertTrue((self.spool / "ada/old.jsonl").exists())
        self.epilog()
        self.assertEqual(self.exported(), 1)
        self.assertFalse((self.spool / "ada/old.jsonl").exists())

    def test_the_oldest_go_where_the_spool_is_full(self):
        paths = [self.put(f"ada/{number}.jsonl", days=number / 10) for number in range(3)]
        with open(paths[0], "a", encoding="utf-8") as file:
            file.write(" " * 900_000 + "\n")
        os.utime(paths[0], (time.time() - 3600,) * 2)
        with open(paths[2], "a", encoding="utf-8") as file:
            file.write(" " * 900_000 + "\n")
        os.utime(paths[2], (time.time() - 9000,) * 2)
        os.utime(paths[1], (time.time() - 4000,) * 2)
        bob = self.put("bob/old.jsonl", days=1)
        with open(self.spool / "ada/sparse.bin", "wb") as file:
            file.truncate(1 << 40)
        self.epilog(KSHIM_USER_MB="1")
        self.assertEqual([path.exists() for path in paths], [True, True, False])
        self.assertTrue(bob.exists(), "one user's flood is no other's")

    def test_reports_at_the_spools_top(self):
        old, new = self.put("host.1.jsonl", days=9), self.put("host.2.jsonl")
        self.epilog()
        self.assertEqual((old.exists(), new.exists()), (False, True))
        paths = [self.put(f"host.{number}.jsonl", days=number / 10) for number in range(3, 6)]
        for path in paths:
            age = path.stat().st_mtime
            with open(path, "a", encoding="utf-8") as file:
                file.write(" " * 900_000 + "\n")
            os.utime(path, (age, age))
        bob = self.put("bob/old.jsonl", days=1)
        if os.geteuid() == 0:
            os.chown(paths[2], 4711, 4711)
        self.epilog(KSHIM_USER_MB="1")
        self.assertLess(sum(path.exists() for path in paths), 3)
        self.assertTrue(new.exists() and bob.exists())
        if os.geteuid() == 0:
            self.assertTrue(paths[2].exists(), "another user's")

    # shows: a site's epilog: links, times of the future, a spool that somebody fills
    def test_nothing_in_the_spool_leads_out_of_it(self):
        outside = self.folder / "outside"
        outside.mkdir()
        data = outside / "data.jsonl"
        for path in (data, self.put("ada/future.jsonl")):
            shutil.copy(GOLDEN / "no-image-for-arch/report.jsonl", path)
        os.utime(data, (1, 1))
        os.utime(self.spool / "ada/future.jsonl", (1 << 32,) * 2)
        (self.spool / "eve").symlink_to(outside)
        (self.spool / "ada/folder").symlink_to(outside)
        self.epilog()
        self.assertEqual((data.exists(), (self.spool / "ada/future.jsonl").exists()), (True, False))

    def test_what_was_not_exported_stays(self):
        old = self.put("ada/old.jsonl", days=9)
        self.facts.write_text("a file")
        self.epilog()
        self.assertTrue(old.exists())

    def test_nothing_to_export(self):
        self.epilog()
        self.put("ada/running.jsonl", "killed")
        self.epilog(KSHIM_SETTLE="99999")
        self.assertEqual(self.exported(), 0)

    # XALT's own preload is one of C with a constructor, too; what it does is of no concern here, that both come to life is.
    def test_beside_another_preload(self):
        simulator = BUILD / "sim/libcuda.so.1"
        if not simulator.exists() or shutil.which("cc") is None:
            self.skipTest("no simulator was built, or there is no compiler")
        source = self.folder / "init.c"
        source.write_text("""#include <stdio.h>
            #include <stdlib.h>
            __attribute__((constructor)) static void begin(void) { FILE *f = fopen(getenv("OTHER_LOG"), "a"); fputs("begin\\n", f); fclose(f); }
            __attribute__((destructor)) static void end(void) { FILE *f = fopen(getenv("OTHER_LOG"), "a"); fputs("end\\n", f); fclose(f); }""")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.folder / "libother_init.so", source], check=True)
        profile = (SITE / "profile.sh").read_text().replace("/usr/lib/libkshim.so", str(BUILD / "shim/libkshim.so")).replace("/var/spool/kshim", str(self.spool))
        profile = profile.replace("KSHIM_SAMPLE=100", "KSHIM_SAMPLE=1")
        program = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"
        env = dict(os.environ, OTHER_LOG=str(self.folder / "log"), LD_PRELOAD=str(self.folder / "libother_init.so"), LD_LIBRARY_PATH=str(simulator.parent),
                   KSHIM_SIM_DEVICES="9.0")
        done = subprocess.run(["bash", "-c", profile + f"\n/usr/bin/python3 -c \"{program}\"\n/bin/true"], env=env, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        reports = list(self.spool.rglob("*.jsonl"))
        self.assertEqual(len(reports), 1)
        self.assertEqual(reports[0].stat().st_mode & 0o777, 0o640)
        self.assertGreaterEqual((self.folder / "log").read_text().count("end"), 2)
        [own] = self.spool.iterdir()
        if os.geteuid() == 0:  # another user made the folder first
            shutil.rmtree(own)
            own.mkdir(mode=0o777)
            os.chown(own, 4711, 4711)
            done = subprocess.run(["bash", "-c", profile + '\necho "$LD_PRELOAD"'], env=env, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, env["LD_PRELOAD"] + "\n", ""))

    @unittest.skipUnless(has("sqlglot") and has("duckdb"), "no sqlglot beside DuckDB; KSHIM_FLEET_PYTHON names a Python that has both")
    def test_statements_for_other_engines(self):
        shutil.copytree(SOURCE / "python/kshim", self.folder / "package/kshim")
        (self.folder / "package/kshim/_version.py").write_text('version = "0.0"\n')
        for engine, dialect in (("clickhouse", "clickhouse"), ("athena", "athena"), ("iceberg", "spark")):
            made = subprocess.run([PYTHON, "-m", "kshim.fleet", "tables", engine, "s3://it's/lake"], cwd=self.folder / "package", capture_output=True,
                                  text=True, check=True).stdout
            check = ("import json, sys, sqlglot\nfrom sqlglot import exp\n"
                     f"made = [row for row in sqlglot.parse(sys.stdin.read(), dialect='{dialect}', error_level=sqlglot.ErrorLevel.RAISE) if row]\n"
                     "print(json.dumps({row.find(exp.Table).name: [column.name for column in row.this.expressions] for row in made"
                     " if isinstance(row, exp.Create)}))")
            parsed = json.loads(subprocess.run([PYTHON, "-c", check], input=made, capture_output=True, text=True, check=True).stdout)
            self.assertEqual(parsed, {table: list(about["properties"]) for table, about in FACTS.items()}, engine)

    @unittest.skipUnless(has("ruamel.yaml"), "no ruamel.yaml in build/deps/venv")
    @staticmethod
    def collector_configuration():
        load = "import json, sys; from ruamel.yaml import YAML; print(json.dumps(YAML(typ='safe').load(sys.stdin)))"
        return json.loads(subprocess.run([PYTHON, "-c", load], input=(SITE / "otel-collector.yaml").read_text(), capture_output=True, text=True,
                                         check=True).stdout)

    def test_collector_configuration(self):
        config = self.collector_configuration()
        for pipeline in config["service"]["pipelines"].values():
            for kind in ("receivers", "processors", "exporters"):
                self.assertLessEqual(set(pipeline[kind]), set(config[kind]))
        self.assertEqual(set(config["service"]["extensions"]), set(config["extensions"]))
        receiver = config["receivers"]["filelog/kshim"]
        self.assertIn(receiver["storage"], config["extensions"])
        tables = [re.search(r"rows/(\w+)\.", path)[1] for path in receiver["include"]]
        columns = {column for table in tables for column in FACTS[table]["properties"]}
        for used in re.findall(r"attributes\.(\w+)", json.dumps(receiver)):
            self.assertIn(used, columns)

    @unittest.skipUnless(COLLECTOR, "KSHIM_OTELCOL names no OpenTelemetry Collector")
    def test_collector(self):
        for case in ("no-image-for-arch", "jit-tax", "launch-resources"):
            self.put(f"{case}.jsonl", case)
        package = fleet.package(self.folder)
        fleet.run(package, "ingest", self.spool, self.folder / "lake")
        (self.folder / "rows").mkdir()
        wanted = []
        for table in ("findings", "failures"):
            said = fleet.run(package, "sql", self.folder / "lake", f"SELECT * FROM {table}", "--format", "jsonl").stdout
            (self.folder / f"rows/{table}.day.jsonl").write_text(said)
            wanted += map(json.loads, said.splitlines())
        got = []

        class Sink(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                for resource in json.loads(self.rfile.read(int(self.headers["Content-Length"])))["resourceLogs"]:
                    for scope in resource["scopeLogs"]:
                        got.extend(scope["logRecords"])
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        config = self.collector_configuration()
        receiver = config["receivers"]["filelog/kshim"]
        receiver["include"] = [path.replace("/data/kshim/rows", str(self.folder / "rows")) for path in receiver["include"]]
        del receiver["storage"], config["extensions"], config["service"]["extensions"]
        with http.server.HTTPServer(("127.0.0.1", 0), Sink) as sink:
            threading.Thread(target=sink.serve_forever, daemon=True).start()
            config["exporters"] = {"otlphttp": {"endpoint": f"http://127.0.0.1:{sink.server_port}", "encoding": "json", "compression": "none"}}
            config["service"]["pipelines"]["logs"]["exporters"] = ["otlphttp"]
            config["service"]["telemetry"] = {"metrics": {"level": "none"}}
            (self.folder / "config.yaml").write_text(json.dumps(config))
            with open(self.folder / "log", "wb") as log, subprocess.Popen([COLLECTOR, "--config", self.folder / "config.yaml"], stdout=log, stderr=log) as process:
                end = time.monotonic() + 60
                while len(got) < len(wanted) and process.poll() is None and time.monotonic() < end:
                    time.sleep(0.1)
                process.terminate()
            sink.shutdown()
        self.assertEqual(len(got), len(wanted), (self.folder / "log").read_text())
        seconds = [datetime.datetime.fromtimestamp(int(record["timeUnixNano"]) // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") for record in got]
        numbers = {None: 0, "info": 9, "warning": 13, "error": 17}
        self.assertEqual(sorted((record["body"].get("stringValue"), record.get("severityNumber", 0), time) for record, time in zip(got, seconds)),
                         sorted((row["cause"], numbers[row.get("severity")], row["time"][:19]) for row in wanted))

    @unittest.skipUnless((MARIADB / "usr/sbin/mariadbd").exists(), "no MariaDB; KSHIM_MARIADB_ROOT names an unpacked tree of Debian's packages")
    def test_xalt(self):
        data, sock = self.folder / "data", self.folder / "sock"
        env = dict(os.environ, LD_LIBRARY_PATH=str(MARIADB / "usr/lib/x86_64-linux-gnu") if str(MARIADB) != "/" else "")
        server = [MARIADB / "usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-networking", f"--socket={sock}",
                  "--skip-grant-tables", f"--lc-messages-dir={MARIADB / 'usr/share/mysql'}", f"--pid-file={self.folder / 'pid'}"]
        data.mkdir()
        # What mariadb-install-db does, less the users.
        with open(self.folder / "errors", "wb") as errors, subprocess.Popen(server, env=env, stdout=subprocess.DEVNULL, stderr=errors) as running:
            try:
                for _ in range(200):
                    if sock.exists() or running.poll() is not None:
                        break
                    time.sleep(0.2)
                self.assertTrue(sock.exists(), (self.folder / "errors").read_text())

                def ask(text):
                    done = subprocess.run([MARIADB / "usr/bin/mariadb", "--no-defaults", f"--socket={sock}", "--batch", "--skip-column-names"], input=text,
                                          env=env, capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    return [row.split("\t") for row in done.stdout.splitlines()]
                # The columns that the question reads, of the types that XALT 3 gives them (py_src/createDB.in.py there).
                ask("""CREATE DATABASE xalt DEFAULT CHARACTER SET utf8 COLLATE utf8_bin; USE xalt;
                    CREATE TABLE xalt_object (obj_id int unsigned PRIMARY KEY, object_path varchar(1024) NOT NULL);
                    CREATE TABLE xalt_run (run_id int unsigned PRIMARY KEY, job_id char(64) NOT NULL, date datetime NOT NULL, account varchar(20) NOT NULL,
                                           user varchar(32) NOT NULL, exec_path varchar(1024) NOT NULL);
                    CREATE TABLE join_run_object (obj_id int unsigned NOT NULL, run_id int unsigned NOT NULL);
                    INSERT INTO xalt_object VALUES (1, '/sw/libold.so'), (2, '/sw/libnew.so');
                    INSERT INTO xalt_run VALUES (1, '7', '2026-11-01', 'physics', 'ada', '/sw/app'), (2, '7', '2026-11-02', 'physics', 'ada', '/sw/app'),
                                                (3, '8', '2026-11-03', 'bio', 'bob', '/home/bob/static'), (4, '9', '2026-11-04', 'bio', 'eve', '/sw/app');
                    INSERT INTO join_run_object VALUES (1, 1), (1, 2), (2, 1), (2, 4);""")
                script = (SITE / "xalt.sql").read_text()
                create, select = script[:script.index(";\n\n") + 1], script[script.index(";\n\n") + 1:]
                ask("USE xalt;" + create + """INSERT INTO kshim_serves VALUES ('/sw/libold.so', '10.0', 'none'), ('/sw/libold.so', '9.0', 'sass'),
                    ('/sw/libnew.so', '10.0', 'sass'), ('/home/bob/static', '10.0', 'none');""")
                self.assertEqual(ask("USE xalt;" + select), [["ada", "physics", "/sw/libold.so", "2", "1", "2026-11-02 00:00:00"],
                                                             ["bob", "bio", "/home/bob/static", "1", "1", "2026-11-03 00:00:00"]])
            finally:
                running.terminate()


if __name__ == "__main__":
    sys.exit(unittest.main())
