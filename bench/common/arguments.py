"""Arguments that several commands take, declared once."""

from __future__ import annotations

import argparse


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
