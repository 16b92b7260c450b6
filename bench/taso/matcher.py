"""Where a rule's sources occur in a graph.

A graph has one entry per value, so a pattern matches at a value in one way or in none: a pattern is
a list of steps, each of which looks at one operand. Patterns that differ in the names of their
variables only are matched once per graph. In SQL (``explore.match``), which e-graphs need, the statements
alone cost more: TASO's rules on BERT take 31 ms there and 0.7 here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.taso.graphs import State, Universe
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var, nodes_of, variables_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems


class SourceMatch(NamedTuple):
    """A match of one source.

    Attributes:
        nodes: the value of each operator node of the pattern in pre-order; equal sub-terms once.
        bound: the value of each variable, by first occurrence.
    """

    nodes: tuple[int, ...]
    bound: tuple[int, ...]


class _Step(NamedTuple):
    """Looks at an operand of a node: it is a new node, one seen before, or a variable.

    Attributes:
        parent, position: which operand of which node.
        symbols: of a node, those that fit; None for a variable.
        known: index of the node or variable that this must equal; None where it is a new one.
    """

    parent: int
    position: int
    symbols: set[int] | None
    variable: int | None


class Pattern:
    """A source that is ready to be matched.

    Its operator nodes are numbered in pre-order, equal ones once, its variables by first occurrence.
    """

    def __init__(self, universe: Universe, source: Apply) -> None:
        self._op = source.op
        self._terms: list[Apply] = []
        self._variables: list[str] = []
        self._steps: list[_Step] = []
        self._universe = universe
        self._root = self._node(source)
        #: By node: the symbol and the operands; operators may have operands that can be left out.
        self._lengths = [1 + len(term.children) for term in self._terms]

    def matches(self, state: State) -> Iterator[SourceMatch]:
        """Yield the matches in a graph, in the order of its values."""
        entries, root_symbols, steps = state.entries, self._root, self._steps
        for root in state.by_op.get(self._op, ()):
            entry = entries[root]
            if entry[0] not in root_symbols or len(entry) != self._lengths[0]:
                continue
            nodes, bound = [root], []
            for parent, position, symbols, variable in steps:
                value = entries[nodes[parent]][position]
                if symbols is None:
                    if variable is None:
                        bound.append(value)
                    elif bound[variable] != value:
                        break
                elif variable is not None:
                    if nodes[variable] != value:
                        break
                elif (
                    entries[value][0] in symbols
                    and len(entries[value]) == self._lengths[len(nodes)]
                ):
                    nodes.append(value)
                else:
                    break
            else:
                if len(set(nodes)) == len(nodes):
                    yield SourceMatch(tuple(nodes), tuple(bound))

    def _node(self, term: Apply) -> set[int]:
        """Add a node and the steps below it; return the symbols that fit it."""
        index = len(self._terms)
        self._terms.append(term)
        literals = _literals(term)
        symbols: set[int] = set()

        def consider(symbol: int) -> None:
            op, attrs = self._universe.symbols[symbol]
            of_symbol = dict(attrs)
            if op == term.op and all(of_symbol[key] == value for key, value in literals):
                symbols.add(symbol)

        self._universe.watch(consider)
        for position, child in enumerate(term.children, start=1):
            self._child(index, position, child)
        return symbols

    def _child(self, parent: int, position: int, child: Term) -> None:
        if isinstance(child, Var):
            variable = self._variables.index(child.name) if child.name in self._variables else None
            if variable is None:
                self._variables.append(child.name)
            self._steps.append(_Step(parent, position, None, variable))
        elif child in self._terms:
            self._steps.append(_Step(parent, position, set(), self._terms.index(child)))
        else:
            place = len(self._steps)
            self._steps.append(_Step(parent, position, set(), None))
            self._steps[place] = _Step(parent, position, self._node(child), None)


class Match(NamedTuple):
    """A match of all of a rule's sources.

    Attributes:
        roots: the value that each source computes.
        nodes: per distinct operator node of the sources, its value.
        bound: per tensor variable of the rule.
    """

    roots: tuple[int, ...]
    nodes: tuple[int, ...]
    bound: tuple[int, ...]


class Matcher:
    """Matches rules on graphs; each pattern once per graph, until ``forget``."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._pattern_ids: dict[Apply, int] = {}
        self._patterns: list[Pattern] = []
        self._matches: dict[int, list[SourceMatch]] = {}

    def prepare(self, rule: Rule) -> list[int]:
        """Return, per source, the id of its pattern: the same for all that are alike."""
        pattern_ids = []
        for source in rule.sources:
            alike = _rename(source, {})
            if alike not in self._pattern_ids:
                self._pattern_ids[alike] = len(self._patterns)
                self._patterns.append(Pattern(self._universe, alike))
            pattern_ids.append(self._pattern_ids[alike])
        return pattern_ids

    def forget(self) -> None:
        """Forget the matches: another graph comes."""
        self._matches.clear()

    def source_matches(self, pattern: int, state: State) -> list[SourceMatch]:
        """Return the matches of a pattern in the graph."""
        if pattern not in self._matches:
            self._matches[pattern] = list(self._patterns[pattern].matches(state))
        return self._matches[pattern]


