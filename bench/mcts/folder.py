"""The folder that ``python -m bench mcts`` leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.common.report import Report, origin_of
from bench.mcts.figures import figures_of
from bench.mcts.plots import plot_average, plot_course, plot_rules, plot_searches
from bench.mcts.results import Results
from bench.mcts.runs import Settings
from bench.mcts.tables import tables_of

#: By the beginning of a table's name, what draws it.
_PLOTS: Mapping[str, Callable[[Sequence[str], str, Results, Path], None]] = {
    "average-": plot_average,
    "rules-": plot_rules,
    "decisions-": plot_course,
    "goals-": plot_searches,
}


def report_of(
    models: Sequence[str], costs: Sequence[str], results: Results, settings: Settings
) -> Report:
    """Return the tables and plots of runs: ``mcts.md`` and its like."""
    origin = origin_of(settings)
    tables = [*tables_of(models, costs, results), *figures_of(models, costs, results)]
    names = {table.name for table in tables}
    plots = {
        f"{name}{cost}": partial(plot, models, cost, results)
        for name, plot in _PLOTS.items()
        for cost in costs
        if f"{name}{cost}" in names
    }
    runs = [{**asdict(cell), **result} for cell, result in results.items() if "error" not in result]
    return Report("mcts", _introduction(origin, results), tables, plots, origin, runs)


def _introduction(origin: Mapping[str, Any], results: Results) -> str:
    settings, machine = origin["settings"], origin["machine"]
    loads = [result["load_average"] for result in results.values() if "load_average" in result]
    commits = sorted({str(result["commit"]) for result in results.values() if "commit" in result})
    left = sum("error" in result for result in results.values())
    return (
        "# The tree search paper's tables, from runs of this system\n\n"
        "Hartmann, He, Yoneki: Optimizing Tensor Computation Graphs with Equality Saturation and Monte"
        " Carlo Tree Search, PACT '24.\n"
        f"{origin['date']}, runs by commit {', '.join(commits)}; {machine['cpu']},"
        f" {machine['cores']} cores, one thread; rules: {settings['rules']}; subgraphs of"
        f" {settings['node_limit']:,} e-nodes, 128 rollouts a decision; at most"
        f" {settings['time_limit_s']:g} s a search. Load average when runs began:"
        f" {min(loads, default=0):.1f} to {max(loads, default=0):.1f}."
        f" {len(loads)} runs; {left} that were asked for are not here. '-': not known.\n"
    )
