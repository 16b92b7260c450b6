"""The operators of abstract expressions, known to the engine while it works on them.

Sums, products, quotients and exponentials are those of tensors, on scalars. A sum says how many elements it
is of; a function is opaque and has a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from relational_tensat.tensor.operators.attributes import Attr
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.registry import register, unregister
from relational_tensat.tensor.types import Attrs, TensorType

#: The type of every abstract expression.
SCALAR = TensorType("float32", ())


class AbstractSum(Operator):
    """The sum of ``size`` elements, whichever."""

    name = "abstract_sum"
    attrs = (Attr("size", "int"),)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the operand's type."""
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """Return the sum of equal elements."""
        return attrs["size"] * inputs[0]


class AbstractFunction(Operator):
    """A function of one element, or of two in their order, of which nothing is known but its name."""

    name = "abstract_function"
    arity = (1, 2)
    attrs = (Attr("function", "str"),)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the operand's type."""
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """Raise: it has no value.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(self.name)


class QuotientOrZero(Operator):
    """The quotient of two elements, 0 where the second is 0 or NaN; it has axioms of its own."""

    name = "div_or_zero"
    arity = (2, 2)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        """Return the operands' type."""
        return tensor(inputs[0], self.name)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """Return the quotient."""
        a, b = inputs
        return a / b if b else 0.0


_OPERATORS = (AbstractSum, AbstractFunction, QuotientOrZero)


@contextmanager
def abstract_operators() -> Iterator[None]:
    """Let the engine know the operators of abstract expressions in the block, and no longer."""
    for operator in _OPERATORS:
        register(operator)
    try:
        yield
    finally:
        for operator in _OPERATORS:
            unregister(operator.name)
