#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports in, text and JSON out: what `kshim analyze` makes of tests/golden/CASE/ against what is kept beside it. A case that has
a file for it (shown.py) is compared in every other format, too.

golden.py --kshim PATH [--update] CASE...    compares, or renews expected.values and, where it is there, expected.txt
A case that names an exit status is of `kshim run`, which knows how a program ended: as_run.cpp makes the same analysis of it.
golden.py --kshim PATH --schema              validates what it makes of every case against docs/schema/analysis.json
"""
import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWLEDGE = os.path.join(os.path.dirname(HERE), "knowledge")  # no new release changes what is expected
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))
import schemas  # noqa: E402
import shown  # noqa: E402


def cases():
    return sorted(name for name in os.listdir(HERE) if os.path.isfile(os.path.join(HERE, name, "case.json")))


# Of one length, so that lines break alike.
MOVED, SHOWN = "/tmp/kshim-golden-", "/home/ada/golden/case-0000"


def moved(case, about, then):
    """then(folder) with the case in a folder of its own, its reports made ones of this host and that folder; what it returns, made
    nobody's again. For what is only looked at where the process ran: a cache."""
    with tempfile.TemporaryDirectory(prefix=os.path.basename(MOVED), dir=os.path.dirname(MOVED)) as folder:
        assert len(folder) == len(SHOWN), folder
        shutil.copytree(os.path.join(HERE, case), folder, dirs_exist_ok=True)
        for name in about["args"]:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read().replace("@FOLDER@", folder).replace('"node7"', json.dumps(os.uname().nodename))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return then(folder).replace(folder, SHOWN).replace(json.dumps(os.uname().nodename), '"node7"')


def analyze(kshim, case, output_format):
    """What the command prints for a case; its exit status must be the one that case.json names."""
    with open(os.path.join(HERE, case, "case.json"), encoding="utf-8") as file:
        about = json.load(file)
    if about.get("moved"):
        return moved(case, about, lambda folder: analyze_in(kshim, case, about, folder, output_format))
    return analyze_in(kshim, case, about, os.path.join(HERE, case), output_format)


