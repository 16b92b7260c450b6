"""The joins of a search: nodes of its live skeletons, as prefixes that several of them begin with.

The heads that stand below each other in the e-graph say which skeletons are live: can match at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relational_tensat.base.records import record
from relational_tensat.explore.compile.compiled_rules import (
    CompiledRules,
    CompiledSkeleton,
    phase_patterns,
    phase_rules,
    skeleton_walk,
)

#: Heads one below the other: (parent head, operand, child head); a head alone is (head, -1, 0).
Edge: TypeAlias = tuple[int, int, int]


class Edges:
    """The heads below each head in an e-graph, and the edges that have changed since the last search.

    Patterns that need other edges cannot match; those without a change have no new match.

    Attributes:
        query: finds the edges with an e-node that was written at the clock ``$since`` or later; nothing
            where no single-pattern rule asks for any.
    """

    def __init__(self, compiled: CompiledRules) -> None:
        self._skeletons = [
            skeleton
            for skeleton in compiled.skeletons
            if compiled.single_patterns.intersection(skeleton.patterns)
        ]
        parents = [skeleton.parents for skeleton in self._skeletons]
        positions = sorted({position for node_parents in parents for _, position in node_parents})
        query = _edges_query(positions, alone=[] in parents)
        self.query = f"-- heads: {phase_rules(compiled, multi=False)}\n{query}"
        self._changed: set[Edge] = set()
        #: All that were ever there: those that are gone by now only cost time.
        self._seen: set[Edge] = set()

    def unseen_since(self, since: int) -> int:
        """Return the clock from which on edges have to be looked for, to know them all."""
        return since if self._seen else 0

    def see(self, edges: Iterable[Edge]) -> None:
        """Take note of the edges that have changed."""
        self._changed = set(edges)
        self._seen |= self._changed

    def has_seen_all(self) -> bool:
        """Whether all edges that patterns can ask for have been there: to look again tells little."""
        return all(
            self._seen.issuperset(_edges_of(row[1:], skeleton.parents))
            for skeleton in self._skeletons
            for row in skeleton.rows
        )

    def can_match_again(self, heads: Sequence[int], parents: Sequence[tuple[int, int]]) -> bool:
        """Whether all edges of a skeleton's row are in the e-graph, and one of them has changed."""
        edges = _edges_of(heads, parents)
        return not self._changed.isdisjoint(edges) and self._seen.issuperset(edges)


def _edges_of(heads: Sequence[int], parents: Sequence[tuple[int, int]]) -> list[Edge]:
    """Return the edges of a skeleton's row."""
    edges = [(heads[p], at, heads[i]) for i, (p, at) in enumerate(parents, start=1)]
    return edges or [(heads[0], -1, 0)]


def _edges_query(positions: Sequence[int], *, alone: bool) -> str:
    """Return the query of changed edges.

    Args:
        positions: operands below which patterns look.
        alone: whether some pattern is one operator, so that heads alone count.
    """
    parts = []
    if positions:
        children = ", ".join(f"c{at}" for at in positions)
        operands = ", ".join(map(str, positions))
        parts.append(
            "SELECT DISTINCT parent.head, parent.position, child.head FROM (\n"
            f"    SELECT head, stamp, unnest([{children}]) AS child, unnest([{operands}]) AS position\n"
            "    FROM enode WHERE head > 0 AND NOT filtered\n"
            ") AS parent\n"
            "JOIN enode AS child ON child.class = parent.child\n"
            "WHERE child.head > 0 AND NOT child.filtered\n"
            "    AND greatest(parent.stamp, child.stamp) >= $since"
        )
    if alone:
        parts.append(
            "SELECT DISTINCT head, -1, 0 FROM enode\n"
            "WHERE head > 0 AND NOT filtered AND stamp >= $since"
        )
    return "-- which heads stand below which, where that is new\n" + "\nUNION ALL\n".join(parts)


@record
class LiveSkeleton:
    """A skeleton with those of its rows (pattern, heads…) that can match."""

    skeleton: CompiledSkeleton
    rows: tuple[tuple[int, ...], ...]

    @property
    def patterns(self) -> set[int]:
        """The patterns that can match."""
        return {row[0] for row in self.rows}


