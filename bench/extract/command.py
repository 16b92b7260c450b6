"""``python -m bench extract``: extractors beside each other, on e-graphs of every kind."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bench.common.arguments import add_save, check_positive
from bench.common.result_file import RESULTS, path_of_settings, report_saved, save_result
from bench.extract.ablation import Ablation, ablation_tables
from bench.extract.egraphs import CYCLE_FILTERS, EXPLORED_WITH, Exploration
from bench.extract.instances import ModelSource, Source, gym_sources, planted_sources
from bench.extract.kept import kept_sources
from bench.extract.methods import DEFAULT_METHODS, METHODS
from bench.extract.report import details, family_tables, summary
from bench.extract.run import AblationTask, Group, Limits, Row, run_ablations, run_groups
from bench.extract.table5 import table_5, unfiltered
from bench.models import MODELS
from relational_tensat.base.errors import UsageError, check_choice

EGRAPHS = Path(__file__).parents[1] / "egraphs"

_FAMILIES = ("models", "gym", "planted")

#: What ``--quick`` runs instead of everything, in about a minute.
_QUICK: dict[str, Any] = {
    "models": ["bert", "squeezenet", "vgg19", "resnet50"], "k": [1], "planted": [100, 300],
    "time_limit": 5.0, "paper_time_limit": 3.0,
}  # fmt: skip
_FULL: dict[str, Any] = {
    "models": list(MODELS), "k": [1, 2, 3], "planted": [100, 1_000, 10_000],
    "time_limit": 60.0, "paper_time_limit": 5.0,
}  # fmt: skip
_ABLATION_LIMIT_S = 5.0
#: Together they take about a quarter of an hour, what is begun last included.
_BUDGET_S, _ABLATION_BUDGET_S = 540.0, 240.0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("extract", help="extractors on e-graphs of every kind")
    add = parser.add_argument
    add("--quick", action="store_true", help="a few small e-graphs, about a minute")
    add("--models", nargs="*", metavar="MODEL", help="only these; none after it: no models")
    add("--k", nargs="+", type=int, metavar="K", help="values of k_multi (1 2 3)")
    add("--rules", choices=EXPLORED_WITH, default="shipped", help="to explore with (shipped)")
    add("--cycle-filter", choices=CYCLE_FILTERS, default="efficient", help="(efficient)")
    add("--cost", metavar="PROFILE", default="tensat_t4", help="of the models (tensat_t4)")
    add("--node-limit", type=int, default=50_000, help="of exploration (50000)")
    add("--explore-time-limit", type=float, default=60.0, metavar="S", help="(60)")
    add("--egraphs", type=Path, default=EGRAPHS, metavar="FOLDER", help="keeps explored e-graphs")
    add("--fresh", action="store_true", help="explore again what the folder has")
    add("--gym", type=Path, metavar="FOLDER", help="e-graph files, as extraction-gym's data/")
    add("--planted", nargs="*", type=int, metavar="N", help="sizes (100 1000 10000)")
    add("--seed", type=int, default=0, help="of the planted e-graphs (0)")
    add("--methods", nargs="+", choices=METHODS, default=list(DEFAULT_METHODS), metavar="METHOD",
        help=f"of {', '.join(METHODS)}")  # fmt: skip
    add("--no-table5", action="store_true", help="without the cyclic e-graphs of TENSAT's table 5")
    add("--ablation", action="store_true", help="leave out each technique of ours in turn, instead")
    add(
        "--time-limit",
        type=float,
        metavar="S",
        help="of one extraction of ours (60; 5 of an ablation)",
    )
    add("--paper-time-limit", type=float, metavar="S", help="of one of the papers' programs (5)")
    add(
        "--budget",
        type=float,
        metavar="S",
        help="no e-graph is begun later (540; 240 of an ablation)",
    )
    add("--threads", type=int, default=1, help="of HiGHS (1)")
    add("--jobs", type=int, default=2, help="e-graphs at a time, each in a process (2)")
    add("--details", action="store_true", help="also every cost, bound, gap and second on a line")
    add("--json", action="store_true", help="print JSON in place of the tables")
    add_save(parser, "the results")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, print, and save what was asked for; 4 where answers contradict each other.

    Raises:
        UsageError: a model or number that does not exist or cannot be.
        InputError: a folder or file that cannot be used.
    """
    load_before = os.getloadavg()[0]
    asked_for_models = options.models is not None
    if options.ablation and options.time_limit is None:
        options.time_limit = _ABLATION_LIMIT_S
    if options.budget is None:
        options.budget = _ABLATION_BUDGET_S if options.ablation else _BUDGET_S
    for name, value in (_QUICK if options.quick else _FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    _check(options)
    deadline = time.time() + options.budget
    limits = Limits(options.time_limit, options.paper_time_limit, options.threads, deadline)
    if options.ablation:
        tasks = [
            AblationTask(source, limits)
            for source in _to_ablate(options, from_options=asked_for_models)
        ]
        ablations = list(run_ablations(tasks, options.jobs))
        names = [task.source.name for task in tasks]
        return _finish_ablation(ablations, names, options, load_before)
    groups = _groups(options, limits)
    rows = list(run_groups(groups, options.jobs))
    names = [source.name for group in groups for source in group.sources]
    late_names = [name for name in names if name not in {row["instance"] for row in rows}]
    return _finish(rows, late_names, options, load_before)


def save(content: dict[str, Any], options: argparse.Namespace, kind: str, folder: Path) -> Path:
    """Write results with their settings, machine, versions and commit; return the file.

    A second save of the same settings on the same day replaces the first, no other does.
    """
    variant = "-cyclic" * (options.cycle_filter == "none") + "-quick" * options.quick
    path = folder / f"{kind}-{date.today().isoformat()}-{options.rules}{variant}.json"
    settings = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in sorted(vars(options).items())
        if key not in ("command", "run", "json", "save", "egraphs", "details")
    }
    return save_result(path_of_settings(path, settings), {"settings": settings, **content})


