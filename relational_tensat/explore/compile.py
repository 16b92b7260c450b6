"""Rules compiled to SQL: one query per skeleton, one per way of joining the sources of a rule.

The queries name columns, never operators: operators, literals and repeated variables are rows of the
skeleton's table, so that adding a rule adds rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from relational_tensat.explore.patterns import (
    Heads,
    Pattern,
    Skeleton,
    SourcePattern,
    source_pattern,
)
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule

#: Most pairs of matches that one join group of multi-pattern rules may bring up in an iteration.
PAIR_CAP = 2_000_000


@dataclass
class CompiledSkeleton:
    """A skeleton and the patterns that have this shape.

    Where a node has two operators below it, their matches multiply; then the equal leaves, which join
    the two, are part of the skeleton, and all its patterns have the same.

    Attributes:
        leaves: the equal leaves that all patterns share (as ``Pattern.leaves``), None if they differ.
        patterns: their numbers.
        equalities: pairs of leaves (i < j) that some pattern wants equal.
        rows: rows of the table ``skeleton_row`` so far, as (pattern, heads…).
    """

    number: int
    shape: Skeleton
    leaves: tuple[int, ...] | None
    patterns: list[int] = field(default_factory=list)
    equalities: set[tuple[int, int]] = field(default_factory=set)
    rows: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def parents(self) -> list[tuple[int, int]]:
        """Per node but the root: the number of the node above it, and which operand of that it is."""
        return _walk(self.shape)[0][1:]


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule by numbers: patterns of its sources, and where its variables are bound.

    Attributes:
        number: the rule's id in the tables.
        patterns: pattern number per source.
        slots: per tensor variable (in ``tensor_vars`` order), the position in an application's list of
            bindings: leaves of the first source, then leaves of the second.
    """

    rule: Rule
    number: int
    patterns: tuple[int, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """Multi-pattern rules that share leaves in the same way: pairs (leaf of first, leaf of second)."""

    number: int
    shared: tuple[tuple[int, int], ...]
    rules: tuple[int, ...]


class CompiledRules:
    """All that exploration needs of a set of rules.

    Args:
        first: the number of the first rule; the others follow.

    Attributes:
        first, rules: by number - first.
        patterns: by number - 1.
        skeletons: by number - 1.
        node_columns, leaf_columns: the most operator nodes and leaves that a source has.
        joins: groups of multi-pattern rules.
    """

    def __init__(self, rules: Sequence[Rule], first: int = 1) -> None:
        self.first = first
        self.patterns: list[Pattern] = []
        self.skeletons: list[CompiledSkeleton] = []
        self.rules: list[CompiledRule] = []
        self._pattern_ids: dict[Pattern, int] = {}
        self._skeleton_ids: dict[tuple[Skeleton, tuple[int, ...] | None], int] = {}
        sources = [tuple(source_pattern(s, rule) for s in rule.sources) for rule in rules]
        numbers = [tuple(self._pattern(s.pattern) for s in each) for each in sources]
        self.node_columns = max((len(p.nodes) for p in self.patterns), default=1)
        self.leaf_columns = max(max((len(p.leaves) for p in self.patterns), default=1), 1)
        for index, rule in enumerate(rules):
            slots = _slots(rule, sources[index], self.leaf_columns)
            self.rules.append(CompiledRule(rule, first + index, numbers[index], slots))
        self.heads = Heads(self.patterns)
        self._heads_seen = 0
        self.joins = _join_groups(self.rules, sources)
        self.single_patterns = frozenset(
            p for r in self.rules if len(r.patterns) == 1 for p in r.patterns
        )
        self.multi_patterns = frozenset(
            p for r in self.rules if len(r.patterns) > 1 for p in r.patterns
        )

    def rule(self, number: int) -> CompiledRule:
        """Return the rule of a number."""
        return self.rules[number - self.first]

    def _pattern(self, pattern: Pattern) -> int:
        found = self._pattern_ids.get(pattern)
        if found is not None:
            return found
        self.patterns.append(pattern)
        found = self._pattern_ids[pattern] = len(self.patterns)
        leaves = pattern.leaves if _is_branching(pattern.skeleton) else None
        key = (pattern.skeleton, leaves)
        number = self._skeleton_ids.setdefault(key, len(self.skeletons) + 1)
        if number > len(self.skeletons):
            self.skeletons.append(CompiledSkeleton(number, pattern.skeleton, leaves))
        skeleton = self.skeletons[number - 1]
        skeleton.patterns.append(found)
        skeleton.equalities.update((i, j) for j, i in enumerate(pattern.leaves) if i != j)
        return found

    def new_skeleton_rows(self) -> list[tuple[int, ...]]:
        """Return rows of ``skeleton_row`` that heads seen since the last call make possible."""
        new: list[tuple[int, ...]] = []
        if self._heads_seen == len(self.heads.examples):
            return new
        self._heads_seen = len(self.heads.examples)
        for skeleton in self.skeletons:
            for number in skeleton.patterns:
                pattern = self.patterns[number - 1]
                options = [
                    [h + 1 for h, symbol in enumerate(self.heads.examples) if node.accepts(symbol)]
                    for node in pattern.nodes
                ]
                for heads in itertools.product(*options):
                    if (number, *heads) not in skeleton.rows:
                        skeleton.rows.add((number, *heads))
                        new.append(self._skeleton_row(skeleton.number, number, heads))
        return new

    def forget_skeleton_rows(self) -> None:
        """Let ``new_skeleton_rows`` return them all again."""
        self._heads_seen = 0
        for skeleton in self.skeletons:
            skeleton.rows.clear()

    def _skeleton_row(self, skeleton: int, number: int, heads: tuple[int, ...]) -> tuple[int, ...]:
        leaves = self.patterns[number - 1].leaves
        no_heads = (0,) * (self.node_columns - len(heads))
        no_leaves = (0,) * (self.leaf_columns - len(leaves))
        return (skeleton, number, *heads, *no_heads, *leaves, *no_leaves)


def match_columns(compiled: CompiledRules) -> list[str]:
    """Return the columns of the match table: pattern, root class, stamp, signatures, leaves."""
    nodes = [f"g{i}" for i in range(compiled.node_columns)]
    leaves = [f"v{i}" for i in range(compiled.leaf_columns)]
    return ["pattern", "root", "stamp", *nodes, *leaves]


def skeleton_columns(compiled: CompiledRules) -> list[str]:
    """Return the columns of ``skeleton_row``: a head per node, per leaf the first that equals it."""
    heads = [f"h{i}" for i in range(compiled.node_columns)]
    return ["skeleton", "pattern", *heads, *(f"q{j}" for j in range(compiled.leaf_columns))]


def skeleton_text(skeleton: CompiledSkeleton) -> str:
    """Return a skeleton as text: ``f(f(_, _), _)``; equal leaves have a number: ``f(f(0, _), f(0, _))``."""
    leaves = skeleton.leaves or ()
    names = iter([str(i) if leaves.count(i) > 1 else "_" for i in leaves])

    def text(shape: Skeleton) -> str:
        return f"f({', '.join(next(names, '_') if c is None else text(c) for c in shape)})"

    return text(skeleton.shape)


def match_query(skeleton: CompiledSkeleton, compiled: CompiledRules, *, phase: str) -> str:
    """Return the query that finds all new matches of a skeleton's patterns.

    Its parameter ``$since``: only matches that involve a row written at that clock or later.

    Args:
        phase: ``single`` or ``multi``: whose patterns are asked for.
    """
    nodes, leaves = _walk(skeleton.shape)
    stamps = ", ".join(f"n{i}.stamp" for i in range(len(nodes)))
    stamp = f"greatest({stamps})"
    signatures = [f"n{i}.signature" for i in range(len(nodes))]
    pad_nodes = ["0"] * (compiled.node_columns - len(nodes))
    pad_leaves = ["0"] * (compiled.leaf_columns - len(leaves))
    values = ["s.pattern", "n0.class", stamp, *signatures, *pad_nodes, *leaves, *pad_leaves]
    selected = [f"{v} AS {c}" for v, c in zip(values, match_columns(compiled), strict=True)]
    joins = ["JOIN enode AS n0 ON n0.head = s.h0"]
    joins += [
        f"JOIN enode AS n{i} ON n{i}.class = n{parent}.c{position} AND n{i}.head = s.h{i}"
        for i, (parent, position) in enumerate(nodes)
        if i > 0
    ]
    wanted = phase_patterns(compiled, phase)
    conditions = [f"s.skeleton = {skeleton.number}"]
    conditions += [f"NOT n{i}.filtered" for i in range(len(nodes))]
    conditions.append(f"{stamp} >= $since")
    for i, j in sorted(skeleton.equalities):
        equal = f"{leaves[i]} = {leaves[j]}"
        conditions.append(equal if skeleton.leaves else f"(s.q{j} <> {i} OR {equal})")
    if not wanted.issuperset(skeleton.patterns):
        numbers = ", ".join(str(n) for n in skeleton.patterns if n in wanted)
        conditions.append(f"s.pattern IN ({numbers})")
    return "\n".join(
        [
            f"-- match {phase} {skeleton_text(skeleton)}",
            f"SELECT {', '.join(selected)}",
            "FROM skeleton_row AS s",
            *joins,
            f"WHERE {' AND '.join(conditions)}",
        ]
    )


def union_all(queries: Sequence[str]) -> str:
    """Return one query for the rows of several; each keeps its comment."""
    return "\nUNION ALL\n".join(f"(\n{query}\n)" for query in queries)


def phase_patterns(compiled: CompiledRules, phase: str) -> frozenset[int]:
    """Return the patterns that a phase (``single`` or ``multi``) asks for."""
    return compiled.single_patterns if phase == "single" else compiled.multi_patterns


def join_query(group: JoinGroup, compiled: CompiledRules) -> str:
    """Return the query that pairs the matches of two sources on their shared leaves.

    Pairs within one class are left out (TENSAT section 4). A symmetric rule takes each unordered pair
    once, the lower class first. Its parameter ``$since``: one of the two is as new. The columns m0 and
    m1 say which rows of ``match`` the two are.
    """
    first = [f"a.g{i} AS g{i}" for i in range(compiled.node_columns)]
    second = [f"b.g{i} AS g{compiled.node_columns + i}" for i in range(compiled.node_columns)]
    leaves = [f"{m}.v{i}" for m in "ab" for i in range(compiled.leaf_columns)]
    on = "".join(f" AND b.v{j} = a.v{i}" for i, j in group.shared)
    names = ", ".join(compiled.rule(n).rule.name for n in group.rules)
    return "\n".join(
        [
            f"-- join {names}",
            f"SELECT r.rule, a.root AS root0, b.root AS root1, {', '.join(first + second)},",
            f"    [{', '.join(leaves)}] AS b, a.rowid AS m0, b.rowid AS m1",
            "FROM rule_join AS r",
            "JOIN match AS a ON a.pattern = r.first_pattern",
            f"JOIN match AS b ON b.pattern = r.second_pattern{on}",
            f"WHERE r.join_group = {group.number} AND a.root <> b.root",
            "    AND (NOT r.is_symmetric OR a.root < b.root) AND greatest(a.stamp, b.stamp) >= $since",
            f"LIMIT {PAIR_CAP}",
        ]
    )


def _is_branching(shape: Skeleton) -> bool:
    """Whether some node has two operators among its operands."""
    inner = [child for child in shape if child is not None]
    return len(inner) > 1 or any(_is_branching(child) for child in inner)


def _walk(shape: Skeleton) -> tuple[list[tuple[int, int]], list[str]]:
    """Return, in pre-order, (parent, child position) of each node, and each leaf's column."""
    nodes: list[tuple[int, int]] = []
    leaves: list[str] = []

    def visit(node: Skeleton, parent: int, position: int) -> None:
        index = len(nodes)
        nodes.append((parent, position))
        for child_position, child in enumerate(node):
            if child is None:
                leaves.append(f"n{index}.c{child_position}")
            else:
                visit(child, index, child_position)

    visit(shape, -1, -1)
    return nodes, leaves


def _slots(rule: Rule, sources: Sequence[SourcePattern], leaf_columns: int) -> tuple[int, ...]:
    slots: dict[str, int] = {}
    for index, source in enumerate(sources):
        for name, leaf in source.leaf_of.items():
            slots.setdefault(name, index * leaf_columns + leaf)
    return tuple(slots[name] for name in tensor_vars(rule))


def _join_groups(
    rules: Sequence[CompiledRule], sources: Sequence[tuple[SourcePattern, ...]]
) -> list[JoinGroup]:
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for compiled, patterns in zip(rules, sources, strict=True):
        if len(patterns) < 2:
            continue
        first, second = patterns
        shared = tuple(
            (leaf, second.leaf_of[name])
            for name, leaf in sorted(first.leaf_of.items())
            if name in second.leaf_of
        )
        groups.setdefault(shared, []).append(compiled.number)
    return [
        JoinGroup(number + 1, shared, tuple(members))
        for number, (shared, members) in enumerate(sorted(groups.items()))
    ]
