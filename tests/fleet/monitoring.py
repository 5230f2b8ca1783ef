#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet openmetrics, read by what a site's monitoring reads it with."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import fleet_here

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
GOLDEN = SOURCE / "tests/golden"
# Debian's puts it there; KSHIM_NODE_EXPORTER names another.
EXPORTER = os.environ.get("KSHIM_NODE_EXPORTER") or shutil.which("prometheus-node-exporter")
PYTHON = os.environ.get("KSHIM_FLEET_PYTHON", str(SOURCE / "build/deps/venv/bin/python3"))
PARSE = """
import json, sys
from prometheus_client import openmetrics, parser
from prometheus_client.openmetrics import parser as strict
text = sys.stdin.read()
print(json.dumps([[[sample.name, sample.labels, sample.value, sample.timestamp] for family in families for sample in family.samples]
                  for families in (parser.text_string_to_metric_families(text), strict.text_string_to_metric_families(text))]))
"""


def has(module):
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


class Monitoring(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-monitoring-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.reports = self.folder / "reports"
        self.reports.mkdir()

    def put(self, case, name=None, **process):
        lines = (GOLDEN / case / "report.jsonl").read_text().splitlines()
        text = json.dumps({**json.loads(lines[0]), **process})
        (self.reports / f"{name or case}.jsonl").write_text("\n".join([text, *lines[1:]]) + "\n")

    def metrics(self):
        return self.openmetrics(self.reports)

    def openmetrics(self, *arguments):
        done = fleet_here.run(self.folder, "openmetrics", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def value(self, text, name, **labels):
        found = [line for line in text.splitlines() if re.match(name + r"[ {]", line) and all(f'{key}="{value}"' in line for key, value in labels.items())]
        self.assertEqual(len(found), 1, text)
        return float(found[0].rsplit(" ", 1)[1])

    def test_counts_of_processes(self):
        for number in range(3):
            self.put("no-image-for-arch", f"a{number}", pid=number + 1)
        self.put("healthy", sample=100)
        (self.reports / "letter.jsonl").write_text("Dear Ada,\n")
        text = self.metrics()
        self.assertEqual(self.value(text, "kshim_findings", cause="no-image-for-arch"), 3)
        self.assertEqual(self.value(text, "kshim_processes", verdict="ok"), 100)
        self.assertEqual(self.value(text, "kshim_processes", verdict="gap"), 3)
        self.assertEqual(self.value(text, "kshim_reports_rejected"), 1)
        self.assertNotIn("_Z", text, "no kernel is a label")

    # shows: `python -m kshim.fleet openmetrics`: reports with thousands of names of packages and of GPUs
    def test_no_user_makes_series(self):
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        package = {"type": "package", "seq": 90, "t": 1, "object": 1, "version": "1", "manager": "pip"}
        for number, name in enumerate([f"junk{number}" for number in range(40)] + ["torch"]):
            text = "\n".join(lines[:-1] + [json.dumps({**package, "name": name}), lines[-1]])
            (self.reports / f"{number}.jsonl").write_text(re.sub(r'"compute_capability":"[^"]*"', f'"compute_capability":"{number + 50}.0"', text) + "\n"
                                                          if number < 20 else text + "\n")
        text = self.metrics()
        self.assertNotIn("junk", text)
        self.assertEqual(self.value(text, "kshim_findings", cause="no-image-for-arch", package="torch"), 1)
        self.assertEqual(sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if 'package="other"' in line and "no-image" in line), 40)
        self.assertLess(len([line for line in text.splitlines() if line.startswith("kshim_findings{")]), 6, text)

    @unittest.skipUnless(has("prometheus_client"), "no prometheus_client beside DuckDB; KSHIM_FLEET_PYTHON names a Python that has it")
    def test_both_parsers_read_the_same(self):
        self.put("python-package")
        lines = (GOLDEN / "no-image-for-arch/report.jsonl").read_text().splitlines()
        evil = json.dumps({"type": "package", "seq": 90, "t": 1, "object": 1, "name": "a\"b\\\n}x", "version": "1", "manager": "pip"})
        (self.reports / "evil.jsonl").write_text("\n".join(lines[:-1] + [evil, lines[-1]]) + "\n")
        done = subprocess.run([PYTHON, "-c", PARSE], input=self.metrics(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        plain, strict = json.loads(done.stdout)
        self.assertEqual(plain, strict)
        self.assertIn("other", [labels.get("package") for _, labels, _, _ in plain])
        self.assertEqual({stamp for _, _, _, stamp in plain}, {None})

    @unittest.skipUnless(EXPORTER, "no prometheus-node-exporter; Debian's package of that name has it")
    def test_node_exporter_serves_them(self):
        self.put("no-image-for-arch")
        textfiles = self.folder / "textfiles"
        textfiles.mkdir()
        self.openmetrics("-o", textfiles / "kshim.prom", self.reports)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with subprocess.Popen([EXPORTER, "--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={textfiles}",
                               f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL) as exporter:
            try:
                for _ in range(100):
                    try:
                        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
                        break
                    except OSError:
                        time.sleep(0.2)
                self.assertEqual(self.value(page, "kshim_findings", cause="no-image-for-arch"), 1)
                self.assertEqual(self.value(page, "node_textfile_scrape_error"), 0)
            finally:
                exporter.terminate()


if __name__ == "__main__":
    sys.exit(unittest.main())
