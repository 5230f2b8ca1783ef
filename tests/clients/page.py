#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/internals/routes.md has a line for each row of route_table.py and no other, so that no row stands there without a run and none that
runs is left out."""
import sys

import route_page
import route_table


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [tuple(line.strip("| ").split(" | ")[:2]) for line in lines[2:]]


def main():
    page = rows_of((route_table.SOURCE / "docs/internals/routes.md").read_text(encoding="utf-8"))
    rows = [(route.name, route.client) for route in route_table.routes(route_table.wanted_runtimes())]
    for row in rows:
        if page.count(row) != rows.count(row):
            print(f"docs/internals/routes.md: {page.count(row)} lines for {row}; `{route_page.COMMAND}` makes the page")
    for row in page:
        if row not in rows:
            print(f"docs/internals/routes.md: {row} is no row of tests/clients/route_table.py")
    return 0 if sorted(page) == sorted(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
