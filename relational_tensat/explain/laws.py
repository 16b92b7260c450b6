"""Laws: a rule on given signatures, as two sides over the rule's tensor variables.

Two forms of a value are one because a rule requested it (``Edge``), or because their operands are one
(``Congruence``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.explain.egraph_tables import StoredSignature
from relational_tensat.rules.instance import instantiate, source_nodes, tensor_vars
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.tensor.types import ValueType


@dataclass(frozen=True, slots=True)
class Side:
    """The pattern that a rule finds, or the one that it builds.

    Attributes:
        variables: how many tensor variables the rule has; they are the first values.
        nodes: (signature, operands) of each operator, operands before what is computed from them. An
            operand below ``variables`` is that variable, another one the node of that many places on.
        roots: the values that the rule names, one per source.
        below: per root, the operators that it is computed from, by their places in ``nodes``.
    """

    variables: int
    nodes: tuple[tuple[int, tuple[int, ...]], ...]
    roots: tuple[int, ...]
    below: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        below = tuple([self._places_below(root) for root in self.roots])
        object.__setattr__(self, "below", below)

    def operands(self, value: int) -> tuple[int, ...]:
        """Return what a value is computed from; nothing for a variable."""
        return self.nodes[value - self.variables][1] if value >= self.variables else ()

    def operators(self, outputs: Collection[int]) -> list[int]:
        """Return the operators that some roots are and are computed from, as values, operands first."""
        values = {self.roots[output] for output in outputs}
        values |= {self.variables + place for output in outputs for place in self.below[output]}
        return sorted(value for value in values if value >= self.variables)

    def _places_below(self, root: int) -> tuple[int, ...]:
        places: set[int] = set()
        pending = [root]
        while pending:
            operands = {
                v - self.variables for v in self.operands(pending.pop()) if v >= self.variables
            }
            pending += [place + self.variables for place in operands - places]
            places |= operands
        return tuple(sorted(places))


@dataclass(frozen=True, slots=True)
class Law:
    """A rule on one configuration: an equation between terms of known types.

    Attributes:
        signatures: of the source's nodes in pre-order, as ``rules.instance`` takes them.
        source, target: the two sides.
    """

    rule: Rule
    signatures: tuple[int, ...]
    source: Side
    target: Side

    @property
    def variables(self) -> int:
        """How many tensor variables the rule has."""
        return self.source.variables


class Laws:
    """Makes the laws of a run from its rules and signatures."""

    def __init__(self, signatures: Mapping[int, StoredSignature]) -> None:
        self._signatures = signatures
        self._signature_ids = {(s.symbol, s.operands): n for n, s in signatures.items()}

    def law(self, rule: Rule, signatures: Sequence[int]) -> Law:
        """Return the law that a rule is for e-nodes of these signatures.

        Raises:
            InputError: the rule does not describe them, so the database is not what a run wrote.
        """
        source = _source_side(rule, signatures)
        types: dict[int, ValueType] = {}
        for signature, operands in source.nodes:
            types.update(zip(operands, self._signatures[signature].operands, strict=True))
        names = tensor_vars(rule)
        base = len(names)
        known_signatures = [self._signatures[signature] for signature in signatures]
        instance = instantiate(
            rule,
            [(s.symbol.op, dict(s.symbol.attrs)) for s in known_signatures],
            tuple(types[variable] for variable in range(base)),
            tuple(self._signatures[source.nodes[r - base][0]].type for r in source.roots),
        )
        if instance is None:
            raise InputError(
                f"the rule {rule.name!r} does not apply where the log says that it did"
            )
        nodes = []
        for node in instance.nodes:
            symbol = Symbol(node.op, node.attrs, len(node.children))
            key = (symbol, node.operand_types)
            if key not in self._signature_ids:
                raise InputError(
                    f"the rule {rule.name!r} builds an e-node that is not in the database"
                )
            nodes.append((self._signature_ids[key], node.children))
        return Law(rule, tuple(signatures), source, Side(base, tuple(nodes), instance.roots))


def _source_side(rule: Rule, signatures: Sequence[int]) -> Side:
    """Return the sources as one side; their nodes are in reverse pre-order."""
    names = {name: number for number, name in enumerate(tensor_vars(rule))}
    count = len(source_nodes(rule))
    if count != len(signatures):
        raise InputError(f"the rule {rule.name!r} has {count} nodes, the log {len(signatures)}")
    last_value = len(names) + count - 1  # the value of the first node in pre-order
    nodes: list[tuple[int, tuple[int, ...]]] = [(0, ())] * count
    following = 0

    def visit(term: Term) -> int:
        nonlocal following
        if isinstance(term, Var):
            return names[term.name]
        index = following
        following += 1
        operands = tuple([visit(child) for child in term.children])
        nodes[count - 1 - index] = (signatures[index], operands)
        return last_value - index

    roots = tuple([visit(source) for source in rule.sources])
    return Side(len(names), tuple(nodes), roots)


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
