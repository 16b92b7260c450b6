"""E-graphs made of instances of patterns, and of instances that miss in one thing, by hand.

Matching looks at operators, attributes and classes, never at types: all values here have one type, and
nothing has to be computable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.explore.compile.patterns import PatternNode, source_pattern
from relational_tensat.rules.model import Apply, Rule, Term, Var
from relational_tensat.tensor import AttrValue, Node, build_graph
from relational_tensat.tensor.operators import Attr, get_operator
from relational_tensat.tensor.operators.attributes import REQUIRED
from tests.graphs import f32

_TYPE = f32(2, 2)
_VALUES: dict[str, tuple[AttrValue, ...]] = {
    "int": (0, 1), "float": (0.5, 2.0), "str": ("", "a"), "bool": (False, True),
    "ints": ((0,), (1, 0)), "floats": ((0.5,), (2.0,)), "dtype": ("float32", "int64"),
    "padding": ("same", "valid"), "any": (0, 1),
}  # fmt: skip
#: An operator that no rule speaks of.
_OTHER = "weight"


@dataclass(frozen=True)
class Miss:
    """One thing in which an instance of a pattern is none.

    Attributes:
        kind: operator, arity, literal (an attribute that must have a value), leaf (a variable that
            stands twice), child (an operand's class), filtered.
        place: the node, in pre-order; for leaf, the leaf.
    """

    kind: str
    place: int


@dataclass(frozen=True)
class ENode:
    """An e-node that was written; it may be one that was there before."""

    id: int
    owner: int


def misses(source: Apply, rule: Rule) -> Iterator[Miss]:
    """Yield all that can be wrong with one instance of a source."""
    pattern = source_pattern(source, rule).pattern
    for place, node in enumerate(pattern.nodes):
        yield Miss("operator", place)
        yield Miss("arity", place)
        yield Miss("filtered", place)
        if node.literals:
            yield Miss("literal", place)
        if place:
            yield Miss("child", place)
    for place, first in enumerate(pattern.leaves):
        if place != first:
            yield Miss("leaf", place)


class PatternEGraph:
    """An e-graph whose rows are written one by one; ``finish`` puts them into its tables."""

    def __init__(self, random: Random) -> None:
        nodes = [Node("identity", ("x",), ("y",))]
        self.egraph = EGraph.create(build_graph("by hand", {"x": _TYPE}, {}, nodes, ["y"]))
        self.random = random
        self.classes: list[int] = []
        self._rows: dict[tuple[int, int, tuple[int, ...]], ENode] = {}
        self._filtered: set[int] = set()
        self._stamps: dict[int, int] = {}

    def leaf(self) -> int:
        """Return a new class, of an input."""
        attrs: dict[str, AttrValue] = {"name": f"leaf{self.egraph.next_id}"}
        return self._add("input", {**attrs, "dtype": "float32", "shape": (2, 2)}, ()).owner

    def instance(
        self,
        source: Apply,
        rule: Rule,
        leaves: Mapping[str, int],
        *,
        miss: Miss | None = None,
        owners: Mapping[int, int] | None = None,
    ) -> list[ENode]:
        """Write an instance of a source; return its e-nodes in pre-order.

        Args:
            leaves: the class of each tensor variable.
            miss: what is wrong with it.
            owners: the class of a node, by place; a new one if it is not there.
        """
        return _Writer(
            self, source_pattern(source, rule).pattern.nodes, leaves, miss, owners
        ).write(source)

    def stamp(self, node: ENode, clock: int) -> None:
        """Set when an e-node was written."""
        self._stamps[node.id] = clock

    def filter(self, node: ENode) -> None:
        """Filter an e-node."""
        self._filtered.add(node.id)

    def finish(self) -> EGraph:
        """Write all rows; return the e-graph."""
        egraph = self.egraph
        egraph.catalogue.flush(egraph.database)
        kind = egraph.catalogue.signatures[0].type
        rows = [
            (
                node.id, node.owner, signature, 0,
                *children, *[0] * (CHILD_COLUMNS - len(children)),
                1, 0, self._stamps.get(node.id, 0), node.id in self._filtered,
            )
            for (_, signature, children), node in self._rows.items()
        ]  # fmt: skip
        egraph.database.append("enode", rows)
        owners = sorted({node.owner for node in self._rows.values()})
        egraph.database.append("eclass", [(owner, owner, kind, 0, False) for owner in owners])
        return egraph

    def _add(
        self, op: str, attrs: Mapping[str, AttrValue], children: tuple[int, ...], owner: int = 0
    ) -> ENode:
        """Add an e-node to a class, or to one of its own; e-nodes of a class are distinct."""
        egraph = self.egraph
        signature = egraph.catalogue.intern_checked(
            op, tuple(attrs.items()), (_TYPE,) * len(children), _TYPE
        )
        key = (owner or egraph.next_id, signature, children)
        if key not in self._rows:
            self._rows[key] = ENode(egraph.next_id, key[0])
            egraph.next_id += 1
            if not owner:
                self.classes.append(key[0])
        return self._rows[key]


class _Writer:
    """Writes one instance."""

    def __init__(
        self,
        pattern_egraph: PatternEGraph,
        nodes: Sequence[PatternNode],
        leaves: Mapping[str, int],
        miss: Miss | None,
        owners: Mapping[int, int] | None,
    ) -> None:
        self._made = pattern_egraph
        self._nodes = nodes
        self._classes = leaves
        self._miss = miss or Miss("", -1)
        self._owners = owners or {}
        self._places = itertools.count()
        self._leaves = itertools.count()
        self._written: dict[int, ENode] = {}

    def write(self, source: Apply) -> list[ENode]:
        """Write it; return its e-nodes in pre-order."""
        self._node(source)
        return [self._written[place] for place in sorted(self._written)]

    def _node(self, term: Apply) -> int:
        place = next(self._places)
        children = tuple(self._operand(child) for child in term.children)
        node = self._nodes[place]
        op, attrs = node.op, self._attrs(node, place)
        if self._is_missing("operator", place):
            op, attrs = _OTHER, {"name": "w", "dtype": "float32", "shape": (2, 2)}
        if self._is_missing("arity", place):
            children = (
                (*children, self._made.leaf()) if len(children) < CHILD_COLUMNS else children[:-1]
            )
        written = self._made._add(op, attrs, children, self._owners.get(place, 0))
        self._written[place] = written
        if self._is_missing("filtered", place):
            self._made.filter(written)
        return self._made.leaf() if self._is_missing("child", place) else written.owner

    def _operand(self, child: Term) -> int:
        if isinstance(child, Apply):
            return self._node(child)
        return (
            self._made.leaf()
            if self._is_missing("leaf", next(self._leaves))
            else self._classes[child.name]
        )

    def _attrs(self, node: PatternNode, place: int) -> dict[str, AttrValue]:
        """Return attributes that the pattern takes, or (the miss) takes but for one."""
        pinned = dict(node.literals)
        if self._is_missing("literal", place):
            name = self._made.random.choice(sorted(pinned))
            (attr,) = (attr for attr in get_operator(node.op).attrs if attr.name == name)
            values = [value for value in _values(attr) if value != pinned[name]]
            pinned[name] = self._made.random.choice(values)
        return {
            attr.name: pinned[attr.name]
            if attr.name in pinned
            else self._made.random.choice(_values(attr))
            for attr in get_operator(node.op).attrs
        }

    def _is_missing(self, kind: str, place: int) -> bool:
        return self._miss == Miss(kind, place)


def _values(attr: Attr) -> tuple[AttrValue, ...]:
    values = attr.choices[:3] or _VALUES[attr.kind]
    return values if attr.default is REQUIRED else (*values, attr.default)


def with_own_attributes(rule: Rule) -> Rule:
    """Return a rule whose attribute variables each stand once: all else is what patterns compare."""
    numbers = itertools.count()

    def visit(term: Apply) -> Apply:
        attrs = tuple(
            (key, Var(f"attr{next(numbers)}") if isinstance(value, Var) else value)
            for key, value in term.attrs
        )
        children = tuple(
            visit(child) if isinstance(child, Apply) else child for child in term.children
        )
        return replace(term, children=children, attrs=attrs)

    return replace(rule, sources=tuple(visit(source) for source in rule.sources))
