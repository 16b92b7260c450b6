"""The plots of ``bench mirage``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.common.plots import DPI, new_figure
from bench.mirage.measure import MirageRun, SearchRun

_ONE, _MORE = "#9ecae1", "#1f6fb4"
_COLORS = ("#1f6fb4", "#d9730d", "#2f8f4e", "#8a5cb8", "#b03a48", "#777777")


def plot_runs(runs: Sequence[MirageRun], path: Path) -> None:
    """Draw the modelled ratio and the CPU seconds of each benchmark, by how many kernels it may have."""
    names = list(dict.fromkeys(run.search.case for run in runs))
    limits = sorted({run.search.max_kernels for run in runs})
    figure, (upper, lower) = new_figure(2, 1, (13, 8))
    width = 0.8 / len(limits)
    for number, limit in enumerate(limits):
        mine = {run.search.case: run for run in runs if run.search.max_kernels == limit}
        places = [names.index(name) + (number - (len(limits) - 1) / 2) * width for name in mine]
        label = f"{limit} kernel{'s' if limit > 1 else ''} at most"
        color = _MORE if limit == limits[-1] else _ONE
        ratios = [run.ratio if run.kernels else 0.0 for run in mine.values()]
        upper.bar(places, ratios, width, label=label, color=color)
        lower.bar(places, [run.cpu_s for run in mine.values()], width, label=label, color=color)
    upper.axhline(1.0, color="black", linewidth=0.8)
    upper.set_ylabel("time of libraries / of the best")
    upper.set_title(
        "Both modelled, for an A100: a kernel for each operator, and the best that was found"
    )
    lower.axhline(60.0, color="black", linewidth=0.8, linestyle="--", label="goal: 60 s")
    lower.set_yscale("log")
    lower.set_ylabel("CPU s of search, sizes, tests")
    for axes in (upper, lower):
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=DPI)


def plot_searches(runs: Sequence[SearchRun], title: str, path: Path) -> None:
    """Draw CPU seconds over operators in a block, a line for each means that was off."""
    runs = [run for run in runs if not run.is_left_out]
    figure, axes = new_figure(1, 1, (8, 5))
    lines = list(dict.fromkeys((run.disabled, run.processes) for run in runs))
    for number, (means, processes) in enumerate(lines):
        mine = [run for run in runs if (run.disabled, run.processes) == (means, processes)]
        color = _COLORS[number % len(_COLORS)]
        operators = [run.max_operators for run in mine]
        label = f"without {', '.join(means)}" if means else "with all means"
        label += f", {processes} processes" if processes > 1 else ""
        axes.plot(operators, [run.search_cpu_s for run in mine], label=label, color=color)
        for run in mine:
            face = color if run.is_complete else "white"
            axes.plot(run.max_operators, run.search_cpu_s, "o", color=color, markerfacecolor=face)
    axes.set_yscale("log")
    axes.set_xticks(sorted({run.max_operators for run in runs}))
    axes.set_xlabel("operators in a block at most")
    axes.set_ylabel("CPU seconds of the search; hollow: ended by the limit of time")
    axes.set_title(title)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=DPI)
