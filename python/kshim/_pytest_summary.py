# SPDX-License-Identifier: Apache-2.0
"""What is printed at the end: the findings of `kshim analyze`, shortly, each with the tests that ran into it."""
import json
import os
import shlex
import subprocess
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from kshim import _places
from kshim._pytest_attribution import Run, Tests

MOST_FINDINGS = 20
MOST_TESTS = 12
SHOWN = ("error", "warning")


class Summary(NamedTuple):
    lines: List[str]  # of a section; empty where one line says it all
    last: str  # "kshim: ..."
    worst: Optional[str]  # severity
    broken: bool  # the analysis could not be made, or not of all that happened


def clean(text: Any) -> str:
    """Text of a report on one line of a terminal or of a CI's log: no controls, no command to GitHub's runner."""
    plain = "".join(c if c.isprintable() else "?" for c in str(text))
    return plain.replace("##[", "##?[")


def analyze(run: Run, targets: List[str], folder: str) -> Dict[str, Any]:
    argv = [_places.command(), "analyze", "--verbose", "--format", "json"]
    for target in targets:
        argv += ["--target", target]
    argv += [folder] if run.foreign == 0 else run.reports
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, timeout=600, check=False)
    if done.returncode not in (0, 1):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(said[-1] if said else f"kshim analyze ended with {done.returncode}")
    return json.loads(done.stdout)


def _rows(finding: Dict[str, Any]) -> Iterator["tuple[str, str]"]:
    package = f", {finding['package']}" if finding.get("package") else ""
    if finding.get("object"):
        yield "file", finding["object"] + package
    for device in finding["devices"][:2]:
        yield "on", device
    if finding.get("failed_kernel"):
        others = len(finding["kernels"]) - 1
        yield "kernel", finding["failed_kernel"] + (f" and {others} more" if others > 0 else "")
    elif finding.get("failed_call"):
        yield "call", f"{finding['failed_call']}: {finding.get('code')} {finding.get('code_name') or ''}".rstrip()
    if finding.get("have"):
        yield "has", " ".join(finding["have"][:12]) + (" ..." if len(finding["have"]) > 12 else "")
    if finding.get("need"):
        yield "needs", finding["need"]
    where = finding.get("where")
    if where and where.get("file"):
        line = f":{where['line']}" if where.get("line") else ""
        function = f", in {where['function']}" if where.get("function") else ""
        yield "where", f"{where['file']}{line}{function}"


def _tests_of(finding: Dict[str, Any], by_failure: Dict[str, Tests]) -> Tests:
    out: Tests = {}
    for place in finding.get("failures", []):
        for test, count in by_failure.get(os.path.basename(place), {}).items():
            out[test] = out.get(test, 0) + count
    return out


def _describe(finding: Dict[str, Any], tests: Tests) -> List[str]:
    lines = [f"{finding['severity']}: {finding['headline']} [{finding['cause']}]"]
    lines += [f"  {name:<7} {value}" for name, value in _rows(finding)]
    if finding["fixes"]:
        fix = finding["fixes"][0]
        lines.append(f"  {'fix':<7} {fix['title']}")
        lines += [f"  {'':<7}   {command}" for command in fix["commands"][:3]]
    for number, (test, count) in enumerate(tests.items()):
        if number == MOST_TESTS:
            lines.append(f"  {'':<7} and {len(tests) - MOST_TESTS} more")
            break
        times = f" ({count} times)" if count > 1 else ""
        lines.append(f"  {'tests' if number == 0 else '':<7} {test}{times}")
    if not tests and finding.get("failures"):
        lines.append(f"  {'tests':<7} none: it failed outside of any test")
    return [clean(line) for line in lines]


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('ss') else 's'}"


def summarize(run: Run, targets: List[str], folder: str) -> Summary:
    if not run.reports:
        return Summary([], "kshim: no process used CUDA", None, False)
    try:
        analysis = analyze(run, targets, folder)
        findings = [finding for finding in analysis["findings"] if finding["severity"] in SHOWN]
        by_failure = run.tests_of_failures()
        lines: List[str] = []
        for finding in findings[:MOST_FINDINGS]:
            lines += [*([""] if lines else []), *_describe(finding, _tests_of(finding, by_failure))]
    except (ValueError, KeyError, TypeError, OSError, subprocess.TimeoutExpired, _places.NotInstalled) as error:
        return Summary([], clean(f"kshim: the reports in {folder} could not be analyzed: {error}"), None, True)
    if len(findings) > MOST_FINDINGS:
        lines += ["", f"and {len(findings) - MOST_FINDINGS} findings more"]
    processes = _counted(len(run.reports), "process")
    lost = sum(process.get("lost", 0) for process in analysis["processes"])
    if lost and not findings:
        said = f"kshim: {processes} used CUDA, and {_counted(lost, 'record')} lost: kshim analyze {shlex.quote(folder)}"
        return Summary([], clean(said), None, True)
    if not analysis["devices"] and all(finding["cause"] == "no-device" for finding in findings):
        return Summary([], "kshim: no process had a GPU: nothing could be looked at", None, False)
    if not findings:
        notes = len(analysis["findings"])
        rest = f"; {_counted(notes, 'note')}: kshim analyze {shlex.quote(folder)}" if notes else ""
        return Summary([], clean(f"kshim: {processes} used CUDA, nothing was missing{rest}"), None, False)
    worst = "error" if any(finding["severity"] == "error" for finding in findings) else "warning"
    everything = f"kshim analyze {shlex.quote(folder)}"
    return Summary(lines, clean(f"kshim: {_counted(len(findings), 'finding')} in {processes}; all of it: {everything}"), worst, False)
