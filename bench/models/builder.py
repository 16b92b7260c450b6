"""Write a graph down in Python: names are made, types inferred, equal nodes shared on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from relational_tensat.base.errors import ModelError
from relational_tensat.tensor import (
    AttrValue,
    Graph,
    Node,
    TensorType,
    ValueType,
    Weight,
    build_graph,
)
from relational_tensat.tensor.operators.base import tensor
from relational_tensat.tensor.operators.registry import get_operator


class GraphBuilder:
    """Builds a graph one operator at a time; every call returns the name of a value.

    Names are readable and depend on the calls only: ``layer1.query.weight``, ``layer1.matmul_2``.
    The same operator applied again to the same values and attributes gives the value that exists
    already, so a graph holds every expression once.
    """

    def __init__(self, name: str, dtype: str = "float32") -> None:
        self._name = name
        self._dtype = dtype
        self._scopes: list[str] = []
        self._inputs: dict[str, TensorType] = {}
        self._weights: dict[str, Weight] = {}
        self._nodes: dict[tuple[object, ...], Node] = {}
        self._types: dict[str, ValueType] = {}
        self._name_counts: dict[str, int] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names that are made inside with ``name.``; scopes nest."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def input(self, name: str, *shape: int) -> str:
        """Add a graph input of that shape.

        Raises:
            ModelError: the name is taken.
        """
        kind = TensorType(self._dtype, shape)
        name = self._define(name, kind)
        self._inputs[name] = kind
        return name

    def weight(self, name: str, *shape: int) -> str:
        """Add a weight of that shape; it has a type and no values.

        Raises:
            ModelError: the name is taken.
        """
        kind = TensorType(self._dtype, shape)
        name = self._define(name, kind)
        self._weights[name] = Weight(kind)
        return name

    def op(self, op: str, *inputs: str, **attrs: AttrValue) -> str:
        """Apply an operator of one result.

        Raises:
            ShapeError: the operands or attributes do not fit the operator.
            UsageError: the operator is unknown.
        """
        operator = get_operator(op)
        normal = operator.normalize(attrs)
        key = (op, inputs, tuple(normal.items()))
        if key not in self._nodes:
            kind = operator.check(tuple(self._types[name] for name in inputs), normal)
            name = self._define(self._unused_name(op), kind)
            self._nodes[key] = Node(op, inputs, (name,), normal, name)
        return self._nodes[key].outputs[0]

    def shape(self, value: str) -> tuple[int, ...]:
        """Return the shape of a value that is one tensor."""
        return tensor(self._types[value], value).shape

    def build(self, *outputs: str) -> Graph:
        """Return the graph that computes ``outputs``."""
        return build_graph(
            self._name,
            self._inputs,
            self._weights,
            self._nodes.values(),
            outputs,
            where=self._name,
        )

    def _define(self, name: str, kind: ValueType) -> str:
        full_name = ".".join([*self._scopes, name])
        if full_name in self._types:
            raise ModelError(f"{self._name}: the value {full_name!r} is defined twice")
        self._types[full_name] = kind
        return full_name

    def _unused_name(self, op: str) -> str:
        """Number the operators of a scope: conv, conv_2, conv_3, ..."""
        key = ".".join([*self._scopes, op])
        count = self._name_counts[key] = self._name_counts.get(key, 0) + 1
        return op if count == 1 else f"{op}_{count}"
