"""The operators of μGraphs, one description each: levels, dims, meaning.

They are those of the paper's Table 1, functions of one element, the root mean square, and the product of
two concatenations that the paper adds for LoRA. (Repeat and Reshape are in ``mu_operator``; Reshape is
``split``, ``merge`` and ``rename``.) Operands are aligned by index variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar, cast

from relational_tensat.base.errors import ShapeError, UsageError, unknown
from relational_tensat.mugraph.graph.arithmetic import (
    COMPARISONS,
    FUNCTIONS,
    Arithmetic,
    Elements,
    Labelled,
    contract,
    elementwise,
    summed,
)
from relational_tensat.mugraph.graph.dims import Dims, count, union, variables, without
from relational_tensat.mugraph.graph.mu_operator import VIEWS, MuOperator, names, require
from relational_tensat.tensor.types import Attrs


class _OfOneElement(MuOperator):
    """A result of the operand's dims."""

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        return operands[0]


class MuFunction(_OfOneElement):
    """A function of one element."""

    def __init__(self, name: str) -> None:
        self.name = name

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        (x,) = operands
        return Labelled(x.labels, arithmetic.function(self.name, x.data))


class Scale(_OfOneElement):
    """A number times a tensor."""

    name = "scale"
    attrs = ("value",)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        (x,) = operands
        return Labelled(x.labels, arithmetic.scale(x.data, cast(float, attrs["value"])))


class Shift(_OfOneElement):
    """A number added to a tensor."""

    name = "shift"
    attrs = ("value",)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        (x,) = operands
        return Labelled(x.labels, arithmetic.shift(x.data, cast(float, attrs["value"])))


class Power(_OfOneElement):
    """A tensor to the power of a number."""

    name = "power"
    attrs = ("value",)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        (x,) = operands
        return Labelled(x.labels, arithmetic.power(x.data, float(cast(float, attrs["value"]))))


class ComparedWith(_OfOneElement):
    """1 where a comparison with a number holds, and 0 elsewhere."""

    attrs = ("value",)

    def __init__(self, comparison: str) -> None:
        self.name = f"is_{comparison}"
        self._comparison = comparison

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        (x,) = operands
        number = float(cast(float, attrs["value"]))
        return Labelled(x.labels, arithmetic.compared(self._comparison, x.data, number))


_Binary = Callable[[Arithmetic], Callable[[Elements, Elements], Elements]]


