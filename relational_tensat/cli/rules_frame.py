"""What commands share that take minutes: reports meanwhile, collecting results, printing or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relational_tensat.cli.parser import Parser, whole_number

if TYPE_CHECKING:
    from rich.console import Console

_Result = TypeVar("_Result")

_SHOWN_EVERY_S = 5.0


def watched(results: Iterable[_Result], report: Callable[[int, _Result], str]) -> Iterator[_Result]:
    """Pass results on; now and then, write a line on standard error.

    Args:
        say: what to write, given how many there are and the last one.
    """
    shown = time.monotonic()
    for count, result in enumerate(results, start=1):
        if time.monotonic() - shown > _SHOWN_EVERY_S:
            shown = time.monotonic()
            sys.stderr.write(f"{report(count, result)}\n")
        yield result


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
        help="of the operands that are drawn [%(default)s]",
    )  # fmt: skip


def add_json(parser: Parser, content: str = "one JSON object, nothing else") -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help=f"print {content}")


def collect(
    results: Iterable[_Result], describe: Callable[[int, _Result], str], *, as_json: bool
) -> list[_Result]:
    """Return all results; now and then, unless JSON is asked for, describe how far it is.

    Args:
        describe: what to write, given how many there are and the last one.
    """
    return list(results if as_json else watched(results, describe))


def report(content: Callable[[], Any], show: Callable[[Console], None], *, as_json: bool) -> None:
    """Print the content as one line of JSON, or let it be shown on the console."""
    if as_json:
        sys.stdout.write(json.dumps(content()) + "\n")
        return
    from relational_tensat.cli.console import stdout_console

    show(stdout_console())
