"""The plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.common.cell_results import Result
from bench.common.plots import DPI, colors, new_figure
from bench.paper import paper_figures
from bench.paper.cells import ALPHAS, BUDGETS, K_VALUES, Cell, paper_k, saturate, sequential
from bench.paper.figures import CURVES, curve
from bench.paper.results import Results, answer, percent

_OURS, _SEQUENTIAL, _TENSAT, _TASO = "#1f6fb4", "#d9730d", "#9ecae1", "#fdd0a2"


def plot_table_1(models: Sequence[str], results: Results, path: Path) -> None:
    """Draw speed-ups and seconds of the sequential search, of ours, and of what was published."""
    figure, (upper, lower) = new_figure(2, 1, (10, 7))
    published_rows = paper_figures.by_model("table_1")
    ours = {model: results[saturate(model, paper_k(model))] for model in models}
    search = {model: results[sequential(model, ALPHAS[-1])] for model in models}
    bars: list[tuple[str, str, dict[str, float], dict[str, float]]] = [
        (
            "TASO, published",
            _TASO,
            _of(published_rows, "taso_percent"),
            _of(published_rows, "taso_s"),
        ),
        (f"sequential, n={BUDGETS[0]}", _SEQUENTIAL, *_search_bars(search)),
        (
            "TENSAT, published",
            _TENSAT,
            _of(published_rows, "tensat_percent"),
            _of(published_rows, "tensat_s"),
        ),
        ("ours", _OURS, *_our_bars(ours)),
    ]
    width = 0.8 / len(bars)
    for index, (label, color, saved, seconds) in enumerate(bars):
        places = [number + (index - 1.5) * width for number in range(len(models))]
        for axes, heights, text in (
            (upper, saved, "{:.1f}".format),
            (lower, seconds, _seconds_text),
        ):
            values = [heights.get(model, 0.0) for model in models]
            drawn = axes.bar(places, values, width, label=label, color=color)
            labels = [text(value) if value else "" for value in values]
            axes.bar_label(drawn, labels, fontsize=6.5, padding=1)
    upper.set_ylabel("speed-up over the original (%)")
    upper.set_title("Speed-up: modelled here, measured on a T4 where published")
    upper.legend(ncols=4, loc="upper right", fontsize=8)
    lower.set_ylabel("optimization time (s)")
    lower.set_yscale("log")
    lower.set_title("Optimization time: CPU seconds here; published ones include timing operators")
    for axes in (upper, lower):
        axes.set_xticks(range(len(models)), models)
        axes.margins(y=0.15)
    figure.savefig(path, dpi=DPI)


def plot_figure_6(models: Sequence[str], results: Results, path: Path) -> None:
    """Draw, per model, the speed-up of the best graph known over CPU seconds."""
    rows = -(-len(models) // 3)
    figure, grid = new_figure(rows, min(3, len(models)), (12, 3.1 * rows))
    places = list(grid.flat) if hasattr(grid, "flat") else [grid]
    for axes, model in zip(places, models, strict=False):
        for k_multi, style in zip(CURVES, ("-", "--"), strict=True):
            _draw_curve(
                axes,
                results[Cell("anytime", model, k_multi)],
                f"ours, k_multi={k_multi}",
                _OURS,
                style,
            )
        for alpha, style in zip(ALPHAS, ("-", "--"), strict=True):
            label = f"sequential, alpha={alpha:g}"
            _draw_curve(axes, results[sequential(model, alpha)], label, _SEQUENTIAL, style)
        axes.set_title(model)
        axes.set_xscale("log")
        axes.set_xlim(left=0.01)
        axes.xaxis.set_minor_formatter(lambda value, position: "")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
    for axes in places[len(models) :]:
        axes.set_axis_off()
    legend = places[len(models)] if len(places) > len(models) else places[0]
    handles, labels = places[0].get_legend_handles_labels()
    legend.legend(handles, labels, loc="center" if legend is not places[0] else "best")
    figure.supxlabel("CPU seconds")
    figure.supylabel("modelled speed-up (%)")
    figure.savefig(path, dpi=DPI)


def plot_figure_7(models: Sequence[str], results: Results, path: Path) -> None:
    """Draw speed-up, seconds and e-nodes over k_multi; hollow where a limit was met."""
    figure, panels = new_figure(1, 3, (14, 4.6))
    shades = colors(len(models))
    for color, model in zip(shades, models, strict=True):
        result_by_k = [(k, results[saturate(model, k)]) for k in K_VALUES]
        extractions = [
            (k, result, answer(result, "ours"))
            for k, result in result_by_k
            if "error" not in result
        ]
        points = [
            (
                k,
                percent(r["cost_before_us"], min(r["cost_before_us"], a["cost_us"])),
                r["explore_cpu_s"] + a["cpu_s"],
                r["e_nodes"],
                _is_late(r),
            )
            for k, r, a in extractions
            if a is not None and a["cost_us"] is not None
        ]
        for axes, column in zip(panels, (1, 2, 3), strict=True):
            ks, values = [point[0] for point in points], [point[column] for point in points]
            axes.plot(ks, values, "-", color=color, label=model, linewidth=1.6)
            for point in points:
                face = "white" if point[4] else color
                axes.plot(point[0], point[column], "o", color=color, markerfacecolor=face)
    titles = ("modelled speed-up (%)", "optimization time (CPU s)", "e-nodes")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
        axes.set_xlabel("k_multi")
        axes.set_xticks(K_VALUES)
        axes.grid(alpha=0.25)
    for axes in panels[1:]:
        axes.set_yscale("log")
    panels[0].set_ylim(bottom=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(models), fontsize=8)
    figure.suptitle("k_multi; hollow: a time limit or the node limit was met", fontsize=10)
    figure.savefig(path, dpi=DPI)


def _is_late(result: Result) -> bool:
    ours = answer(result, "ours")
    limits = ("time", "nodes", "memory")
    return result["stop_reason"] in limits or (ours is not None and ours["status"] != "optimal")


def _draw_curve(axes: Any, result: Result, label: str, color: str, style: str) -> None:
    points = curve(result)
    if points:
        seconds, saved = zip(*points, strict=True)
        axes.step(seconds, saved, style, where="post", label=label, color=color)
        axes.plot(seconds[-1], saved[-1], "|", color=color, markersize=9)


def _seconds_text(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


def _of(published_rows: dict[str, paper_figures.Published], key: str) -> dict[str, float]:
    return {model: row[key] for model, row in published_rows.items()}


def _search_bars(search: dict[str, Result]) -> tuple[dict[str, float], dict[str, float]]:
    saved, seconds = {}, {}
    for model, result in search.items():
        reached = result.get("budgets", {}).get(str(BUDGETS[0]))
        if reached is not None:
            saved[model] = percent(result["cost_before_us"], reached["best_us"])
            seconds[model] = reached["cpu_s"]
    return saved, seconds


def _our_bars(ours: dict[str, Result]) -> tuple[dict[str, float], dict[str, float]]:
    saved, seconds = {}, {}
    for model, result in ours.items():
        extraction = answer(result, "ours")
        if extraction is not None and extraction["cost_us"] is not None:
            before_us = result["cost_before_us"]
            saved[model] = percent(before_us, min(before_us, extraction["cost_us"]))
            seconds[model] = result["explore_cpu_s"] + extraction["cpu_s"]
    return saved, seconds
