"""Indices of what is viewed, from those of a view: as text that is emitted, or as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Operation

Index = TypeVar("Index")


def viewed_index(
    view: Operation,
    source: Dims,
    at: Mapping[str, Index],
    joined: Callable[[Sequence[tuple[Index, int]]], Index],
    parts_of: Callable[[Index, Dims], Mapping[str, Index]],
) -> Mapping[str, Index]:
    """Return the index of a view's element in what it is a view of.

    Args:
        view: the view.
        source: dims of what it is a view of.
        at: an index for each variable of the view.
        joined: one index of several, the last the fastest, each with its extent.
        parts_of: the opposite.
    """
    match view.op:
        case "rename":
            return {**at, str(view.attrs["variable"]): at[str(view.attrs["into"])]}
        case "split":
            sizes = cast(tuple[int, ...], view.attrs["sizes"])
            parts = [
                (at[name], size)
                for name, size in zip(names(view.attrs, "into"), sizes, strict=True)
            ]
            return {**at, str(view.attrs["variable"]): joined(parts)}
        case "merge":
            order = names(view.attrs, "variables")
            merged = tuple(dim for name in order for dim in source if dim.variable == name)
            return {**at, **parts_of(at[str(view.attrs["into"])], merged)}
        case _:
            return at
