"""A kernel that does what several operators do: its meaning, type and ONNX form are theirs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from relational_tensat.tensor import Attrs, TensorType, ValueType, tensors_of
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators import Operator, get_operator
from relational_tensat.tensor.operators.base import Types, Values, tensor
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter


@dataclass(frozen=True, slots=True)
class FusedPart:
    """One operator of those that a kernel does at once.

    Attributes:
        operands: numbers; first those of the kernel's operands, then those of the parts before it.
    """

    op: str
    operands: tuple[int, ...]
    attrs: Attrs = field(default_factory=dict)


class FusedKernel(Operator):
    """A kernel of a backend; it computes the same as its parts, by default as the last one."""

    #: Whether it is written as itself; a backend makes its own kernels of the parts again.
    is_written: ClassVar[bool] = False

    @abstractmethod
    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Return what it does, in order.

        Raises:
            ShapeError: its operands do not fit.
        """

    def typed_parts(self, inputs: Types, attrs: Attrs) -> tuple[list[FusedPart], list[ValueType]]:
        """Return its parts with canonical attributes, and the types of its operands and all parts.

        Raises:
            ShapeError: as ``infer``.
        """
        kinds: list[ValueType] = [part for kind in inputs for part in tensors_of(kind)]
        typed = []
        for part in self.parts(inputs, attrs):
            operator = get_operator(part.op)
            own = tuple(kinds[number] for number in part.operands)
            operator.check_operands(own)
            canonical = operator.canonical(own, self.attrs_there(part, own))
            kinds.append(operator.infer(own, canonical))
            typed.append(FusedPart(part.op, part.operands, canonical))
        return typed, kinds

    def attrs_there(self, part: FusedPart, types: Types) -> Attrs:
        """Return a part's attributes for operands of these types."""
        return part.attrs

    def result(self, values: Sequence[Any], attrs: Attrs) -> Any:
        """Return what it gives, of the values of its operands and parts, in order."""
        return values[-1]

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the type of the last part's result."""
        return tensor(self.typed_parts(inputs, attrs)[1][-1], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """As ``evaluate_typed``; nothing of its parts depends on the width of floats."""
        values = flatten(inputs)
        kinds = tuple(TensorType(_dtype_of(value), np.shape(value)) for value in values)
        return self.evaluate_typed(values, kinds, attrs)

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        """Evaluate the parts, one after the other."""
        parts, kinds = self.typed_parts(types, attrs)
        values = list(flatten(inputs))
        for part in parts:
            own_kinds = tuple(kinds[number] for number in part.operands)
            own = [values[number] for number in part.operands]
            values.append(get_operator(part.op).evaluate_typed(own, own_kinds, part.attrs))
        return self.result(values, attrs)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        parts, kinds = self.typed_parts(types, attrs)
        values = list(flatten(inputs))
        for part in parts:
            own_kinds = tuple(kinds[number] for number in part.operands)
            own = [values[number] for number in part.operands]
            values.append(get_operator(part.op).evaluate_exact(own, own_kinds, part.attrs, field))
        return self.result(values, attrs)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Those of its largest part: its work on elements on their way counts nothing, as an
        activation's."""
        parts, kinds = self.typed_parts(inputs, attrs)
        flops = []
        first = sum(len(tensors_of(kind)) for kind in inputs)
        for number, part in enumerate(parts, first):
            own = tuple(kinds[operand] for operand in part.operands)
            flops.append(get_operator(part.op).flops(own, kinds[number], part.attrs))
        return max(flops)

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        parts, kinds = self.typed_parts(inputs, attrs)
        first = sum(len(tensors_of(kind)) for kind in inputs)
        return [
            work
            for number, part in enumerate(parts, first)
            for work in get_operator(part.op).works(
                tuple(kinds[operand] for operand in part.operands), kinds[number], part.attrs
            )
        ]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        parts, kinds = self.typed_parts(types, attrs)
        names = list(inputs)
        for number, part in enumerate(parts, len(types)):
            own_kinds = tuple(kinds[operand] for operand in part.operands)
            own = [names[operand] for operand in part.operands]
            names += get_operator(part.op).to_onnx(
                own, own_kinds, kinds[number], part.attrs, emitter
            )
        return names[-1:]


def _dtype_of(value: Any) -> str:
    return "bool" if np.asarray(value).dtype == bool else "float64"


def in_turn(first: FusedPart, *others: FusedPart | None) -> list[FusedPart]:
    """Return those parts that there are."""
    return [first, *(part for part in others if part is not None)]


def last_swapped(kind: TensorType) -> tuple[int, ...]:
    """Return the permutation that exchanges the last two axes."""
    axes: Sequence[int] = range(kind.rank)
    return (*axes[:-2], axes[-1], axes[-2])
