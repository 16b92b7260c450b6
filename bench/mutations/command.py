"""``python -m bench mutations``: damaged files, and what the command line says about each."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.mutations.running import INTERNAL_ERROR, run_mutations
from bench.mutations.seeds import seed_rules, write_seeds


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("mutations", help="damage files at random; count internal errors")
    parser.add_argument("count", metavar="N", type=int, nargs="?", default=2000, help="(2000)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all that is drawn (0)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Damage and run; 1 if some damage made an internal error, or more than a line."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name)
        seeds = write_seeds(folder, seed_rules())
        outcomes = run_mutations(seeds, folder, options.count, options.seed)
    for failure in outcomes.failures:
        print(f"{failure.name} {failure.index}: exit {failure.code}: {' '.join(failure.arguments)}")
        print("    " + failure.text.strip().replace("\n", "\n    "))
    print(", ".join(f"exit {code}: {count}" for code, count in sorted(outcomes.codes.items())))
    return INTERNAL_ERROR if outcomes.failures else 0
