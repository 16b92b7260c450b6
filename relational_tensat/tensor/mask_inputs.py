"""Inputs that are masks, and what masks have in their rows.

A mask is what reaches a softmax as a summand, or as a condition. Its rows leave out nothing, some elements,
or all of them: by 0 and 1, by -inf, or by the lowest number of its type, beside which every other summand
is lost. Random numbers have no such rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relational_tensat.tensor.floats import FLOAT_FORMATS
from relational_tensat.tensor.graph import Graph, Node
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.types import DTYPE_BYTES, Array, TensorType, tensors_of
from relational_tensat.tensor.uses import Uses

#: Numbers that are multiplied by more than this are 0 or 1: (1 - mask) · -10000.
_LARGE = 1e3


@dataclass(frozen=True, slots=True)
class MaskInput:
    """The values of an input that is a mask.

    Attributes:
        masked: the value that leaves an element out: 0 or False, or a number that becomes the lowest on its
            way.
        kept: the value that leaves nothing out: 1 or True, or 0 for a summand.
        infinity: the value that becomes -inf on its way; None if the mask is 0 and 1.
    """

    masked: float
    kept: float
    infinity: float | None = None

    def draws(self, array: Array, first: int = 0) -> Iterator[Array]:
        """Yield a random array with rows masked, until rows of all sorts were there.

        Rows lie along the last axis. One after the other they are masked, in the right half, in the left
        half, and not at all; then, where there is an infinity, by it, though never wholly. Elements of
        a summand that a row keeps stay random, but in rows without a mask.

        Args:
            first: which sort of row comes first: other masks have other sorts beside it.
        """
        length = array.shape[-1] if array.ndim else 1
        rows = array.size // length if length else 0
        if not rows:
            return
        sorts = [sort % 4 for sort in range(first, first + 4)] if length > 1 else [0, 3]
        for start in range(0, len(sorts), rows):
            yield self._drawn(array, rows, length, np.arange(start, start + rows), sorts)
        if self.infinity is not None and length > 1:
            yield self._partly_infinite(array, rows, length, self.infinity)

    def _drawn(
        self, array: Array, rows: int, length: int, places: Any, sorts: Sequence[int]
    ) -> Array:
        sort = np.asarray(sorts)[places % len(sorts)][:, None]
        right, left = _halves(length)
        result = np.array(array).reshape(rows, length)
        if self.infinity is None:
            result[...] = self.kept
        result[(sort == 0) | ((sort == 1) & right) | ((sort == 2) & left)] = self.masked
        result[np.broadcast_to(sort == 3, result.shape)] = self.kept
        return result.reshape(array.shape)

    def _partly_infinite(self, array: Array, rows: int, length: int, infinity: float) -> Array:
        """Mask rows by -inf in the right half, in the left half, and there with the rest at the lowest."""
        sort = (np.arange(rows) % 3)[:, None]
        right, left = _halves(length)
        result = np.array(array).reshape(rows, length)
        result[((sort == 0) & right) | ((sort != 0) & left)] = infinity
        result[(sort == 2) & ~left] = self.masked
        return result.reshape(array.shape)


def find_masks(graph: Graph) -> dict[str, MaskInput]:
    """Return the inputs of a graph that are masks, in order.

    These are conditions and integers that are 0 or 1, and floats whose every use is on the way into a
    softmax (or an exponential, or a largest element), or into a condition. The way may have moves, sums,
    and products with known numbers.
    """
    uses, ways = Uses(graph), _ways(graph)
    masks = {}
    for name, kind in graph.inputs.items():
        if kind.dtype not in DTYPE_BYTES or kind.size < 2:
            continue
        if not kind.is_float:
            if kind.dtype == "bool" or uses.index_range(name) == 2:
                masks[name] = MaskInput(0, 1)
        elif (way := ways[name]) is not None:
            masks[name] = _float_mask(kind, way)
    return masks


def _halves(length: int) -> tuple[Any, Any]:
    """Return which elements of a row are in its right and in its left half; a middle one is in none."""
    place = np.arange(length)[None, :]
    return place >= (length + 1) // 2, place < length // 2


class _Way(NamedTuple):
    """How a value reaches softmax.

    Attributes:
        factor: the largest factor on its way, of either sign.
        is_added: whether it is a summand somewhere; else it is a condition everywhere.
    """

    factor: float
    is_added: bool


def _float_mask(kind: TensorType, way: _Way) -> MaskInput:
    if not (way.is_added and abs(way.factor) <= _LARGE):
        return MaskInput(0.0, 1.0)
    format_ = FLOAT_FORMATS[kind.dtype]
    sign = -1.0 if way.factor > 0 else 1.0
    factor = abs(way.factor)
    size = format_.largest if factor <= 1 else format_.largest / factor * (1 - 2 * format_.epsilon)
    return MaskInput(sign * size, 0.0, sign * np.inf)


def _ways(graph: Graph) -> dict[str, _Way | None]:
    """Return how values reach softmax, each with all its uses; None where one leads elsewhere."""
    numbers = _numbers(graph)
    uses: dict[str, list[_Way | None]] = defaultdict(list)
    for node in reversed(graph.nodes):
        result = _joined([way for name in node.outputs for way in uses[name]])
        for operand, name in enumerate(node.inputs):
            uses[name].append(_way(graph, node, operand, result, numbers))
    return {name: _joined(uses[name]) for name in graph.inputs}


def _joined(ways: Sequence[_Way | None]) -> _Way | None:
    known = [way for way in ways if way is not None]
    if not ways or len(known) < len(ways):
        return None
    factors = [way.factor for way in known if way.is_added] or [1.0]
    if min(factors) * max(factors) <= 0:
        return None
    return _Way(max(factors, key=abs), any(way.is_added for way in known))


def _way(
    graph: Graph, node: Node, operand: int, result: _Way | None, numbers: Mapping[str, float]
) -> _Way | None:
    """Return how an operand reaches softmax through a node, given how the node's results do."""
    use = get_operator(node.op).use_of(operand)
    if use is Use.CONDITION or _is_condition(graph, node):
        return _Way(1.0, False)
    if use is Use.SCORE:
        return _Way(1.0, True)
    if result is None or node.attrs.get("act", NO_ACTIVATION) != NO_ACTIVATION:
        return None
    factor = 1.0 if use in (Use.MOVED, Use.JOINED) else _factor(node, operand, use, numbers)
    return None if factor is None else _Way(factor * result.factor, result.is_added)


