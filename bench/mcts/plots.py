"""The paper's figures, from our runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

from bench.common.plots import DPI, colors, new_figure
from bench.mcts import paper_figures
from bench.mcts.cells import MAINS
from bench.mcts.figures import averages
from bench.mcts.results import COMBINATIONS, Results, outcome, rules_applied, runs_of


def plot_average(models: Sequence[str], cost: str, results: Results, path: Path) -> None:
    """Draw mean speed-up and seconds by main and final extraction (figures 5 and 13)."""
    rows = averages(models, cost, results).rows
    figure, (left, right) = new_figure(1, 2, (11, 4))
    labels = [str(row[0]) for row in rows]
    for axes, column, title in ((left, 1, "cost saved (%)"), (right, 2, "planning (CPU s)")):
        drawn = axes.barh(labels, [row[column] for row in rows], color=colors(len(rows)))
        axes.bar_label(drawn, fmt="%.1f", padding=2)
        axes.invert_yaxis()
        axes.set_title(title)
        axes.margins(x=0.15)
    right.set_xscale("log")
    right.xaxis.set_minor_formatter(lambda value, position: "")
    figure.savefig(path, dpi=DPI)


def plot_searches(models: Sequence[str], cost: str, results: Results, path: Path) -> None:
    """Draw the speed-up of each model, with the published ones as rings (figures 6 and 14)."""
    shown = [c for c in COMBINATIONS if any(outcome(results, m, cost, c) for m in models)]
    figure, axes = new_figure(1, 1, (13, 5))
    width = 0.8 / max(len(shown), 1)
    published_rows = paper_figures.searches(cost)
    for index, (combination, color) in enumerate(zip(shown, colors(len(shown)), strict=True)):
        place = [number + (index - (len(shown) - 1) / 2) * width for number in range(len(models))]
        found = [outcome(results, model, cost, combination) for model in models]
        heights = [one.percent[0] if one else 0.0 for one in found]
        errors = [one.percent[1] if one else 0.0 for one in found]
        axes.bar(place, heights, width, yerr=errors, label=combination.label, color=color)
        rings = [published_rows.get((m, combination.main, combination.final)) for m in models]
        points = [(x, row["percent"]) for x, row in zip(place, rings, strict=True) if row]
        if points:
            axes.plot(
                *zip(*points, strict=True), "o", markerfacecolor="none", color="black", markersize=4
            )
    axes.set_xticks(range(len(models)), models, rotation=25, ha="right")
    axes.set_ylim(bottom=-10)
    axes.set_ylabel("cost saved (%), rings: published speed-up")
    axes.legend(ncols=4, fontsize=8)
    axes.grid(axis="y", alpha=0.25)
    figure.savefig(path, dpi=DPI)


def plot_rules(models: Sequence[str], cost: str, results: Results, path: Path) -> None:
    """Draw which rule was applied how often on which model (figures 7, 8 and 10)."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for label, model, applied in rules_applied(results, models, cost):
        counts.setdefault(label, {})[model] = applied
    rules = sorted({rule for by in counts.values() for applied in by.values() for rule in applied})
    size = (max(6.0, 0.22 * len(rules)), 2.6 * len(counts))
    figure, grid = new_figure(len(counts), 1, size)
    for axes, (label, by_model) in zip(_flat(grid), counts.items(), strict=True):
        cells = [[by_model.get(m, {}).get(rule, nan) for rule in rules] for m in models]
        image = axes.imshow(cells, aspect="auto", cmap="viridis")
        axes.set_yticks(range(len(models)), models, fontsize=7)
        axes.set_xticks(range(len(rules)), rules, rotation=90, fontsize=6)
        axes.set_title(label, fontsize=9)
        figure.colorbar(image, ax=axes, pad=0.01)
    figure.savefig(path, dpi=DPI)


def plot_course(models: Sequence[str], cost: str, results: Results, path: Path) -> None:
    """Draw cost over decisions: the real subgraph's, and (dashed) the best of any rollout."""
    rows = -(-len(models) // 4)
    figure, grid = new_figure(rows, min(4, len(models)), (13, 2.8 * rows))
    places = _flat(grid)
    for axes, model in zip(places, models, strict=False):
        for main, color in zip(MAINS, colors(len(MAINS)), strict=True):
            for run in runs_of(results, model, cost, "mcts", main)[:1]:
                steps = range(len(run["decisions"]) + 1)
                for key, style in (("cost_us", "-"), ("best_us", "--")):
                    costs = [run["before_us"], *(d[key] for d in run["decisions"])]
                    axes.plot(
                        steps, costs, style, color=color, label=main if style == "-" else None
                    )
        for run in runs_of(results, model, cost, "tensat"):
            axes.axhline(run["costs_us"]["ilp"], color="grey", linewidth=1, label="TENSAT")
        axes.set_title(model, fontsize=9)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
    for axes in places[len(models) :]:
        axes.set_axis_off()
    places[0].legend(fontsize=7)
    figure.supxlabel("decisions")
    figure.supylabel("modelled cost (µs)")
    figure.savefig(path, dpi=DPI)


def _flat(grid: Any) -> list[Any]:
    """Return axes as a list, of one too."""
    return list(grid.flat) if hasattr(grid, "flat") else [grid]
