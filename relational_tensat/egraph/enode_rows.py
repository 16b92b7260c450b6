"""Rows of e-nodes: made of what a tensor graph's root reaches, one e-node per node and part.

Rows in arrays are found by what they are: their columns are mixed into one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError
from relational_tensat.egraph.catalogue import Catalogue
from relational_tensat.rules.model import Apply, Term
from relational_tensat.tensor.graph import Graph, Node, Weight
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import DTYPE_BYTES, Attrs, TensorType, ValueType, numpy_dtype

Ints = NDArray[np.int32]
Hashes = NDArray[np.uint64]
Places = NDArray[np.intp]
Integers = TypeVar("Integers", bound=np.signedinteger[Any])

#: Odd factors that mix the columns of an e-node into one number; any will do.
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93,
     0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], dtype=np.uint64
)  # fmt: skip


def hashed(signatures: Ints, children: Ints) -> Hashes:
    """Return a number for each e-node: its signature, and its child classes, a row each."""
    total = signatures.astype(np.uint64)
    total *= _FACTORS[0]
    for column, factor in zip(children.T, _FACTORS[1:], strict=False):
        total ^= total >> np.uint64(29)
        total += column.astype(np.uint64)
        total *= factor
    total ^= total >> np.uint64(32)
    return total


def distinct(values: NDArray[Integers]) -> NDArray[Integers]:
    """Return the different values, in order. (``np.unique`` imports ``numpy.ma``, for 8 ms.)"""
    in_order = np.sort(values)
    is_first = np.ones(len(in_order), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    return in_order[is_first]


#: Child columns of the e-node table. Longer operand lists end in a noop of the rest.
CHILD_COLUMNS = 5


def gathered(operands: Sequence[Term]) -> tuple[Term, ...]:
    """Return a rule's operands as an e-node has them: those that have no column are one noop, the last."""
    if len(operands) <= CHILD_COLUMNS:
        return tuple(operands)
    rest = Apply("noop", gathered(operands[CHILD_COLUMNS - 1 :]))
    return (*operands[: CHILD_COLUMNS - 1], rest)


#: Half of what the column holds: exploration lifts labels, too.
_HIGHEST_LABEL = 2**30

#: Weights of at most so many elements are kept with their data.
_FEW_FLOATS, _FEW_INTEGERS = 64, 1 << 16


