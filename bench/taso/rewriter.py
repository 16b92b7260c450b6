"""What a rule makes of a graph at a match, and what that costs, without putting it together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bench.taso.graphs import Entry, State, Universe, counts_as_operator
from bench.taso.matcher import Match, Matcher, RuleMatcher
from relational_tensat.base.records import record
from relational_tensat.rules.instance import Instance, compiled_rule, source_nodes
from relational_tensat.rules.model import Rule


@record
class Candidate:
    """A rewritten graph that is not put together yet.

    Attributes:
        universe: of the graph.
        before: the entries of what was rewritten. All else of it is let go: queues are long.
        changed: entries that are new or other than before.
        outputs: the values that the graph returns.
        cost_ps, operators, mark: as the graph's; see ``State``.
    """

    universe: Universe
    before: Mapping[int, Entry]
    changed: Mapping[int, Entry]
    outputs: tuple[int, ...]
    cost_ps: int
    operators: int
    mark: int

    def state(self) -> State:
        """Put the graph together."""
        return State(self.universe, {**self.before, **self.changed}, self.outputs)


class _Piece(NamedTuple):
    """One node of a rule's targets: symbol, operands (variables first, then pieces), type."""

    symbol: int
    children: tuple[int, ...]
    type: int


class _Template(NamedTuple):
    """What a rule builds for operators and operands of some types.

    Attributes:
        roots: per target, which value: a variable, or a piece.
        needs: per target, the pieces and variables that it depends on, itself included.
    """

    pieces: tuple[_Piece, ...]
    roots: tuple[int, ...]
    needs: tuple[frozenset[int], ...]


class Rewriter:
    """Applies one rule to graphs."""

    def __init__(self, universe: Universe, matcher: Matcher, rule: Rule) -> None:
        self._universe = universe
        self._matcher = RuleMatcher(matcher, rule)
        self._compiled = compiled_rule(rule)
        terms = self._matcher.terms
        roots = {terms.index(source) for source in rule.sources}
        self._inner = [i for i in range(len(terms)) if i not in roots]
        self._node_of = [terms.index(node) for node in source_nodes(rule)]
        self._templates: dict[tuple[int, ...], _Template | None] = {}

    def candidates(self, state: State) -> Iterator[Candidate]:
        """Yield what the rule makes of a graph at each match that TASO accepts."""
        for match in self._matcher.matches(state):
            template = self._template(state, match)
            if template is None or self._is_used_elsewhere(state, match):
                continue
            change = self._rewrite(state, match, template)
            if change is not None:
                yield change

    def _template(self, state: State, match: Match) -> _Template | None:
        entries, type_of = state.entries, self._universe.type_of
        key = (
            *[entries[value][0] for value in match.nodes],
            *[type_of[value] for value in match.bound],
        )
        if key not in self._templates:
            self._templates[key] = self._instantiate(state, match)
        return self._templates[key]

    def _instantiate(self, state: State, match: Match) -> _Template | None:
        """Return what the rule builds here; None where it does not apply, or to another type."""
        universe = self._universe
        kinds = [universe.types[universe.type_of[value]] for value in match.bound]
        symbols = [universe.symbols[state.entries[value][0]] for value in match.nodes]
        nodes = [(op, dict(attrs)) for op, attrs in (symbols[i] for i in self._node_of)]
        instance = self._compiled.targets(nodes, tuple(kinds))
        if instance is None:
            return None
        types = [*kinds, *(node.type for node in instance.nodes)]
        for root, value in zip(instance.roots, match.roots, strict=True):
            if types[root] != universe.types[universe.type_of[value]]:
                return None
        pieces = tuple(
            _Piece(universe.symbol(node.op, node.attrs), node.children, universe.type(node.type))
            for node in instance.nodes
        )
        return _Template(pieces, instance.roots, _needs(instance, len(kinds)))

    def _is_used_elsewhere(self, state: State, match: Match) -> bool:
        """Whether something outside of the match uses what is computed inside."""
        nodes = match.nodes
        return any(user not in nodes for index in self._inner for user in state.users[nodes[index]])

    def _rewrite(self, state: State, match: Match, template: _Template) -> Candidate | None:
        """Return the rewritten graph; None where it depends on itself, or is the same."""
        universe, entries, bound = self._universe, state.entries, match.bound
        of_root = dict(zip(template.roots, match.roots, strict=True))
        values = list(bound)
        changed: dict[int, Entry] = {}
        existing: set[int] = set()  # pieces that the graph computes already
        for index, piece in enumerate(template.pieces, start=len(bound)):
            entry = (piece.symbol, *[values[child] for child in piece.children])
            value = of_root.get(index)
            if value is None:
                value = universe.value(entry, piece.type)
                if value in entries:
                    existing.add(index)
                else:
                    changed[value] = entry
            elif entries[value] != entry:
                changed[value] = entry
            values.append(value)
        if _depends_on_itself(state, match, template, values, existing):
            return None
        outputs = state.outputs
        for target, root in enumerate(template.roots):
            if values[root] != match.roots[target]:
                outputs = _redirect(state, changed, outputs, match.roots[target], values[root])
        return _weigh(state, changed, outputs) if changed or outputs != state.outputs else None


