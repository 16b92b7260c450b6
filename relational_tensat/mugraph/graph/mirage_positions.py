"""Where the index variables of a μGraph stand in Mirage's tensors, which have positions instead.

Positions count from the end, as -1: a product contracts the last of its first operand with the last but
one of its second, what stands before is the batch, and elements of equal positions belong together. So
each use of a variable by an operator is an equation, and few assignments are left to try.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mirage_steps import BINARY, MirageStep

#: A tensor: the level, or the kernel within which it is, and its name.
Key: TypeAlias = tuple[str, str]
_Cell: TypeAlias = tuple[Key, str]
#: Mirage's tensors have so many dims at most.
MOST_DIMS = 4


@dataclass(frozen=True, slots=True)
class Solution:
    """Where all variables stand.

    Attributes:
        rank: the number of dims of all tensors.
        places: of each tensor's variables, from 0.
    """

    rank: int
    places: Mapping[Key, Mapping[str, int]]


class Positions:
    """Equations between positions, and their solution."""

    def __init__(self) -> None:
        self._tensors: dict[Key, tuple[str, ...]] = {}
        self._parent: dict[_Cell, _Cell] = {}
        self._allowed: list[tuple[_Cell, frozenset[int]]] = []
        self._empty: list[tuple[Key, int]] = []
        self._ordered: list[Key] = []

    def add(self, key: Key, dims: Dims) -> None:
        """Add a tensor."""
        self._tensors[key] = variables(dims)
        for variable in variables(dims):
            self._parent[key, variable] = (key, variable)

    def keep_order(self, key: Key) -> None:
        """Have a tensor's dims in the order in which they are in memory."""
        self._ordered.append(key)

    def equal(self, one: Key, other: Key, but: Iterable[str] = ()) -> None:
        """Have the variables that both tensors have at equal positions."""
        for variable in set(self._tensors[one]) & set(self._tensors[other]) - set(but):
            self._join((one, variable), (other, variable))

    def apply(self, step: MirageStep, scope: str) -> None:
        """Add what an operator asks of its operands and its result."""
        result = scope, step.output
        operands = [(scope, name) for name in step.operands]
        if step.op in ("split", "concat"):
            self._parts(step, scope)
            return
        for operand in operands:
            self.equal(operand, result, step.over)
        if step.op in BINARY:
            self.equal(operands[0], operands[1])
        elif step.op == "rename":
            self._join((operands[0], step.over[0]), (result, step.into))
        elif step.op == "matmul":
            self._product(operands[0], operands[1], step.over[0])
        elif step.op == "concat_then_matmul":
            self._product(operands[0], operands[2], step.over[0])
            self._product(operands[1], operands[3], step.over[1])
        elif step.op == "reduction_max":
            self.equal(result, (scope, step.outputs[1]))
            if not step.over:
                self._empty.append((operands[0], -1))
        elif step.op != "reduction":
            self._last(operands[0], result, step)

    def _parts(self, step: MirageStep, scope: str) -> None:
        """Have a whole's dim, and those of its parts, at one position."""
        if step.op == "split":
            whole, own = (scope, step.operands[0]), step.over[0]
            parts = [((scope, name), into) for name, into in step.pieces]
        else:
            whole, own = (scope, step.output), step.into
            parts = [((scope, name), v) for name, v in zip(step.operands, step.over, strict=True)]
        for part, variable in parts:
            self.equal(whole, part, (own, variable))
            if variable:
                self._join((whole, own), (part, variable))

    def _last(self, operand: Key, result: Key, step: MirageStep) -> None:
        """Have what a sum or a mean is over last, or nothing there."""
        if step.over:
            self._allow(operand, step.over[0], {-1})
        elif step.op in ("rms_norm", "accum_red_ld_rms"):
            self._empty.append((operand, -1))
        if step.into:
            self._allow(result, step.into, {-1})
        if step.op == "rms_norm" and step.over:
            self._join((operand, step.over[0]), (result, step.over[0]))

    def _product(self, first: Key, second: Key, inner: str) -> None:
        self._allow(first, inner, {-1})
        self._allow(second, inner, {-2})
        shared = set(self._tensors[first]) & set(self._tensors[second])
        for variable in shared - {inner}:
            self._join((first, variable), (second, variable))
        for key, place in ((first, -2), (second, -1)):
            for variable in self._tensors[key]:
                if variable in shared - {inner}:
                    self._allow(key, variable, {-3, -4})
                elif variable != inner:
                    self._allow(key, variable, {place})

    def _allow(self, key: Key, variable: str, places: set[int]) -> None:
        self._allowed.append(((key, variable), frozenset(places)))

    def _join(self, one: _Cell, other: _Cell) -> None:
        self._parent[self._root(one)] = self._root(other)

    def _root(self, cell: _Cell) -> _Cell:
        while self._parent[cell] != cell:
            cell = self._parent[cell]
        return cell

    def solution(self) -> Solution | None:
        """Return where all variables stand, in as few dims as possible; None for nowhere."""
        fewest = max([1, *map(len, self._tensors.values())])
        for rank in range(fewest, MOST_DIMS + 1):
            chosen = self._solve(rank)
            if chosen is not None:
                places = {
                    key: {name: rank + chosen[self._root((key, name))] for name in names}
                    for key, names in self._tensors.items()
                }
                return Solution(rank, places)
        return None

    def _solve(self, rank: int) -> dict[_Cell, int] | None:
        roots = dict.fromkeys(map(self._root, self._parent))
        domains = {root: set(range(-rank, 0)) for root in roots}
        for cell, places in self._allowed:
            domains[self._root(cell)] &= places
        for key, place in self._empty:
            for variable in self._tensors[key]:
                domains[self._root((key, variable))] -= {place}
        groups = [[self._root((key, v)) for v in vs] for key, vs in self._tensors.items()]
        if any(len(set(group)) < len(group) for group in groups):
            return None
        ordered = [[self._root((k, v)) for v in self._tensors[k]] for k in self._ordered]
        return _assigned(sorted(domains, key=lambda r: len(domains[r])), domains, groups, ordered)


def _assigned(
    order: list[_Cell],
    domains: Mapping[_Cell, set[int]],
    groups: list[list[_Cell]],
    ordered: list[list[_Cell]],
) -> dict[_Cell, int] | None:
    """Return a position for each class of cells: different in each group, ascending in the ordered ones."""
    chosen: dict[_Cell, int] = {}

    def fits(root: _Cell) -> bool:
        for group in groups:
            known = [chosen[one] for one in group if one in chosen] if root in group else []
            if len(set(known)) < len(known):
                return False
        for group in ordered:
            known = [chosen[one] for one in group if one in chosen] if root in group else []
            if known != sorted(known):
                return False
        return True

    def assign(number: int) -> bool:
        if number == len(order):
            return True
        root = order[number]
        for place in sorted(domains[root]):
            chosen[root] = place
            if fits(root) and assign(number + 1):
                return True
            del chosen[root]
        return False

    return chosen if assign(0) else None
