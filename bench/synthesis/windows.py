"""Windows of models: a few operators with one result, and the worlds of terms in which they are sought.

A window stands for what a model does somewhere. Its sizes become small primes, in order, so that windows
of many models are one form; numbers stay what they are, since laws of activations are about them. Windows
whose operands have the same types and numbers share a setting, with all operators that any of them has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from bench.synthesis.vocabulary import OperatorChoice, TermSetting
from relational_tensat.base.records import record
from relational_tensat.rules.instance import typed_application
from relational_tensat.tensor.graph import Graph, Node
from relational_tensat.tensor.operators import get_operator, operators
from relational_tensat.tensor.types import AttrItems, AttrValue, TensorType, tensors_of
from relational_tensat.tensor.uses import weight_only_values

#: An operator, attributes, and operands as in ``TermBank.add_window``.
Application: TypeAlias = tuple[str, AttrItems, tuple[int, ...]]

_PRIMES = (3, 7, 11, 13, 17, 19, 23, 29)
_MOST_LEAVES, _MOST_NUMBERS = 3, 3
#: Numbers that a setting has at most, and those that are bounds.
_MOST_OF_SETTING, _MOST_BOUNDS = 16, 6
#: Larger numbers stand for infinity, and no law is about them; so many times a number may be a part of 1.
_LARGEST, _LARGEST_DIVISOR = 1e6, 1000
#: Attributes that are sizes themselves.
_SIZES = {
    "reshape": ("shape",), "expand": ("shape",), "slice": ("starts", "ends"), "split": ("sizes",),
}  # fmt: skip
#: Functions of elements that a window may be although nobody wrote one.
_FUNCTIONS = (
    "relu", "neg", "abs", "sigmoid", "tanh", "exp", "sqrt", "reciprocal", "erf", "gelu", "hard_swish",
    "logical_not",
)  # fmt: skip


@record
class MinedWindow:
    """A window of a model.

    Attributes:
        leaves: types of its tensors, small.
        numbers: that it has for operands.
        applications: what it computes; operand -1 is the first leaf, numbers follow leaves.
        real: types of its tensors in the model.
        nodes: names of its first results there.
    """

    leaves: tuple[TensorType, ...]
    numbers: tuple[float, ...]
    applications: tuple[Application, ...]
    real: tuple[TensorType, ...]
    nodes: tuple[Node, ...]


def windows_of(graph: Graph, most: int) -> Iterator[MinedWindow]:
    """Yield the windows of two to ``most`` operators."""
    producers = {name: node for node in graph.nodes for name in node.outputs}
    order = {id(node): place for place, node in enumerate(graph.nodes)}
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            users.setdefault(name, []).append(node)
    seen: set[frozenset[int]] = set()
    before_inference = weight_only_values(graph)
    for last in graph.nodes:
        if not _usable(graph, last) or last.outputs[0] in before_inference:
            continue
        frontier = [frozenset((order[id(last)],))]
        for _ in range(most - 1):
            grown: dict[frozenset[int], None] = {}
            for places in frontier:
                for place in places:
                    for name in graph.nodes[place].inputs:
                        before = producers.get(name)
                        if before is None or name in before_inference or not _usable(graph, before):
                            continue
                        inside = all(order[id(user)] in places for user in users[name])
                        if inside and name not in graph.outputs:
                            grown.setdefault(places | {order[id(before)]})
            frontier = [places for places in grown if places not in seen]
            seen.update(frontier)
            for places in frontier:
                nodes = [graph.nodes[place] for place in sorted(places)]
                window = _window(graph, producers, nodes)
                if window is not None:
                    yield window


def _usable(graph: Graph, node: Node) -> bool:
    kinds = [graph.types[name] for name in (*node.inputs, *node.outputs)]
    return (
        get_operator(node.op).in_rules
        and not get_operator(node.op).is_structure
        and 1 <= len(node.inputs) <= _MOST_LEAVES
        and len(node.outputs) == 1
        and all(isinstance(kind, TensorType) for kind in kinds)
    )


def _window(
    graph: Graph, producers: Mapping[str, Node], nodes: Sequence[Node]
) -> MinedWindow | None:
    """Return a window in small sizes; None where its operators do not take these."""
    made = {name for node in nodes for name in node.outputs}
    outer = list(dict.fromkeys(name for node in nodes for name in node.inputs if name not in made))
    numbers = {
        name: value for name in outer if (value := _number(graph, producers, name)) is not None
    }
    leaves = [name for name in outer if name not in numbers]
    if not 1 <= len(leaves) <= _MOST_LEAVES or len(set(numbers.values())) > _MOST_NUMBERS:
        return None
    real = tuple(kind for name in leaves if isinstance(kind := graph.types[name], TensorType))
    inner = [graph.types[name] for name in made]
    sizes = {
        size for kind in (*real, *inner) for part in tensors_of(kind) for size in part.shape
    } - {1}
    if len(sizes) > len(_PRIMES):
        return None
    small = {1: 1, **dict(zip(sorted(sizes), _PRIMES, strict=False))}
    shrunk = tuple(kind.with_shape(tuple(small[size] for size in kind.shape)) for kind in real)
    values = tuple(dict.fromkeys(numbers.values()))
    places = {name: -1 - i for i, name in enumerate(leaves)}
    places |= {name: -1 - len(leaves) - values.index(value) for name, value in numbers.items()}
    types = dict(zip(leaves, shrunk, strict=True))
    types |= {name: TensorType("float32", ()) for name in numbers}
    applications: list[Application] = []
    if any(_is_guard(value) for node in nodes for value in node.attrs.values()):
        return None
    for node in nodes:
        attrs = tuple(
            (key, _small(node.op, key, value, small)) for key, value in node.attrs.items()
        )
        typed = typed_application(node.op, attrs, tuple(types[name] for name in node.inputs))
        if typed is None or not isinstance(typed[1], TensorType):
            return None
        operands = tuple(places[name] for name in node.inputs)
        applications.append((node.op, typed[0], operands))
        places[node.outputs[0]] = len(applications) - 1
        types[node.outputs[0]] = typed[1]
    return MinedWindow(shrunk, values, tuple(applications), real, tuple(nodes))


def _is_guard(value: AttrValue) -> bool:
    """Whether a number is a bound of its type: it guards against infinities, which no law is about."""
    return isinstance(value, float) and _LARGEST <= abs(value) < math.inf


def _number(graph: Graph, producers: Mapping[str, Node], name: str) -> float | None:
    """Return the one number of a float tensor of one element that is known; None of others."""
    kind = graph.types[name]
    if not isinstance(kind, TensorType) or not kind.is_float:
        return None
    node, weight = producers.get(name), graph.weights.get(name)
    if node is not None and node.op == "fill":
        value = node.attrs["value"]
    elif weight is not None and weight.data is not None and kind.size == 1:
        value = weight.data.reshape(-1)[0].item()
    else:
        return None
    is_small = isinstance(value, int | float) and abs(value) < _LARGEST
    return exact_number(float(value)) if is_small else None  # type: ignore[arg-type]


def exact_number(number: float) -> float:
    """Return the quotient of small numbers that a float32 stands for, where it does.

    >>> exact_number(0.3333333432674408)
    0.3333333333333333
    """
    if not math.isfinite(number):
        return number
    nearest = float(Fraction(number).limit_denominator(_LARGEST_DIVISOR))
    return nearest if np.float32(nearest) == np.float32(number) else number


def _small(op: str, key: str, value: AttrValue, small: Mapping[int, int]) -> AttrValue:
    if key in _SIZES.get(op, ()) and isinstance(value, tuple):
        return tuple(small.get(size, size) if isinstance(size, int) else size for size in value)
    return exact_number(value) if isinstance(value, float) else value


def form_of(window: MinedWindow) -> str:
    """Return what equal windows of any model have in common."""
    leaves = [str(kind) for kind in window.leaves]
    return json.dumps([leaves, window.numbers, window.applications])


def setting_key(window: MinedWindow) -> str:
    """Return what windows of one setting have in common."""
    return " ".join(map(str, (*window.leaves, *sorted(window.numbers))))


def setting_of_windows(windows: Sequence[MinedWindow]) -> TermSetting:
    """Return the world in which windows with leaves of equal types, and equal numbers, are sought."""
    inputs = dict(zip("xyz", windows[0].leaves, strict=False))
    own = {number for window in windows for number in window.numbers}
    attrs: dict[tuple[str, int], dict[AttrItems, None]] = {}
    for op, items, operands in (one for window in windows for one in window.applications):
        attrs.setdefault((op, len(operands)), {}).setdefault(items)
    values = [value for seen in attrs.values() for items in seen for _, value in items]
    floats = {value for value in values if isinstance(value, float) and abs(value) < _LARGEST}
    choices = [OperatorChoice(op, arity, tuple(seen)) for (op, arity), seen in attrs.items()]
    has_floats = any(kind.is_float for kind in windows[0].leaves)
    present = {op for op, _ in attrs}
    choices += [
        OperatorChoice(op, 1)
        for op in _FUNCTIONS
        if op not in present and (has_floats or op == "logical_not")
    ]
    if has_floats:
        numbers = _pool(own | floats)
        slopes = [n for n in numbers if 0 < n <= 1]
        choices += [
            OperatorChoice("smul", 1, tuple((("value", value),) for value in numbers)),
            OperatorChoice("clip", 1, _clips(sorted({0.0, *numbers[:_MOST_BOUNDS]}))),
            *(OperatorChoice(op, 2) for op in ("add", "sub", "mul", "div") if op not in present),
            OperatorChoice("hard_sigmoid", 1, tuple(
                (("alpha", slope), ("beta", beta)) for slope in slopes for beta in (0.0, 0.5, 1.0)
            )),
        ]  # fmt: skip
    known = sorted(own | ({1.0} if has_floats else set()))
    return TermSetting("windows", inputs, _together(choices), tuple(known))


def _clips(bounds: Sequence[float]) -> tuple[AttrItems, ...]:
    infinity = float("inf")
    lows, highs = (-infinity, *bounds), (*bounds, infinity)
    return tuple(
        (("min", low), ("max", high))
        for low in lows
        for high in highs
        if low < high and (low, high) != (-infinity, infinity)
    )


def _together(choices: Sequence[OperatorChoice]) -> tuple[OperatorChoice, ...]:
    """Return choices with one entry per operator and arity."""
    merged: dict[tuple[str, int], OperatorChoice] = {}
    for choice in choices:
        key = choice.op, choice.arity
        known = merged.get(key)
        if known is None or known.attrs is None or choice.attrs is None:
            merged.setdefault(key, choice)
        else:
            attrs = tuple(dict.fromkeys((*known.attrs, *choice.attrs)))
            merged[key] = OperatorChoice(*key, attrs)
    return tuple(choice for (op, _), choice in merged.items() if op in operators())


def _pool(numbers: set[float]) -> list[float]:
    """Return numbers that laws about some numbers may have: negatives, reciprocals, products."""
    own = sorted(numbers)
    pool = dict.fromkeys((2.0, 0.5, -1.0, *own))
    pool |= dict.fromkeys(x for a in own for x in (-a, 1.0 / a if a else 0.0))
    pool |= dict.fromkeys(
        x for a in own for b in own for x in (a * b, a + b, a - b, a / b if b else 0.0)
    )
    return [x for x in pool if x != 0 and abs(x) < _LARGEST][:_MOST_OF_SETTING]
