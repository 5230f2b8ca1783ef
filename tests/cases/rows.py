# SPDX-License-Identifier: Apache-2.0
"""Which rows of a table of messages.json or fixes.json no answer needs: python rows.py --logs EXPLAIN_LOGS [--table messages] [--without ID ...] [-v]

Takes each row out in memory and asks again: the situations and threads of this folder, the ordinary lines, and the examples of
messages_test.cpp. An answer is the first cause, its severity and its first fix; for tables other than messages, all of it. Prints each row with the number of answers that change: of cases, of
ordinary lines, of examples; then those rows that can go together, taken out one after the other. --without takes rows out from the start."""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import threads

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "explain"))
import ordinary_lines  # noqa: E402


def examples():
    """The texts of messages_test.cpp."""
    text = (ROOT / "tests/explain/messages_test.cpp").read_text(encoding="utf-8")
    for literals in re.findall(r'[{,]\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text):
        yield json.loads('"' + "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace("\\'", "'") + '"')


def logs():
    """(kind, name, lines)"""
    for case in threads.cases():
        yield "case", case["id"], case["log"]
    for line in (ROOT / "tests/cases/situations.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        yield "case", case["id"], case["log"]
    for _, line in ordinary_lines.lines():
        yield "ordinary", line, [line]
    for text in dict.fromkeys(examples()):
        yield "example", text, text.split("\n")


def answer_of(answer):
    first = answer["findings"][0] if answer["findings"] else None
    if first is None:
        return "none" if answer["recognised"] else "silent", None
    fix = first["fixes"][0] if first["fixes"] else None
    return f"{first['cause']} ({first['severity']})", fix and (fix["title"], tuple(fix["commands"]))


class Asked:
    def __init__(self, program, table):
        self.program = program
        self.table = table
        self.file = next(path for path in sorted((ROOT / "knowledge").glob("*.json")) if table in json.loads(path.read_text(encoding="utf-8")))
        self.head = json.loads(self.file.read_text(encoding="utf-8"))
        self.logs = list(logs())
        # A row may read several lines as one.
        self.texts = [[*lines, *map(" ".join, zip(lines, lines[1:])), *map("".join, zip(lines, lines[1:])), " ".join(lines)] for _, _, lines in self.logs]

    def answers(self, rows, chosen):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump({"schema": self.head["schema"], "date": self.head["date"], self.table: rows}, file)
            file.flush()
            done = subprocess.run([self.program], input="".join("\n".join(self.logs[i][2]) + "\n\x1e\n" for i in chosen), capture_output=True, encoding="utf-8",
                                  env={**os.environ, "HOME": "/nonexistent", "KSHIM_KNOWLEDGE": file.name}, check=True)
        whole = (lambda answer: (answer, None)) if self.table != "messages" else answer_of
        return dict(zip(chosen, (whole(json.loads(text)) for text in done.stdout.split("\x1e\n")[:-1]), strict=True))

    def touched(self, row):
        """Of the logs, those that the row may have to do with."""
        if "pattern" not in row:
            return range(len(self.logs))
        pattern = re.compile(re.sub(r"\(\?P<\w+>", "(", row["pattern"]), re.IGNORECASE)
        return [i for i, texts in enumerate(self.texts) if any(map(pattern.search, texts))]


def name_of(row):
    return row.get("id") or " ".join(str(row.get(key, "")) for key in ("message", "kind", "package", "title", "what", "pattern"))[:110].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", required=True, help="build/dev/tests/explain/explain_logs")
    parser.add_argument("--table", default="messages")
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("-v", "--verbose", action="store_true", help="which answers change, and how")
    args = parser.parse_args()
    asked = Asked(args.logs, args.table)
    rows = [row for row in asked.head[args.table] if name_of(row) not in args.without]
    before = asked.answers(rows, range(len(asked.logs)))
    touched = {id(row): asked.touched(row) for row in rows}
    by_message = collections.defaultdict(list)
    if args.table == "message_fixes":  # asked where the message is
        messages = {row["id"]: row for row in json.loads((ROOT / "knowledge/messages.json").read_text(encoding="utf-8"))["messages"]}
        for row in rows:
            if row["message"] not in by_message:
                by_message[row["message"]] = asked.touched(messages.get(row["message"], row))  # of a family: of all
            touched[id(row)] = by_message[row["message"]]
    left, useless = rows, []
    for row in rows:
        chosen = touched[id(row)]
        changes = []
        if chosen:
            after = asked.answers([each for each in left if each is not row], chosen)
            changes = [(asked.logs[i], before[i], after[i]) for i in chosen if after[i] != before[i]]
        count = collections.Counter(log[0] for log, _, _ in changes)
        silent = sum(log[0] == "example" and new[0] != old[0] for log, old, new in changes)
        print(f"{count['case']:4} cases {count['ordinary']:4} ordinary {count['example']:3} examples ({silent} of another cause)  {name_of(row)}", flush=True)
        if args.verbose:
            for (kind, name, _), old, new in changes:
                print(f"       {kind} {name[:160]}\n         {old[0]}: {old[1] and old[1][1]}\n         {new[0]}: {new[1] and new[1][1]}")
        if not count["case"] and not count["ordinary"] and not silent:
            useless.append(name_of(row))
            left = [each for each in left if each is not row]
    print(f"{len(rows)} rows; {len(useless)} can go together: {' '.join(useless)}")


if __name__ == "__main__":
    main()