def _factor(node: Node, operand: int, use: Use, numbers: Mapping[str, float]) -> float | None:
    """Return what a node multiplies an operand by; None where that is not known, or it does else."""
    other = numbers.get(node.inputs[1 - operand]) if len(node.inputs) == 2 else None
    match node.op:
        case "neg":
            return -1.0
        case "smul":
            return float(str(node.attrs["value"]))
        case "mul":
            return other
        case "div" if operand == 0 and other:
            return 1.0 / other
        case "sub" if operand == 1:
            return -1.0
    return 1.0 if use is Use.ADDED else None


def _is_condition(graph: Graph, node: Node) -> bool:
    """Whether a node makes conditions, or numbers that may stand for such, of its operands."""
    parts = [part for name in node.outputs for part in tensors_of(graph.types[name])]
    return all(part.dtype == "bool" or (node.op == "cast" and not part.is_float) for part in parts)


def _numbers(graph: Graph) -> dict[str, float]:
    """Return the values that are one number which is known."""
    numbers = {}
    for name, weight in graph.weights.items():
        data = weight.data
        if data is not None and data.dtype.kind in "fiu" and data.size:
            first = data.reshape(-1)[0] if data.size == 1 or not any(data.strides) else None
            if first is not None:
                numbers[name] = float(first)
    for node in graph.nodes:
        if node.op == "fill":
            numbers[node.outputs[0]] = float(str(node.attrs["value"]))
        elif node.inputs and node.inputs[0] in numbers and _only_moves(node):
            numbers |= dict.fromkeys(node.outputs, numbers[node.inputs[0]])
    return numbers


def _only_moves(node: Node) -> bool:
    """Whether a node's elements are those of its only operand."""
    return len(node.inputs) == 1 and get_operator(node.op).use_of(0) is Use.MOVED
