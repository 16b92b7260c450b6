"""Arguments that several commands have, and how they answer: with tables or as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relational_tensat.cli.parser import Parser, dimensions, whole_number

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

_Result = TypeVar("_Result")

_SHOWN_EVERY_S = 5.0


def add_database(parser: Parser) -> None:
    """Declare the database that a command reads."""
    parser.add_argument("db", type=Path, metavar="DB", help="a database of run --db")


def add_model_files(parser: Parser, nargs: str) -> None:
    """Declare the models of a command that takes many; ``nargs`` as argparse has it."""
    parser.add_argument(
        "models", nargs=nargs, metavar="MODEL",
        help="a model, a folder (all .onnx files below it), or a quoted pattern such as 'models/*.onnx'",
    )  # fmt: skip


def add_dims(parser: Parser) -> None:
    """Declare ``--dim``."""
    parser.add_argument(
        "--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…",
        help="sizes of a model's dynamic dimensions",
    )  # fmt: skip


def add_rule_files(parser: Parser, flag: str, metavar: str, purpose: str = "") -> None:
    """Declare the repeatable flag that names rule files; ``purpose`` is put before its help."""
    parser.add_argument(
        flag, type=Path, action="append", default=[], metavar=metavar,
        help=f"{purpose}a rule file or folder, instead of the rules that ship (repeatable)",
    )  # fmt: skip


def add_seed(parser: Parser) -> None:
    """Declare ``--seed``."""
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N",
        help="seed of the random operands [%(default)s]",
    )  # fmt: skip


def add_json(parser: Parser, content: str = "one JSON object, nothing else") -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help=f"print {content}")


def add_quiet(parser: Parser) -> None:
    """Declare ``--quiet``, of a command that shows progress."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


def collect(
    results: Iterable[_Result],
    describe: Callable[[int, _Result], str],
    args: argparse.Namespace,
) -> list[_Result]:
    """Return all results; now and then, unless JSON or quiet is asked for, describe how far it is.

    Args:
        describe: returns the line to write, given how many results there are and the last one.
    """
    return list(results if args.json or args.quiet else _watched(results, describe))


def _watched(
    results: Iterable[_Result], describe: Callable[[int, _Result], str]
) -> Iterator[_Result]:
    shown = time.monotonic()
    for count, result in enumerate(results, start=1):
        if time.monotonic() - shown > _SHOWN_EVERY_S:
            shown = time.monotonic()
            sys.stderr.write(f"{describe(count, result)}\n")
        yield result


def report(content: Callable[[], Any], show: Callable[[Console], None], *, as_json: bool) -> None:
    """Print the content as one line of JSON, or let it be shown on the console."""
    if as_json:
        sys.stdout.write(json.dumps(content(), allow_nan=False, default=str) + "\n")
        return
    from relational_tensat.cli.console import stdout_console

    show(stdout_console())