def _needs(instance: Instance, n_variables: int) -> tuple[frozenset[int], ...]:
    below: list[frozenset[int]] = [frozenset((i,)) for i in range(n_variables)]
    for index, node in enumerate(instance.nodes, start=n_variables):
        below.append(frozenset((index,)).union(*(below[child] for child in node.children)))
    return tuple(below[root] for root in instance.roots)


def _depends_on_itself(
    state: State, match: Match, template: _Template, values: list[int], existing: set[int]
) -> bool:
    """Whether the new entries of a match's roots would depend on one another in a cycle.

    Everything else that is new is used by nothing old, so each cycle leads through a root, and what
    leads from there to a root is in the old graph.
    """
    n_variables = len(match.bound)
    reaches = []
    for dependencies in template.needs:
        below = 0
        for index in dependencies:
            if index < n_variables or index in existing:
                below |= state.below[values[index]]
        reaches.append(below)
    bits = [state.bit[root] for root in match.roots]
    if any(below & bit for below, bit in zip(reaches, bits, strict=True)):
        return True
    return len(bits) == 2 and bool(reaches[0] & bits[1]) and bool(reaches[1] & bits[0])


def _redirect(
    state: State, changed: dict[int, Entry], outputs: tuple[int, ...], old: int, new: int
) -> tuple[int, ...]:
    """Let all that uses a value use another one; return the outputs."""
    for user in {*state.users[old]} - {State.OUTPUT}:
        entry = changed.get(user, state.entries[user])
        changed[user] = (entry[0], *[new if child == old else child for child in entry[1:]])
    for user, entry in changed.items():
        if old in entry[1:]:
            changed[user] = (entry[0], *[new if child == old else child for child in entry[1:]])
    return tuple(new if output == old else output for output in outputs)


def _weigh(state: State, changed: Mapping[int, Entry], outputs: tuple[int, ...]) -> Candidate:
    """Return the graph with its cost, from what was added and what nothing uses any more."""
    if outputs != state.outputs:
        return _whole(state, changed, outputs)
    universe, entries = state.universe, state.entries
    cost_ps, operators, mark = state.cost_ps, state.operators, state.mark
    constant: dict[int, bool] = {}
    uses: dict[int, int] = {}
    loose: list[int] = []  # lost a use, once each time
    for value, entry in changed.items():
        children = entry[1:]
        constant[value] = all(constant.get(child, child in state.constant) for child in children)
        old = entries.get(value)
        if old is not None:
            if constant[value] != (value in state.constant):
                return _whole(state, changed, outputs)  # users of it may cost from now on
            cost_ps -= state.cost_of[value]
            operators -= _counted(universe, old)
            mark ^= universe.mark(value, old)
            loose += old[1:]
        if not constant[value]:
            cost_ps += universe.cost_ps(value, entry)
        operators += _counted(universe, entry)
        mark ^= universe.mark(value, entry)
        for child in children:
            uses[child] = uses.get(child, 0) + 1
    while loose:
        value = loose.pop()
        if value in changed and value not in entries:
            return _whole(state, changed, outputs)  # its users are not counted here
        left = uses[value] = uses.get(value, 0) - 1
        if left + len(state.users[value]) == 0:
            entry = changed.get(value, entries[value])
            is_constant = constant.get(value, value in state.constant)
            cost_ps -= 0 if is_constant else _cost(universe, value, entry)
            operators -= _counted(universe, entry)
            mark ^= universe.mark(value, entry)
            loose += entry[1:]
    return Candidate(universe, entries, changed, outputs, cost_ps, operators, mark)


def _whole(state: State, changed: Mapping[int, Entry], outputs: tuple[int, ...]) -> Candidate:
    """Return the graph with the cost that it has when it is put together."""
    new = State(state.universe, {**state.entries, **changed}, outputs)
    return Candidate(
        state.universe, state.entries, changed, outputs, new.cost_ps, new.operators, new.mark
    )


def _cost(universe: Universe, value: int, entry: Entry) -> int:
    return universe.cost_ps(value, entry) if len(entry) > 1 else 0


def _counted(universe: Universe, entry: Entry) -> int:
    return int(counts_as_operator(universe.symbols[entry[0]][0], entry[1:]))
