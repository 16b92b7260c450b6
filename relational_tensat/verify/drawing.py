"""Random inputs and weights that a graph can be run on: in range, positive where it matters.

What a tensor is for is read off its uses in the graph, also behind operators that only move
elements. The same name and seed give the same values, whatever else is drawn and in which order.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, TensorType, numpy_dtype, tensors_of
from relational_tensat.tensor.operators.attributes import int_of
from relational_tensat.verify.magnitude import MOVES, weight_scales

#: (operator, operand) pairs that want numbers away from 0 and above it.
_POSITIVE = {
    ("batch_norm", 1), ("batch_norm", 4), ("layer_norm", 1), ("rms_norm", 1), ("div", 1),
    ("pow", 0), ("sqrt", 0), ("log", 0), ("reciprocal", 0),
}  # fmt: skip
_EXPONENT = 2.0
#: Larger tensors repeat so many numbers: drawing them all would take longer than computing with
#: them. It is prime, so that no two of as many rows or channels are equal.
_BLOCK = 262_147


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Draw all inputs of a graph, in their declared element types (bfloat16 as float32).

    Floats are standard normal, or in 0.5 to 1.5 where only positive numbers make sense; integers
    that index something are in its range, others 0 or 1.

    Raises:
        InputError: an input is of an element type that cannot be drawn (strings, sequences).
    """
    uses = _Uses(graph)
    result = {}
    for name, kind in graph.inputs.items():
        if kind.dtype not in DTYPE_BYTES:
            raise InputError(
                f"the input {name!r} is {kind}, which cannot be drawn: it must be given"
            )
        rng = _generator("input", name, seed)
        drawn = _draw(rng, kind, list(uses.of(name)), graph, 1.0)
        result[name] = _repeated(drawn, kind.shape, drawn.dtype)
    return result


def seeded_weights(graph: Graph, seed: int) -> SeededWeights:
    """Return random weights in place of a graph's own."""
    return SeededWeights(graph, seed)


class SeededWeights(Mapping[str, Array]):
    """Random weights by name, drawn each time they are asked for; nothing is kept.

    Normal numbers of such scale that the graph's values are about 1 (``weight_scales``), or in 0.5
    to 1.5 where only positive numbers make sense. What is no parameter stays as it is, where the
    graph has data: integers and bools, single numbers (epsilons, scales), exponents, and operands
    of opaque operators (sizes, scales).

    For two graphs that are to be compared, one object must serve both: uses may differ.
    """

    def __init__(self, graph: Graph, seed: int) -> None:
        self._graph = graph
        self._seed = seed
        self._uses = _Uses(graph)
        self._scales = weight_scales(graph)

    def __getitem__(self, name: str) -> Array:
        return self.draw(name)

    def __call__(self, name: str, kind: TensorType) -> Array:
        """Return the weight of that name; its type is the graph's."""
        return self[name]

    def draw(self, name: str, factor: float = 1.0, dtype: str | None = None) -> Array:
        """Return the weight of that name.

        Args:
            factor: a power of two that random floats are multiplied with.
            dtype: of the array for random floats, whose values are those that the weight's own element
                type can hold; by default that.
        """
        weight = self._graph.weights[name]
        uses = list(self._uses.of(name))
        if weight.data is not None and _is_structural(weight.type, uses):
            return weight.data
        if weight.type.dtype not in DTYPE_BYTES:
            raise InputError(f"the weight {name!r} is {weight.type}, which cannot be drawn")
        rng = _generator("weight", name, self._seed)
        drawn = _draw(rng, weight.type, uses, self._graph, self._scales[name])
        if not weight.type.is_float:
            return _repeated(drawn, weight.type.shape, drawn.dtype)
        if factor != 1.0:
            drawn = drawn * drawn.dtype.type(factor)
        return _repeated(drawn, weight.type.shape, np.dtype(dtype or drawn.dtype))

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.weights)

    def __len__(self) -> int:
        return len(self._graph.weights)


class _Uses:
    """Which operators compute with a value: (operator, operand number, node number)."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._consumers: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        for number, node in enumerate(graph.nodes):
            for operand, name in enumerate(node.inputs):
                self._consumers[name].append((node.op, operand, number))

    def of(self, name: str) -> Iterator[tuple[str, int, int]]:
        """Yield the uses of a value, also behind operators that only move its elements."""
        pending, seen = [name], {name}
        while pending:
            for use in self._consumers[pending.pop()]:
                op, operand, number = use
                if (op, operand) not in MOVES and op not in ("concat", "noop"):
                    yield use
                    continue
                fresh = [each for each in self._graph.nodes[number].outputs if each not in seen]
                pending += fresh
                seen.update(fresh)


def _is_structural(kind: TensorType, uses: list[tuple[str, int, int]]) -> bool:
    if not kind.is_float or kind.size == 1:
        return True
    return any(op == "opaque" or (op, operand) == ("pow", 1) for op, operand, _ in uses)


def _draw(
    rng: np.random.Generator,
    kind: TensorType,
    uses: list[tuple[str, int, int]],
    graph: Graph,
    scale: float,
) -> NDArray[Any]:
    """Draw a tensor's elements; of many, the first ``_BLOCK``, which are then repeated."""
    if kind.dtype == "bool":
        return rng.integers(0, 2, kind.size).astype(bool)
    if not kind.is_float:
        return rng.integers(0, _index_range(uses, graph), kind.size).astype(kind.dtype)
    pairs = {(op, operand) for op, operand, _ in uses}
    if ("pow", 1) in pairs:
        return np.full(1, _EXPONENT, numpy_dtype(kind.dtype))
    count = min(kind.size, _BLOCK)
    if pairs & _POSITIVE:
        drawn = rng.random(count, dtype=np.float32) + np.float32(0.5)
    else:
        drawn = rng.standard_normal(count, dtype=np.float32)
        drawn *= np.float32(scale)
    return _representable(drawn, kind.dtype)


def _repeated(drawn: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a tensor of the numbers drawn, over and over; in one pass, as it may be large."""
    result = np.empty(shape, dtype)
    flat = result.reshape(-1)
    for start in range(0, flat.size, drawn.size or 1):
        part = flat[start : start + drawn.size]
        part[...] = drawn[: part.size]
    return result


def _index_range(uses: list[tuple[str, int, int]], graph: Graph) -> int:
    """Return the number of values that integers may have: what all indexed axes have, or 2."""
    sizes = []
    for op, operand, number in uses:
        if (op, operand) == ("gather", 1):
            node = graph.nodes[number]
            data = tensors_of(graph.types[node.inputs[0]])[0]
            sizes.append(data.shape[int_of(node.attrs, "axis")])
    return min(sizes, default=2)


def _representable(array: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """Return float32 numbers rounded to what an element type holds; bfloat16 as float32."""
    if dtype == "bfloat16":  # the upper half of a float32
        bits = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return array.astype(numpy_dtype(dtype), copy=False)


def _generator(kind: str, name: str, seed: int) -> np.random.Generator:
    digest = hashlib.sha256(f"{kind}:{seed}:{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
