"""Rules compiled: skeletons with the patterns that have their shape, and how a rule's sources are joined.

The queries name columns and heads, never operators. Operators, literals and repeated variables are rows of
a skeleton, so that adding a rule adds rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import TypeAlias

from relational_tensat.base.records import record
from relational_tensat.explore.compile.patterns import (
    Heads,
    Pattern,
    Skeleton,
    SourcePattern,
    source_patterns,
)
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule

#: Most pairs of matches that one join group of multi-pattern rules may bring up in an iteration.
PAIR_CAP = 2_000_000

#: So many rules are named in a statement's first comment; of more, only how many there are.
_NAMED = 8


@dataclass
class CompiledSkeleton:
    """A skeleton and the patterns that have this shape.

    If a node has two operators below it, their matches multiply. Then the equal leaves, which join the two,
    are part of the skeleton, and all its patterns have the same.

    Attributes:
        leaves: the equal leaves that all patterns share (as ``Pattern.leaves``), None if they differ.
        patterns: their ids.
        equal_leaves: per pattern, the pairs of leaves (i < j) that it wants equal.
        rows: which heads may stand at its nodes for which pattern, so far: (pattern, heads…).
    """

    id: int
    shape: Skeleton
    leaves: tuple[int, ...] | None
    patterns: list[int] = field(default_factory=list)
    equal_leaves: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    rows: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def parents(self) -> list[tuple[int, int]]:
        """Per node but the root: the index of the node above it, and which operand of that it is."""
        return skeleton_walk(self.shape)[0][1:]


@record
class CompiledRule:
    """A rule by ids: patterns of its sources, and where its variables are bound.

    Attributes:
        id: the rule's id in the tables.
        patterns: pattern id per source.
        slots: per tensor variable (in ``tensor_vars`` order), the position in an application's list of
            bindings: leaves of the first source, then leaves of the second, and so on.
    """

    rule: Rule
    id: int
    patterns: tuple[int, ...]
    slots: tuple[int, ...]


@record
class JoinGroup:
    """Multi-pattern rules that share leaves in the same way.

    Attributes:
        shared: of the second source, pairs (leaf of the first, leaf of the second).
        rules: their ids.
        further: of each later source, the leaves that it shares with any before it: triples (that source,
            leaf of that, leaf of its own).
    """

    id: int
    shared: tuple[tuple[int, int], ...]
    rules: tuple[int, ...]
    further: tuple[tuple[tuple[int, int, int], ...], ...] = ()

    @property
    def sources(self) -> int:
        """How many the rules have."""
        return 2 + len(self.further)


class CompiledRules:
    """All that exploration needs of a set of rules.

    Args:
        first: the id of the first rule; the others follow.

    Attributes:
        first, rules: by id - first.
        patterns: by id - 1.
        skeletons: by id - 1.
        node_columns, leaf_columns: the most operator nodes and leaves that a source has.
        root_columns: the most sources that a rule has, two at least.
        joins: groups of multi-pattern rules.
        single_rules, multi_rules: the ids of the rules with one source, and of those with several.
    """

    def __init__(self, rules: Sequence[Rule], first: int = 1) -> None:
        self.first = first
        self.patterns: list[Pattern] = []
        self.skeletons: list[CompiledSkeleton] = []
        self.rules: list[CompiledRule] = []
        self._pattern_ids: dict[Pattern, int] = {}
        self._skeleton_ids: dict[tuple[Skeleton, tuple[int, ...] | None], int] = {}
        sources = [source_patterns(rule) for rule in rules]
        pattern_ids = [
            tuple(self._pattern(s.pattern) for s in rule_sources) for rule_sources in sources
        ]
        self.node_columns = max((len(p.nodes) for p in self.patterns), default=1)
        self.leaf_columns = max(max((len(p.leaves) for p in self.patterns), default=1), 1)
        self.root_columns = max([2, *map(len, pattern_ids)])
        for index, rule in enumerate(rules):
            slots = _slots(rule, sources[index], self.leaf_columns)
            self.rules.append(CompiledRule(rule, first + index, pattern_ids[index], slots))
        self.heads = Heads(self.patterns)
        self._head_count = 0
        #: Per pattern and node of it, the heads seen so far that may stand there.
        self._heads_at: list[list[list[int]]] = [[[] for _ in p.nodes] for p in self.patterns]
        #: By operator and arity, the nodes that ask for these: (pattern id, index of the node).
        self._places: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for pattern_id, pattern in enumerate(self.patterns, start=1):
            for place, node in enumerate(pattern.nodes):
                self._places.setdefault((node.op, node.arity), []).append((pattern_id, place))
        self.joins = _join_groups(self.rules, sources)
        self.single_rules = frozenset(r.id for r in self.rules if len(r.patterns) == 1)
        self.multi_rules = frozenset(r.id for r in self.rules if len(r.patterns) > 1)
        self.single_patterns = self.patterns_of(self.single_rules)
        self.multi_patterns = self.patterns_of(self.multi_rules)

    def rule(self, rule_id: int) -> CompiledRule:
        """Return the rule of an id."""
        return self.rules[rule_id - self.first]

    def bound(self, rule: CompiledRule) -> int:
        """Return how many classes a match of a rule binds, with those of leaves that only others have."""
        return self.leaf_columns * (self.root_columns if rule.rule.is_multi else 1)

    @property
    def all_rules(self) -> frozenset[int]:
        """The ids of all rules."""
        return self.single_rules | self.multi_rules

    def patterns_of(self, rules: Iterable[int]) -> frozenset[int]:
        """Return the patterns that the sources of rules are."""
        return frozenset(pattern for rule_id in rules for pattern in self.rule(rule_id).patterns)

    def _pattern(self, pattern: Pattern) -> int:
        pattern_id = self._pattern_ids.get(pattern)
        if pattern_id is not None:
            return pattern_id
        self.patterns.append(pattern)
        pattern_id = self._pattern_ids[pattern] = len(self.patterns)
        leaves = pattern.leaves if _is_branching(pattern.skeleton) else None
        key = (pattern.skeleton, leaves)
        skeleton_id = self._skeleton_ids.setdefault(key, len(self.skeletons) + 1)
        if skeleton_id > len(self.skeletons):
            self.skeletons.append(CompiledSkeleton(skeleton_id, pattern.skeleton, leaves))
        skeleton = self.skeletons[skeleton_id - 1]
        skeleton.patterns.append(pattern_id)
        skeleton.equal_leaves[pattern_id] = [(i, j) for j, i in enumerate(pattern.leaves) if i != j]
        return pattern_id

    def register_heads(self) -> None:
        """Note which rows of skeletons the heads seen since the last call make possible."""
        first_new = self._head_count
        self._head_count = len(self.heads.examples)
        changed: set[int] = set()
        for head, symbol in enumerate(self.heads.examples[first_new:], start=first_new + 1):
            for pattern_id, place in self._places.get((symbol.op, symbol.arity), ()):
                if self.patterns[pattern_id - 1].nodes[place].accepts(symbol):
                    self._heads_at[pattern_id - 1][place].append(head)
                    changed.add(pattern_id)
        for skeleton in self.skeletons if changed else ():
            for pattern_id in changed.intersection(skeleton.patterns):
                rows = itertools.product([pattern_id], *self._heads_at[pattern_id - 1])
                skeleton.rows.update(rows)


def named_rules(names: Sequence[str]) -> str:
    """Return what the first comment of a generated statement reports of the rules that it serves."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown}, … ({len(names)} rules)"


