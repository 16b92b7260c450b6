"""Graphs, e-classes and the film, as a page draws them: plain data that becomes JSON.

A value has its ``id`` within a frame, an operator its index in ``PageData.forms``, classes and e-nodes
their ids in the database.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.shown_text import escaped


def to_json(data: object) -> str:
    """Return data as JSON; infinite and undefined numbers become null."""
    return json.dumps(plain(data), allow_nan=False, separators=(",", ":"))


def shown(data: object) -> Any:
    """Return data as ``plain`` does, its texts as people may look at them."""
    return _shown(plain(data))


def _shown(data: Any) -> Any:
    if isinstance(data, dict):
        return {_shown(key): _shown(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_shown(item) for item in data]
    return escaped(data, keep="\n\t") if isinstance(data, str) else data


def plain(data: object) -> Any:
    """Return data as what JSON has: objects, arrays, strings, numbers."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {field.name: plain(getattr(data, field.name)) for field in dataclasses.fields(data)}
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(item) for item in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data if isinstance(data, str | int | float | bool | None) else str(data)


@dataclass(frozen=True, slots=True)
class Birth:
    """The application that made an e-node: the class that its rule matched, and its operands."""

    root: int
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ENode:
    """An e-node.

    Attributes:
        children: classes.
        iteration, rule: when it was made and by what; 0 and "" for the original graph.
        filtered: the cycle filter took it out.
        forced_us: the result's cost with it; None if the result has no use for its class, or that would be
            cyclic, or was not computed.
    """

    id: int
    form: int
    children: tuple[int, ...]
    iteration: int
    rule: str
    filtered: bool
    chosen: bool
    birth: Birth | None
    forced_us: float | None


@dataclass(frozen=True, slots=True)
class Union:
    """A union and its reason: a rule, or congruence. Classes as they were called then."""

    iteration: int
    rule: str
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class EClass:
    """A class of equal values.

    Attributes:
        is_needed: the result computes it.
        unions: the first that made it what it is.
        users: classes that have an e-node which takes it; the first.
    """

    id: int
    type: str
    names: tuple[str, ...]
    is_constant: bool
    is_needed: bool
    enodes: tuple[ENode, ...]
    unions: tuple[Union, ...]
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A class that was found, in a line: which operators it has, and how many e-nodes."""

    id: int
    names: tuple[str, ...]
    type: str
    is_needed: bool
    ops: tuple[str, ...]
    e_nodes: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """Classes that a page holds; the others are in the database alone."""

    classes: tuple[EClass, ...]


@dataclass(frozen=True, slots=True)
class OperatorForm:
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
class ValueRow:
    """A value of a graph, and the operator that computes it.

    Attributes:
        id: its name in all frames: its class, and a number if the class has several.
        form: index of the operator.
        inputs: ids of the operands.
        names: its names in the original model.
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
class GraphFrame:
    """A whole graph: its values, operands first, and the ids of those that it returns."""

    values: tuple[ValueRow, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrameChange:
    """The change from one frame to the next: values that go, and values that come or take another form."""

    gone: tuple[str, ...]
    put: tuple[ValueRow, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a rule, as its file writes it, and what its parts were at a step."""

    text: str
    values: str


@dataclass(frozen=True, slots=True)
class FilmStep:
    """One application of one rule.

    Attributes:
        backward: the law is read from right to left.
        places: the replaced values, by the model's names.
        found, built: operators that the rule matched, and those that it put in their place.
        matched: ids of the values that the rule matched (before) and built (after).
        cost_us, operators: of the graph after the step.
        text: the rule, as its file writes it.
        conditions: of the rule, with their values here.
        evidence: how it is known that the rule is true.
        check: the result of comparing the replaced tensors; "" without a comparison.
        change: from the frame before.
    """

    number: int
    rule: str
    law: str
    backward: bool
    places: tuple[str, ...]
    found: tuple[str, ...]
    built: tuple[str, ...]
    replaced: tuple[str, ...]
    cost_us: float
    operators: int
    text: str
    conditions: tuple[Condition, ...]
    evidence: str
    check: str
    change: FrameChange


@dataclass(frozen=True, slots=True)
class Film:
    """The way from the original graph to the extracted one.

    Attributes:
        start: the original graph with equal values shared, which costs ``start_us``.
        steps: in order; the last one ends at the extracted graph.
    """

    start: GraphFrame
    start_us: float
    steps: tuple[FilmStep, ...]
