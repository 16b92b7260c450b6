"""Commands on a run's database: ``sql``, ``schema``, ``inspect``, ``explain``, ``view``, ``export``."""

from __future__ import annotations

import csv
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import InputError, UsageError, VerificationError
from relational_tensat.base.outputs import PAGE, Written, check_outputs
from relational_tensat.cli.closed_output import exact, write_line
from relational_tensat.cli.common import add_database, add_json, report
from relational_tensat.cli.parser import Parser, whole_number

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from relational_tensat.cli.database import RunDatabase


@contextmanager
def _opened(path: Path) -> Iterator[RunDatabase]:
    from relational_tensat.cli.database import RunDatabase

    database = RunDatabase(path)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors about its content."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def sql_arguments(parser: Parser) -> None:
    """Declare the flags of ``sql``."""
    add_database(parser)
    parser.add_argument(
        "query", metavar="QUERY",
        help="SQL, or - to read it from standard input; relational-tensat schema DB lists the tables",
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON array of objects")
    form.add_argument("--csv", action="store_true", help="print CSV with a header")


def query(args: argparse.Namespace) -> int:
    """Run a query and print its rows."""
    from relational_tensat.cli.database import print_rows

    with _opened(args.db) as database:
        rows = database.query(sys.stdin.read() if args.query == "-" else args.query)
    if args.csv:  # a file is to have the data as they are
        stream = sys.stdout if sys.stdout.isatty() else exact(sys.stdout)
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(rows.columns)
        writer.writerows(rows.rows)
        return 0
    report(rows.as_objects, lambda console: print_rows(rows, console), as_json=args.json)
    return 0


def schema_arguments(parser: Parser) -> None:
    """Declare the flags of ``schema``."""
    parser.add_argument(
        "db", type=Path, nargs="?", metavar="DB",
        help="a database of run --db [the tables of any]; fleet: the tables of a fleet's ledger; or "
        "options, report, certificate: the JSON schema of a run's options, of what run --json prints, of "
        "what run --certificate writes",
    )  # fmt: skip


def schema(args: argparse.Namespace) -> int:
    """Print the meaning of tables and columns, or the JSON schema of options or reports."""
    if args.db == Path("options"):
        from relational_tensat.base.option import options_schema
        from relational_tensat.cli.parser import json_text
        from relational_tensat.run.options import Options

        sys.stdout.write(json_text(options_schema(Options)))
        return 0
    if args.db == Path("certificate"):
        from relational_tensat.certificate import certificate_schema
        from relational_tensat.cli.parser import json_text

        sys.stdout.write(json_text(certificate_schema()))
        return 0
    if args.db == Path("report"):
        from relational_tensat.cli.parser import json_text
        from relational_tensat.run.result import report_schema

        sys.stdout.write(json_text(report_schema()))
        return 0
    if args.db == Path("fleet"):
        from relational_tensat.cli.schema import ledger_page

        sys.stdout.write(ledger_page())
        return 0
    from relational_tensat.cli.schema import example_schema, schema_page
    from relational_tensat.egraph.schema import read_schema, working_tables

    if args.db is None:
        page = schema_page(example_schema(), working_tables().values())
    else:
        with _opened(args.db) as database:
            page = schema_page(read_schema(database.connection))
    sys.stdout.write(page)
    return 0


def inspect_arguments(parser: Parser) -> None:
    """Declare the flags of ``inspect``."""
    add_database(parser)
    parser.add_argument(
        "--classes", type=whole_number, default=10, metavar="N",
        help="how many e-classes to show [%(default)s]",
    )  # fmt: skip
    add_json(parser)


def inspect(args: argparse.Namespace) -> int:
    """Print sizes, classes, rules and growth."""
    from relational_tensat.cli.database import inspect_database, print_inspection

    with _opened(args.db) as database:
        inspection = inspect_database(database, args.classes)
    report(
        inspection.to_json, lambda console: print_inspection(inspection, console), as_json=args.json
    )
    return 0


def explain_arguments(parser: Parser) -> None:
    """Declare the flags of ``explain``."""
    add_database(parser)
    parser.add_argument(
        "--check", action="store_true",
        help="compute every tensor that a step replaces both ways, on random inputs and weights",
    )  # fmt: skip
    add_json(parser)
    parser.add_argument(
        "--why-not", metavar="RULE", dest="why_not",
        help="show how far this rule's pattern got, and which condition rejected it",
    )  # fmt: skip
    parser.add_argument(
        "--at", default="", metavar="TENSOR",
        help="with --why-not: only where the rule would replace this tensor of the model",
    )  # fmt: skip
    parser.add_argument(
        "--rules", type=Path, action="append", default=[], metavar="PATH",
        help="with --why-not: a rule file or folder to take the rule from (repeatable) "
        "[the run's own rules, then those that ship]",
    )  # fmt: skip


def explain(args: argparse.Namespace) -> int:
    """Print the steps to the result, or why a rule did not fire; 4 where ``--check`` found a difference."""
    for flag, value in (("--at", args.at), ("--rules", args.rules)):
        if value and args.why_not is None:
            raise UsageError(f"{flag} needs --why-not RULE")
    return _steps(args) if args.why_not is None else _why_not(args)


def _steps(args: argparse.Namespace) -> int:
    from relational_tensat.cli.explain_text import explanation_json, print_explanation
    from relational_tensat.explain.explanation import explain
    from relational_tensat.explain.numeric import check_numerically

    with _opened(args.db) as database, _naming(args.db):
        explanation = explain(database.connection)
        check = check_numerically(explanation) if args.check else None
    report(
        lambda: explanation_json(explanation, check),
        lambda console: print_explanation(explanation, check, console),
        as_json=args.json,
    )
    if check is not None and not check.ok:
        more = len(check.failures) - 1
        suffix = f" (and {more} more)" if more else ""
        raise VerificationError(f"{args.db}: {check.failures[0]}{suffix}")
    return 0


def _why_not(args: argparse.Namespace) -> int:
    from relational_tensat.cli.explain_text import print_why_not
    from relational_tensat.explain.why_not.funnel import why_not
    from relational_tensat.rules.library import load_rules

    rules = load_rules(args.rules) if args.rules else None
    with _opened(args.db) as database:
        answers = why_not(database.connection, args.why_not, args.at, rules)

    def show(console: Console) -> None:
        for index, answer in enumerate(answers):
            if index:
                console.print()
            print_why_not(answer, console)

    report(lambda: [answer.to_json() for answer in answers], show, as_json=args.json)
    return 0


def view_arguments(parser: Parser) -> None:
    """Declare the flags of ``view``."""
    add_database(parser)
    parser.add_argument(
        "-o", "--output", type=PAGE, metavar="FILE", help="where to write the page [DB with .html]"
    )
    parser.add_argument(
        "--check", action="store_true",
        help="compute every tensor that a step replaces both ways, and show how they differ",
    )  # fmt: skip
    parser.add_argument(
        "--cost", metavar="SOURCE", default="",
        help="show costs of this source, too, as run --cost names it",
    )  # fmt: skip
    parser.add_argument(
        "--serve", action="store_true",
        help="serve the page on this machine instead, with the whole database behind it, until Ctrl-C",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=whole_number, default=0, metavar="N",
        help="with --serve: listen on this port [any that is free]",
    )  # fmt: skip
    parser.add_argument(
        "--no-browser", action="store_true", help="with --serve: print the address, open nothing"
    )


def view(args: argparse.Namespace) -> int:
    """Write a run's page and print where it is, or serve it."""
    if args.serve and (args.output or args.check or args.cost):
        raise UsageError("--serve writes no page: it goes without --output, --check and --cost")
    with _opened(args.db) as database, _naming(args.db):
        return _serve(database, args) if args.serve else _write(database, args)


def _write(database: RunDatabase, args: argparse.Namespace) -> int:
    from relational_tensat.base.outputs import check_page
    from relational_tensat.cost import open_source
    from relational_tensat.view import collect, write_page

    output = args.output or args.db.with_suffix(".html")
    check_page(output)
    check_outputs([(output, PAGE)], [args.db])
    also = open_source(args.cost) if args.cost else None
    data = collect(database.connection, check=args.check, also=also)
    write_page(data, output)
    write_line(f"{output}: {output.stat().st_size:,} bytes")
    return 0


def _serve(database: RunDatabase, args: argparse.Namespace) -> int:
    from relational_tensat.view.server import Server

    with Server(database.connection, args.port) as server:
        write_line(f"{args.db} at {server.address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if not args.no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def export_arguments(parser: Parser) -> None:
    """Declare the flags of ``export``."""
    add_database(parser)
    parser.add_argument(
        "--egraph-json", type=Written("an e-graph", (".json",)), required=True, metavar="FILE",
        help="the file to write",
    )  # fmt: skip


def export(args: argparse.Namespace) -> int:
    """Write a run's e-graph as a file and report how large it is."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.extract.interchange import egraph_json, save_egraph_json

    with _opened(args.db) as database:
        content = egraph_json(database)
    save_egraph_json(content, args.egraph_json)
    stdout_console().print(
        f"{args.egraph_json}: {len(content['nodes']):,} e-nodes in "
        f"{len(content['class_data']):,} e-classes, {len(content['root_eclasses'])} to extract"
    )
    return 0
