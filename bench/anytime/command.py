"""``python -m bench anytime``: what extracting while exploring costs and saves."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

from bench.anytime.measure import EARLY_S, AnytimeRun, FirstAnswer, measure_first, measure_run
from bench.common.arguments import add_cost, add_extract_time_limit, add_save
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.onnx.model_files import BLOCKS, LIGHT, model_files
from bench.tensat.command import parse_k_values
from relational_tensat.base.errors import check_choice
from relational_tensat.cost import load_profile
from relational_tensat.formats import load_model
from relational_tensat.models import MODELS
from relational_tensat.rules.library import load_rules
from relational_tensat.run.options import Options
from relational_tensat.tensor import Graph

DEFAULT_MODELS = ("bert", "nasrnn", "squeezenet_onnx", "transformer_block")
#: (``--extract-every``, ``--patience``) of the runs of each model.
VARIANTS = ((0, 0), (1, 0), (1, 1), (1, 2), (2, 1))
_ONNX = "_onnx"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("anytime", help="extract while exploring; time to first graphs")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="[bert nasrnn and two of ONNX]")
    parser.add_argument("--k", metavar="K,L", default="1", help="values of k_multi (1)")
    add_cost(parser)
    parser.add_argument("--node-limit", type=int, default=50_000, help="limit (50000)")
    add_extract_time_limit(parser, "run")
    parser.add_argument(
        "--first", action="store_true",
        help="only when an extraction finds its first graphs; [all 13 models]",
    )  # fmt: skip
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print every model at every k_multi.

    Raises:
        UsageError: a model, profile or number that does not exist or cannot be.
    """
    graphs = {name: _load(name) for name in _names(options)}
    k_values, profile, rules = parse_k_values(options.k), load_profile(options.cost), load_rules()
    settings = Options.of(
        cost=options.cost,
        node_limit=options.node_limit,
        time_limit_s=600.0,
        extract_time_limit_s=options.extract_time_limit,
    )
    runs: list[AnytimeRun | FirstAnswer] = []
    _print_header(FirstAnswer if options.first else AnytimeRun)
    for name, graph in graphs.items():
        for k_multi in k_values:
            if options.first:
                runs.append(measure_first(graph, k_multi, rules, profile, settings))
                _print_row(name, runs[-1])
                continue
            for every, patience in VARIANTS:
                variant = settings.replace(extract_every=every, patience=patience)
                runs.append(measure_run(graph, k_multi, rules, profile, variant))
                _print_row(name, runs[-1])
    if options.save:
        report_saved(save(runs, options, RESULTS))
    return 0


def save(
    runs: Sequence[AnytimeRun | FirstAnswer], options: argparse.Namespace, directory: Path
) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file.

    A second save of the same kind on the same day replaces the first.
    """
    kind = "anytime-first" if options.first else "anytime"
    path = directory / f"{kind}-{date.today().isoformat()}.json"
    content = {
        "settings": {
            "k": options.k,
            "cost": options.cost,
            "node_limit": options.node_limit,
            "extract_time_limit_s": options.extract_time_limit,
            "early_s": EARLY_S,
        },
        "runs": [asdict(run) for run in runs],
    }
    return save_result(path, content)


def _names(options: argparse.Namespace) -> Iterable[str]:
    return options.models or (MODELS if options.first else DEFAULT_MODELS)


def _load(name: str) -> Graph:
    """Return one of the 13 models, or one of ``bench onnx``; where both have it, this is NAME_onnx."""
    choices = {*MODELS, *BLOCKS, *(f"{light}{_ONNX}" for light in LIGHT)}
    check_choice("model", name, sorted(choices))
    if name in MODELS:
        return MODELS[name]()
    (path,) = model_files([name.removesuffix(_ONNX)]).values()
    return load_model(path)


def _print_header(kind: type[AnytimeRun] | type[FirstAnswer]) -> None:
    print(" ".join(f"{field.name:>13}" for field in fields(kind)), flush=True)


def _print_row(name: str, run: AnytimeRun | FirstAnswer) -> None:
    values: dict[str, Any] = {**asdict(run), "model": name}
    print(" ".join(f"{_text(key, value):>13}" for key, value in values.items()), flush=True)


def _text(key: str, value: Any) -> str:
    if key == "gap":
        return f"{value:.2%}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)[:22]
