"""Random inputs and weights that a graph can be run on: in range, positive where it matters.

What a tensor is for is read off its uses in the graph, also behind operators that only move
elements. The same name and seed give the same values, whatever else is drawn and in which order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, TensorType, numpy_dtype
from relational_tensat.tensor.mask_inputs import find_masks
from relational_tensat.tensor.operators import Use
from relational_tensat.tensor.uses import Uses
from relational_tensat.verify.magnitude import weight_scales

_EXPONENT = 2.0
#: Larger tensors repeat so many numbers: drawing them all would take longer than computing with
#: them. It is prime, so that no two of as many rows or channels are equal.
_BLOCK = 262_147


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Draw all inputs of a graph, in their declared element types (bfloat16 as float32).

    Floats are standard normal, in 0.5 to 1.5 where only positive numbers make sense, and 0 or 1 in masks
    that are conditions or multiplied by large numbers; integers that index something are in its
    range, others 0 or 1.

    Raises:
        InputError: an input is of an element type that cannot be drawn (strings, sequences).
    """
    uses, masks = Uses(graph), find_masks(graph)
    result = {}
    for name, kind in graph.inputs.items():
        if kind.dtype not in DTYPE_BYTES:
            raise InputError(
                f"the input {name!r} is {kind}, which cannot be drawn: it must be given"
            )
        rng = _generator("input", name, seed)
        if kind.is_float and name in masks and masks[name].infinity is None:
            elements = rng.integers(0, 2, kind.size).astype(numpy_dtype(kind.dtype))
        else:
            elements = _draw(rng, kind, uses, name, 1.0)
        result[name] = _repeat(elements, kind.shape, elements.dtype)
    return result


def seeded_weights(graph: Graph, seed: int) -> SeededWeights:
    """Return random weights in place of a graph's own."""
    return SeededWeights(graph, seed)


class SeededWeights(Mapping[str, Array]):
    """Random weights by name, drawn again on each access; nothing is cached.

    Normal numbers of such scale that the graph's values are about 1 (``weight_scales``), or in 0.5
    to 1.5 where only positive numbers make sense. What is no parameter stays as it is, where the
    graph has data: integers and bools, single numbers (epsilons, scales), exponents, and operands
    of opaque operators (sizes, scales).

    For two graphs that are to be compared, one object must serve both: uses may differ.
    """

    def __init__(self, graph: Graph, seed: int) -> None:
        self._graph = graph
        self._seed = seed
        self._uses = Uses(graph)
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
        uses = self._uses
        if weight.data is not None and _is_structural(weight.type, uses, name):
            return weight.data
        if weight.type.dtype not in DTYPE_BYTES:
            raise InputError(f"the weight {name!r} is {weight.type}, which cannot be drawn")
        rng = _generator("weight", name, self._seed)
        elements = _draw(rng, weight.type, uses, name, self._scales[name])
        if not weight.type.is_float:
            return _repeat(elements, weight.type.shape, elements.dtype)
        if factor != 1.0:
            elements = elements * elements.dtype.type(factor)
        return _repeat(elements, weight.type.shape, np.dtype(dtype or elements.dtype))

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph.weights)

    def __len__(self) -> int:
        return len(self._graph.weights)


def _is_structural(kind: TensorType, uses: Uses, name: str) -> bool:
    if not kind.is_float or kind.size == 1:
        return True
    return any(use in (Use.STRUCTURE, Use.EXPONENT) for use, _ in uses.of(name))


def _draw(
    rng: np.random.Generator,
    kind: TensorType,
    uses: Uses,
    name: str,
    scale: float,
) -> NDArray[Any]:
    """Draw a tensor's elements; of many, the first ``_BLOCK``, which are then repeated."""
    if kind.dtype == "bool":
        return rng.integers(0, 2, kind.size).astype(bool)
    if not kind.is_float:
        return rng.integers(0, uses.index_range(name), kind.size).astype(kind.dtype)
    kinds_of_use = {use for use, _ in uses.of(name)}
    if Use.EXPONENT in kinds_of_use:
        return np.full(1, _EXPONENT, numpy_dtype(kind.dtype))
    count = min(kind.size, _BLOCK)
    if Use.POSITIVE in kinds_of_use:
        elements = rng.random(count, dtype=np.float32) + np.float32(0.5)
    else:
        elements = rng.standard_normal(count, dtype=np.float32)
        elements *= np.float32(scale)
    return _representable(elements, kind.dtype)


def _repeat(elements: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a tensor of these elements, repeated; in one pass, as it may be large."""
    result = np.empty(shape, dtype)
    flat = result.reshape(-1)
    for start in range(0, flat.size, elements.size or 1):
        part = flat[start : start + elements.size]
        part[...] = elements[: part.size]
    return result


def _representable(array: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """Return float32 numbers rounded to what an element type holds; bfloat16 as float32."""
    if dtype == "bfloat16":  # the upper half of a float32
        bits = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return array.astype(numpy_dtype(dtype), copy=False)


def _generator(kind: str, name: str, seed: int) -> np.random.Generator:
    digest = hashlib.sha256(f"{kind}:{seed}:{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))
