"""``python -m bench conformance``: ONNX's own models, optimized, written and compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from multiprocessing import get_context
from typing import TYPE_CHECKING

from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, report_saved
from relational_tensat.base.errors import UsageError, VerificationError
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from bench.conformance.cases import Case
    from bench.conformance.trial import Outcome

#: Limits of the optimization of one model: enough for rules to meet what it has.
SETTINGS = Options.of(
    cost="t4",
    iterations=4,
    node_limit=1000,
    search="saturation",
    time_limit_s=10.0,
    extract_time_limit_s=10.0,
)
#: A process takes so many models at a time.
_CHUNK = 20


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("conformance", help="optimize ONNX's conformance models")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="parts of the names of models; default: all"
    )
    parser.add_argument("--sample", metavar="N", type=int, help="only so many, drawn by --seed")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of --sample (0)")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="processes (1)")
    parser.add_argument(
        "--limit", metavar="S", type=float, default=60.0, help="seconds for one model (60)"
    )
    add_save(parser, "the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Try the models and print what became of them; 4 if one computes something else, or crashes.

    Raises:
        UsageError: no model has such a name.
    """
    from bench.conformance.cases import all_cases, sampled_cases
    from bench.conformance.report import print_outcomes, save

    cases = all_cases() if options.sample is None else sampled_cases(options.sample, options.seed)
    if options.names:
        cases = [case for case in cases if any(name in case.name for name in options.names)]
        if not cases:
            raise UsageError(f"no conformance model has {options.names[0]!r} in its name")
    outcomes = []
    for outcome in _outcomes(cases, options.jobs, options.limit):
        outcomes.append(outcome)
        if sys.stderr.isatty():
            print(f"\r{len(outcomes)} of {len(cases)}", end="", file=sys.stderr, flush=True)
    print_outcomes(outcomes)
    if options.save:
        report_saved(save(outcomes, SETTINGS, RESULTS, date.today()))
    wrong = any(outcome.status in ("different", "crashed") for outcome in outcomes)
    return VerificationError.exit_code if wrong else 0


def _outcomes(cases: Sequence[Case], jobs: int, limit_s: float) -> Iterator[Outcome]:
    from bench.conformance.trial import try_case

    if jobs == 1:
        yield from (try_case(case, SETTINGS, limit_s) for case in cases)
        return
    tasks = [(case, SETTINGS, limit_s) for case in cases]
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_try, tasks, _CHUNK)


def _try(task: tuple[Case, Options, float]) -> Outcome:
    from bench.conformance.trial import try_case

    return try_case(*task)
