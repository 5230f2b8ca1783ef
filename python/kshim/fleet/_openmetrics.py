# SPDX-License-Identifier: Apache-2.0
"""Counts of processes and findings, as Prometheus' node_exporter reads them from a file."""
import collections
from typing import Counter, Iterable, Tuple

from . import _command

VERDICTS = ("blind", "failure", "gap", "incomplete", "no-cuda", "ok")
OTHER = "other"  # reports may be a stranger's: what kshim's tables do not have makes no series of its own


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def text_of(analyses: Iterable[dict], known_gpus: Iterable[str]) -> str:
    gpus = set(known_gpus)
    verdicts = dict.fromkeys(VERDICTS, 0)
    findings: Counter[Tuple[str, str, str, str]] = collections.Counter()
    rejected = 0
    for analysis in analyses:
        if "rejected" in analysis:
            rejected += 1
            continue
        weight = sum(process["sample"] for process in analysis["processes"])
        verdicts[analysis["verdict"]] += weight
        keys = set()
        for finding in analysis["findings"]:
            package = finding["package_info"]
            gpu = (finding["device"] or {}).get("compute_capability")
            keys.add((finding["cause"], finding["severity"], (package["project"] or OTHER) if package else "", "" if gpu is None else gpu if gpu in gpus else OTHER))
        for key in keys:
            findings[key] += weight
    out = ["# HELP kshim_processes Processes in the reports that were read, by verdict.", "# TYPE kshim_processes gauge"]
    out += [f'kshim_processes{{verdict="{verdict}"}} {count}' for verdict, count in verdicts.items()]
    out += ["# HELP kshim_findings Processes that have a finding, by cause, severity, package and compute capability of the GPU.", "# TYPE kshim_findings gauge"]
    for key, count in sorted(findings.items()):
        labels = ",".join(f'{name}="{escaped(value)}"' for name, value in zip(("cause", "severity", "package", "capability"), key))
        out.append(f"kshim_findings{{{labels}}} {count}")
    out += ["# HELP kshim_reports_rejected Reports that could not be read.", "# TYPE kshim_reports_rejected gauge", f"kshim_reports_rejected {rejected}", "# EOF"]
    return "\n".join(out) + "\n"


def run(paths, output: str) -> int:
    gpus = [row["compute_capability"] for row in _command.answer("scan", "--list-gpus", "--format", "json")["gpus"]]
    _command.write(output, text_of(_command.analyses(paths), gpus))
    return 0