def live_skeletons(
    compiled: CompiledRules,
    phase: str,
    edges: Edges | None = None,
    patterns: Collection[int] | None = None,
) -> list[LiveSkeleton]:
    """Return the skeletons of a phase's patterns (``single`` or ``multi``) that can match.

    Args:
        patterns: those of the phase that are asked for; None for all of them.
        edges: leaves out rows of which an edge is not in the e-graph, or none has changed.
    """
    pattern_ids = phase_patterns(compiled, phase) if patterns is None else patterns
    skeletons = []
    for skeleton in compiled.skeletons:
        rows = [row for row in sorted(skeleton.rows) if row[0] in pattern_ids]
        if edges is not None:
            parents = skeleton.parents
            rows = [row for row in rows if edges.can_match_again(row[1:], parents)]
        if rows:
            skeletons.append(LiveSkeleton(skeleton, tuple(rows)))
    return skeletons


#: Two leaves, as columns (``n1.c0``), that are one class.
Equality: TypeAlias = tuple[str, str]


@record
class PrefixStep:
    """The conditions on an e-node that joins those before it.

    Attributes:
        parent, position: it is in the class of that operand of that node; the root's are -1.
        heads: one of these.
        combined: the heads that it and those before it may have together.
        equal: leaves that are one class, which is known from here on.
        narrowed: (node, heads) of nodes before it that may be more in the prefix that is joined.
    """

    parent: int
    position: int
    heads: tuple[int, ...]
    combined: tuple[tuple[int, ...], ...]
    equal: tuple[Equality, ...]
    narrowed: tuple[tuple[int, tuple[int, ...]], ...] = ()


@dataclass
class Branch:
    """A live skeleton's part of the query.

    Attributes:
        leaves: the column of each leaf.
        steps: one per node.
        optional: leaves that some patterns want equal, and per row which of these.
    """

    live: LiveSkeleton
    leaves: list[str]
    steps: list[PrefixStep]
    optional: list[Equality]
    wants: list[set[Equality]]


@dataclass
class Prefix:
    """E-nodes joined so far: the steps from the first node to this one.

    Attributes:
        node: the index of its last node.
        is_whole: a branch ends here that joins by nothing but classes: all of it is needed in any case.
        ends: branches that end here, with what is left to ask of their rows.
        needs: the columns of its nodes that later steps and the ends use.
        name: of the common table expression that has its rows, if there is one.
    """

    step: PrefixStep
    above: Prefix | None
    node: int
    is_whole: bool = False
    following: dict[PrefixStep, Prefix] = field(default_factory=dict)
    ends: list[tuple[Branch, PrefixStep | None]] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    name: str = ""

    @property
    def is_shared(self) -> bool:
        """Whether its rows are found once for all that begins with it.

        Not a scan; nor what has two operators below one, unless it is needed in any case, or leaves join
        these: alone they multiply.
        """
        if self.node == 0 or len(self.following) + len(self.ends) < 2:
            return False
        steps = [prefix.step for prefix in self.path()]
        is_branching = len({step.parent for step in steps}) < len(steps)
        return self.is_whole or not is_branching or any(step.equal for step in steps)

    def path(self) -> list[Prefix]:
        """Return the prefixes from the first node to this one."""
        return [*(self.above.path() if self.above else []), self]


def shared_prefixes(live: Sequence[LiveSkeleton]) -> list[Prefix]:
    """Return the prefixes of the joins that find the matches of live skeletons, each after those above it.

    Each skeleton is the branch of one of them.
    """
    first: dict[PrefixStep, Prefix] = {}
    branches = [_branch(skeleton) for skeleton in live]
    for branch in sorted(branches, key=lambda b: sum(len(step.equal) for step in b.steps)):
        _place(branch, first)
    prefixes = list(_all(first.values()))
    _note_needs(prefixes)
    return prefixes


