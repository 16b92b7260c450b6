"""Drawing: matplotlib is imported where something is drawn."""

from __future__ import annotations

import importlib.util
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
