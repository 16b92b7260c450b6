"""Modelled against measured speed-ups: as a table of points, and as a picture."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from bench.common.plots import label_heights
from bench.cpu.measure import CpuRun

#: A label's extent in the plot, in units of speed-up.
_LABEL = (0.12, 0.022)

_COLUMNS = ("model", "optimizations", "modelled", "measured", "p10", "p90")


def points(runs: Sequence[CpuRun]) -> list[tuple[str, str, float, float, float, float]]:
    """Return a point per model and mode of onnxruntime; the columns are those of the CSV file."""
    return [
        (
            run.model,
            mode,
            run.modelled_speedup,
            timing.speedup,
            timing.speedup_p10,
            timing.speedup_p90,
        )
        for run in runs
        for mode, timing in run.timings.items()
    ]


def write_points(runs: Sequence[CpuRun], path: Path) -> None:
    """Write the points as CSV: model, optimizations, modelled and measured speed-up, its spread."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for model, mode, *numbers in points(runs):
            writer.writerow([model, mode, *(f"{number:.4f}" for number in numbers)])


def plot(runs: Sequence[CpuRun], path: Path) -> None:
    """Draw the points with their spread; on the diagonal, the model is right."""
    from matplotlib.figure import Figure  # heavy, and needed here only

    figure = Figure(figsize=(7, 7), layout="constrained")
    axes = figure.add_subplot()
    all_points = points(runs)
    for mode, marker in (("off", "o"), ("all", "s")):
        mode_points = [point for point in all_points if point[1] == mode]
        modelled, measured = (
            [point[2] for point in mode_points],
            [point[3] for point in mode_points],
        )
        spread = [
            [max(point[3] - point[4], 0.0) for point in mode_points],
            [max(point[5] - point[3], 0.0) for point in mode_points],
        ]
        axes.errorbar(
            modelled, measured, yerr=spread, fmt=marker, capsize=2, label=f"optimizations {mode}"
        )
    axes.margins(x=0.2)
    off = [(point[2], point[3]) for point in all_points if point[1] == "off"]
    names = [point[0] for point in all_points if point[1] == "off"]
    for name, place, height in zip(names, off, label_heights(off, _LABEL), strict=True):
        text = (place[0] + 0.1 * _LABEL[0], height)
        axes.annotate(name, place, text, size=7, arrowprops={"arrowstyle": "-", "lw": 0.3})
    axes.axline((1, 1), slope=1, color="grey", linewidth=0.8)
    axes.axhline(1, color="grey", linewidth=0.5, linestyle=":")
    axes.set_xlabel("modelled speed-up (sums of single operators)")
    axes.set_ylabel("measured speed-up in onnxruntime (median, p10 to p90)")
    axes.legend()
    figure.savefig(path, dpi=150)
