"""``python -m bench mutations``: damaged files, and what the command line says about each; wrong rules."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.mutations.runs import INTERNAL_ERROR, run_mutations
from bench.mutations.seeds import seed_rules, write_seeds
from bench.mutations.verdicts import judged
from relational_tensat.base.process import processors


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("mutations", help="damage files at random; count internal errors")
    parser.add_argument("count", metavar="N", type=int, nargs="?", default=2000, help="(2000)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all that is drawn (0)")
    parser.add_argument(
        "--rules", action="store_true", help="judge rules that are wrong, and right ones, instead"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Damage and run; 1 if some damage made an internal error, or more than a line.

    With ``--rules``, 1 if a wrong rule is found to be sound, or a right one is not.
    """
    if options.rules:
        lines, mistakes = judged(options.seed, processors())
        print("\n".join([*mistakes, *lines]))
        return 1 if mistakes else 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name)
        seeds = write_seeds(folder, seed_rules())
        outcomes = run_mutations(seeds, folder, options.count, options.seed)
    for failure in outcomes.failures:
        print(f"{failure.name} {failure.index}: exit {failure.code}: {' '.join(failure.arguments)}")
        print("    " + failure.text.strip().replace("\n", "\n    "))
    print(", ".join(f"exit {code}: {count}" for code, count in sorted(outcomes.codes.items())))
    return INTERNAL_ERROR if outcomes.failures else 0
