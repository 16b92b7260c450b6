"""The operators of μGraphs, one description each: levels, dims, meaning.

They are those of the paper's Table 1 (Repeat and Reshape included; Reshape is ``split``, ``merge`` and
``rename``), functions of one element, the root mean square, and the product of two concatenations that the
paper adds for LoRA. Operands are aligned by index variables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, cast

from relational_tensat.base.errors import ShapeError, unknown
from relational_tensat.mugraph.graph.arithmetic import FUNCTIONS, Arithmetic, Elements
from relational_tensat.mugraph.graph.dims import (
    Dim,
    Dims,
    checked,
    count,
    size_of,
    union,
    variables,
    without,
)
from relational_tensat.mugraph.graph.labelled import Labelled, contract, elementwise, summed
from relational_tensat.tensor.types import Attrs

#: The levels: a whole device, a thread block, a thread.
LEVELS = ("kernel", "block", "thread")


class MuOperator(ABC):
    """A pre-defined operator at some levels. Stateless: one instance serves all."""

    name: str
    arity: ClassVar[int] = 1
    levels: ClassVar[tuple[str, ...]] = LEVELS
    #: The names of its attributes, each of which must be given.
    attrs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims of the result.

        Raises:
            ShapeError: the operands do not fit.
        """

    @abstractmethod
    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Return the result; operands may have further labels (blocks, iterations), which are kept."""

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        """Return the number of arithmetic operations; one per element of the largest tensor."""
        return max(count(dims) for dims in (*operands, result))


class _OfOneElement(MuOperator):
    """A result of the operand's dims."""

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the operand's dims."""
        return operands[0]


class Function(_OfOneElement):
    """A function of one element."""

    def __init__(self, name: str) -> None:
        self.name = name

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Apply it."""
        (x,) = operands
        return Labelled(x.labels, arithmetic.function(self.name, x.data))


class Scale(_OfOneElement):
    """A number times a tensor."""

    name = "scale"
    attrs = ("value",)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Multiply."""
        (x,) = operands
        return Labelled(x.labels, arithmetic.scale(x.data, cast(float, attrs["value"])))


class Shift(_OfOneElement):
    """A number added to a tensor."""

    name = "shift"
    attrs = ("value",)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Add."""
        (x,) = operands
        return Labelled(x.labels, arithmetic.shift(x.data, cast(float, attrs["value"])))


_Binary = Callable[[Arithmetic], Callable[[Elements, Elements], Elements]]


class Elementwise(MuOperator):
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
        """Apply it."""
        return elementwise(self._method(arithmetic), *operands)


class _Reduction(MuOperator):
    attrs: ClassVar[tuple[str, ...]] = ("over",)

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims that are left."""
        _require(self.name, names(attrs, "over"), operands[0])
        return without(operands[0], names(attrs, "over"))


class Sum(_Reduction):
    """The sum over index variables."""

    name = "sum"

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Add up."""
        return summed(arithmetic, operands[0], names(attrs, "over"))


class Largest(_Reduction):
    """The largest element over index variables; only numbers have one."""

    name = "max"

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Compare."""
        x, over = operands[0], names(attrs, "over")
        kept = tuple(label for label in x.labels if label not in over)
        return Labelled(kept, arithmetic.largest(x.data, x.axes(over)))


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


class Matmul(MuOperator):
    """Products summed over the variables ``over``; the others that both operands have are a batch."""

    name = "matmul"
    arity = 2
    attrs = ("over",)

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the batch, the first operand's own dims, the second's."""
        first, second = operands
        over = names(attrs, "over")
        for dims in operands:
            _require(self.name, over, dims)
        union(first, second, self.name)
        shared = set(variables(first)) & set(variables(second)) - set(over)
        batch = tuple(dim for dim in first if dim.variable in shared)
        own = [without(dims, (*over, *shared)) for dims in operands]
        return batch + own[0] + own[1]

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Contract."""
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
        """Add the two products."""
        w, x, y, z = operands
        first, second = names(attrs, "over")
        one, other = contract(arithmetic, w, y, [first]), contract(arithmetic, x, z, [second])
        return elementwise(arithmetic.add, one, other)

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        """Return those of the two products."""
        w, x, y, z = operands
        return MATMUL.flops((w, y), result) + MATMUL.flops((x, z), result)


class _View(MuOperator):
    """Moves nothing: other names of the same elements."""

    levels = ("kernel", "block")

    def flops(self, operands: Sequence[Dims], result: Dims) -> int:
        """Return none."""
        return 0