def _finish(
    rows: list[Row], late_names: list[str], options: argparse.Namespace, load_before: float
) -> int:
    rows = sorted(rows, key=lambda row: _FAMILIES.index(row["family"]))
    content: dict[str, Any] = {
        "load_average": _load(load_before),
        "not_run": late_names,
        "rows": [
            {**row, "answers": [answer.as_json() for answer in row["answers"]]} for row in rows
        ],
    }
    if options.json:
        print(json.dumps(content, indent=1))
    else:
        parts = [
            family_tables(rows, options.methods),
            summary(rows, options.methods),
            table_5(rows),
        ]
        if late_names:
            parts.append(f"not run, the time of --budget was over: {', '.join(late_names)}")
        if options.details:
            parts.append(details(rows))
        print("\n\n".join(part for part in parts if part))
    if options.save:
        report_saved(save(content, options, "extract", RESULTS))
    return _exit_code((row["instance"], row["contradictions"]) for row in rows)


def _finish_ablation(
    ablations: list[Ablation],
    names: list[str],
    options: argparse.Namespace,
    load_before: float,
) -> int:
    late_names = sorted(set(names) - {ablation.instance for ablation in ablations})
    content: dict[str, Any] = {
        "load_average": _load(load_before),
        "not_run": late_names,
        "ablations": [ablation.as_json() for ablation in ablations],
    }
    print(json.dumps(content, indent=1) if options.json else ablation_tables(ablations))
    if options.save:
        report_saved(save(content, options, "extract-ablation", RESULTS))
    return _exit_code((ablation.instance, ablation.contradictions) for ablation in ablations)


def _load(before: float) -> dict[str, float]:
    """Return how busy the machine was: limits are wall seconds, and others may use its cores."""
    return {"before": before, "after": os.getloadavg()[0]}


def _exit_code(contradictions_by_instance: Iterable[tuple[str, Sequence[str]]]) -> int:
    code = 0
    for instance, contradictions in contradictions_by_instance:
        for contradiction in contradictions:
            print(f"contradiction in {instance}: {contradiction}", file=sys.stderr)
            code = 4
    return code


def _groups(options: argparse.Namespace, limits: Limits) -> list[Group]:
    """Return what to run: a group per file, per planted kind, and per model; quick ones first."""
    methods = tuple(options.methods)
    parts: list[list[Source]] = []
    if options.gym is not None:
        parts += [[source] for source in gym_sources(options.gym)]
    by_kind: dict[str, list[Source]] = {}
    for source in planted_sources(sorted(options.planted), options.seed):
        by_kind.setdefault(source.kind, []).append(source)
    parts += by_kind.values()
    for model in options.models:
        explorations = [_exploration(options, model, k) for k in sorted(options.k)]
        cyclic = [] if options.no_table5 else unfiltered(explorations)
        for batch in (explorations, cyclic):
            if batch:
                parts.append([ModelSource(x, options.egraphs, options.fresh) for x in batch])
    return [Group(tuple(part), methods, limits) for part in parts]


def _to_ablate(options: argparse.Namespace, *, from_options: bool) -> list[Source]:
    """Return the e-graphs of the ablation: those that were asked for, or the kept ones."""
    if not from_options:
        return kept_sources(options.egraphs, fresh=options.fresh)
    pairs = [(model, k) for model in options.models for k in options.k]
    sources: list[Source] = [
        ModelSource(_exploration(options, model, k), options.egraphs, options.fresh)
        for model, k in pairs
    ]
    sources += planted_sources(options.planted, options.seed)
    return [*sources, *(gym_sources(options.gym) if options.gym is not None else [])]


def _exploration(options: argparse.Namespace, model: str, k_multi: int) -> Exploration:
    return Exploration(
        model=model,
        k_multi=k_multi,
        rules=options.rules,
        cycle_filter=options.cycle_filter,
        cost=options.cost,
        node_limit=options.node_limit,
        time_limit_s=options.explore_time_limit,
    )


def _check(options: argparse.Namespace) -> None:
    for model in options.models:
        check_choice("model", model, MODELS)
    for flag in (
        "budget",
        "time_limit",
        "paper_time_limit",
        "explore_time_limit",
        "node_limit",
        "jobs",
        "threads",
    ):
        check_positive(getattr(options, flag), f"--{flag.replace('_', '-')}")
    for k_multi in options.k:
        if k_multi < 0:
            raise UsageError(f"--k {k_multi}, expected 0 or more")
    for size in options.planted:
        if size < 1:
            raise UsageError(f"--planted {size}, expected a number of e-nodes, at least 1")
