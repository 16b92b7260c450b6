"""Which skeletons can match at all: by the heads that stand below each other in the e-graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from relational_tensat.base.records import record
from relational_tensat.explore.compile.compiled import (
    CompiledRules,
    CompiledSkeleton,
    phase_patterns,
    phase_rules,
)

#: Heads one below the other: (parent head, operand, child head); a head alone is (head, -1, 0).
Edge: TypeAlias = tuple[int, int, int]


class Edges:
    """Which heads stand below which in an e-graph, and which edges have changed since the last search.

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