class Rename(_View):
    """Another name of an index variable."""

    name = "rename"
    attrs = ("variable", "into")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with the new name."""
        old, new = str(attrs["variable"]), str(attrs["into"])
        _require(self.name, [old], operands[0])
        dims = (Dim(new, d.size) if d.variable == old else d for d in operands[0])
        return checked(tuple(dims), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Rename."""
        return operands[0].renamed(str(attrs["variable"]), str(attrs["into"]))


class Split(_View):
    """One index variable as several (names ``into``, of sizes ``sizes``), the slowest first."""

    name = "split"
    attrs = ("variable", "into", "sizes")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with the parts in the variable's place."""
        old, parts = str(attrs["variable"]), self._parts(attrs)
        _require(self.name, [old], operands[0])
        dims: list[Dim] = []
        for dim in operands[0]:
            dims.extend(parts if dim.variable == old else [dim])
        if count(parts) != size_of(operands[0], old):
            raise ShapeError(
                f"split: {old} has {size_of(operands[0], old)} values, not {count(parts)}"
            )
        return checked(tuple(dims), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Reshape."""
        parts = [(part.variable, part.size) for part in self._parts(attrs)]
        return operands[0].split(str(attrs["variable"]), parts)

    @staticmethod
    def _parts(attrs: Attrs) -> Dims:
        sizes = cast(tuple[int, ...], attrs["sizes"])
        return tuple(map(Dim, names(attrs, "into"), sizes))


class Merge(_View):
    """Several index variables as one (``into``), the first the slowest."""

    name = "merge"
    attrs = ("variables", "into")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims with the whole in the end."""
        merged = names(attrs, "variables")
        _require(self.name, merged, operands[0])
        size = count(tuple(dim for dim in operands[0] if dim.variable in merged))
        return checked((*without(operands[0], merged), Dim(str(attrs["into"]), size)), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Reshape."""
        return operands[0].merged(names(attrs, "variables"), str(attrs["into"]))


class Repeat(_View):
    """The same elements for each value of a new index variable."""

    name = "repeat"
    attrs = ("variable", "size")

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        """Return the dims and the new one."""
        new = Dim(str(attrs["variable"]), cast(int, attrs["size"]))
        return checked((*operands[0], new), self.name)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        """Broadcast."""
        return operands[0].repeated(str(attrs["variable"]), cast(int, attrs["size"]))


def names(attrs: Attrs, attr: str) -> tuple[str, ...]:
    """Return an attribute that is a list of index variables."""
    return cast(tuple[str, ...], attrs[attr])


def root_mean_square(
    arithmetic: Arithmetic, x: Labelled, over: Sequence[str], epsilon: float
) -> Labelled:
    """Return sqrt(mean of x² + epsilon) over labels."""
    square = Labelled(x.labels, arithmetic.multiply(x.data, x.data))
    total = summed(arithmetic, square, over)
    mean = arithmetic.scale(total.data, Fraction(1, math.prod(x.size(label) for label in over)))
    shifted = arithmetic.shift(mean, epsilon) if epsilon else mean
    return Labelled(total.labels, arithmetic.function("sqrt", shifted))


def _require(name: str, needed: Sequence[str], dims: Dims) -> None:
    for variable in needed:
        if variable not in variables(dims):
            raise ShapeError(
                f"{name}: no dim carries {variable!r}, but {', '.join(variables(dims))}"
            )


MATMUL = Matmul()
_DESCRIPTIONS: tuple[MuOperator, ...] = (
    MATMUL,
    ConcatMatmul(),
    Sum(),
    Largest(),
    RootMeanSquare(),
    Elementwise("add", lambda arithmetic: arithmetic.add),
    Elementwise("sub", lambda arithmetic: arithmetic.subtract),
    Elementwise("mul", lambda arithmetic: arithmetic.multiply),
    Elementwise("div", lambda arithmetic: arithmetic.divide),
    Scale(),
    Shift(),
    *map(Function, FUNCTIONS),
    Rename(),
    Split(),
    Merge(),
    Repeat(),
)

#: The operators by name.
OPERATORS: Mapping[str, MuOperator] = {operator.name: operator for operator in _DESCRIPTIONS}


def mu_operator(name: str) -> MuOperator:
    """Return the operator of that name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    if name not in OPERATORS:
        raise unknown("operator of μGraphs", name, OPERATORS)
    return OPERATORS[name]