class MuElementwise(MuOperator):
    """A function of two elements; each operand is repeated over the variables that it lacks."""

    arity = 2

    def __init__(self, name: str, method: _Binary) -> None:
        self.name = name
        self._method = method

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the union of the dims."""
        return union(operands[0], operands[1], self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        return elementwise(self._method(arithmetic), *operands)


def _comparison(name: str) -> MuElementwise:
    """Return 1 where a comparison of two elements holds, and 0 elsewhere, as an operator."""
    return MuElementwise(name, lambda arithmetic: partial(arithmetic.compared, name))


class Keep(MuOperator):
    """The second operand's element where the first's is not 0, and a number elsewhere."""

    name = "keep"
    arity = 2
    attrs = ("value",)

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the union of the dims."""
        return union(operands[0], operands[1], self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        value = float(cast(float, attrs["value"]))
        return elementwise(partial(arithmetic.kept, value=value), *operands)


class _Reduction(MuOperator):
    attrs: ClassVar[tuple[str, ...]] = ("over",)

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        require(self.name, names(attrs, "over"), operands[0])
        return without(operands[0], names(attrs, "over"))


class MuSum(_Reduction):
    """The sum over index variables."""

    name = "sum"

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        return summed(arithmetic, operands[0], names(attrs, "over"))


class Largest(_Reduction):
    """The largest element over index variables, at least the lowest finite one; only numbers have it."""

    name = "max"

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        x, over = operands[0], names(attrs, "over")
        kept = tuple(label for label in x.labels if label not in over)
        return Labelled(kept, arithmetic.largest(x.data, x.axes(over)))


class MuReduceMax(_Reduction):
    """The largest element over index variables as a model has it: -inf where all are."""

    name = "reduce_max"

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        x, over = operands[0], names(attrs, "over")
        kept = tuple(label for label in x.labels if label not in over)
        return Labelled(kept, arithmetic.reduce_max(x.data, x.axes(over)))


class RootMeanSquare(_Reduction):
    """sqrt(mean of x² + epsilon) over index variables."""

    name = "rms"
    attrs = ("over", "epsilon")

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Square, add up, divide, take the root."""
        x, over = operands[0], names(attrs, "over")
        return root_mean_square(arithmetic, x, over, cast(float, attrs["epsilon"]))


class MuMatmul(MuOperator):
    """Products summed over the variables ``over``; the others that both operands have are a batch."""

    name = "matmul"
    arity = 2
    attrs = ("over",)

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the batch, the first operand's own dims, the second's."""
        first, second = operands
        over = names(attrs, "over")
        for dims in operands:
            require(self.name, over, dims)
        union(first, second, self.name)
        shared = set(variables(first)) & set(variables(second)) - set(over)
        batch = tuple(dim for dim in first if dim.variable in shared)
        own = [without(dims, (*over, *shared)) for dims in operands]
        return batch + own[0] + own[1]

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        first, second = operands
        return contract(arithmetic, first, second, names(attrs, "over"))

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        """Return a product and a sum for each element of both operands' union."""
        return 2 * count(union(operands[0], operands[1], self.name))


class ConcatMatmul(MuOperator):
    """[W ‖ X]·[Y ‖ Z] = W·Y + X·Z: W and Y share the first of ``over``, X and Z the second."""

    name = "concat_matmul"
    arity = 4
    attrs = ("over",)
    levels = ("kernel", "block")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims of each of the two products, which must agree."""
        w, x, y, z = operands
        first, second = names(attrs, "over")
        one = MATMUL.infer((w, y), {"over": (first,)})
        other = MATMUL.infer((x, z), {"over": (second,)})
        if set(one) != set(other):
            raise ShapeError(f"{self.name}: the two products have other dims: {one}, {other}")
        return one

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        w, x, y, z = operands
        first, second = names(attrs, "over")
        one, other = contract(arithmetic, w, y, [first]), contract(arithmetic, x, z, [second])
        return elementwise(arithmetic.add, one, other)

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        w, x, y, z = operands
        return MATMUL.flops((w, y), result) + MATMUL.flops((x, z), result)


def root_mean_square(
    arithmetic: Arithmetic, x: Labelled, over: Sequence[str], epsilon: float, size: int = 0
) -> Labelled:
    """Return sqrt(mean of x² + epsilon) over labels, of so many elements, or of all."""
    square = Labelled(x.labels, arithmetic.multiply(x.data, x.data))
    total = summed(arithmetic, square, over)
    size = size or math.prod(x.size(label) for label in over)
    mean = arithmetic.scale(total.data, Fraction(1, size))
    shifted = arithmetic.shift(mean, epsilon) if epsilon else mean
    return Labelled(total.labels, arithmetic.function("sqrt", shifted))


MATMUL = MuMatmul()
_DESCRIPTIONS: tuple[MuOperator, ...] = (
    MATMUL,
    ConcatMatmul(),
    MuSum(),
    Largest(),
    MuReduceMax(),
    RootMeanSquare(),
    MuElementwise("add", lambda arithmetic: arithmetic.add),
    MuElementwise("sub", lambda arithmetic: arithmetic.subtract),
    MuElementwise("mul", lambda arithmetic: arithmetic.multiply),
    MuElementwise("div", lambda arithmetic: arithmetic.divide),
    MuElementwise("pow", lambda arithmetic: arithmetic.power),
    MuElementwise("div_or_zero", lambda arithmetic: arithmetic.divide_or_zero),
    Keep(),
    *map(_comparison, ("less", "less_or_equal", "equal")),
    *map(ComparedWith, COMPARISONS),
    Scale(),
    Shift(),
    Power(),
    *map(MuFunction, FUNCTIONS),
    *VIEWS,
)

#: The operators by name.
OPERATORS: dict[str, MuOperator] = {operator.name: operator for operator in _DESCRIPTIONS}


def register(operator: MuOperator) -> None:
    """Make an operator known in this process: programs and μGraphs, also those in files, may have it.

    It is tested by what it computes itself. A search takes its ``parts``, once random tests have shown that
    these compute the same; without any, programs with it are tested, but nothing is sought for them.

    Raises:
        UsageError: another one has its name.
    """
    if OPERATORS.setdefault(operator.name, operator) is not operator:
        raise UsageError(f"there is an operator of μGraphs named {operator.name!r} already")


def mu_operator(name: str) -> MuOperator:
    """Return the operator of that name.

    Raises:
        UsageError: no operator has that name; names the nearest.
    """
    if name not in OPERATORS:
        raise unknown("operator of μGraphs", name, OPERATORS)
    return OPERATORS[name]
