"""Random inputs and weights that a graph can be run on: in range, of a fitting size, positive where needed.

A tensor's purpose is read off its uses in the graph, also behind operators that only move elements. The
same name and seed give the same values, in any order and beside any others.

A model without its normalizations (the linear transformers of the literature: attention without
softmax) multiplies activations with each other: its values grow as 3^depth in the exponent unless
weights compensate. One pass over the graph bounds the root mean square of every value, and gives
each weight that multiplies an activation the scale for which the product is about 1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, Node, TensorType, numpy_dtype
from relational_tensat.tensor.mask_inputs import find_masks
from relational_tensat.tensor.operators import Use, get_operator, operators
from relational_tensat.tensor.operators.samples import ADDED_SCALE
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.types import CARRIED
from relational_tensat.tensor.uses import Uses

_LEAST, _MOST = 1e-12, 1e12


def weight_scales(graph: Graph) -> dict[str, float]:
    """Return the standard deviation for every float weight of the graph."""
    return _Pass(graph).run()


class _Pass:
    """Sizes (root mean squares) of the values seen so far, and the scales that were decided."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scales: dict[str, float] = {}
        self.sizes: dict[str, float] = dict.fromkeys(graph.inputs, 1.0)
        #: The weight whose elements a value has; its scale is decided where it multiplies.
        self.source = {name: name for name in graph.weights}

    def run(self) -> dict[str, float]:
        for node in self.graph.nodes:
            moves = node.inputs and get_operator(node.op).use_of(0) is Use.MOVED
            if moves and node.inputs[0] in self.source:
                self.source |= dict.fromkeys(node.outputs, self.source[node.inputs[0]])
                continue
            size = min(max(self._size(node), _LEAST), _MOST)
            self.sizes |= dict.fromkeys(node.outputs, size)
        return {name: self.scales.get(name, 1.0) for name in self.graph.weights}

    def _size(self, node: Node) -> float:
        operator = get_operator(node.op)
        types = tuple(self.graph.types[name] for name in node.inputs)
        terms = operator.summed_terms(types)
        if terms is not None:
            return self._product(node, terms)
        sizes = [self._operand(node, k) for k in range(len(node.inputs))]
        return operator.growth(sizes, types, node.attrs)

    def _product(self, node: Node, terms: int) -> float:
        """Return the size of a sum of so many products, deciding the scale of a weight in it."""
        open_names = [name for name in node.inputs[:2] if self._is_undecided(name)]
        if len(open_names) == 1:
            (partner,) = (k for k in (0, 1) if node.inputs[k] != open_names[0])
            self.scales[self.source[open_names[0]]] = 1.0 / (
                self._operand(node, partner) * math.sqrt(terms)
            )
        for name in open_names:  # of two weights that are multiplied, both the same
            self.scales.setdefault(self.source[name], terms**-0.25)
        a, b = self._operand(node, 0), self._operand(node, 1)
        # A weight is independent of what it multiplies; activations may all point the same way.
        independent = any(name in self.source for name in node.inputs[:2])
        size = a * b * (math.sqrt(terms) if independent else terms)
        size += sum(self._operand(node, added) for added in range(2, len(node.inputs)))
        # A spelling that only kernels have, such as an approximation of GELU, is at most as large as its
        # operand.
        activation = operators().get(str(node.attrs.get("act", NO_ACTIVATION)))
        return size if activation is None else activation.growth([size], (), {})

    def _is_undecided(self, name: str) -> bool:
        return name in self.source and self.source[name] not in self.scales

    def _operand(self, node: Node, operand: int) -> float:
        name = node.inputs[operand]
        if name not in self.source:
            return self.sizes[name]
        weight = self.source[name]
        if weight not in self.scales:
            data = self.graph.weights[weight].data
            if data is not None and data.size == 1 and self.graph.weights[weight].type.is_float:
                self.scales[weight] = max(abs(float(np.asarray(data).reshape(-1)[0])), _LEAST)
            else:
                added = get_operator(node.op).use_of(operand) is Use.ADDED
                self.scales[weight] = ADDED_SCALE if added else 1.0
        return self.scales[weight]


_EXPONENT = 2.0
#: Larger tensors repeat so many numbers: drawing them all would take longer than computing with
#: them. It is prime, so that no two of as many rows or channels are equal.
_BLOCK = 262_147


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Draw all inputs of a graph, in their declared element types (bfloat16 as float32).

    Floats are standard normal; in 0.5 to 1.5 if only positive numbers make sense; and 0 or 1 in masks that
    are conditions or multiplied by large numbers. Integers that index something are in its range, others 0
    or 1.

    Raises:
        InputError: an input is of an element type that cannot be drawn (strings, sequences).
    """
    uses, masks = Uses(graph), find_masks(graph)
    result = {}
    for name, kind in graph.inputs.items():
        if kind.dtype not in DTYPE_BYTES:
            if kind.dtype.startswith(CARRIED):
                raise InputError(f"the input {name!r} is no tensor, and cannot be drawn")
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


class SeededWeights(Mapping[str, Array]):
    """Random weights by name, drawn again on each access; nothing is cached.

    Normal numbers of such scale that the graph's values are about 1 (``weight_scales``), or in 0.5 to 1.5
    where only positive numbers make sense. An input that is no parameter stays as it is, where the
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