class RuleMatcher:
    """Finds where one rule applies.

    Attributes:
        terms: the operator nodes of the rule's sources, one source after the other, equal ones once.
    """

    def __init__(self, matcher: Matcher, rule: Rule) -> None:
        self._matcher = matcher
        self._patterns = matcher.prepare(rule)
        terms = [list(dict.fromkeys(nodes_of(source))) for source in rule.sources]
        self.terms = tuple(dict.fromkeys(term for of_source in terms for term in of_source))
        self._places = [[self.terms.index(term) for term in of_source] for of_source in terms]
        if len(rule.sources) > 1:
            names_1, names_2 = (variables_of(source) for source in rule.sources)
            self._shared = [(names_1.index(n), names_2.index(n)) for n in names_2 if n in names_1]
            self._extra = [names_2.index(n) for n in names_2 if n not in names_1]

    def matches(self, state: State) -> Iterator[Match]:
        """Yield the matches of the rule."""
        if len(self._patterns) == 1:
            for match in self._matcher.source_matches(self._patterns[0], state):
                yield Match(match.nodes[:1], match.nodes, match.bound)
        else:
            yield from self._pairs(state)

    def _pairs(self, state: State) -> Iterator[Match]:
        firsts, seconds = (self._matcher.source_matches(p, state) for p in self._patterns)
        by_shared: dict[tuple[int, ...], list[SourceMatch]] = {}
        for second in seconds:
            key = tuple(second.bound[j] for _, j in self._shared)
            by_shared.setdefault(key, []).append(second)
        total = len(self.terms)
        separate = total == len(self._places[0]) + len(self._places[1])
        for first in firsts:
            key = tuple(first.bound[i] for i, _ in self._shared)
            for second in by_shared.get(key, ()):
                if separate:
                    nodes = first.nodes + second.nodes
                else:
                    joined = self._join(first, second)
                    if joined is None:
                        continue
                    nodes = joined
                if len(set(nodes)) == total:
                    bound = first.bound + tuple(second.bound[j] for j in self._extra)
                    yield Match((first.nodes[0], second.nodes[0]), nodes, bound)

    def _join(self, first: SourceMatch, second: SourceMatch) -> tuple[int, ...] | None:
        """Return the nodes of a pair with equal sub-terms; None where they are not the same."""
        values: dict[int, int] = {}
        for places, match in zip(self._places, (first, second), strict=True):
            for place, value in zip(places, match.nodes, strict=True):
                if values.setdefault(place, value) != value:
                    return None
        return tuple(values[place] for place in range(len(self.terms)))


def _literals(term: Apply) -> AttrItems:
    """Return the attributes that a node of a source must have."""
    attrs = dict(term.attrs)
    literals = []
    for attr in get_operator(term.op).attrs:
        expected = attrs.get(attr.name, Literal(attr.default))
        if isinstance(expected, Literal):
            literals.append((attr.name, expected.value))
    return tuple(literals)


def _rename(term: Apply, names: dict[str, str]) -> Apply:
    """Return a term with its tensor variables numbered by first occurrence."""
    children: list[Term] = []
    for child in term.children:
        if isinstance(child, Var):
            children.append(Var(names.setdefault(child.name, f"v{len(names)}")))
        else:
            children.append(_rename(child, names))
    return Apply(term.op, tuple(children), term.attrs)
