#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kshim analyze --format jsonl: a line is the analysis of its report alone, and what cannot be read is a line with `rejected`."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import schemas

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
KSHIM = pathlib.Path(os.environ["KSHIM_BUILD_DIR"]) / "analyzer/kshim"
GOLDEN = SOURCE / "tests/golden"
SAME = ("schema", "verdict", "devices", "processes", "findings", "blind", "runs", "fleet")


class Lines(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kshim-jsonl-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.reports = self.folder / "reports"
        self.reports.mkdir()

    def put(self, case, name, **process):
        lines = (GOLDEN / case / "report.jsonl").read_text().splitlines()
        text = json.dumps({**json.loads(lines[0]), **process})
        (self.reports / f"{name}.jsonl").write_text("\n".join([text, *lines[1:]]) + "\n")

    def run_kshim(self, *arguments, status=None):
        done = subprocess.run([KSHIM, "analyze", *arguments], capture_output=True, text=True, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done

    def lines(self, *arguments, status=None):
        return [json.loads(line) for line in self.run_kshim("--format", "jsonl", *arguments, self.reports, status=status).stdout.splitlines()]

    def test_a_line_is_the_analysis_of_its_report_alone(self):
        cases = sorted((path.parent.name for path in GOLDEN.glob("*/report.jsonl")), key="{}.jsonl".format)
        self.assertGreater(len(cases), 20)
        for case in cases:
            shutil.copy(GOLDEN / case / "report.jsonl", self.reports / f"{case}.jsonl")
        checker = schemas.validator("analysis")
        for options in ((), ("--target", "9.0,12.0")):
            found = self.lines(*options, status=1)
            self.assertEqual(len(found), len(cases))
            self.assertEqual(found, self.lines("-j", "1", *options), "however many threads")
            for case, line in zip(cases, found):
                with self.subTest(case, options=options):
                    self.assertEqual(schemas.errors(checker, line), [])
                    alone = json.loads(self.run_kshim("--format", "json", *options, self.reports / f"{case}.jsonl").stdout)
                    self.assertEqual({key: line[key] for key in SAME}, {key: alone[key] for key in SAME})

    def test_processes_that_are_alike(self):
        """Judged once, and each line is its own process'."""
        for number in range(40):
            self.put("healthy", f"{number:02}", pid=number + 1, host=f"node{number % 3}", run=f"run{number % 2}", exe=f"/opt/app{number % 5}", argv=[f"/opt/app{number % 5}", str(number)],
                     sample=number + 1)
            path = self.reports / f"{number:02}.jsonl"
            path.write_text(path.read_text().replace('"uuid":"GPU-', f'"uuid":"GPU-{number:02}'))
        found = self.lines("-j", "1", status=0)
        self.assertEqual([process["pid"] for line in found for process in line["processes"]], [number + 1 for number in range(40)])
        for number in (0, 1, 17, 39):
            alone = json.loads(self.run_kshim("--format", "json", "--full", self.reports / f"{number:02}.jsonl").stdout)
            line = json.loads(self.run_kshim("--format", "jsonl", "--full", self.reports / f"{number:02}.jsonl").stdout)
            self.assertEqual({key: line[key] for key in SAME}, {key: alone[key] for key in SAME})
            self.assertEqual({key: value for key, value in self.lines("--full")[number].items() if key in SAME}, {key: alone[key] for key in SAME})

    def test_reports_that_are_alike_are_judged_once_and_say_the_same(self):
        """Spaces make reports that cannot be compared: each is read whole and judged by itself."""
        cases = ["no-image-for-arch", "jit-tax", "healthy", "device-fault", "nvrtc-arch-unsupported", "python-package", "two-gpus"]
        lines = {case: [json.loads(line) for line in (GOLDEN / case / "report.jsonl").read_text().splitlines()] for case in cases}
        # Which file's compilation took longest decides the order of findings, all of it how severe they are.
        again = {"object": {"id": 77, "path": "/sw/again.so", "build_id": "77"}, "module": {"id": 77, "object": 77}}
        *first, last = lines["jit-tax"]
        more = [{**row, **again[row["type"]]} for row in first if row["type"] in again] + [{**last, "modules": 2}]
        lines["several"] = [*first, *({**row, "seq": len(first) + at} for at, row in enumerate(more))]
        cases.append("several")
        # Files in memory and by name; more files than sentences name.
        extra = [{**again_row, "id": 100 + at, **({"path": f"/sw/{at}.so", "build_id": f"{at}"} if again_row["type"] == "object" else {"object": 100 + at})}
                 for at in range(12) for again_row in first if again_row["type"] in again]
        lines["many"] = [*first, *({**row, "seq": len(first) + at} for at, row in enumerate(extra)), {**last, "modules": 13}]
        cases.append("many")
        # Some commands name the program; the release of Python decides which wheels serve it.
        programs = [("/usr/bin/python3.12", ["python", "train.py"]), ("/usr/bin/python3.8", ["python", "train.py"]), ("/home/ada/fast", ["./fast", "{device}"]),
                    ("/home/ada/fast", ["PROGRAM"]), ("/home/bob/e/bin/python3.12", ["/home/bob/e/bin/python", "-m", "train"]), ("/home/a##[b", []), ("", ["x\u2028"])]
        draw = random.Random(1)
        reports = []
        for number in range(1800):
            case = cases[number % len(cases)]
            exe, argv = programs[number // len(cases) % len(programs)]
            changed = []
            for row in lines[case]:
                new = {"process": {"pid": number + 1, "host": f"n{number % 3}", "start": number, "rank": None if number % 3 else number % 8, "uid": str(number % 4),
                                   "job": {"id": str(number), "queue": "q"} if number % 2 else None, "run": f"run{number % 5}" if number % 7 else None,
                                   "time": f"2026-01-0{1 + number % 9}T00:00:00Z", "sample": number % 4 or None, "exe": exe, "argv": argv},
                       "module": {"ms": draw.randrange(2 * 10 ** 6) / 1000}, "failure": {"tid": number}, "end": {"time": f"2026-02-0{1 + number % 9}T00:00:00Z"},
                       "device": {"uuid": f"GPU-{number}" if number % 5 else None, "pci": f"0000:{number % 100:02}:00.0"},
                       "driver": {"simulated": False}}.get(row["type"], {})
                changed.append({**row, **new, "t": row["t"] and number * 1000})
            reports.append((self.reports / f"{number:04}.jsonl", changed))
        found = {}
        for name, separators in (("alike", (",", ":")), ("apart", (", ", ": "))):
            for path, changed in reports:
                path.write_text("".join(json.dumps(row, separators=separators) + "\n" for row in changed))
                os.utime(path, (1, 1))
            found[name] = self.lines("-j", "1", "--full")
            for line in found[name]:
                del line["facts"]["arrived"]
        self.assertEqual(len(found["alike"]), len(reports))
        for alike, apart in zip(found["alike"], found["apart"]):
            self.assertEqual(alike, apart)
        self.assertEqual(len({json.dumps(line) for line in found["alike"]}), len(reports))

    def test_what_cannot_be_read(self):
        (self.reports / "b.jsonl").write_text("Dear Ada,\n")
        self.assertEqual(self.run_kshim("--format", "jsonl", self.reports).returncode, 3)
        self.put("healthy", "a", sample=100)
        self.put("healthy", "c")
        with (self.reports / "c.jsonl").open("a") as report:
            report.write('{"type":')
        first, second, third = self.lines(status=0)
        self.assertEqual([process["sample"] for process in first["processes"]], [100])
        self.assertEqual((second["verdict"], second["processes"], second["rejected"]["report"]), ("incomplete", [], str(self.reports / "b.jsonl")))
        self.assertEqual(schemas.errors(schemas.validator("analysis"), second), [])
        self.assertNotIn("rejected", third)
        self.assertTrue([note for note in third["notes"] if "c.jsonl" in note], third["notes"])

    def test_a_file_is_not_streamed_to(self):
        self.put("healthy", "a")
        self.assertEqual(self.run_kshim("--format", "jsonl", "-o", self.folder / "out.jsonl", self.reports).returncode, 2)

    def test_memory_does_not_grow(self):
        def peak(count):
            for number in range(count):
                self.put("no-image-for-arch", f"{number:05}", pid=number + 1)
            with subprocess.Popen([KSHIM, "analyze", "--format", "jsonl", "-j", "2", self.reports], stdout=subprocess.DEVNULL) as command:
                usage = os.wait4(command.pid, 0)[2]
                command.returncode = 0
            return usage.ru_maxrss

        few = peak(300)
        self.assertLess(peak(3000) - few, 16 << 10, "KiB")


if __name__ == "__main__":
    sys.exit(unittest.main())
