"""``python -m bench tensat``: the nine models of TENSAT, beside TENSAT's own figures."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from bench.common.arguments import add_cost, add_extract_time_limit, add_save, check_positive
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.common.rule_sets import RULE_SETS
from bench.tensat.comparison import compare
from bench.tensat.measure import Run, Settings, measure
from bench.tensat.peer import load_peer_runs
from relational_tensat.base.errors import UsageError, check_choice
from relational_tensat.base.option import choices
from relational_tensat.cost import load_profile
from relational_tensat.extract import ExtractionOptions
from relational_tensat.models import TENSAT_MODELS

#: Named rule sets: TASO's taken as they are (the peer's, unsound ones included), and ours.
_EXPLORED_WITH = ("taso", "shipped")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("tensat", help="optimize TENSAT's nine models")
    parser.add_argument("--models", metavar="A,B", help="only these; default: all nine")
    parser.add_argument("--k", metavar="K,L", default="1,2", help="values of k_multi (1,2)")
    parser.add_argument("--rules", choices=_EXPLORED_WITH, default="taso", help="rule set (taso)")
    add_cost(parser, "tensat_t4")
    parser.add_argument("--iterations", type=int, default=15, help="limit (15)")
    parser.add_argument("--node-limit", type=int, default=50_000, help="limit (50000)")
    parser.add_argument(
        "--extractor", choices=choices(ExtractionOptions, "extractor"), default="ilp", help="(ilp)"
    )
    add_extract_time_limit(parser, "run")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the tables")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure every model at every k_multi and print the runs.

    Raises:
        UsageError: a model, profile or number that does not exist or cannot be.
    """
    models = parse_models(options.models)
    k_values = parse_k_values(options.k)
    settings = Settings(
        rules=RULE_SETS[options.rules](),
        profile=load_profile(options.cost),
        iterations=check_positive(options.iterations, "--iterations"),
        node_limit=check_positive(options.node_limit, "--node-limit"),
        extractor=options.extractor,
        extract_time_limit_s=check_positive(options.extract_time_limit, "--extract-time-limit"),
    )
    runs = _measure_all(models, k_values, settings)
    if options.json:
        print(json.dumps({"runs": [run.as_json() for run in runs]}, indent=2))
    else:
        print(compare(runs, load_peer_runs()))
    if options.save:
        report_saved(save(runs, options, RESULTS))
    return 0


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


def save(runs: Sequence[Run], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file.

    A second save of the same rules on the same day replaces the first.
    """
    path = directory / f"tensat-{date.today().isoformat()}-{options.rules}.json"
    content = {
        "settings": {
            key: value
            for key, value in sorted(vars(options).items())
            if key not in ("command", "run", "json", "save")
        },
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    return save_result(path, content)


def _measure_all(models: Sequence[str], k_values: Sequence[int], settings: Settings) -> list[Run]:
    runs = []
    for model in models:
        graph = TENSAT_MODELS[model]()
        for k_multi in k_values:
            print(f"{model}, k_multi={k_multi} ...", file=sys.stderr, flush=True)
            runs.append(measure(graph, k_multi, settings))
    return runs