def phase_rules(compiled: CompiledRules, *, multi: bool) -> str:
    """Return the same of all rules of one source, or of several."""
    return named_rules([r.rule.name for r in compiled.rules if r.rule.is_multi == multi])


def match_columns(nodes: int, leaves: int) -> list[str]:
    """Return the columns of the match table: pattern, root class, stamp, signatures, leaves."""
    signatures = [f"g{i}" for i in range(nodes)]
    return ["pattern", "root", "stamp", *signatures, *(f"v{i}" for i in range(leaves))]


def skeleton_text(skeleton: CompiledSkeleton) -> str:
    """Return a skeleton as text: ``f(f(_, _), _)``; equal leaves have an index: ``f(f(0, _), f(0, _))``."""
    leaves = skeleton.leaves or ()
    names = iter([str(i) if leaves.count(i) > 1 else "_" for i in leaves])

    def text(shape: Skeleton) -> str:
        return f"f({', '.join(next(names, '_') if c is None else text(c) for c in shape)})"

    return text(skeleton.shape)


def union_all(queries: Sequence[str]) -> str:
    """Return one query for the rows of several; each keeps its comment."""
    return "\nUNION ALL\n".join(f"(\n{query}\n)" for query in queries)


def phase_patterns(compiled: CompiledRules, phase: str) -> frozenset[int]:
    """Return the patterns that a phase (``single`` or ``multi``) asks for."""
    return compiled.single_patterns if phase == "single" else compiled.multi_patterns


