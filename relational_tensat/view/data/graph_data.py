"""Graphs, as a page draws them.

A value is called by its ``id`` within a frame, operators by their index in ``PageData.forms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Form:
    """An operator with attributes on operands of given types.

    Attributes:
        costs_us: of one application, for each of ``Summary.cost_sources``; None where that has none.
        is_structure: no kernel runs for it (parts of tuples, inputs, weights).
    """

    op: str
    attrs: Mapping[str, Any]
    type: str
    operands: tuple[str, ...]
    costs_us: tuple[float | None, ...]
    is_structure: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a graph, and the operator that computes it.

    Attributes:
        id: what it is called in all frames: its class, and a number where the class has several.
        form: index of the operator.
        inputs: ids of the operands.
        names: what the original model calls it.
        is_constant: it is known before inference, so that it costs nothing.
    """

    id: str
    eclass: int
    enode: int
    form: int
    inputs: tuple[str, ...]
    names: tuple[str, ...]
    is_constant: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole graph: its values, operands first, and the ids of those that it returns."""

    values: tuple[Value, ...]
    outputs: tuple[str, ...]
