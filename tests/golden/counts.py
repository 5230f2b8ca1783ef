#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each format counts what the JSON of the same case has: findings by severity, and in JUnit, the processes that each was seen in.

counts.py KSHIM"""
import collections
import json
import os
import re
import sys
import xml.etree.ElementTree

import golden
from hostile_report import FORMATS

SEVERITIES = ("error", "warning", "info")
SHOWN_BY_GITHUB = 10  # annotations of one kind


def by_severity(analysis):
    return {severity: sum(row["severity"] == severity for row in analysis["findings"]) for severity in SEVERITIES}


def errors_of(analysis):
    """Findings of severity error by process, and those of none."""
    seen = collections.Counter()
    unplaced = 0
    for finding in analysis["findings"]:
        unplaced += finding["severity"] == "error" and not finding["processes"]
        for process in finding["processes"]:
            seen[process["run"], process["host"], process["pid"]] += finding["severity"] == "error"
    return seen, unplaced


def junit(text, analysis):
    root = xml.etree.ElementTree.fromstring(text)
    suites = root.findall("testsuite")
    for level in (root, *suites):
        yield "tests", int(level.get("tests")), len(level.findall(".//testcase"))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            yield name, int(level.get(name)), len(level.findall(f".//testcase/{tag}"))
    processes = analysis["processes"]
    yield "suites", len(suites), len(processes) + (1 if len(suites) > len(processes) else 0)
    seen, unplaced = errors_of(analysis)
    for process, suite in zip(processes, suites):
        yield f"failures of {suite.get('name')}", int(suite.get("failures")), seen[process["run"], process["host"], process["pid"]]
    yield "failures of no process", sum(int(suite.get("failures")) for suite in suites[len(processes):]), unplaced


def sarif(text, analysis):
    levels = collections.Counter(result["level"] for result in json.loads(text)["runs"][0]["results"])
    for severity, count in by_severity(analysis).items():
        yield severity, levels[{"info": "note"}.get(severity, severity)], count


def github(text, analysis):
    more = {"warning": len(analysis["blind"]), "error": 0, "info": len(analysis["notes"])}
    for severity, count in by_severity(analysis).items():
        kind = {"info": "notice"}.get(severity, severity)
        yield severity, len(re.findall(rf"^::{kind} ", text, re.MULTILINE)), min(SHOWN_BY_GITHUB, count + more[severity])


def headings(pattern):
    def check(text, analysis):
        for severity in ("error", "warning"):
            yield severity, len(re.findall(pattern.format(severity), text, re.MULTILINE)), by_severity(analysis)[severity]
    return check


def same(text, analysis):
    yield "findings", len(json.loads(text)["findings"]), len(analysis["findings"])


def a_line_a_report(text, analysis):
    lines = [json.loads(line) for line in text.splitlines()]
    yield "processes", sum(len(line["processes"]) for line in lines), len(analysis["processes"])
    yield "errors by process", sum((errors_of(line)[0] for line in lines), collections.Counter()), +errors_of(analysis)[0]


COUNTED = {"text": headings(r"^{}: "), "markdown": headings(r"^## {}: "), "html": headings(r"<h2[^>]*><span class=\"badge {0}\">{0}<"), "json": same,
           "junit": junit, "sarif": sarif, "github": github, "jsonl": a_line_a_report}


def main():
    kshim = os.path.abspath(sys.argv[1])
    problems = []
    processes = 0
    for case in golden.cases():
        analysis = json.loads(golden.analyze(kshim, case, "json"))
        processes += len(analysis["processes"])
        for output_format in FORMATS:
            text = golden.analyze(kshim, case, output_format)
            problems += [f"{case}, {output_format}: {what}: {got}, and {wanted} by the JSON"
                         for what, got, wanted in COUNTED[output_format](text, analysis) if got != wanted]
    print("\n".join(problems) or f"{processes} processes, {len(FORMATS)} formats")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
