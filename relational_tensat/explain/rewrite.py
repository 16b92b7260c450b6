"""A step of an explanation: one application of one rule, as plain data.

A ``Match`` belongs to an edge that is about to be walked: the nodes that its rule names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from relational_tensat.explain.laws import Edge, Law, Side
from relational_tensat.explain.state import RewrittenNode
from relational_tensat.explain.terms import Outputs, Terms


@dataclass
class Match:
    """The known facts of one application of a rule.

    Attributes:
        forward: whether the rule's source is found, and its target built.
        places: per root of the rule, the node that will be replaced there.
        bound: nodes by value (see ``Side``): variables, and operators of the side that is found.
        pinned_nodes: nodes whose forms must stay until the rule has been applied.
        local: all variables are bound to what the one place is computed from.
    """

    edge: Edge
    forward: bool
    places: dict[int, RewrittenNode] = field(default_factory=dict)
    bound: dict[int, RewrittenNode] = field(default_factory=dict)
    pinned_nodes: list[RewrittenNode] = field(default_factory=list)
    local: bool = True

    @property
    def law(self) -> Law:
        """The rule on the signatures in question."""
        return self.edge.law

    @property
    def old_side(self) -> tuple[Side, tuple[int, ...]]:
        """The side that is replaced, and its e-nodes."""
        return self.edge.side(self.forward)

    @property
    def new_side(self) -> tuple[Side, tuple[int, ...]]:
        """The side that replaces it, and its e-nodes."""
        return self.edge.side(not self.forward)

    def hold(self, node: RewrittenNode) -> None:
        """Keep a node's form until ``release``."""
        node.pins += 1
        self.pinned_nodes.append(node)

    def release(self) -> None:
        """Let all nodes change again."""
        for node in self.pinned_nodes:
            node.pins -= 1
        self.pinned_nodes.clear()

    def fits(
        self, node: RewrittenNode, output: int, *, new: bool
    ) -> dict[int, RewrittenNode] | None:
        """Match a node with one root of a side, without changing anything.

        Returns:
            All variables that are bound then; None where the node, or an operand, has another form.
        """
        side, forms = self.new_side if new else self.old_side
        base = side.variables
        values = {
            value_id: variable.now() for value_id, variable in self.bound.items() if value_id < base
        }
        pending = [(node, side.roots[output])]
        while pending:
            current, value = pending.pop()
            if values.setdefault(value, current) is not current:
                return None
            if value >= base:
                if current.form != forms[value - base]:
                    return None
                pending += zip(current.operands(), side.operands(value), strict=True)
        return {value_id: variable for value_id, variable in values.items() if value_id < base}


@dataclass(frozen=True, slots=True)
class ReplacedTerm:
    """A term and what takes its place, at one root of a rule.

    Attributes:
        output: which of the rule's sources (or targets) the term is.
        owner: its e-class.
        names: the value's names in the original graph; empty for a new value.
        near: for such a value, the nearest one of the original graph that is computed from it.
    """

    output: int
    before: int
    after: int
    owner: int
    names: tuple[str, ...]
    near: str


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One application of one rule to a graph of terms.

    Attributes:
        forward: whether the law is read from source to target, and not the other way.
        operands: per tensor variable of the rule, the term that stands for it.
        replaced: the terms that the rule replaces: one, or one for each of two sources.
        before, after: the whole graph.
    """

    law: Law
    forward: bool
    operands: tuple[int, ...]
    replaced: tuple[ReplacedTerm, ...]
    before: Outputs
    after: Outputs


@dataclass(frozen=True, slots=True)
class ChangedTerm:
    """A term above what a step replaces, and the one in its place; operands that differ, by pairs."""

    old: int
    new: int
    operands: tuple[tuple[int, int], ...]


def changed_terms(terms: Terms, rewrite: RewriteStep) -> list[ChangedTerm]:
    """Return the terms above what was replaced, each with the term in its place, operands first."""
    replaced = {(replacement.before, replacement.after) for replacement in rewrite.replaced}
    pending = list(zip(rewrite.before, rewrite.after, strict=True))
    visited = set(pending)
    changed = []
    while pending:
        old, new = pair = pending.pop()
        if old == new or pair in replaced:
            continue
        below = zip(terms[old].children, terms[new].children, strict=True)
        operands = tuple((a, b) for a, b in below if a != b)
        changed.append(ChangedTerm(old, new, operands))
        pairs_below = set(operands) - visited
        visited |= pairs_below
        pending += pairs_below
    return sorted(changed, key=lambda item: item.new)
