"""Indices of what is viewed, from those of a view: as text that is emitted, or as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.input_windows import Window
from relational_tensat.mugraph.graph.mugraph import Operation

Index = TypeVar("Index")


@dataclass(frozen=True, slots=True)
class Indexing(Generic[Index]):
    """How indices are computed of others.

    Attributes:
        joined: one index of several, the last the fastest, each with its extent.
        parts_of: the opposite.
        taken: the index, in what a window is taken of, of its element of an index.
    """

    joined: Callable[[Sequence[tuple[Index, int]]], Index]
    parts_of: Callable[[Index, Dims], Mapping[str, Index]]
    taken: Callable[[Index, Window], Index]


def viewed_index(
    view: Operation, source: Dims, at: Mapping[str, Index], indexing: Indexing[Index]
) -> Mapping[str, Index]:
    """Return the index of a view's element in what it is a view of.

    Args:
        view: the view, or a window: then where it is not 0.
        source: dims of what it is a view of.
        at: an index for each variable of the view.
        indexing: computes with these.
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
            return {**at, str(view.attrs["variable"]): indexing.joined(parts)}
        case "merge":
            merged = _in_order(names(view.attrs, "variables"), source)
            return {**at, **indexing.parts_of(at[str(view.attrs["into"])], merged)}
        case "window":
            window = Window.of(view.attrs)
            index = indexing.taken(window_index(window, at, indexing), window)
            return {**at, **indexing.parts_of(index, _in_order(window.variables, source))}
        case _:
            return at


def window_index(window: Window, at: Mapping[str, Index], indexing: Indexing[Index]) -> Index:
    """Return which of a window's elements, one after the other, an index for each variable is."""
    own = tuple(map(Dim, window.into, window.sizes))
    return indexing.joined([(at[dim.variable], dim.size) for dim in own])


def _in_order(variables: Sequence[str], source: Dims) -> Dims:
    return tuple(dim for name in variables for dim in source if dim.variable == name)
