# SPDX-License-Identifier: Apache-2.0
"""python -m kshim.fleet: see the package's own words."""
import argparse
import difflib
import pathlib
import sys

from . import __doc__ as WORDS, questions
from . import _command, _ddl, _duckdb, _ingest, _openmetrics, _requirements, _write


def fail(text: str) -> int:
    print(f"kshim.fleet: error: {text}", file=sys.stderr)
    return 2


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kshim.fleet", description=WORDS, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    ingest = verbs.add_parser("ingest", help="what is new in reports, as tables in a folder of Parquet files")
    ingest.add_argument("paths", nargs="+", metavar="PATH", help="reports and folders of them; *.analyses.jsonl (also .gz, .zst): lines of `kshim analyze --format jsonl`; "
                        "*.json: what `kshim scan` or `kshim analyze` wrote")
    ingest.add_argument("lake", type=pathlib.Path)
    ingest.add_argument("--settle", type=int, default=600, metavar="S", help="leave a report without its end that changed in the last S seconds (600)")
    ask = verbs.add_parser("ask", help="answer one of the questions")
    ask.add_argument("lake", type=pathlib.Path)
    ask.add_argument("question")
    ask.add_argument("values", nargs="*", metavar="NAME=VALUE")
    sql = verbs.add_parser("sql", help="answer a statement of your own")
    sql.add_argument("lake", type=pathlib.Path)
    sql.add_argument("statement")
    report = verbs.add_parser("report", help="one HTML page with the answers of all questions")
    report.add_argument("lake", type=pathlib.Path)
    tables = verbs.add_parser("tables", help="CREATE statements of the tables for another engine")
    tables.add_argument("engine", choices=sorted(_ddl.TYPES))
    tables.add_argument("place", nargs="?", default="s3://BUCKET/lake", help="where the lake lies (Athena, Iceberg)")
    verbs.add_parser("questions", help="list the questions and their parameters")
    requirements = verbs.add_parser("requirements", help="what files ask of a GPU, and whether packages keep what they declare")
    requirements.add_argument("paths", nargs="+", metavar="PATH")
    requirements.add_argument("--to", choices=_requirements.SYSTEMS, default="")
    requirements.add_argument("--verify", action="store_true", help="compare each package with its own declaration")
    requirements.add_argument("--declared", metavar="TEXT", help="compare the files with this text (@FILE) in the notation of --to")
    metrics = verbs.add_parser("openmetrics", help="counts of processes and findings for a monitoring system")
    metrics.add_argument("paths", nargs="+", metavar="PATH")
    for verb in (requirements, metrics):
        verb.add_argument("-o", "--output", default="", help="a file in place of stdout")
    for verb in (ingest, ask, sql, report):
        verb.add_argument("--memory", default="2GB", help="that DuckDB may use (2GB)")
    for verb in (ask, sql):
        verb.add_argument("--format", choices=_write.FORMATS, default="table")
    options = parser.parse_args(arguments)
    known = {question.name: question for question in questions()}
    if options.verb == "tables":
        print("\n".join(_ddl.statements(options.engine, options.place)))
        return 0
    if options.verb == "questions":
        for question in known.values():
            print(f"{question.name}: {question.title}")
            for name, parameter in question.parameters.items():
                print(f"    {name}={parameter.default}    {parameter.meaning}")
        return 0
    try:
        if options.verb == "requirements":
            return _requirements.run(options.to, options.declared, options.verify, options.paths, options.output)
        if options.verb == "openmetrics":
            return _openmetrics.run(options.paths, options.output)
        if options.verb == "ingest":
            done = _ingest.ingest(options.paths, options.lake, options.memory, options.settle)
            print(", ".join(f"{table} {count:,}" for table, count in done.rows.items()) or "nothing new")
            if done.unsettled:
                print(f"{done.unsettled:,} may still grow and are left for later")
            if done.rejected:
                print(f"{done.rejected:,} could not be read: see the table `rejected`")
            if done.reports + done.known + done.unsettled == done.rejected:
                raise _command.Refused("there is no report in what was named", 3)
            return 0
        connection = _duckdb.open_lake(options.lake, options.memory)
        if options.verb == "sql":
            answer = connection.execute(options.statement)
            _write.write(options.statement, [column[0] for column in answer.description], answer.fetchall(), options.format)
            return 0
        if options.verb == "report":
            answers = []
            for question in known.values():
                answer = _duckdb.ask(connection, question)
                answers.append((question.title, [column[0] for column in answer.description], answer.fetchmany(200)))
            sys.stdout.write(_write.page(answers))
            return 0
        if options.question not in known:
            close = difflib.get_close_matches(options.question, known, 1)
            return fail(f"no question `{options.question}`" + (f"; did you mean `{close[0]}`?" if close else f"; there are: {', '.join(known)}"))
        given = dict(value.split("=", 1) if "=" in value else (value, "") for value in options.values)
        question = known[options.question]
        answer = _duckdb.ask(connection, question, given)
        _write.write(question.title, [column[0] for column in answer.description], answer.fetchall(), options.format)
        return 0
    except _command.Refused as refused:
        if str(refused):
            fail(str(refused))
        return refused.status
    except (ValueError, _duckdb.Missing) as error:
        return fail(str(error))
    except Exception as error:  # DuckDB's own: a sentence with the place in the statement
        if type(error).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
            raise
        return fail(str(error))


if __name__ == "__main__":
    sys.exit(main())
