#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A report with every string field of the schema chosen by an enemy, through every format of `kshim analyze`.

hostile_report.py KSHIM
"""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
with open(os.path.join(SOURCE, "analyzer", "core", "formats.def"), encoding="utf-8") as formats:
    FORMATS = re.findall(r"^KSHIM_FORMAT\((\w+)", formats.read(), re.MULTILINE)
EVIL = ("\x1b]0;owned\x07\x1b[2J", "<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>", "\u202etxt.exe\u2066",
        "]]><evil/>", "\r\n::error::injected", "![x](https://evil.example/i.png)", "\u009b31m", "\ufeff\u200b")
# What a field must be for its record to be judged at all.
KEPT = {"type": None, "schema": "kshim-report/1", "stage": "launch", "compute_capability": "6.1", "need": "sm_61",
        "layer": "driver", "how": "deepbind"}
LISTED = {"have": ["sm_75", "<script>alert(3)</script>"]}
NUMBERS = {"seq": None, "code": 209, "result": 209, "line": 7, "pid": 4711}


def record_types():
    with open(os.path.join(SOURCE, "include", "kshim", "report", "schema.def"), encoding="utf-8") as file:
        text = file.read()
    names = re.findall(r"^KSHIM_RECORD\((\w+),", text, re.MULTILINE)
    fields = re.findall(r"^KSHIM_FIELD\((\w+), (\w+), (\w+),", text, re.MULTILINE)
    return [(name, [(field, kind) for record, field, kind in fields if record == name]) for name in names]


class Maker:
    """Values for the fields, each string another mixture."""
    def __init__(self):
        self.count = 0
        self.texts = 0

    def text(self):
        self.texts += 1
        return f"x{self.texts}" + "".join(EVIL[(self.texts + i) % len(EVIL)] for i in range(4))

    def value(self, field, kind):
        if field in KEPT and KEPT[field] is not None:
            return KEPT[field]
        if field in LISTED:
            return LISTED[field] + [self.text()]
        if kind in ("string", "text"):
            return self.text()
        if kind in ("uint", "number"):
            return NUMBERS.get(field, 1 if field in ("id", "object", "module", "failure", "count", "fatbins") else 0)
        if kind == "bool":
            return False
        if kind in ("strings", "texts"):
            return [self.text(), self.text()]
        if kind == "env":
            return {self.text(): self.text(), "LD_AUDIT": self.text(), "CUDA_FORCE_PTX_JIT": "1"}
        members = {"images": ("kind", "arch", "isa"), "layers": ("layer", "api", "name"),
                   "frames": ("object", "build_id", "symbol"), "python": ("file", "function"), "processes": ("exe",)}[kind]
        row = {member: KEPT.get(member) or self.text() for member in members}
        row.update({"code": 209, "count": 1, "bytes": 5, "offset": 9, "line": 7, "pid": 7, "start": 7})
        if kind == "images":
            row.update({"kind": "cubin", "arch": "sm_75"})
        return [row, {**row, members[0]: self.text()}]


def report():
    maker = Maker()
    rows = []
    for name, fields in record_types():
        row = {"type": name, "seq": len(rows), "t": len(rows)}
        row.update((field, maker.value(field, kind)) for field, kind in fields)
        rows.append(row)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), maker.texts


class Page(html.parser.HTMLParser):
    """What of a page could run, or fetch."""
    def __init__(self):
        super().__init__()
        self.bad = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag in ("img", "evil", "svg", "iframe", "object", "embed", "link"):
            self.bad.append(f"<{tag}>")
        self.bad += [f"{tag} {name}" for name in names if name.startswith("on")]
        if tag == "script" and names.get("src"):
            self.bad.append("script src")

    def handle_data(self, data):
        if self.lasttag == "script" and "alert(" in data and "alert(1)</" in data:
            self.bad.append("script body")


def problems_of(output_format, output):
    found = []
    controls = set(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", output))
    if controls:
        found.append(f"control characters {sorted(controls)!r}")
    if output_format in ("json", "sarif"):
        json.loads(output)
    elif output_format == "junit":
        xml.etree.ElementTree.fromstring(output)
    elif output_format == "html":
        page = Page()
        page.feed(output)
        found += page.bad
    elif output_format == "markdown":
        outside = re.sub(r"(?ms)^(`{3,}).*?^\1$|(`+)[^`].*?\2", "", output)
        found += re.findall(r"(?<!\\)<(?:script|img|evil)|(?<!\\)!\[x\]\(", outside)
    elif output_format == "github":
        found += [line for line in output.splitlines() if line.startswith("::error::injected")]
    return found


def main():
    kshim = os.path.abspath(sys.argv[1])
    text, texts = report()
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        for output_format in FORMATS:
            for more in ([], ["--verbose", "--full", "--target", "9.0,12.0"]):
                done = subprocess.run([kshim, "analyze", "--format", output_format, *more, path], env=environment,
                                      capture_output=True, check=False)
                if done.returncode != 1:
                    problems.append(f"{output_format}: exit status {done.returncode}: {done.stderr!r}")
                    continue
                output = done.stdout.decode("utf-8")
                problems += [f"{output_format} {more}: {what}" for what in problems_of(output_format, output)]
    print("\n".join(problems) or f"{texts} hostile texts, {len(FORMATS)} formats")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
