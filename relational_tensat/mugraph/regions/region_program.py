"""A region's program while it is built: values with dims of atoms, inputs, windows of them, steps.

A dim is a sequence of atoms, the slowest first; a reshape that merges dims makes a longer sequence, one
that splits a dim splits atoms, everywhere at once. Dims that an operator aligns are the same atom. In the
end atoms are index variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError
from relational_tensat.mugraph.graph.dims import Dim, Dims, Window, composed, variables
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.tensor.types import AttrValue

#: A dim: its atoms; none for a dim of size 1.
Atoms: TypeAlias = tuple[int, ...]


class IndexAtoms:
    """All atoms of a region: their sizes, and what became of those that were split or identified."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._became: dict[int, Atoms] = {}

    def copy(self) -> IndexAtoms:
        """Return the same atoms, to be split and identified apart from these."""
        other = IndexAtoms()
        other._sizes, other._became = list(self._sizes), dict(self._became)
        return other

    def new(self, size: int) -> Atoms:
        """Return a dim of a new atom."""
        if size == 1:
            return ()
        self._sizes.append(size)
        return (len(self._sizes) - 1,)

    def size(self, dim: Atoms) -> int:
        """Return the number of values of a dim."""
        return math.prod(self._sizes[atom] for atom in dim)

    def resolved(self, dim: Atoms) -> Atoms:
        """Return a dim by the atoms that there are now."""
        result: list[int] = []
        for atom in dim:
            result += self.resolved(self._became[atom]) if atom in self._became else [atom]
        return tuple(result)

    def identify(self, one: Atoms, other: Atoms) -> None:
        """Let two dims be the same.

        Raises:
            ShapeError: their sizes have no common factors to split by.
        """
        first, second = list(self.resolved(one)), list(self.resolved(other))
        while first and second:
            a, b = first[0], second[0]
            if a == b:
                first, second = first[1:], second[1:]
            elif self._sizes[a] == self._sizes[b]:
                self._became[b] = (a,)
            elif self._sizes[a] < self._sizes[b]:
                self._split(b, self._sizes[a])
            else:
                self._split(a, self._sizes[b])
            first, second = list(self.resolved(tuple(first))), list(self.resolved(tuple(second)))
        if first or second:
            raise ShapeError("dims of different sizes are aligned")

    def regrouped(self, dims: Sequence[Atoms], shape: Sequence[int]) -> list[Atoms]:
        """Return the dims of a reshape.

        Raises:
            ShapeError: an atom would have to be split by a number that does not divide it.
        """
        flat = list(self.resolved(tuple(atom for dim in dims for atom in dim)))
        result = []
        for size in shape:
            group: list[int] = []
            while self.size(tuple(group)) < size:
                need = size // self.size(tuple(group))
                if self._sizes[flat[0]] > need:
                    self._split(flat[0], need)
                    flat = list(self.resolved(tuple(flat)))
                group.append(flat.pop(0))
            if self.size(tuple(group)) != size:
                raise ShapeError(f"a reshape to {tuple(shape)} cuts across dims")
            result.append(tuple(group))
        return result

    def _split(self, atom: int, first: int) -> None:
        if self._sizes[atom] % first:
            raise ShapeError(f"a dim of {self._sizes[atom]} would be split by {first}")
        self._became[atom] = (*self.new(first), *self.new(self._sizes[atom] // first))


@dataclass(frozen=True, slots=True)
class RegionValue:
    """A tensor of the region: its name in the program, its dims by position; ``number`` if it is one."""

    name: str
    dims: tuple[Atoms, ...]
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """A root of a mean square of ``x`` over the atoms ``over``, or a part on the way to it."""

    x: RegionValue
    over: Atoms
    stage: str
    epsilon: float = 0.0


@dataclass(frozen=True, slots=True)
class RegionStep:
    """An operator of the program; ``over`` are atoms."""

    op: str
    operands: tuple[str, ...]
    output: str
    over: Atoms = ()
    attrs: tuple[tuple[str, AttrValue], ...] = ()


@dataclass(frozen=True, slots=True)
class TakenPart:
    """A window of an operand, by atoms: see ``Window``."""

    operand: str
    output: str
    along: Atoms
    into: Atoms
    offset: int = 0
    step: int = 1
    first: int = 0
    last: int | None = None
    strides: tuple[int, ...] = ()


_LETTERS = "hqdkemnfrbcgijlopstuvwxyz"


class Building:
    """The parts of a program so far.

    Attributes:
        atoms: of its dims.
        inputs: by the model's names.
        conditions: the model's names of inputs whose elements are bools.
    """

    def __init__(self) -> None:
        self.atoms = IndexAtoms()
        self.inputs: dict[str, RegionValue] = {}
        self.conditions: set[str] = set()
        self._steps: dict[str, RegionStep] = {}
        self._taken: dict[str, TakenPart] = {}
        self._values: dict[str, RegionValue] = {}
        self._views: list[tuple[RegionValue, RegionValue]] = []

    def value(self, name: str) -> RegionValue:
        """Return a tensor of the program."""
        return self._values[name]

    def made_by(self, name: str) -> RegionStep | None:
        """Return the operator that makes a tensor; None for inputs and windows of them."""
        return self._steps.get(name)

    def read(self, name: str, shape: Sequence[int]) -> RegionValue:
        """Return an input of the program, that value of the model."""
        if name not in self.inputs:
            output = f"in{len(self.inputs)}"
            self.inputs[name] = self._added(output, tuple(map(self.atoms.new, shape)))
        return self.inputs[name]

    def note_view(self, whole: RegionValue, view: RegionValue) -> None:
        """Note that a value is another one with index variables of its own."""
        self._views.append((whole, view))

    def emit(
        self,
        op: str,
        operands: Sequence[RegionValue],
        dims: Sequence[Atoms],
        over: Atoms = (),
        **attrs: AttrValue,
    ) -> RegionValue:
        """Add a step; return its result.

        Raises:
            ShapeError: an operand is a number.
        """
        for operand in operands:
            if operand.number is not None:
                raise ShapeError(f"{op} of a number")
        output = f"t{len(self._steps) + 1}"
        names = tuple(operand.name for operand in operands)
        self._steps[output] = RegionStep(op, names, output, over, tuple(attrs.items()))
        return self._added(output, tuple(dims))

    def take(self, taken: TakenPart, dims: Sequence[Atoms]) -> RegionValue:
        """Add a window of an input, or of a window of one; return it."""
        output = f"w{len(self._taken) + 1}"
        self._taken[output] = TakenPart(
            taken.operand, output, taken.along, taken.into,
            taken.offset, taken.step, taken.first, taken.last, taken.strides,
        )  # fmt: skip
        return self._added(output, tuple(dims))

    def join_views(self, outputs: Sequence[RegionValue]) -> None:
        """Let views be what they are views of, unless a tensor has an index variable twice then."""
        live = self._live(outputs)
        for whole, view in self._views:
            if view.name not in live:
                continue
            before = self.atoms.copy()
            try:
                for mine, other in zip(whole.dims, view.dims, strict=True):
                    if mine:
                        self.atoms.identify(mine, other)
                is_joined = not self._has_twice(live)
            except ShapeError:
                is_joined = False
            if not is_joined:
                self.atoms = before

    def program(
        self, name: str, outputs: Sequence[RegionValue]
    ) -> tuple[MuGraph, list[str], list[Dims]]:
        """Return the program, the model's values that it reads, and of each result its dims in order.

        Raises:
            ShapeError: it is not one.
        """
        live = self._live(outputs)
        if self._has_twice(live):  # rows and columns of one matrix are the same variable
            raise ShapeError("a tensor has an index variable twice")
        program, inputs, orders = _Naming(self.atoms).program(
            name, outputs, self._inputs_among(live), self._windows(live),
            [step for step in self._steps.values() if step.output in live], self._values,
        )  # fmt: skip
        named = zip(program.inputs, inputs, strict=True)
        conditions = frozenset(own for own, read in named if read in self.conditions)
        return replace(program, conditions=conditions), inputs, orders

    def _inputs_among(self, live: frozenset[str]) -> dict[str, RegionValue]:
        return {name: value for name, value in self.inputs.items() if value.name in live}

    def _windows(self, live: frozenset[str]) -> list[TakenPart]:
        return [taken for taken in self._taken.values() if taken.output in live]

    def _live(self, outputs: Sequence[RegionValue]) -> frozenset[str]:
        """Return what results are computed of, and themselves."""
        live: set[str] = set()
        pending = [value.name for value in outputs]
        while pending:
            name = pending.pop()
            if name in live:
                continue
            live.add(name)
            if name in self._steps:
                pending += self._steps[name].operands
            elif name in self._taken:
                pending.append(self._taken[name].operand)
        return frozenset(live)

    def _has_twice(self, live: frozenset[str]) -> bool:
        inner = {taken.operand for taken in self._windows(live)} - {
            name for step in self._steps.values() if step.output in live for name in step.operands
        }
        for name in live - inner:
            atoms = [a for dim in self._values[name].dims for a in self.atoms.resolved(dim)]
            if len(set(atoms)) < len(atoms):
                return True
        return False

    def _added(self, name: str, dims: tuple[Atoms, ...]) -> RegionValue:
        self._values[name] = RegionValue(name, dims)
        return self._values[name]


class _Naming:
    """Gives atoms the names of index variables, in the order in which they are met."""

    def __init__(self, atoms: IndexAtoms) -> None:
        self._atoms = atoms
        self._names: dict[int, str] = {}

    def program(
        self,
        name: str,
        outputs: Sequence[RegionValue],
        inputs: Mapping[str, RegionValue],
        taken: Sequence[TakenPart],
        steps: Sequence[RegionStep],
        values: Mapping[str, RegionValue],
    ) -> tuple[MuGraph, list[str], list[Dims]]:
        given = {value.name: self._dims(value) for value in inputs.values()}
        for step in steps:
            self._dims(values[step.output])
        read = {name for step in steps for name in step.operands}
        operations, called = self._windows(taken, read | {output.name for output in outputs})
        known: dict[str, str] = {}
        for step in steps:
            attrs = dict(step.attrs) | ({"over": self._named(step.over)} if step.over else {})
            operands = tuple(called.get(operand, operand) for operand in step.operands)
            content = repr((step.op, operands, attrs))
            if known.setdefault(content, step.output) == step.output:
                operations.append(Operation(step.op, operands, step.output, attrs))
            else:  # what views had apart, and were the same in the end
                called[step.output] = known[content]
        results = tuple(called.get(output.name, output.name) for output in outputs)
        computed = {step.output for step in steps}
        if len(results) > 1 and len(computed.intersection(results)) < len(results):
            raise ShapeError("a result is another one, or an operand, as it is")
        program = MuGraph(name, given, tuple(operations), results)
        made = kernel_tensors(program)
        orders = [self._dims(output) for output in outputs]
        for output, order in zip(results, orders, strict=True):
            if set(variables(made[output])) != set(variables(order)):
                raise ShapeError("a result is only repeated along a dim")
        return program, list(inputs), orders

    def _windows(
        self, taken: Sequence[TakenPart], read: set[str]
    ) -> tuple[list[Operation], dict[str, str]]:
        """Return windows as operations, windows of windows as one where they are, and what each is called.

        Windows that are all of what they are taken of are that, and equal ones are one.
        """
        chains: dict[str, tuple[str, tuple[Window, ...]]] = {}
        for one in taken:
            base, chain = chains.get(one.operand, (one.operand, ()))
            for window in self._window(one):
                both = composed(chain[-1], window) if chain else None
                chain = (*chain[:-1], both) if both else (*chain, window)
            chains[one.output] = base, tuple(window for window in chain if not _is_whole(window))
        made: dict[tuple[str, Window], str] = {}
        operations, called = [], {}
        for output, (base, chain) in chains.items():
            if output not in read:
                continue
            for window in chain:
                if (base, window) not in made:
                    made[(base, window)] = f"w{len(made) + 1}"
                    operation = Operation("window", (base,), made[(base, window)], window.attrs)
                    operations.append(operation)
                base = made[(base, window)]
            called[output] = base
        return operations, called

    def _window(self, taken: TakenPart) -> Iterator[Window]:
        along, into = self._named(taken.along), self._dims_of(taken.into)
        size = self._atoms.size(taken.into)
        if taken.last is None and not taken.offset and taken.step == 1 and along == variables(into):
            return
        last = size if taken.last is None else taken.last
        yield Window(
            along, variables(into), tuple(dim.size for dim in into),
            taken.offset, taken.step, taken.first, last, self._strides(taken),
        )  # fmt: skip

    def _strides(self, taken: TakenPart) -> tuple[int, ...]:
        """Return the strides of a window that slides, by the variables that there are now."""
        found: list[int] = []
        for atom, stride in zip(taken.into, taken.strides, strict=False):
            inner = stride * self._atoms.size((atom,))
            for dim in self._dims_of((atom,)):
                inner //= dim.size
                found.append(inner)
        return tuple(found)

    def _dims(self, value: RegionValue) -> Dims:
        return tuple(dim for part in value.dims for dim in self._dims_of(part))

    def _dims_of(self, part: Atoms) -> Dims:
        atoms = self._atoms.resolved(part)
        sizes = [self._atoms.size((atom,)) for atom in atoms]
        return tuple(map(Dim, self._named(part), sizes))

    def _named(self, part: Atoms) -> tuple[str, ...]:
        atoms = self._atoms.resolved(part)
        for atom in atoms:
            self._names.setdefault(atom, _variable(len(self._names)))
        return tuple(self._names[atom] for atom in atoms)


def _is_whole(window: Window) -> bool:
    """Whether a window is all of what it is taken of, by the same variables."""
    is_plain = not window.offset and window.step == 1 and not window.is_bounded
    is_plain = is_plain and window.extent == window.size
    return is_plain and window.variables == window.into


def _variable(number: int) -> str:
    turn, letter = divmod(number, len(_LETTERS))
    return _LETTERS[letter] + (str(turn) if turn else "")
