"""For every skeleton and every join, the SQL finds what plain recursion finds: matches and near misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explore.compile.compiled_rules import (
    CompiledRules,
    JoinGroup,
    phase_patterns,
)
from relational_tensat.explore.compile.patterns import source_pattern
from relational_tensat.explore.match.matcher import Matcher
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Apply, Rule, Term, Var
from tests.explore.pattern_egraphs import ENode, Miss, PatternEGraph, misses, with_own_attributes
from tests.explore.python_matcher import Match, PythonMatcher

PHASES = ("single", "multi")
#: Pattern, root class, stamp, signatures, classes of the leaves.
Row = tuple[int, int, int, tuple[int, ...], tuple[int, ...]]

RULES = [with_own_attributes(rule) for rule in [*load_rules(), *taso_rules()]]
COMPILED = CompiledRules(RULES)
#: Which skeleton a pattern has.
SKELETON = {COMPILED.patterns[p - 1]: s.id for s in COMPILED.skeletons for p in s.patterns}
SKELETONS = set(SKELETON.values())


def chunks(random: Random, count: int) -> list[list[Rule]]:
    """Return all rules in so many parts, drawn."""
    rules = random.sample(RULES, len(RULES))
    return [rules[start::count] for start in range(count)]


def leaf_variables(term: Term) -> list[str]:
    """Return the variable of each leaf in pre-order."""
    if isinstance(term, Var):
        return [term.name]
    return [name for child in term.children for name in leaf_variables(child)]


@dataclass(frozen=True)
class Example:
    """A source of a rule that has a pattern."""

    rule: Rule
    source: Apply
    skeleton: int


def examples_of(compiled: CompiledRules) -> dict[int, Example]:
    """Return an example of each pattern, by id."""
    examples: dict[int, Example] = {}
    for rule in compiled.rules:
        for pattern, source in zip(rule.patterns, rule.rule.sources, strict=True):
            skeleton = SKELETON[compiled.patterns[pattern - 1]]
            examples.setdefault(pattern, Example(rule.rule, source, skeleton))
    return examples


class Both:
    """The two matchers on one e-graph, for the patterns of some rules."""

    def __init__(self, egraph: EGraph, compiled: CompiledRules) -> None:
        self.compiled = compiled
        egraph.set_heads(self.compiled.heads)
        self.egraph = egraph
        self.sql = Matcher(egraph, self.compiled)
        self.sql.create_tables()
        self.python = PythonMatcher(egraph)
        self._rows: dict[int, list[Row]] = {}
        self._examples = examples_of(compiled)

    def matches(self, phase: str, since: int) -> Counter[Row]:
        """Return what both find for a phase; fail if it is not the same."""
        patterns = phase_patterns(self.compiled, phase)
        expected = Counter(row for p in patterns for row in self._expected(p) if row[2] >= since)
        rows: Counter[Row] = Counter()
        if self.sql.fill_matches(phase, since):
            columns = [row[0] for row in self._fetch("DESCRIBE match")]  # as many as are live
            nodes, leaves_ = (
                ", ".join(c for c in columns if c[0] == x and c[1:].isdigit()) for x in "gv"
            )
            for pattern, root, stamp, signatures, classes in self._fetch(
                f"SELECT pattern, root, stamp, [{nodes}], [{leaves_}] FROM match"
            ):
                rows[pattern, root, stamp, _present(signatures), _present(classes)] += 1
        assert rows == expected
        return rows

    def pairs(self, since: int) -> Counter[tuple[object, ...]]:
        """Return the pairs that both find; fail if they are not the same."""
        expected: Counter[tuple[object, ...]] = Counter()
        for rule in self.compiled.rules:
            if rule.rule.is_multi:
                sources = [leaf_variables(source) for source in rule.rule.sources]
                for pair in self.python.pairs(rule.rule, since):
                    expected[self._pair(rule.id, pair, sources)] += 1
        rows: Counter[tuple[object, ...]] = Counter()
        if self.sql.pair(since):
            nodes = ", ".join(f"g{i}" for i in range(2 * self.compiled.node_columns))
            for rule_id, root0, root1, signatures, bindings in self._fetch(
                f"SELECT rule, root0, root1, [{nodes}], b FROM pair"
            ):
                values = (_present(signatures), _present(bindings))
                rows[rule_id, (root0, root1), *values] += 1
        assert rows == expected
        return rows

    def _expected(self, pattern: int) -> list[Row]:
        """Return what recursion finds for a pattern."""
        if pattern not in self._rows:
            source = self._examples[pattern].source
            leaves = leaf_variables(source)
            self._rows[pattern] = [
                (
                    pattern,
                    match.rows[0].owner,
                    match.stamp,
                    tuple(row.signature for row in match.rows),
                    tuple(match.values[name] for name in leaves),
                )
                for match in self.python.matches(source)
            ]
        return self._rows[pattern]

    def _pair(
        self, rule: int, pair: Sequence[Match], sources: Sequence[Sequence[str]]
    ) -> tuple[object, ...]:
        roots = tuple(match.rows[0].owner for match in pair)
        signatures = tuple(row.signature for match in pair for row in match.rows)
        classes = tuple(
            match.values[name]
            for match, leaves in zip(pair, sources, strict=True)
            for name in leaves
        )
        return (rule, roots, signatures, classes)

    def _fetch(self, query: str) -> list[tuple[Any, ...]]:
        return self.egraph.connection.execute(query).fetchall()


def _present(values: Sequence[int]) -> tuple[int, ...]:
    return tuple(value for value in values if value)


def lonely(writer: PatternEGraph, example: Example, miss: Miss | None = None) -> list[ENode]:
    """Write an instance of a pattern that shares nothing with others."""
    leaves = {name: writer.leaf() for name in dict.fromkeys(leaf_variables(example.source))}
    return writer.instance(example.source, example.rule, leaves, miss=miss)


def drawn_misses(examples: Mapping[int, Example], random: Random) -> list[tuple[int, Miss]]:
    """Return all misses of one pattern of each skeleton, and one of each other pattern."""
    draws = []
    skeletons: set[int] = set()
    for pattern, example in examples.items():
        possible = list(misses(example.source, example.rule))
        draws += [
            (pattern, miss)
            for miss in ([random.choice(possible)] if example.skeleton in skeletons else possible)
        ]
        skeletons.add(example.skeleton)
    return draws


def test_every_pattern_matches_itself_and_nothing_that_misses_in_one_thing() -> None:
    random = Random(3)
    matched, missed = set(), set()
    for rules in chunks(random, 3):
        compiled = CompiledRules(rules)
        examples = examples_of(compiled)
        writer = PatternEGraph(random)
        exact, fresh = set(), set()
        for pattern, example in examples.items():
            nodes = lonely(writer, example)
            exact.add((pattern, nodes[0].owner))
            if random.random() < 0.5:
                writer.stamp(random.choice(nodes), 2)
                fresh.add((pattern, nodes[0].owner))
        near_misses = [
            (pattern, lonely(writer, examples[pattern], miss)[0].owner)
            for pattern, miss in drawn_misses(examples, random)
        ]
        matchers = Both(writer.finish(), compiled)
        rows = {row[:2] for phase in PHASES for row in matchers.matches(phase, 0)}
        assert exact <= rows
        assert rows.isdisjoint(near_misses)
        newer = {row[:2] for row in matchers.matches("single", 2)}
        assert newer & exact == {key for key in fresh if key[0] in compiled.single_patterns}
        assert matchers.matches("single", 3) == Counter()
        matched |= {examples[pattern].skeleton for pattern, _ in rows}
        missed |= {examples[pattern].skeleton for pattern, _ in near_misses}
    assert matched == missed == SKELETONS


# --- e-graphs whose classes have several e-nodes ---


def crowded(examples: Iterable[Example], random: Random) -> PatternEGraph:
    """Write instances that share leaves and classes: two exact ones of each, and a near miss."""
    writer = PatternEGraph(random)
    pool = [writer.leaf() for _ in range(3)]
    for example in examples:
        source, rule = example.source, example.rule
        names = dict.fromkeys(leaf_variables(source))
        for miss in (None, None, random.choice(list(misses(source, rule)))):
            below = [*pool, *writer.classes[-6:]]
            leaves = {name: random.choice(below) for name in names}
            places = range(len(source_pattern(source, rule).pattern.nodes))
            owners = {at: random.choice(writer.classes) for at in places if random.random() < 0.3}
            for node in writer.instance(source, rule, leaves, miss=miss, owners=owners):
                writer.stamp(node, random.randrange(4))
                if miss is not None and random.random() < 0.1:
                    writer.filter(node)
    return writer


def test_every_skeleton_in_crowded_e_graphs() -> None:
    random = Random(8)
    skeletons: set[int] = set()
    totals: Counter[int] = Counter()
    for rules in chunks(random, 3):
        compiled = CompiledRules(rules)
        examples = examples_of(compiled)
        matchers = Both(crowded(examples.values(), random).finish(), compiled)
        rows = matchers.matches("single", 0)
        totals += {0: rows.total(), 3: matchers.matches("single", 3).total()}
        rows += matchers.matches("multi", 0)
        skeletons |= {examples[row[0]].skeleton for row in rows}
    assert skeletons == SKELETONS
    assert 0 < totals[3] < totals[0]


# --- pairs ---


def paired(writer: PatternEGraph, rule: Rule, wrong: str) -> tuple[int, ...]:
    """Write an instance of a rule's two sources; return their classes.

    Args:
        wrong: "" for nothing, a variable that is another class in the second source, or "root".
    """
    names = dict.fromkeys(name for source in rule.sources for name in leaf_variables(source))
    leaves = {name: writer.leaf() for name in names}
    first = writer.instance(rule.sources[0], rule, leaves)
    if wrong in leaves:
        leaves[wrong] = writer.leaf()
    owners = {0: first[0].owner} if wrong == "root" else {}
    second = writer.instance(rule.sources[1], rule, leaves, owners=owners)
    return (first[0].owner, second[0].owner)


@pytest.mark.parametrize("group", COMPILED.joins, ids=lambda group: f"join{group.id}")
def test_pairs_of_every_join(group: JoinGroup) -> None:
    random = Random(group.id)
    rules = [COMPILED.rule(rule_id).rule for rule_id in group.rules]
    writer = PatternEGraph(random)
    exact, near_misses = [], []
    for rule_id, rule in enumerate(rules, start=1):
        first, second = (set(leaf_variables(source)) for source in rule.sources)
        exact.append((rule_id, paired(writer, rule, "")))
        near_misses += [(rule_id, paired(writer, rule, wrong)) for wrong in sorted(first & second)]
        near_misses.append((rule_id, paired(writer, rule, "root")))
    matchers = Both(writer.finish(), CompiledRules(rules))
    rows = {row[:2] for row in matchers.pairs(0)}
    assert rows.issuperset(exact)
    assert rows.isdisjoint(near_misses)


@pytest.mark.parametrize("group", COMPILED.joins, ids=lambda group: f"join{group.id}")
def test_pairs_in_crowded_e_graphs(group: JoinGroup) -> None:
    random = Random(group.id)
    rules = [COMPILED.rule(rule_id).rule for rule_id in group.rules]
    writer = PatternEGraph(random)
    below = [writer.leaf() for _ in range(2)]
    for rule in rules:
        for source in rule.sources * max(2, 16 // len(rules)):
            leaves = {name: random.choice(below) for name in leaf_variables(source)}
            owners = {0: random.choice(writer.classes)} if random.random() < 0.3 else {}
            for node in writer.instance(source, rule, leaves, owners=owners):
                writer.stamp(node, random.randrange(4))
    matchers = Both(writer.finish(), CompiledRules(rules))
    every, newer = matchers.pairs(0), matchers.pairs(3)
    assert len({row[0] for row in every}) > len(rules) // 2
    assert 0 < newer.total() < every.total()
