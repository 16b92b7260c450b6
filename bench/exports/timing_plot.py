"""Predicted against measured speed-ups of exports: on the diagonal, the model of the runtime is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.common.plots import DPI, label_heights, new_figure
from bench.exports.times import OURS, Timing

#: Beyond it are quantized models, which would press all others together: they have axes of their own.
_MOST = 1.5
#: A label's extent, as parts of the axes.
_WIDTH, _HEIGHT = 0.22, 0.022


def plot(timings: Sequence[Timing], path: Path) -> None:
    """Draw a point for each model, with its interval of 99 %; those that kept the original are left out."""
    drawn = [timing for timing in timings if OURS in timing.standings and not timing.kept]
    figure, (left, right) = new_figure(1, 2, (13, 7))
    for axes, is_far in ((left, False), (right, True)):
        _draw(axes, [each for each in drawn if (_measured(each) > _MOST) == is_far])
    figure.savefig(path, dpi=DPI)


def _draw(axes: Any, timings: Sequence[Timing]) -> None:
    predicted, measured = [t.predicted for t in timings], [_measured(t) for t in timings]
    standings = [timing.standings[OURS] for timing in timings]
    spread = [[s.speedup - s.low for s in standings], [s.high - s.speedup for s in standings]]
    axes.errorbar(predicted, measured, yerr=spread, fmt="o", capsize=2)
    axes.margins(0.2)
    places = list(zip(predicted, measured, strict=True))
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    extent = (_WIDTH * (x1 - x0), _HEIGHT * (y1 - y0))
    for timing, place, height in zip(timings, places, label_heights(places, extent), strict=True):
        text = (place[0] + 0.05 * extent[0], height)
        name = f"{timing.name}, {timing.threads} threads" if timing.threads > 1 else timing.name
        axes.annotate(name, place, text, size=7, arrowprops={"arrowstyle": "-", "lw": 0.3})
    axes.axline((1, 1), slope=1, color="grey", linewidth=0.8)
    axes.set_xlim(x0, x1)
    axes.set_ylim(y0, y1)
    axes.set_xlabel("predicted speed-up (sums of the target's kernels)")
    axes.set_ylabel("measured speed-up in onnxruntime, interval of 99 %")


def _measured(timing: Timing) -> float:
    return timing.standings[OURS].speedup
