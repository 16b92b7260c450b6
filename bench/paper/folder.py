"""The folder that ``python -m bench paper`` leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench.common.report import Report, origin_of
from bench.paper.figures import figures_of
from bench.paper.plots import plot_figure_6, plot_figure_7, plot_table_1
from bench.paper.results import Results
from bench.paper.runs import Settings
from bench.paper.tables import tables_of

#: By table, as the command knows it: how its files are called, and what draws it.
_PLOTS: Mapping[str, tuple[str, Callable[[Sequence[str], Results, Path], None]]] = {
    "1": ("table1", plot_table_1),
    "figure6": ("figure6", plot_figure_6),
    "figure7": ("figure7", plot_figure_7),
}


def report_of(
    names: Sequence[str], models: Sequence[str], results: Results, settings: Settings
) -> Report:
    """Return the tables and plots of runs: ``paper.md`` and its like."""
    origin = origin_of(settings)
    return Report(
        "paper",
        _introduction(origin),
        [*tables_of(names, models, results), *figures_of(names, models, results)],
        {
            file: partial(plot, models, results)
            for name, (file, plot) in _PLOTS.items()
            if name in names
        },
        origin,
        [{**asdict(cell), **result} for cell, result in results.items()],
    )


def _introduction(origin: Mapping[str, Any]) -> str:
    settings, machine = origin["settings"], origin["machine"]
    return (
        "# The paper's tables, from runs of this system\n\n"
        f"{origin['date']}, commit {origin['commit']}; {machine['cpu']}, {machine['cores']} cores;"
        f" costs of the profile {settings['cost']}; at most {settings['time_limit_s']:g} s for each"
        f" exploration, extraction and sequential search, {settings['iterations']} iterations,"
        f" {settings['node_limit']:,} e-nodes. Load average of the last 15 minutes:"
        f" {origin['load_average'][2]}; exploration and extraction are limited in wall seconds, so other"
        " work on the machine makes time-outs. '-': not known.\n"
    )
