"""Parts of values: slices, splits and gathers of inputs are windows, of computed values those of operands.

So nothing is computed that a slice leaves out, and blocks have no slices. A piece of a concatenation is a
window, too, with zeros beside it, and the concatenation is the sum of its pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.regions.region_building import Building
from relational_tensat.mugraph.regions.region_values import Step, Taken, Value
from relational_tensat.mugraph.regions.relabelling import Atoms

#: Functions f with f(0) = 0, and those of two elements that are 0 where both are.
_KEEP_ZERO = frozenset({"erf", "gelu", "neg", "relu", "scale", "silu", "sqrt", "square", "tanh"})
_KEEP_ZERO_OF_BOTH = frozenset({"add", "mul", "sub"})


@dataclass(frozen=True, slots=True)
class Cut:
    """Which elements of a dim are taken: see ``Window``; ``last`` is None where none of them is 0."""

    offset: int
    step: int = 1
    first: int = 0
    last: int | None = None


class Parts:
    """Takes parts of the values of a program.

    Args:
        building: the program.
    """

    def __init__(self, building: Building) -> None:
        self._building = building
        self._known: dict[tuple[str, Atoms, Cut, Atoms], Value] = {}
        self._into: dict[tuple[str, Atoms, Cut, int], Atoms] = {}

    def part(self, value: Value, axis: int, cut: Cut, size: int) -> Value:
        """Return so many elements along an axis.

        Raises:
            ShapeError: no windows of inputs give them.
        """
        along = self._building.atoms.resolved(value.dims[axis])
        key = value.name, along, cut, size
        if key not in self._into:
            self._into[key] = self._building.atoms.new(size)
        return self._taken(value, axis, cut, self._into[key])

    def joined(self, values: Sequence[Value], axis: int) -> list[Value]:
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

    def view(self, value: Value) -> Value:
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

    def _taken(self, value: Value, axis: int, cut: Cut, into: Atoms) -> Value:
        along = self._building.atoms.resolved(value.dims[axis])
        dims = (*value.dims[:axis], into, *value.dims[axis + 1 :])
        taken = self._of(value.name, along, cut, into)
        return Value(taken.name, dims)

    def _of(self, name: str, along: Atoms, cut: Cut, into: Atoms) -> Value:
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

    def _of_input(self, name: str, along: Atoms, cut: Cut, into: Atoms) -> Value:
        value = self._building.value(name)
        dims = self._replaced(value, along, into) if along else (*value.dims, into)
        taken = Taken(name, "", along, into, cut.offset, cut.step, cut.first, cut.last)
        return self._building.take(taken, dims)

    def _of_result(self, maker: Step, along: Atoms, cut: Cut, into: Atoms) -> Value:
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

    def _carries(self, value: Value, along: Atoms) -> bool:
        own = {atom for dim in value.dims for atom in self._building.atoms.resolved(dim)}
        if own & set(along) and not own >= set(along):
            raise ShapeError("a part along a dim that an operand has only some of")
        return own >= set(along)

    def _replaced(self, value: Value, along: Atoms, into: Atoms) -> tuple[Atoms, ...]:
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