def join_query(
    group: JoinGroup,
    compiled: CompiledRules,
    rules: Collection[int] | None = None,
    *,
    in_order: bool = False,
) -> str:
    """Return the query that joins the matches of two sources, or of more, on their shared leaves.

    Args:
        rules: those of the group that take part; None for all of them.
        in_order: whether which pairs are left out, where there are more than ``PAIR_CAP``, is by the pairs
            alone: it takes a sort of all.

    Pairs within one class are left out (TENSAT section 4). A symmetric rule takes each unordered pair
    once, lower classes first. Its parameter ``$since``: one of them is as new. The columns m0, m1 and
    so on say which rows of ``match`` they are. Columns of sources that only other groups have are 0.
    """
    aliases = ascii_lowercase[: group.sources]
    shared = [[(0, i, j) for i, j in group.shared], *group.further]
    roots, marks = ([f"{m}.{c}" for m in aliases] for c in ("root", "rowid"))
    signatures = [f"{m}.g{i}" for m in aliases for i in range(compiled.node_columns)]
    leaves = [f"{m}.v{i}" for m in aliases for i in range(compiled.leaf_columns)]
    missing = compiled.root_columns - group.sources
    columns = [
        *_named("root", roots, missing),
        *_named("g", signatures, missing * compiled.node_columns),
    ]
    leaves += ["0"] * (missing * compiled.leaf_columns)
    joins = [
        f"JOIN match AS {alias} ON {alias}.pattern = r.pattern{place}"
        + "".join(f" AND {alias}.v{j} = {aliases[n]}.v{i}" for n, i, j in pairs)
        for place, (alias, pairs) in enumerate(zip(aliases[1:], shared, strict=True), start=1)
    ]
    distinct = [f"{one} <> {other}" for one, other in itertools.combinations(roots, 2)]
    rising = " AND ".join(f"{one} < {other}" for one, other in itertools.pairwise(roots))
    stamps = ", ".join(f"{m}.stamp" for m in aliases)
    members = [n for n in group.rules if rules is None or n in rules]
    names = named_rules([compiled.rule(n).rule.name for n in members])
    only = "" if len(members) == len(group.rules) else f" AND {is_one_of('r.rule', members)}"
    return "\n".join(
        [
            f"-- join {names}",
            f"SELECT r.rule, {', '.join(columns)},",
            f"    [{', '.join(leaves)}] AS b, {', '.join(_named('m', marks, missing))}",
            "FROM rule_join AS r",
            "JOIN match AS a ON a.pattern = r.pattern0",
            *joins,
            f"WHERE r.join_group = {group.id}{only} AND {' AND '.join(distinct)}",
            f"    AND (NOT r.is_symmetric OR {rising}) AND greatest({stamps}) >= $since",
            f"ORDER BY r.rule, {', '.join(roots)}, b LIMIT {PAIR_CAP}"
            if in_order
            else f"LIMIT {PAIR_CAP}",
        ]
    )


def _named(letter: str, values: Sequence[str], missing: int) -> list[str]:
    """Return columns with their names, and after them some of 0."""
    return [f"{value} AS {letter}{i}" for i, value in enumerate([*values, *["0"] * missing])]


def is_one_of(column: str, ids: Sequence[int]) -> str:
    """Return the condition that a column has one of these ids."""
    if len(ids) == 1:
        return f"{column} = {ids[0]}"
    return f"{column} IN ({', '.join(map(str, ids))})"


def _is_branching(shape: Skeleton) -> bool:
    """Whether some node has two operators among its operands."""
    inner = [child for child in shape if child is not None]
    return len(inner) > 1 or any(_is_branching(child) for child in inner)


def skeleton_walk(shape: Skeleton) -> tuple[list[tuple[int, int]], list[str]]:
    """Return, in pre-order, (parent, child position) of each node, and each leaf's column.

    A column is ``n1.c0`` for operand 0 of node 1; the root's parent is -1.
    """
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


#: Triples of a source, a leaf of it, and the leaf of another one that is the same variable.
_Shared: TypeAlias = tuple[tuple[int, int, int], ...]


def _join_groups(
    rules: Sequence[CompiledRule], sources: Sequence[tuple[SourcePattern, ...]]
) -> list[JoinGroup]:
    groups: dict[tuple[_Shared, ...], list[int]] = {}
    for compiled, patterns in zip(rules, sources, strict=True):
        if len(patterns) > 1:
            groups.setdefault(_shared_leaves(patterns), []).append(compiled.id)
    return [
        JoinGroup(
            index + 1, tuple((i, j) for _, i, j in shared[0]), tuple(members), tuple(shared[1:])
        )
        for index, (shared, members) in enumerate(sorted(groups.items()))
    ]


def _shared_leaves(patterns: Sequence[SourcePattern]) -> tuple[_Shared, ...]:
    """Return which leaves of each source after the first are leaves of one before it, too."""
    first: dict[str, tuple[int, int]] = {}
    shared: list[_Shared] = []
    for place, pattern in enumerate(patterns):
        known = sorted(first.items())
        shared.append(
            tuple((*at, pattern.leaf_of[name]) for name, at in known if name in pattern.leaf_of)
        )
        for name, leaf in pattern.leaf_of.items():
            first.setdefault(name, (place, leaf))
    return tuple(shared[1:])
