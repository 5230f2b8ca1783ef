#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ten programs that read kshim's JSON as it was when kshim-analysis/1 and kshim-scan/1 were named: keys may come, none goes and
none means another thing. jq's are skipped where there is no jq.   readers.py KSHIM"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import golden
import scan_fixture


def analysis(case):
    return golden.analyze(KSHIM, case, "json")


def scan():
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        scan_fixture.make(folder)
        done = subprocess.run([KSHIM, "scan", "--target", "7.5,9.0", "--format", "json", "."], cwd=folder, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1, done.stderr
        return done.stdout


def jq(program, text):
    if not shutil.which("jq"):
        return None
    return subprocess.run(["jq", "-rc", program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def read_by_jq():
    package = analysis("python-package")
    yield "one line a finding", jq('.findings[]|select(.severity=="error")|[.package,.cause,.need]|@tsv', package), [
        "torch 2.9.1+cu130 (pip)\tptx-newer-than-device\tsm_70"]
    yield "the first command", jq(".findings[0].fixes[0].commands[]|split(\" \")|.[0:2]|join(\" \")", package), ["pip install"]
    yield "reports by process", jq("(.processes|map({key:\"\\(.run)/\\(.pid)\",value:.report})|from_entries)|length",
                                   analysis("ranks")), ["3"]
    yield "files without code", jq('[.objects[]|select(.targets[]|select(.target=="sm_75" and .sass==0 and .jit==0 and .lacking>0))'
                                   '.path]|unique|length>0', scan()), ["true"]


def read_by_python():
    output = json.loads(analysis("python-package"))
    finding = output["findings"][0]
    yield "a gate", (output["schema"], output["verdict"], any(row["severity"] == "error" for row in output["findings"])), (
        "kshim-analysis/1", "gap", True)
    yield "the GPU's name for a ticket", [text.split(": ", 1)[1] for text in finding["devices"]], ["Tesla V100-SXM2-32GB (7.0)"]
    yield "a package's name", finding["package"].split(" ")[0], "torch"
    yield "proofs with a line", all(row.endswith(")") and ".jsonl:" in row for row in finding["evidence"]), True
    yield "the user's line", f"{finding['where']['file']}:{finding['where']['line']}", "/home/ada/vit/model.py:131"
    output = json.loads(scan())
    yield "a scan's gate", (output["schema"], {row["cause"] for row in output["findings"] if row["severity"] == "error"} != set()), (
        "kshim-scan/1", True)


def main():
    bad = 0
    for what, got, wanted in [*read_by_jq(), *read_by_python()]:
        if got is None:
            print(f"skipped: no jq: {what}")
        elif got != wanted:
            bad += 1
            print(f"{what}: {got!r} and not {wanted!r}")
    return 1 if bad else 0


if __name__ == "__main__":
    KSHIM = os.path.abspath(sys.argv[1])
    sys.exit(main())
