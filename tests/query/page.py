#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py [--write]: the table of reasons in docs/query.md is reasons.def's."""
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("KSHIM_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PAGE = SOURCE / "docs" / "query.md"
HEAD = "| `reason` | code | |\n| --- | --- | --- |\n"


def table():
    rows, code = "", None
    for line in (SOURCE / "query" / "reasons.def").read_text().splitlines():
        if heading := re.fullmatch(r"// (Unknown|None)\.", line):
            code = heading[1].lower()
        elif row := re.fullmatch(r'KSHIM_REASON\((\w+), "(.*)"\)', line):
            rows += f"| `{row[1]}` | {code} | {row[2]} |\n"
    return rows


def main():
    page = PAGE.read_text()
    before, _, rest = page.partition(HEAD)
    after = rest[rest.index("\n\n") + 1:] if not rest.startswith("\n") else rest
    fresh = before + HEAD + table() + after
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(fresh)
    elif page != fresh or table().count("\n") < 10:
        print("docs/query.md is stale: tests/query/page.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
