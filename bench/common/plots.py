"""Drawing: matplotlib is imported where something is drawn."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from relational_tensat.base.errors import MissingDependencyError

DPI = 130


def check_plotting(subject: str = "the plots need") -> None:
    """Refuse to go on without matplotlib, before anything is measured.

    Args:
        subject: what begins the message: what cannot be drawn.

    Raises:
        MissingDependencyError: it is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingDependencyError(
            f"{subject} matplotlib: pip install 'relational-tensat[bench]'"
        )


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure of so many inches and its axes."""
    from matplotlib.figure import Figure  # heavy, and needed here only

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns)


def colors(count: int) -> list[Any]:
    """Return colours that can be told apart."""
    from matplotlib import colormaps  # heavy, and needed here only

    return [colormaps["tab10"](index % 10) for index in range(count)]


def label_heights(
    places: Sequence[tuple[float, float]], extent: tuple[float, float]
) -> list[float]:
    """Return where labels to the right of points are written, so that none covers another.

    From the lowest upwards, each at its point's height, or as much higher as those near it make it.

    Args:
        places: of the points.
        extent: width and height of a label.
    """
    width, label_height = extent
    heights = [0.0] * len(places)
    placed: list[int] = []
    for index in sorted(range(len(places)), key=lambda place_index: places[place_index][1]):
        x, height = places[index]
        for other in placed:  # these rise
            is_near = abs(places[other][0] - x) < width
            if is_near and abs(heights[other] - height) < label_height:
                height = heights[other] + label_height
        heights[index] = height
        placed.append(index)
        placed.sort(key=heights.__getitem__)
    return heights