@dataclass
class LoadedGraph:
    """Rows of the original graph's e-nodes; ids are 1, 2, … in topological order.

    Attributes:
        signatures, children, heights: one entry per e-node.
        values: (name of the value, e-node, name of its node) for every named value that is loaded.
        outputs: e-node of each graph output, in order.
        root: e-node of the root: the only output, or a noop of all.
    """

    signatures: list[int] = field(default_factory=list)
    children: list[tuple[int, ...]] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)
    values: list[tuple[str, int, str]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    root: int = 0

    def has_equal(self) -> bool:
        """Whether two e-nodes have the same signature and children."""
        distinct = set(zip(self.signatures, self.children, strict=True))
        return len(distinct) < len(self.signatures)


def load_rows(graph: Graph, catalogue: Catalogue, height_step: int) -> LoadedGraph:
    """Return the e-node rows of what the outputs of ``graph`` depend on.

    Args:
        height_step: the gap between the height labels of a node and its operands.
    """
    return _Loader(graph, catalogue, height_step).load()


class _Loader:
    def __init__(self, graph: Graph, catalogue: Catalogue, height_step: int) -> None:
        self._graph = graph
        self._catalogue = catalogue
        self._step = height_step
        self._rows = LoadedGraph()
        self._enode_of: dict[str, int] = {}
        self._types: list[ValueType] = []
        self._needed = _reachable(graph)

    def load(self) -> LoadedGraph:
        graph = self._graph
        for name, kind in graph.inputs.items():
            if name in self._needed:
                self._leaf("input", name, kind)
        for name, weight in graph.weights.items():
            if name in self._needed:
                self._weight(name, weight)
        for node in graph.nodes:
            if not self._needed.isdisjoint(node.outputs):
                self._node(node)
        rows = self._rows
        rows.outputs = [self._enode_of[name] for name in graph.outputs]
        rows.root = (
            rows.outputs[0] if len(rows.outputs) == 1 else self._add("noop", {}, rows.outputs)
        )
        return rows

    def _leaf(self, op: str, name: str, kind: TensorType) -> None:
        attrs: Attrs = {"name": name, "dtype": kind.dtype, "shape": kind.shape}
        self._name(name, self._add(op, attrs, ()), "")

    def _weight(self, name: str, weight: Weight) -> None:
        """Add a weight; a single number is a ``fill``, so that rules can see what number it is."""
        number = single_number(weight)
        if number is None:
            self._leaf("weight", name, weight.type)
        else:
            attrs: Attrs = {"value": number, "dtype": weight.type.dtype, "shape": weight.type.shape}
            self._name(name, self._add("fill", attrs, ()), "")

    def _node(self, node: Node) -> None:
        operands = [self._enode_of[name] for name in node.inputs]
        enode = self._add(node.op, node.attrs, operands)
        if not get_operator(node.op).multi_output:
            self._name(node.outputs[0], enode, node.name)
            return
        for index, name in enumerate(node.outputs):
            if name in self._needed:
                self._name(name, self._add("part", {"index": index}, (enode,)), node.name)

    def _name(self, value: str, enode: int, node_name: str) -> None:
        self._enode_of[value] = enode
        self._rows.values.append((value, enode, node_name))

    def _add(self, op: str, attrs: Attrs, operands: Sequence[int]) -> int:
        operands = tuple(operands)
        if len(operands) > CHILD_COLUMNS:
            gathering = self._add("noop", {}, operands[CHILD_COLUMNS - 1 :])
            operands = (*operands[: CHILD_COLUMNS - 1], gathering)
        types = tuple(self._types[i - 1] for i in operands)
        signature = self._catalogue.intern(op, attrs, types)
        rows = self._rows
        rows.signatures.append(signature)
        rows.children.append(operands)
        rows.heights.append(max((rows.heights[i - 1] for i in operands), default=0) + self._step)
        self._types.append(self._catalogue.type_of(signature))
        return len(rows.signatures)


def fitting_labels(heights: Sequence[int]) -> Sequence[int]:
    """Return height labels in the same order that fit their column: those of deep graphs lie closer."""
    factor = -(-max(heights, default=0) // _HIGHEST_LABEL)
    return heights if factor <= 1 else [height // factor for height in heights]


def single_number(weight: Weight) -> float | None:
    """Return the one number that a weight is, None if it is more, not known, or no finite number.

    -0.0 is left out, too: as an attribute it would equal 0.0. So are integers that no float holds.
    """
    kind, data = weight.type, weight.data
    if data is None or kind.size != 1 or kind.dtype == "bool" or kind.dtype not in DTYPE_BYTES:
        return None
    element = np.asarray(data).reshape(-1)[0].item()
    number = float(element)
    is_negative_zero = number == 0.0 and math.copysign(1.0, number) < 0.0
    return number if math.isfinite(number) and number == element and not is_negative_zero else None


def small_weights(graph: Graph) -> dict[str, bytes]:
    """Return the elements of weights that may be sizes, indices, scales and the like, by name.

    So a database has enough of its model to run it: all other weights are as good as random ones.
    """
    elements = {}
    for name, weight in graph.weights.items():
        data, kind = weight.data, weight.type
        if data is None or kind.dtype not in DTYPE_BYTES:
            continue
        if kind.size <= (_FEW_FLOATS if kind.is_float else _FEW_INTEGERS):
            little = np.asarray(data).astype(numpy_dtype(kind.dtype).newbyteorder("<"))
            elements[name] = little.tobytes()
    return elements


def _reachable(graph: Graph) -> set[str]:
    names = set(graph.outputs)
    for node in reversed(graph.nodes):
        if not names.isdisjoint(node.outputs):
            names.update(node.inputs)
    if len(graph.outputs) != len(set(graph.outputs)):
        raise InputError(f"{graph.name}: an output is listed twice")
    return names
