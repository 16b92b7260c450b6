"""Modelled against measured speed-ups: as a table of points, and as a picture."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from bench.cpu_measure import CpuRun
from relational_tensat.errors import MissingDependencyError

_COLUMNS = ("model", "optimizations", "modelled", "measured", "p10", "p90")


def check_plotting() -> None:
    """Refuse to go on without matplotlib, before anything is measured.

    Raises:
        MissingDependencyError: it is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingDependencyError(
            "the scatter plot needs matplotlib: pip install 'relational-tensat[bench]'"
        )


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
    found = points(runs)
    for mode, marker in (("off", "o"), ("all", "s")):
        chosen = [each for each in found if each[1] == mode]
        modelled, measured = [each[2] for each in chosen], [each[3] for each in chosen]
        spread = [
            [max(each[3] - each[4], 0.0) for each in chosen],
            [max(each[5] - each[3], 0.0) for each in chosen],
        ]
        axes.errorbar(
            modelled, measured, yerr=spread, fmt=marker, capsize=2, label=f"optimizations {mode}"
        )
    for model, mode, *place in found:
        if mode == "off":
            axes.annotate(model, (place[0], place[1]), (4, 4), textcoords="offset points", size=7)
    axes.axline((1, 1), slope=1, color="grey", linewidth=0.8)
    axes.axhline(1, color="grey", linewidth=0.5, linestyle=":")
    axes.set_xlabel("modelled speed-up (sums of single operators)")
    axes.set_ylabel("measured speed-up in onnxruntime (median, p10 to p90)")
    axes.legend()
    figure.savefig(path, dpi=150)
