"""Patterns and skeletons: the common parts of the rules' sources.

A *skeleton* is the shape of a source, operators left out: ``f(g(_, _), _)``. One SQL query serves all
patterns of a skeleton. A *pattern* gives the operator (and literal attributes) at each node of its
skeleton, and the leaves that are the same variable; rules that differ only elsewhere share it. A pattern
compares one integer of an e-node, its *head*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from relational_tensat.base.errors import RuleError
from relational_tensat.base.lazy import once_per_object
from relational_tensat.base.records import record
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.rules.model import Apply, Literal, Rule, Var, constant_text
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, AttrValue

#: The shape of a pattern: per child, None for a leaf, or the child's shape.
Skeleton: TypeAlias = tuple["Skeleton | None", ...]


@record
class PatternNode:
    """One node: operator, count of children, attributes that must be equal."""

    op: str
    arity: int
    literals: AttrItems

    def accepts(self, symbol: Symbol) -> bool:
        """Whether an e-node of this symbol may stand here."""
        if (symbol.op, symbol.arity) != (self.op, self.arity):
            return False
        attrs = dict(symbol.attrs)
        return all(attrs[name] == value for name, value in self.literals)

    def example(self) -> Symbol:
        """Return a symbol that may stand here; its other attributes have a value that occurs nowhere
        else."""
        attrs = [attr.name for attr in get_operator(self.op).attrs]
        literals = dict(self.literals)
        return Symbol(
            self.op, tuple((name, literals.get(name, "any")) for name in attrs), self.arity
        )


@record
class Pattern:
    """A source with its variables indexed by leaf.

    Attributes:
        nodes: in pre-order.
        leaves: per leaf in pre-order, the first leaf of the same variable (itself if it is the first).
    """

    skeleton: Skeleton
    nodes: tuple[PatternNode, ...]
    leaves: tuple[int, ...]


@record
class SourcePattern:
    """A rule's source: its pattern, and the leaf where each of its variables first stands."""

    pattern: Pattern
    leaf_of: dict[str, int]


@once_per_object
def source_patterns(rule: Rule) -> tuple[SourcePattern, ...]:
    """Return the patterns of the sources of a rule.

    Raises:
        RuleError: as ``source_pattern``.
    """
    return tuple(source_pattern(source, rule) for source in rule.sources)


def source_pattern(source: Apply, rule: Rule) -> SourcePattern:
    """Return the pattern of one source of ``rule``.

    Raises:
        RuleError: an operator has more operands than the e-node table has child columns.
    """
    nodes: list[PatternNode] = []
    leaves: list[int] = []
    leaf_of: dict[str, int] = {}

    def visit(term: Apply) -> Skeleton:
        if len(term.children) > CHILD_COLUMNS:
            raise RuleError(
                f"{rule.file}:{rule.line}: {rule.name}: {term.op} has {len(term.children)} operands "
                f"in a source, expected at most {CHILD_COLUMNS}"
            )
        nodes.append(PatternNode(term.op, len(term.children), _literals(term)))
        shape: list[Skeleton | None] = []
        for child in term.children:
            if isinstance(child, Var):
                leaves.append(leaf_of.setdefault(child.name, len(leaves)))
                shape.append(None)
            else:
                shape.append(visit(child))
        return tuple(shape)

    skeleton = visit(source)
    return SourcePattern(Pattern(skeleton, tuple(nodes), tuple(leaves)), leaf_of)


def _literals(term: Apply) -> AttrItems:
    """Return the attributes that must have one value: written as literals, or left at the default."""
    written = dict(term.attrs)
    items: list[tuple[str, AttrValue]] = []
    for attr in get_operator(term.op).attrs:
        expr = written.get(attr.name)
        if expr is None:
            items.append((attr.name, attr.default))
        elif isinstance(expr, Literal):
            items.append((attr.name, expr.value))
    return tuple(items)


class Heads:
    """Gives ids to what patterns compare: operator, arity, and the attributes that some rule pins."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._pinned: dict[tuple[str, int], set[str]] = {}
        for pattern in patterns:
            for node in pattern.nodes:
                pinned = self._pinned.setdefault((node.op, node.arity), set())
                pinned.update(name for name, _ in node.literals)
        self._ids: dict[tuple[str, int, AttrItems], int] = {}
        #: A symbol of each head, by head - 1, and the head as text.
        self.examples: list[Symbol] = []
        self.texts: list[str] = []

    def __call__(self, symbol: Symbol) -> int:
        """Return the head of a symbol; 0 where no pattern looks at its operator."""
        pinned = self._pinned.get((symbol.op, symbol.arity))
        if pinned is None:
            return 0
        key = (symbol.op, symbol.arity, tuple(i for i in symbol.attrs if i[0] in pinned))
        head = self._ids.get(key)
        if head is None:
            self.examples.append(symbol)
            self.texts.append(_head_text(*key))
            head = self._ids[key] = len(self.examples)
        return head


def _head_text(op: str, arity: int, pinned: AttrItems) -> str:
    """Return what a head stands for, as in the rule language: ``(matmul _ _ :act none)``."""
    attrs = [f":{name} {constant_text(value)}" for name, value in pinned]
    return f"({' '.join([op, *['_'] * arity, *attrs])})"
