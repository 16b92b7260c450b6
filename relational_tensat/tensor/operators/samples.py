"""How random applications of an operator are drawn: operands that fit it, and bounds on results.

Nothing suggested here has to be right, only often right: the operator's own shape rule decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from relational_tensat.tensor.hints import Hints, Shape
from relational_tensat.tensor.operators.attributes import Attr
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import Attrs, AttrValue, TensorType, ValueType

#: Scale of random weights that are added: small, so that the inputs and not these decide the outputs.
ADDED_SCALE = 0.1
#: Numbers for attributes that values are computed with: of both signs, 0 and 1 among them.
NUMBERS = (1.0, 0.0, 2.0, -1.5, -0.5, 0.25)


class PartialApplication(NamedTuple):
    """An application of an operator while it is drawn.

    Attributes:
        result: the type that the result should have; None if any will do.
        operands: their types; None for those that are not known yet.
        attrs: the attributes that are known already.
    """

    result: ValueType | None
    operands: Sequence[ValueType | None]
    attrs: Mapping[str, AttrValue]

    @property
    def target(self) -> Shape | None:
        """The shape that the result should have, if it is one tensor."""
        return shape_of(self.result)

    @property
    def shapes(self) -> list[Shape | None]:
        """The operands' shapes; None of tuples and of what is not known."""
        return [shape_of(operand) for operand in self.operands]


class Sampling:
    """How random applications and values are drawn; part of ``Operator``."""

    #: The use of each operand; the last entry holds for all further ones, an empty tuple means ``VALUE``.
    uses: ClassVar[tuple[Use, ...]] = ()
    #: Whether it has no value where an operand is 0.
    divides: ClassVar[bool] = False

    def use_of(self, operand: int) -> Use:
        """Return what the operator does with an operand, given by its index."""
        return self.uses[min(operand, len(self.uses) - 1)] if self.uses else Use.VALUE

    def index_range(self, inputs: tuple[ValueType, ...], attrs: Attrs) -> int:
        """Return how many positions there are for operands of ``Use.INDEX``."""
        raise NotImplementedError(f"{type(self).__name__} has no operand of Use.INDEX")

    def summed_terms(self, inputs: tuple[ValueType, ...]) -> int | None:
        """Return how many products of elements of the first two operands an element is the sum of.

        None unless the result is such sums (matrix products, convolutions).
        """
        return None

    def growth(self, sizes: Sequence[float], inputs: tuple[ValueType, ...], attrs: Attrs) -> float:
        """Estimate the root mean square of the result from those of the operands.

        The largest operand's unless overridden; not called for operators with ``summed_terms``.
        """
        return max(sizes, default=1.0)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Suggest a type for the operand ``index``, which is not known yet; None for no idea.

        The result's unless overridden.
        """
        return partial.result if isinstance(partial.result, TensorType) else None

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """Suggest a value for an attribute without ``choices``, all operands being known.

        Unless overridden one of ``attr.samples``, or what suits the kind, and axes of the first
        operand for ``axis`` and ``axes``.
        """
        if attr.samples:
            return hints.choices.choice(attr.samples)
        shape = partial.shapes[0] if partial.operands else None
        rank = len(shape or ())
        match attr.name, attr.kind:
            case "axis", _:
                return hints.choices.below(max(1, rank))
            case "axes", _:
                count = hints.choices.between(min(1, rank), rank)
                return tuple(hints.choices.sample(range(rank), count))
            case _, "dtype":
                return hints.dtype if hints.choices.often() else "float32"
            case _, "bool":
                return hints.choices.below(2) == 1
        return _PLAIN.get(attr.kind, 0)


_PLAIN: dict[str, AttrValue] = {
    "int": 1, "float": 1.0, "str": "", "ints": (), "floats": (), "padding": "valid",
}  # fmt: skip


def shape_of(kind: ValueType | None) -> Shape | None:
    """Return the shape of a tensor; None of a tuple, or of what is not known."""
    return kind.shape if isinstance(kind, TensorType) else None


def ints_in(value: AttrValue) -> Shape:
    """Return the integers of an attribute's value."""
    return (
        tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else ()
    )
