"""E-matching by plain recursion over dictionaries: slow, simple; the SQL must agree with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relational_tensat.egraph import EGraph
from relational_tensat.rules.instance import instantiate, tensor_vars
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.tensor.operators import get_operator


@dataclass(frozen=True)
class Row:
    """One kept e-node."""

    owner: int
    signature: int
    op: str
    attrs: Mapping[str, Any]
    children: tuple[int, ...]
    stamp: int


@dataclass(frozen=True)
class Match:
    """What was found for a source: variables (tensors as class ids), e-nodes in pre-order."""

    values: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()

    @property
    def stamp(self) -> int:
        """When the newest of its rows was written."""
        return max(row.stamp for row in self.rows)


@dataclass(frozen=True)
class Application:
    """A place where a rule applies; comparable with what the SQL finds."""

    rule: str
    roots: tuple[int, ...]
    bindings: tuple[int, ...]
    signatures: tuple[int, ...]


class PythonMatcher:
    """Matches rules on a snapshot of an e-graph's tables."""

    def __init__(self, egraph: EGraph) -> None:
        types = egraph.connection.execute("SELECT id, type FROM eclass").fetchall()
        self._types = {class_id: egraph.catalogue.types[kind - 1] for class_id, kind in types}
        self._known = _known_classes(egraph)
        self._by_class: dict[int, list[Row]] = {}
        self._by_op: dict[str, list[Row]] = {}
        rows = egraph.connection.execute(
            "SELECT class, signature, [c0, c1, c2, c3, c4], stamp FROM enode WHERE NOT filtered"
        )
        for owner, signature, children, stamp in rows.fetchall():
            symbol = egraph.catalogue.symbol_of(signature)
            kids = tuple(child for child in children if child)
            row = Row(owner, signature, symbol.op, dict(symbol.attrs), kids, stamp)
            self._by_class.setdefault(owner, []).append(row)
            self._by_op.setdefault(row.op, []).append(row)

    def applications(self, rule: Rule, since: int = 0) -> Iterator[Application]:
        """Yield where a rule applies, if a row of the match is as new as ``since``."""
        candidates: list[tuple[Match, ...]]
        if rule.is_multi:
            candidates = self.pairs(rule, since)
        else:
            candidates = [(m,) for m in self.matches(rule.sources[0]) if m.stamp >= since]
        for matches in candidates:
            yield from self._judge(rule, matches)

    def pairs(self, rule: Rule, since: int = 0) -> list[tuple[Match, ...]]:
        """Return the pairs of matches of a rule's two sources, if one of the two is new."""
        first, second = ([*self.matches(source)] for source in rule.sources)
        return [
            (a, b)
            for a in first
            for b in second
            if max(a.stamp, b.stamp) >= since and self._is_pair(rule, a, b)
        ]

    def matches(self, source: Apply) -> Iterator[Match]:
        """Yield the matches of one source."""
        for row in self._by_op.get(source.op, ()):
            yield from self._at(source, row, Match())

    def _term(self, term: Term, class_id: int, match: Match) -> Iterator[Match]:
        if isinstance(term, Var):
            bound = _bind(match.values, term.name, class_id)
            if bound is not None:
                yield Match(bound, match.rows)
            return
        for row in self._by_class.get(class_id, ()):
            yield from self._at(term, row, match)

    def _at(self, term: Apply, row: Row, match: Match) -> Iterator[Match]:
        """Yield a match with a row for a term, and rows for the terms below it."""
        values = self._symbol(term, row, match.values)
        if values is not None:
            matches = [Match(values, (*match.rows, row))]
            for child, child_class in zip(term.children, row.children, strict=True):
                matches = [
                    m for partial in matches for m in self._term(child, child_class, partial)
                ]
            yield from matches

    def _symbol(self, term: Apply, row: Row, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the variables with those of the attributes; None if the symbol differs."""
        if row.op != term.op or len(row.children) != len(term.children):
            return None
        written = dict(term.attrs)
        bound: Mapping[str, Any] | None = values
        for attr in get_operator(term.op).attrs:
            expected = written.get(attr.name, Literal(attr.default))
            if isinstance(expected, Literal):
                if expected.value != row.attrs[attr.name]:
                    return None
            elif isinstance(expected, Var):
                bound = _bind(bound, f":{expected.name}", row.attrs[attr.name])
                if bound is None:
                    return None
        return bound

    def _is_pair(self, rule: Rule, a: Match, b: Match) -> bool:
        roots = a.rows[0].owner, b.rows[0].owner
        if roots[0] == roots[1] or (rule.symmetric and roots[0] > roots[1]):
            return False
        return all(b.values.get(name, value) == value for name, value in a.values.items())

    def _judge(self, rule: Rule, matches: Sequence[Match]) -> Iterator[Application]:
        values = {name: value for match in matches for name, value in match.values.items()}
        rows = [row for match in matches for row in match.rows]
        bindings = tuple(values[name] for name in tensor_vars(rule))
        roots = tuple(match.rows[0].owner for match in matches)
        instance = instantiate(
            rule,
            tuple((row.op, row.attrs) for row in rows),
            tuple(self._types[class_id] for class_id in bindings),
            tuple(self._types[class_id] for class_id in roots),
        )
        if instance is not None and all(values[name] in self._known for name in rule.known):
            yield Application(rule.name, roots, bindings, tuple(row.signature for row in rows))


def _known_classes(egraph: EGraph) -> set[int]:
    """Return the classes with an e-node that can be computed before inference, of such classes only."""
    rows = egraph.connection.execute(
        "SELECT e.class, [c0, c1, c2, c3, c4] FROM enode AS e JOIN signature AS s ON s.id = e.signature"
        " JOIN symbol AS y ON y.id = s.symbol WHERE y.foldable AND NOT e.filtered"
    ).fetchall()
    known: set[int] = set()
    while True:
        more = {owner for owner, children in rows if known.issuperset(filter(None, children))}
        if more <= known:
            return known
        known |= more


def _bind(values: Mapping[str, Any] | None, name: str, value: Any) -> Mapping[str, Any] | None:
    """Return the variables with one more; None if it is bound to something else."""
    if values is None or values.get(name, value) != value:
        return None
    return {**values, name: value}
