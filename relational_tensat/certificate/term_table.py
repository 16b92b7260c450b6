"""Graphs as terms: an operator applied to terms, equal ones of one number, so that equal graphs are equal.

A weight's term is its content, not its name: two files that hold the same weights under other names have
the same terms.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Array, Graph, Weight
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import DTYPE_BYTES, AttrItems, TensorType, ValueType

#: Terms have no more operands: the others are one, a tuple.
_MOST_OPERANDS = 5


class AppliedTerm(NamedTuple):
    """An operator applied to terms, by their numbers; attributes in canonical order."""

    op: str
    attrs: AttrItems
    children: tuple[int, ...]


class TermTable:
    """Terms of known types; operands have lower numbers than what is computed from them."""

    def __init__(self) -> None:
        self._terms: list[AppliedTerm] = []
        self._types: list[ValueType] = []
        self._numbers: dict[tuple[AppliedTerm, ValueType], int] = {}
        self._constant: list[bool] = []
        #: The data of weights, by their terms.
        self.data: dict[int, Array] = {}

    def __getitem__(self, term: int) -> AppliedTerm:
        return self._terms[term]

    def type(self, term: int) -> ValueType:
        """Return the type of a term."""
        return self._types[term]

    def is_constant(self, term: int) -> bool:
        """Whether a term is known before inference."""
        return self._constant[term]

    def apply(self, op: str, attrs: AttrItems, children: Sequence[int]) -> int:
        """Return the term of an operator that is applied to terms.

        Raises:
            ShapeError, UsageError: there is no such operator, or it does not take them.
        """
        operator = get_operator(op)
        operands = tuple(self._types[child] for child in children)
        operator.check_operands(operands)
        if tuple(operator.canonical(operands, dict(attrs)).items()) != attrs:
            raise InputError(f"{op} has attributes that are not in canonical form")
        kind = operator.infer(operands, dict(attrs))
        own = bool(children) or operator.is_constant
        is_constant = own and operator.is_foldable(dict(attrs))
        is_constant = is_constant and all(self._constant[child] for child in children)
        return self._add(AppliedTerm(op, attrs, tuple(children)), kind, is_constant)

    def input(self, name: str, kind: TensorType) -> int:
        """Return the term of an input."""
        return self._add(AppliedTerm("input", (("name", name),), ()), kind, is_constant=False)

    def weight(self, name: str, weight: Weight) -> int:
        """Return the term of a weight; a single finite number is a ``fill``, as rules see which it is."""
        data, kind = weight.data, weight.type
        number = None if data is None else _single_number(data, kind)
        if number is not None:
            attrs = (("value", number), ("dtype", kind.dtype), ("shape", kind.shape))
            return self.apply("fill", attrs, ())
        key = name if data is None else f"sha256:{_digest(data)}"
        term = self._add(AppliedTerm("weight", (("name", key),), ()), weight.type, is_constant=True)
        if data is not None:
            self.data[term] = data
        return term

    def add_graph(self, graph: Graph) -> dict[str, int]:
        """Return the terms of a graph's values, by name."""
        terms = {name: self.input(name, kind) for name, kind in graph.inputs.items()}
        terms |= {name: self.weight(name, weight) for name, weight in graph.weights.items()}
        for node in graph.nodes:
            operands = self._gathered([terms[name] for name in node.inputs])
            term = self.apply(node.op, tuple(node.attrs.items()), operands)
            if get_operator(node.op).multi_output:
                for place, name in enumerate(node.outputs):
                    terms[name] = self.apply("part", (("index", place),), [term])
            else:
                terms[node.outputs[0]] = term
        return terms

    def below(self, outputs: Iterable[int]) -> list[int]:
        """Return the terms of a graph, operands first."""
        reached = set(outputs)
        pending = list(reached)
        while pending:
            new = set(self._terms[pending.pop()].children) - reached
            reached |= new
            pending += new
        return sorted(reached)

    def _gathered(self, operands: list[int]) -> list[int]:
        if len(operands) <= _MOST_OPERANDS:
            return operands
        rest = self._gathered(operands[_MOST_OPERANDS - 1 :])
        return [*operands[: _MOST_OPERANDS - 1], self.apply("noop", (), rest)]

    def _add(self, term: AppliedTerm, kind: ValueType, is_constant: bool) -> int:
        number = self._numbers.setdefault((term, kind), len(self._terms))
        if number == len(self._terms):
            self._terms.append(term)
            self._types.append(kind)
            self._constant.append(is_constant)
        return number


def _digest(data: Array) -> str:
    """Return the hash of a weight's elements; one that is a single number, repeated, is hashed as that."""
    array = np.asarray(data)
    if array.size and not any(array.strides):
        array = array.reshape(-1)[:1]
    if array.dtype == object:
        return hashlib.sha256(repr(array.tolist()).encode()).hexdigest()
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _single_number(data: Array, kind: TensorType) -> float | None:
    """Return the number that a weight is, if a ``fill`` has it: not -0.0, which equals 0.0 there."""
    if kind.size != 1 or kind.dtype == "bool" or kind.dtype not in DTYPE_BYTES:
        return None
    element = np.asarray(data).reshape(-1)[0].item()
    number = float(element)
    is_exact = math.isfinite(number) and number == element
    return number if is_exact and (number or math.copysign(1.0, number) > 0) else None
