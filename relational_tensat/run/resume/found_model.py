"""The model of a run, as it is found again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relational_tensat.tensor.graph import Graph


@dataclass(frozen=True, slots=True, eq=False)
class FoundModel:
    """A model that was read.

    Attributes:
        model: its file as it was named, or itself if it is of none.
        note: where it is from, if that is not where it was; else empty.
    """

    model: Graph | str | Path
    graph: Graph
    note: str = ""
