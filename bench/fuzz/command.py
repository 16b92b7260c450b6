"""``python -m bench fuzz``: random ONNX graphs of every element type, optimized, written and compared."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.common.result_file import save_result
from relational_tensat.base.errors import VerificationError
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from bench.fuzz.trial import Outcome

RESULTS = Path(__file__).parents[1] / "results"
#: Limits of the optimization of one model: enough for rules to meet what it has.
SETTINGS = Options.of(
    cost="t4",
    iterations=4,
    node_limit=5000,
    search="saturation",
    time_limit_s=20.0,
    extract_time_limit_s=20.0,
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("fuzz", help="optimize random graphs of every element type")
    add = parser.add_argument
    add("count", metavar="N", type=int, nargs="?", default=10_000, help="graphs (10000)")
    add("--together", metavar="N", type=int, default=20, help="graphs in one model (20)")
    add("--first", metavar="N", type=int, default=0, help="index of the first graph (0)")
    add("--seed", metavar="N", type=int, default=0, help="of all that is drawn (0)")
    add("--save", action="store_true", help="keep the table in bench/results/")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Try the graphs and print what became of them; 4 if one computes something else, or crashes."""
    from bench.fuzz.trial import try_graphs

    outcomes = []
    for index in range(options.first, options.first + options.count, options.together):
        n_graphs = min(options.together, options.first + options.count - index)
        outcome = try_graphs(options.seed, index, n_graphs, SETTINGS)
        outcomes.append(outcome)
        for line in _problems(outcome):
            print(line, flush=True)
        if sys.stderr.isatty():
            print(f"\r{index + n_graphs} graphs", end="", file=sys.stderr, flush=True)
    content = summary(outcomes)
    print(*(f"{key}: {value}" for key, value in content.items()), sep="\n")
    if options.save:
        path = RESULTS / f"fuzz-{date.today().isoformat()}.json"
        settings = {"graphs": options.count, "together": options.together, "seed": options.seed}
        print(f"saved {save_result(path, {'settings': settings, **content})}", file=sys.stderr)
    wrong = any(outcome.status in ("different", "crashed") for outcome in outcomes)
    return VerificationError.exit_code if wrong else 0


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the counts: of graphs by what became of their model, of rejections, of rules used."""
    from bench.fuzz.trial import STATUSES

    graphs: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for outcome in outcomes:
        graphs[outcome.status] += outcome.n_graphs
        rules.update(outcome.rules or {})
    return {
        "graphs": {status: graphs[status] for status in STATUSES},
        "models": len(outcomes),
        "models unchanged": sum(outcome.unchanged for outcome in outcomes),
        "rejections": [why for outcome in outcomes for why in outcome.rejections],
        "e-nodes by rule": dict(rules.most_common()),
    }


def _problems(outcome: Outcome) -> list[str]:
    last = outcome.index + outcome.n_graphs - 1
    lines = [f"rejected: graphs {outcome.index} to {last}: {why}" for why in outcome.rejections]
    if outcome.status not in ("equal", "rounding"):
        lines.append(f"{outcome.status}: graphs {outcome.index} to {last}: {outcome.reason}")
    return lines
