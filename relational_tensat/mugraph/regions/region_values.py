"""What a region's values are while it becomes a program: dims of atoms, steps, roots of mean squares."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.mugraph.regions.relabelling import Atoms
from relational_tensat.tensor.types import AttrValue


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the region: its name in the program, its dims by position; ``number`` if it is one."""

    name: str
    dims: tuple[Atoms, ...]
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """A root of a mean square of ``x`` over the atoms ``over``, or a part on the way to it."""

    x: Value
    over: Atoms
    stage: str
    epsilon: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """An operator of the program; ``over`` are atoms."""

    op: str
    operands: tuple[str, ...]
    output: str
    over: Atoms = ()
    attrs: tuple[tuple[str, AttrValue], ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """A window of an operand, by atoms: see ``Window``."""

    operand: str
    output: str
    along: Atoms
    into: Atoms
    offset: int = 0
    step: int = 1
    first: int = 0
    last: int | None = None