def analyze_in(kshim, case, about, folder, output_format):
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "KSHIM_KNOWLEDGE": KNOWLEDGE}
    if about.get("moved"):  # into a home and a cache of its own
        environment.update(HOME=folder, TRITON_CACHE_DIR=os.path.join(folder, "cache"))
    command = [kshim, "analyze", "--format", output_format, *about["args"]]
    if "exit_status" in about:
        missing = ["-m", *about["missing"]] if "missing" in about else []
        command = [as_run(kshim), output_format, str(about["exit_status"]), *missing, *about["args"]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode != about["status"]:
        sys.exit(f"{case}: {' '.join(command)} exited with {done.returncode}, not {about['status']}\n"
                 f"{done.stderr.decode(errors='replace')}")
    return done.stdout.decode("utf-8")


def as_run(kshim):
    """The program of the same build."""
    return os.path.join(os.path.dirname(os.path.dirname(kshim)), "tests", "golden", "golden_as_run")


def is_as_run(case):
    with open(os.path.join(HERE, case, "case.json"), encoding="utf-8") as file:
        return "exit_status" in json.load(file)


def expected_path(case, output_format):
    return os.path.join(HERE, case, {"text": "expected.txt", "json": "expected.values", **shown.FILES}[output_format])


def formats(case):
    """Values and ids of every case; whole texts where there is a file for them, which is where somebody reads them."""
    return ["json", *(name for name in ("text", *shown.FILES) if os.path.exists(expected_path(case, name)))]


def at(place):
    return f"{place['file'] or place['object']}:{place['line'] or place.get('offset')}" if place else None


def essence_of(finding):
    images = [f"{row['kind']} {row['arch']} x{row['count']}: {'fits' if row['fits'] else 'does not fit'}" for row in finding["images"]]
    package = finding["package_info"]
    return {
        "is": [finding["cause"], finding["severity"], finding["confidence"], finding["code"]],
        "object": finding["object"],
        "package": package and [package["name"], package["version"], package["installer"]],
        "gpus": [[gpu["kind"], gpu["ordinal"], gpu["name"], gpu["compute_capability"]] for gpu in finding["gpus"]],
        "have": finding["have"],
        "need": finding["need"],
        "images": images,
        "kernels": [finding["kernels_total"], finding["kernels_complete"], finding["failed_call"], finding["failed_kernel"]],
        "count": [finding["count"], finding["processes_total"]],
        "where": [at(place) for place in finding["stack"]],
        "evidence": [f"{row['id']} {row['file']}:{row['line']}" for row in finding["evidence_items"]],
        "fixes": [[fix["id"], fix["kind"], *fix["commands"]] for fix in finding["fixes"]],
        "dead_ends": len(finding["dead_ends"]),
    }


def essence(text):
    """What programs go by, a line a value: no sentence. The schema holds the whole of it."""
    output = json.loads(text)
    values = {"verdict": output["verdict"], "devices": len(output["devices"]), "processes": len(output["processes"]),
              "notes": len(output["notes"]), "blind": len(output["blind"]), "fleet": output["fleet"]}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    for finding in output["findings"]:
        lines.append("")
        lines += [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in essence_of(finding).items() if value not in (None, [])]
    return "\n".join(lines) + "\n"


def written(kshim, case, output_format):
    text = analyze(kshim, case, output_format)
    if output_format == "json":
        return essence(text)
    return shown.shown(output_format, text, os.path.join(HERE, case)) if output_format in shown.FILES else text


def compare(kshim, case):
    """The differences, as a unified diff; empty when there are none."""
    differences = []
    for output_format in formats(case):
        path = expected_path(case, output_format)
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        actual = written(kshim, case, output_format)
        differences += difflib.unified_diff(expected.splitlines(), actual.splitlines(), os.path.relpath(path, SOURCE),
                                            "now", lineterm="")
        if output_format == "text":
            differences += [f"{case}: control character {character!r} in the text"
                            for character in sorted(set(re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", actual)))]
    return differences


def names(def_file, macro):
    with open(os.path.join(SOURCE, "analyzer", "core", def_file), encoding="utf-8") as file:
        return re.findall(rf'^{macro}\(\w+, "([\w-]+)"', file.read(), re.MULTILINE)


def severities():
    with open(os.path.join(SOURCE, "analyzer", "core", "causes.def"), encoding="utf-8") as file:
        found = re.findall(r'^KSHIM_CAUSE\(\w+, "[\w-]+", (\w+),', file.read(), re.MULTILINE)
    assert len(found) == len(names("causes.def", "KSHIM_CAUSE")), "a row of causes.def is not read"
    return found


def check_schema(kshim):
    validator = schemas.validator("analysis")
    finding = schemas.ours()["analysis"]["$defs"]["finding"]["properties"]
    lists = ((finding["cause"]["enum"], "causes.def", "KSHIM_CAUSE"),
             (finding["fixes"]["items"]["properties"]["kind"]["enum"], "fix_kinds.def", "KSHIM_FIX_KIND"))
    problems = []
    for listed, def_file, macro in lists:
        if listed != names(def_file, macro):
            problems.append(f"the schema's list differs from {def_file}")
    with open(os.path.join(SOURCE, "analyzer/core/formats.def"), encoding="utf-8") as formats, \
            open(os.path.join(SOURCE, "docs/output.md"), encoding="utf-8") as page:
        listed, shown_on_page = (set(re.findall(row, text.read(), re.M)) for row, text in ((r"^KSHIM_FORMAT\((\w+)", formats), (r"^\| `(\w+)` \|", page)))
        problems += [f"docs/output.md has no row for {name}" for name in sorted(listed - shown_on_page)]
        problems += [f"docs/output.md has a row for {name}, formats.def does not" for name in sorted(shown_on_page - listed)]
    for severity in set(severities()) - set(finding["severity"]["enum"]):
        problems.append(f"the schema has no severity {severity}, which causes.def uses")
    seen = {"unmet-expectation"}  # of a scan: golden_scan.py
    fixed = {"unmet-expectation", "benign-probe"}
    for case in cases():
        output = json.loads(analyze(kshim, case, "json"))
        seen.update(found["cause"] for found in output["findings"])
        fixed.update(found["cause"] for found in output["findings"] if found["fixes"])
        problems += [f"{case}: {error}" for error in schemas.errors(validator, output)]
        for number, found in enumerate(output["findings"]):
            problems += [f"{case}: finding {number}: evidence without report:line: {sentence}"
                         for sentence in found["evidence"] if not is_as_run(case) and not re.search(r"\([^()]+:\d+\)$", sentence)]
    for cause in names("causes.def", "KSHIM_CAUSE"):
        if cause not in seen:
            problems.append(f"no case has the cause {cause}")
        elif cause not in fixed:
            problems.append(f"nothing fixes {cause}")
        if not os.path.exists(os.path.join(SOURCE, "docs/causes", f"{cause}.md")):
            problems.append(f"docs/causes/{cause}.md is missing")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kshim", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--schema", action="store_true")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    options.kshim = os.path.abspath(options.kshim)
    if options.schema:
        problems = check_schema(options.kshim)
        print("\n".join(problems) or f"{len(cases())} analyses are valid")
        return 1 if problems else 0
    status = 0
    for case in options.case or cases():
        if options.update:
            for output_format in formats(case):
                with open(expected_path(case, output_format), "w", encoding="utf-8") as file:
                    file.write(written(options.kshim, case, output_format))
            continue
        differences = compare(options.kshim, case)
        if differences:
            print("\n".join(differences))
            print(f"{case}: where this is meant, tests/golden/update renews it; read the diff before you commit it")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
