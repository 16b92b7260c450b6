"""Plots: what the cheapest graph cost over CPU seconds, a panel for each model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.common.plots import DPI, colors, new_figure
from bench.search.measure import SEARCHES
from bench.search.search_run import SearchRun

_COLUMNS = 4


def plot_costs(runs: Sequence[SearchRun], path: Path) -> None:
    """Draw each run as a line of steps; of several with the same search, all in one colour."""
    models = list(dict.fromkeys(run.model for run in runs))
    columns = min(_COLUMNS, len(models))
    rows = -(-len(models) // columns)
    figure, grid = new_figure(rows, columns, (4 * columns + 1, 3 * rows + 1))
    panels = [grid] if rows * columns == 1 else list(grid.flat)
    color_of = dict(zip(SEARCHES, colors(len(SEARCHES)), strict=True))
    for axes, model in zip(panels, models, strict=False):
        own = [run for run in runs if run.model == model]
        end_s = max(run.cpu_s for run in own)
        labelled: set[str] = set()
        for run in own:
            label = None if run.search in labelled else run.search
            labelled.add(run.search)
            seconds = [0.0, *(at_s for at_s, _, _ in run.moments), end_s]
            costs_us = [run.cost_before_us, *(cost_us for _, cost_us, _ in run.moments)]
            axes.step(
                seconds, [*costs_us, costs_us[-1]], where="post", label=label, lw=1,
                color=color_of[run.search],
            )  # fmt: skip
        axes.set_title(f"{model}, original {own[0].cost_before_us:,.1f} µs", fontsize=9)
        axes.set_xlabel("CPU s", fontsize=8)
        axes.set_ylabel("cheapest graph (µs)", fontsize=8)
        least = min(run.cost_after_us for run in own)
        axes.set_ylim(0.98 * least, min(1.5 * least, 1.02 * own[0].cost_before_us))
        axes.legend(fontsize=7)
    for axes in panels[len(models) :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=DPI)
