"""Arguments that several commands take, declared once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypeVar

from bench.common.rule_sets import RULE_SETS
from bench.models import MODELS, TENSAT_MODELS
from relational_tensat.base.errors import UsageError, check_choice

Number = TypeVar("Number", int, float)


def add_models(parser: argparse.ArgumentParser) -> None:
    """Declare ``MODEL…``: of the 13 models; ``chosen_models`` reads it."""
    parser.add_argument("models", nargs="*", metavar="MODEL", help="[all 13 models]")


def chosen_models(options: argparse.Namespace) -> Sequence[str]:
    """Return the models that were asked for.

    Raises:
        UsageError: one does not exist; names the nearest.
    """
    return [check_choice("model", name, MODELS) for name in options.models or MODELS]


def check_positive(value: Number, flag: str) -> Number:
    """Return a number that has to be above 0.

    Raises:
        UsageError: it is not.
    """
    if not value > 0:
        raise UsageError(f"{flag} {value}, expected a number above 0")
    return value


def add_rules(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare ``--rules``: a set of ``rule_sets``."""
    parser.add_argument("--rules", choices=list(RULE_SETS), default=default, help=f"({default})")


def add_cost(parser: argparse.ArgumentParser, default: str = "t4") -> None:
    """Declare ``--cost``: a profile, by name or file."""
    parser.add_argument("--cost", metavar="PROFILE", default=default, help=f"({default})")


def add_extract_time_limit(parser: argparse.ArgumentParser, subject: str) -> None:
    """Declare ``--extract-time-limit``: wall seconds of one ``subject``."""
    parser.add_argument(
        "--extract-time-limit", metavar="S", type=float, default=60.0, help=f"of one {subject} (60)"
    )


def add_save(parser: argparse.ArgumentParser, what: str = "the runs") -> None:
    """Declare ``--save``: whether ``what`` was measured is kept with the others."""
    parser.add_argument("--save", action="store_true", help=f"keep {what} in bench/results/")


def parse_models(text: str | None) -> list[str]:
    """Return the names in a comma-separated list, all nine for None.

    Raises:
        UsageError: one is not a model of TENSAT's; names the nearest.
    """
    if text is None:
        return list(TENSAT_MODELS)
    return [check_choice("model", name.strip(), TENSAT_MODELS) for name in text.split(",")]


def parse_k_values(text: str) -> list[int]:
    """Return the numbers in a comma-separated list.

    Raises:
        UsageError: one is not a whole number, or negative.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"--k {text!r}, expected whole numbers separated by commas")
    return [int(part) for part in parts]
