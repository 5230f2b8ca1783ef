# SPDX-License-Identifier: Apache-2.0
"""An answer as a table, CSV, JSON, Markdown or a page of HTML."""
import csv
import html
import io
import json
import sys

FORMATS = ("table", "csv", "json", "jsonl", "markdown", "html")


def _text(value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return " ".join(_text(item) for item in value)
    return str(value)


def _time(value) -> str:
    return value.isoformat() + "Z" if hasattr(value, "hour") else str(value)


def _plain(value) -> str:
    """For a terminal: what a report holds moves no cursor and breaks no line."""
    return "".join(character if character.isprintable() else "?" for character in _text(value))


def write(title, columns, rows, form, out=None):
    out = out or sys.stdout
    if form == "json":
        json.dump({"question": title, "columns": columns, "rows": [dict(zip(columns, row)) for row in rows]}, out, indent=1, default=str)
        out.write("\n")
    elif form == "jsonl":
        out.writelines(json.dumps(dict(zip(columns, row)), default=_time) + "\n" for row in rows)
    elif form == "csv":
        writer = csv.writer(out)
        writer.writerow(map(_plain, columns))
        # A spreadsheet takes a cell that begins so for a formula.
        writer.writerows([("'" + text if (text := _plain(value))[:1] in ("=", "+", "-", "@", "\t", "\r") and not isinstance(value, (int, float)) else text)
                          for value in row] for row in rows)
    elif form == "markdown":
        def cell(value):
            text = html.escape(_plain(value), quote=False)
            for mark in "\\`*_[]|~#@":
                text = text.replace(mark, "\\" + mark)
            return text
        out.write(f"{title}\n\n| " + " | ".join(map(cell, columns)) + " |\n|" + " --- |" * len(columns) + "\n")
        for row in rows:
            out.write("| " + " | ".join(cell(value) for value in row) + " |\n")
    elif form == "html":
        out.write(page([(title, columns, rows)]))
    else:
        table = [columns] + [[_plain(value) for value in row] for row in rows]
        widths = [min(max(len(line[at]) for line in table), 60) for at in range(len(columns))]
        numbers = [all(isinstance(row[at], (int, float)) or row[at] is None for row in rows) for at in range(len(columns))]
        for line in table:
            cells = [(text if len(text) <= 60 else "…" + text[-59:]) for text in line]
            out.write("  ".join(cell.rjust(width) if number else cell.ljust(width)
                                for cell, width, number in zip(cells, widths, numbers)).rstrip() + "\n")
        out.write(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}\n")


def _plot(columns, rows, bar) -> str:
    """The first rows as bars: SVG of Matplotlib's, without scripts; nothing where that is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    names = [next((_plain(value) for value, column in zip(row, columns) if isinstance(value, str)), "") for row in rows[:15]]
    names = [("…" + name[-40:] if len(name) > 40 else name).replace("$", "\\$") for name in names]
    figure = Figure(figsize=(8, 0.6 + 0.25 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(names)), [float(row[bar]) for row in rows[:15]])
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(columns[bar], fontsize=8)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()[out.getvalue().index("<svg"):]


def page(answers) -> str:
    """One self-contained page: each answer as a table, and as bars by its first column of numbers."""
    out = io.StringIO()
    out.write("<!DOCTYPE html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
              "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
              "<title>kshim fleet</title><style>:root{color-scheme:light dark}body{font:15px system-ui;margin:2em auto;max-width:70em;padding:0 1em}"
              "div{overflow-x:auto}table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:left;border-bottom:1px solid #8885}"
              "td.n{text-align:right;font-variant-numeric:tabular-nums}meter{width:12em}</style><h1>kshim fleet</h1>")
    for title, columns, rows in answers:
        numbers = [bool(rows) and all(isinstance(row[at], (int, float)) and not isinstance(row[at], bool) for row in rows)
                   for at in range(len(columns))]
        bar = next((at for at in range(len(columns)) if numbers[at]), None)
        most = max((row[bar] for row in rows), default=0) if bar is not None else 0
        out.write(f"<h2>{html.escape(title)}</h2>" + (_plot(columns, rows, bar) if bar is not None and len(rows) > 1 else "") + "<div><table><tr>" + "".join(f"<th>{html.escape(name)}" for name in columns)
                  + ("<th>" if bar is not None else "") + "</tr>")
        for row in rows:
            out.write("<tr>" + "".join(f"<td{' class=n' if number else ''}>{html.escape(_plain(value))}" for value, number in zip(row, numbers)))
            if bar is not None:
                out.write(f"<td><meter max={float(most) or 1} value={float(row[bar])}></meter>")
        out.write("</table></div>")
    return out.getvalue() + "</html>\n"