def _branch(live: LiveSkeleton) -> Branch:
    nodes, leaves = skeleton_walk(live.skeleton.shape)
    wants = [
        {(leaves[i], leaves[j]) for i, j in live.skeleton.equal_leaves[row[0]]} for row in live.rows
    ]
    common = set.intersection(*wants)
    steps = [
        PrefixStep(
            parent, position,
            tuple(sorted({row[1 + node] for row in live.rows})),
            tuple(sorted({row[1 : 2 + node] for row in live.rows})),
            tuple(sorted(pair for pair in common if max(map(node_of, pair)) == node)),
        )
        for node, (parent, position) in enumerate(nodes)
    ]  # fmt: skip
    return Branch(live, leaves, steps, sorted(set.union(*wants) - common), wants)


def _place(branch: Branch, first: dict[PrefixStep, Prefix]) -> None:
    """Add a branch's steps to what is there, beginning with the most that can be shared."""
    steps = branch.steps
    prefix, late = _whole_prefix(steps, first.values())
    start = 0 if prefix is None else prefix.node + 1
    for node, step in enumerate(steps[start:], start=start):
        if late is not None:
            step = replace(step, equal=late.equal + step.equal, narrowed=late.narrowed)
            late = None
        options = first if prefix is None else prefix.following
        prefix = options.setdefault(step, Prefix(step, prefix, node))
    if prefix is not None:
        prefix.ends.append((branch, late))
        prefix.is_whole |= not any(step.equal for step in steps)


def _whole_prefix(
    steps: Sequence[PrefixStep], first: Iterable[Prefix]
) -> tuple[Prefix | None, PrefixStep | None]:
    """Return the longest prefix that is found in any case and has all that some steps begin with.

    And what must be asked of its rows to be theirs.
    """
    best: Prefix | None = None
    for prefix in _all(first):
        path = prefix.path()
        if prefix.is_whole and 0 < prefix.node < len(steps) and _has(path, steps):
            best = prefix if best is None or prefix.node > best.node else best
    if best is None:
        return None, None
    path_steps = list(zip(best.path(), steps, strict=False))
    equal = tuple(pair for _, step in path_steps for pair in step.equal)
    narrowed = tuple(
        (prefix.node, step.heads) for prefix, step in path_steps if prefix.step.heads != step.heads
    )
    if not equal and not narrowed:
        return best, None
    return best, PrefixStep(-1, -1, (), (), equal, narrowed)


def _has(path: Sequence[Prefix], steps: Sequence[PrefixStep]) -> bool:
    """Whether a path's rows contain those that some steps begin with."""
    return all(
        (prefix.step.parent, prefix.step.position) == (step.parent, step.position)
        and not prefix.step.equal
        and not prefix.step.narrowed
        and set(prefix.step.combined) >= set(step.combined)
        for prefix, step in zip(path, steps, strict=False)
    )


def _all(prefixes: Iterable[Prefix]) -> Iterator[Prefix]:
    """Yield prefixes and what follows them, each after what it begins with."""
    for prefix in prefixes:
        yield prefix
        yield from _all(prefix.following.values())


def _note_needs(prefixes: Iterable[Prefix]) -> None:
    """Note, for each prefix, which of its columns are used later."""
    for prefix in prefixes:
        step = prefix.step
        columns = {f"n{step.parent}.c{step.position}"} if prefix.above else set()
        columns.update(_columns(step))
        if prefix.is_shared:  # whose rows are kept to the heads that its nodes may have together
            columns.update(f"n{p.node}.head" for p in prefix.path() if len(p.step.heads) > 1)
        for branch, late in prefix.ends:
            columns.update(["n0.class", *branch.leaves])
            columns.update(f"n{i}.signature" for i in range(prefix.node + 1))
            columns.update(f"n{i}.head" for i, s in enumerate(branch.steps) if len(s.heads) > 1)
            columns.update(_columns(late) if late else ())
        for ancestor in prefix.path():
            ancestor.needs.update(c for c in columns if node_of(c) <= ancestor.node)


def _columns(step: PrefixStep) -> Iterator[str]:
    yield from (column for pair in step.equal for column in pair)
    yield from (f"n{node}.head" for node, _ in step.narrowed)


def node_of(column: str) -> int:
    """Return the index of the node that a column is of: 1 of ``n1.c0``."""
    return int(column[1 : column.index(".")])
