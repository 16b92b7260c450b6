"""Why two forms of a value are one: a rule requested it, or their operands are one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from relational_tensat.explain.laws import Law, Side


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A union that a rule requested.

    Attributes:
        operands: per tensor variable of the rule, its class.
        bound: the form that each of these had first.
        output: which of the rule's sources is one with its target here.
        source, target: the forms that are the nodes of the law's two sides.
        start, end: the forms that the union connects. Where the rule's target is a variable, the end is
            the form that the variable's class had first.
        steps: an estimate of how many steps it takes to walk it backward and forward.
        number: its place among the unions that rules requested, from 1.
        time: its place among all unions, those by congruence, too, from 1.
    """

    law: Law
    operands: tuple[int, ...]
    bound: tuple[int, ...]
    output: int
    source: tuple[int, ...]
    target: tuple[int, ...]
    start: int
    end: int
    steps: tuple[int, int]
    number: int
    time: int

    def side(self, forward: bool) -> tuple[Side, tuple[int, ...]]:
        """Return the side that must be there to walk the edge that way, and its forms."""
        return (self.law.source, self.source) if forward else (self.law.target, self.target)

    def root(self, forward: bool, output: int) -> int | None:
        """Return the form of a root of the side where the walk starts; None where it is a variable."""
        side, forms = self.side(forward)
        index = side.roots[output] - side.variables
        return forms[index] if index >= 0 else None


class Congruence(NamedTuple):
    """Two forms with the same operator, one since their operands are: no step leads from one to the other.

    Attributes:
        time: its place among all unions: later than what made the operands one.
    """

    start: int
    end: int
    time: int

    @property
    def steps(self) -> tuple[int, int]:
        """None, either way."""
        return 0, 0


#: A way to walk an edge; True is from its start to its end.
Walk: TypeAlias = tuple[Edge | Congruence, bool]
