"""Parts of values: slices, splits and gathers of inputs are windows, of computed values those of operands.

So nothing is computed that a slice leaves out, and blocks have no slices. A piece of a concatenation is a
window, too, with zeros beside it, and the concatenation is the sum of its pieces. Windows that slide over
an image are windows of inputs only: what they are of would be computed for each tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.regions.region_program import (
    Atoms,
    Building,
    RegionStep,
    RegionValue,
    TakenPart,
)
from relational_tensat.tensor import Weight
from relational_tensat.tensor.spellings import FUNCTIONS

#: Functions f with f(0) = 0, and those of two elements that are 0 where both are.
_KEEP_ZERO = frozenset({"scale", *(op for op, each in FUNCTIONS.items() if each.keeps_zero)})
_KEEP_ZERO_OF_BOTH = frozenset({"add", "mul", "sub"})


@dataclass(frozen=True, slots=True)
class Factored:
    """Products of one factor.

    Attributes:
        factor: the common factor, as their first factor or their second.
        is_first: whether it is their first.
        others: the other factors.
        axis: of these, the one that the products' axis comes from.
        over: the variables that they are summed over.
    """

    factor: RegionValue
    is_first: bool
    others: tuple[RegionValue, ...]
    axis: int
    over: Atoms


@dataclass(frozen=True, slots=True)
class Cut:
    """The elements of a dim that are taken: see ``Window``; ``last`` is None if none of them is 0."""

    offset: int
    step: int = 1
    first: int = 0
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Slide:
    """How windows slide along an axis.

    Attributes:
        taps: the variables of what a window shows.
        stride: from one window to the next.
        dilation: from one tap to the next.
        before: zeros before the first element.
    """

    taps: Atoms
    stride: int
    dilation: int
    before: int


def gathered(weight: Weight | None, size: int) -> tuple[Cut, int]:
    """Return which elements of a dim of that size indices name, and how many.

    Raises:
        ShapeError: they are no constants, or are not at one distance, ascending.
    """
    if weight is None or weight.data is None:
        raise ShapeError("gather by an input is no operator of μGraphs")
    indices = np.asarray(weight.data) % size
    if indices.size == 1:
        return Cut(int(indices.item())), 1
    if indices.ndim != 1:
        raise ShapeError("gather by a table of indices is no window")
    steps = np.unique(np.diff(indices))
    if len(steps) != 1 or steps[0] < 1:
        raise ShapeError("gather by indices at several distances, or backwards, is no window")
    return Cut(int(indices[0]), int(steps[0])), indices.size


class ValueParts:
    """Takes parts of the values of a program.

    Args:
        building: the program.
    """

    def __init__(self, building: Building) -> None:
        self._building = building
        self._known: dict[tuple[str, Atoms, Cut, Atoms], RegionValue] = {}
        self._into: dict[tuple[str, Atoms, Cut, int], Atoms] = {}

    def part(self, value: RegionValue, axis: int, cut: Cut, size: int) -> RegionValue:
        """Return so many elements along an axis.

        Raises:
            ShapeError: no windows of inputs give them.
        """
        along = self._building.atoms.resolved(value.dims[axis])
        key = value.name, along, cut, size
        if key not in self._into:
            self._into[key] = self._building.atoms.new(size)
        return self._taken(value, axis, cut, self._into[key])

    def joined(self, values: Sequence[RegionValue], axis: int) -> list[RegionValue]:
        """Return values as they are within their concatenation along an axis, each with zeros beside it.

        Raises:
            ShapeError: no windows of inputs give one of them.
        """
        atoms = self._building.atoms
        sizes = [atoms.size(value.dims[axis]) for value in values]
        into = atoms.new(sum(sizes))
        result, start = [], 0
        for value, size in zip(values, sizes, strict=True):
            cut = Cut(-start, 1, start, start + size)
            result.append(self._taken(value, axis, cut, into))
            start += size
        return result

    def slid(self, value: RegionValue, axis: int, size: int, slide: Slide) -> RegionValue:
        """Return the elements that windows show which slide along an axis, taps as one more dim.

        Raises:
            ShapeError: the value is computed, or no window shows anything of it.
        """
        building, atoms = self._building, self._building.atoms
        if building.made_by(value.name) is not None or value.number is not None:
            raise ShapeError("windows slide over what is computed")
        along, taps = atoms.resolved(value.dims[axis]), atoms.resolved(slide.taps)
        places = atoms.new(size)
        into = (*places, *taps)
        strides = [slide.stride] * len(places)
        rest = slide.dilation * atoms.size(taps)
        for tap in taps:
            rest //= atoms.size((tap,))
            strides.append(rest)
        extent = 1 + slide.stride * (size - 1) + slide.dilation * (atoms.size(taps) - 1)
        last = min(extent, slide.before + atoms.size(along))
        if slide.before >= last:
            raise ShapeError("windows that show nothing but zeros")
        dims = self._replaced(value, along, places) if along else value.dims
        taken = TakenPart(
            value.name, "", along, into, -slide.before, 1, slide.before, last, tuple(strides)
        )
        made = building.take(taken, (*dims, taps) if along else (*dims, places, taps))
        own = (*value.dims[:axis], places, *value.dims[axis + 1 :], taps)
        return RegionValue(made.name, own)

    def factored(self, values: Sequence[RegionValue], axis: int) -> Factored | None:
        """Return values as products of one factor that has nothing of an axis; None without such a factor.

        Joined along the axis, they are its product with the others, joined: [X·V | X·W] is X·[V | W],
        without a product of zeros.
        """
        atoms, building = self._building.atoms, self._building
        makers = [building.made_by(value.name) for value in values]
        steps = [maker for maker in makers if maker is not None and maker.op == "matmul"]
        if len(steps) < len(values) or len({atoms.resolved(step.over) for step in steps}) > 1:
            return None
        for place in (0, 1):
            if len({step.operands[place] for step in steps}) > 1:
                continue
            others = tuple(building.value(step.operands[1 - place]) for step in steps)
            dims = [[atoms.resolved(dim) for dim in other.dims] for other in others]
            along = [atoms.resolved(value.dims[axis]) for value in values]
            axes = {
                own.index(dim) if dim and dim in own else -1
                for own, dim in zip(dims, along, strict=True)
            }
            factor = building.value(steps[0].operands[place])
            if len(axes) == 1 and min(axes) >= 0:
                return Factored(factor, place == 0, others, min(axes), steps[0].over)
        return None

    def view(self, value: RegionValue) -> RegionValue:
        """Return a value with index variables of its own, computed of windows of inputs.

        Raises:
            ShapeError: no windows of inputs give it.
        """
        view = value
        for axis, dim in enumerate(value.dims):
            if dim:
                into = self._building.atoms.new(self._building.atoms.size(dim))
                view = self._taken(view, axis, Cut(0), into)
        self._building.note_view(value, view)
        return view

    def _taken(self, value: RegionValue, axis: int, cut: Cut, into: Atoms) -> RegionValue:
        along = self._building.atoms.resolved(value.dims[axis])
        dims = (*value.dims[:axis], into, *value.dims[axis + 1 :])
        taken = self._of(value.name, along, cut, into)
        return RegionValue(taken.name, dims)

    def _of(self, name: str, along: Atoms, cut: Cut, into: Atoms) -> RegionValue:
        """Return a window of an input, or the operator of windows of its operands."""
        key = name, along, cut, into
        if key not in self._known:
            maker = self._building.made_by(name)
            self._known[key] = (
                self._of_input(name, along, cut, into)
                if maker is None
                else self._of_result(maker, along, cut, into)
            )
        return self._known[key]

    def _of_input(self, name: str, along: Atoms, cut: Cut, into: Atoms) -> RegionValue:
        value = self._building.value(name)
        dims = self._replaced(value, along, into) if along else (*value.dims, into)
        taken = TakenPart(name, "", along, into, cut.offset, cut.step, cut.first, cut.last)
        return self._building.take(taken, dims)

    def _of_result(self, maker: RegionStep, along: Atoms, cut: Cut, into: Atoms) -> RegionValue:
        building = self._building
        if not along:
            raise ShapeError(f"a concatenation of {maker.op} along a dim of one element")
        carry = [self._carries(building.value(name), along) for name in maker.operands]
        if cut.last is not None and not _keeps_zero(maker.op, carry):
            raise ShapeError(f"a concatenation of {maker.op}, which gives no zeros for zeros")
        operands = [
            self._of(name, along, cut, into) if carries else building.value(name)
            for name, carries in zip(maker.operands, carry, strict=True)
        ]
        dims = self._replaced(building.value(maker.output), along, into)
        return building.emit(maker.op, operands, dims, maker.over, **dict(maker.attrs))

    def _carries(self, value: RegionValue, along: Atoms) -> bool:
        own = {atom for dim in value.dims for atom in self._building.atoms.resolved(dim)}
        if own & set(along) and not own >= set(along):
            raise ShapeError("a part along a dim that an operand has only some of")
        return own >= set(along)

    def _replaced(self, value: RegionValue, along: Atoms, into: Atoms) -> tuple[Atoms, ...]:
        """Return dims with some atoms of one of them replaced."""
        dims, found = [], False
        for dim in value.dims:
            atoms = self._building.atoms.resolved(dim)
            for start in range(len(atoms) - len(along) + 1):
                if atoms[start : start + len(along)] == along:
                    atoms = (*atoms[:start], *into, *atoms[start + len(along) :])
                    found = True
                    break
            dims.append(atoms)
        if not found:
            raise ShapeError("a part across dims")
        return tuple(dims)


def _keeps_zero(op: str, carry: Sequence[bool]) -> bool:
    """Whether an operator gives 0 where all operands that carry the dim are 0."""
    return op in _KEEP_ZERO or (op in _KEEP_ZERO_OF_BOTH and all(carry))
