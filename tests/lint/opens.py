#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files are opened in one place: lib/files for the command, python/kshim/_files.py for the package. WRITES lists what opens for
another purpose than to read a file, and why."""
import re
import sys

from tree import ROOT, tracked

CPP = re.compile(r"^(?!.*posix_spawn_file_actions_addopen).*\b(?:O_RDONLY|O_WRONLY|O_RDWR)\b|\b[io]?fstream\b|\bfopen\s*\(")
PYTHON = re.compile(r"(?<![\w.])(?:io\.|os\.)?open\(")
WRITES = {
    "analyzer/cli/output.cpp": "writes a result",
    "analyzer/device_code/own_process.cpp": "the null device, for a child",
    "analyzer/input/files/container_buffer.cpp": "a file without a name, for what is unpacked",
    "analyzer/verbs/scan_images.cpp": "writes into a folder of its own",
    "analyzer/run/stderr_capture.cpp": "a terminal for CMD's stderr",
    "analyzer/run/terminal_relay.cpp": "the terminal, and one for CMD",
    "analyzer/run/child.cpp": "the null device, in place of CMD's input and output",
    "analyzer/run/run_folder.cpp": "the system's random numbers",
    "analyzer/verbs/add_records.cpp": "adds to a report of the caller's own",
    "python/guard/kshim_guard.py": "one file that projects copy: it shares nothing",
    "python/kshim/_files.py": "the one way",
    "python/kshim/fleet/_command.py": "writes a result",
    "python/kshim/fleet/_ingest.py": "writes lines and tables",
    "python/kshim/_pytest_journal.py": "writes its journal",
}


def main():
    bad, used = [], set()
    for path in tracked():
        name = str(path.relative_to(ROOT))
        pattern = CPP if name.startswith("analyzer/") and path.suffix in (".cpp", ".h") else \
            PYTHON if name.startswith("python/") and path.suffix == ".py" else None
        if pattern is None:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = re.sub(r"//.*", "", line) if pattern is CPP else line.split("#")[0]
            if not pattern.search(code):
                continue
            if name in WRITES:
                used.add(name)
            else:
                bad.append(f"{name}:{number}: opens a file by itself: {line.strip()}")
    bad += [f"{name} opens nothing any more: take it out of WRITES" for name in sorted(set(WRITES) - used)]
    print("\n".join(bad) if bad else f"one opener, and {len(WRITES)} files that write")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
