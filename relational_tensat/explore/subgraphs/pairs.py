"""Pairs of matches of multi-pattern rules: those that some subgraph has both of.

All pairs of a universe are far more than those of any subgraph. So a pair is looked for only among the
matches that are present, and is found when subgraphs first have both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.explore.subgraphs.applications import ApplicationRows
from relational_tensat.explore.subgraphs.node_arrays import (
    Bits,
    Ints,
    Masks,
    NodeArrays,
    some_subgraph,
)

Places = NDArray[np.int64]

#: Most rows of two patterns that are joined at once, and most new pairs of a group of rules that one look
#: finds, give or take those: ResNeXt-50 in subgraphs of 50,000 e-nodes has hundreds of millions.
_JOINED_AT_ONCE, _FOUND_AT_ONCE = 1_000_000, 1_000_000


@record
class PairSources:
    """Matches of all sources of some rules: of one pattern, or pairs.

    Attributes:
        rules: the rules' ids.
        signatures, sources, leaves: of a source, one after the other, a row for each match: signatures of
            e-nodes and these in pre-order, and the canonical classes at the leaves. Of pairs, the first
            source's are filled up with 0 where it has fewer than others (signatures and leaves).
        roots: the classes of the roots; None of pairs, which are in order.
        is_complete: whether these are all.
    """

    rules: tuple[int, ...]
    signatures: Ints
    sources: Ints
    leaves: Ints
    roots: Ints | None = None
    is_complete: bool = True


class SeenVersions:
    """The matches that some subgraphs had when pairs were last looked for in them.

    Attributes:
        versions: by pattern; each of the subgraphs has been looked at when matches had these versions or
            later, with all that it has. Without: never.
        masks: by pattern and match, the subgraphs that had it; where it is missing, all that have it now.
    """

    def __init__(self, versions: Mapping[int, int] | None = None) -> None:
        self.versions = dict(versions or {})
        self.masks: dict[int, Bits] = {}


@record
class _Present:
    """The matches of a pattern that some subgraphs have.

    Attributes:
        places: of the matches.
        masks: of each, the subgraphs that have it.
        new: those that some subgraphs did not have when they were looked at last, and these subgraphs.
    """

    places: Places
    masks: Bits
    new: tuple[Places, Bits]


class _Matches:
    """The matches of one pattern, each once, as e-nodes and classes are by now.

    Attributes:
        version: how often matches have been added or changed.
    """

    def __init__(self) -> None:
        self.version = 0
        self._sources, self._leaves, self._about = (
            ApplicationRows(1),
            ApplicationRows(1),
            ApplicationRows(2),
        )
        self._known: set[bytes] = set()

    @property
    def sources(self) -> Ints:
        """The e-nodes in pre-order, a row each."""
        return self._sources.values

    @property
    def leaves(self) -> Ints:
        """The classes at the leaves, a row each."""
        return self._leaves.values

    @property
    def roots(self) -> Ints:
        return self._about.values[:, 0]

    @property
    def versions(self) -> Ints:
        """The version in which each came, or was changed for the last time."""
        return self._about.values[:, 1]

    def add(self, found: PairSources) -> None:
        """Add those that are not known."""
        assert found.roots is not None
        self.version += 1
        new = []
        for row, key in enumerate(map(bytes, found.sources)):
            if key not in self._known:
                self._known.add(key)
                new.append(row)
        self._sources.add(found.sources[new])
        self._leaves.add(found.leaves[new])
        versions = np.full(len(new), self.version, np.int32)
        self._about.add(np.stack([found.roots[new], versions], axis=1))

    def follow(self, arrays: NodeArrays) -> None:
        """Name e-nodes and classes as they are by now."""
        self.version += 1
        gone, moved = arrays.with_gone(self.sources), arrays.with_moved(self.leaves)
        self.sources[gone] = arrays.became[self.sources[gone]]
        self._known.update(map(bytes, self.sources[gone]))
        self.leaves[moved] = arrays.parent[self.leaves[moved]]
        roots = arrays.owner[self.sources[:, 0]]
        for changed in (gone, moved, roots != self.roots):
            self.versions[changed] = self.version
        self.roots[:] = roots

    def present(self, masks: Masks, pattern: int, looked: SeenVersions) -> _Present:
        """Return the matches that subgraphs have by now, and note them; those that have changed are new."""
        having = masks.have_all(self.sources)
        had = np.zeros_like(having)
        if pattern in looked.versions:
            before = looked.masks.get(pattern, having)
            had[: len(before)] = before
            had[self.versions > looked.versions[pattern]] = 0
        looked.masks[pattern], looked.versions[pattern] = having, self.version
        came = having & ~had
        new = np.flatnonzero(some_subgraph(came)).astype(np.int64)
        places = np.flatnonzero(some_subgraph(having)).astype(np.int64)
        return _Present(places, having[places], (new, came[new]))


class Pairs:
    """Finds pairs of matches on shared leaves."""

    def __init__(self, compiled: CompiledRules) -> None:
        self._compiled = compiled
        self._matches = {pattern: _Matches() for pattern in sorted(compiled.multi_patterns)}
        groups: dict[tuple[int, int, bool, tuple[tuple[int, int], ...]], list[int]] = {}
        for join in compiled.joins:
            for number in join.rules:
                rule = compiled.rule(number)
                first, second = rule.patterns
                key = (first, second, rule.rule.symmetric, join.shared)
                groups.setdefault(key, []).append(number)
        self._groups = [_Group(*key, tuple(rules)) for key, rules in groups.items()]

    @property
    def versions(self) -> dict[int, int]:
        """By pattern, how often its matches have changed."""
        return {pattern: matches.version for pattern, matches in self._matches.items()}

    def add(self, pattern: int, found: PairSources) -> None:
        """Add matches of a pattern."""
        self._matches[pattern].add(found)

    def follow(self, arrays: NodeArrays) -> None:
        """Name e-nodes and classes as they are by now."""
        for matches in self._matches.values():
            matches.follow(arrays)

    def find(self, masks: Masks, looked: SeenVersions, arrays: NodeArrays) -> Iterator[PairSources]:
        """Yield the pairs that some of the subgraphs have and that were not found before.

        Their order depends on their e-nodes only, not on when their matches were found.

        Args:
            looked: the matches of these subgraphs at the last look; their present ones are noted.
        """
        present = {
            pattern: matches.present(masks, pattern, looked)
            for pattern, matches in self._matches.items()
        }
        nodes, leaves = self._compiled.node_columns, self._compiled.leaf_columns
        for group in self._groups:
            both = self._matches[group.first], self._matches[group.second]
            one, other, is_complete = group.new_pairs(
                both, (present[group.first], present[group.second])
            )
            if not len(one):
                continue
            sources = both[0].sources[one], both[1].sources[other]
            yield PairSources(
                group.rules,
                np.hstack([_wide(arrays.signature[sources[0]], nodes), arrays.signature[sources[1]]]),
                np.hstack(sources),
                np.hstack([
                    _wide(both[0].leaves[one], leaves), _wide(both[1].leaves[other], leaves)
                ]),
                is_complete=is_complete,
            )  # fmt: skip


@dataclass(slots=True)
class _Group:
    """Rules of the same two patterns that share leaves in the same way.

    Attributes:
        first, second: the patterns.
        is_symmetric: whether of two classes only the pair with the lower one first counts.
        shared: which leaves of the two are the same variable.
        found: the pairs so far, in order: first match · 2^32 + second match.
    """

    first: int
    second: int
    is_symmetric: bool
    shared: tuple[tuple[int, int], ...]
    rules: tuple[int, ...]
    found: Places = field(default_factory=lambda: np.zeros(0, np.int64))

    def new_pairs(
        self, matches: tuple[_Matches, _Matches], present: tuple[_Present, _Present]
    ) -> tuple[Places, Places, bool]:
        """Return the two matches of each pair that is new and that some subgraph has, and whether that is
        all.

        Pairs of matches that a subgraph had at its last look were found then: one of the two is new.
        """
        one, other = ((each.places, each.masks) for each in present)
        one_new, other_new = present[0].new, present[1].new
        if not len(one_new[0]) and not len(other_new[0]):
            return one[0][:0], one[0][:0], True
        parts, count, is_complete = [one[0][:0]], 0, True
        again = () if np.array_equal(one[1], one_new[1]) else self._codes(matches, one, other_new)
        for codes in chain(self._codes(matches, one_new, other), again):
            if count > _FOUND_AT_ONCE:
                is_complete = False
                break
            parts.append(codes[~_is_in(codes, self.found)])
            count += len(parts[-1])
        codes = np.unique(np.concatenate(parts))
        if not len(codes):
            return codes, codes, is_complete
        self.found = np.sort(np.concatenate([self.found, codes]), kind="stable")  # two in order
        left, right = codes >> 32, codes & 0xFFFFFFFF
        enodes = np.hstack([matches[0].sources[left], matches[1].sources[right]])
        order = np.lexsort(enodes.T[::-1])
        return left[order], right[order], is_complete

    def _codes(
        self,
        matches: tuple[_Matches, _Matches],
        one: tuple[Places, Bits],
        other: tuple[Places, Bits],
    ) -> Iterator[Places]:
        """Yield the pairs of matches that are present in one subgraph: first match · 2^32 + second match.

        Args:
            one, other: which of them, and the subgraphs that have each.
        """
        (places, masks), (other_places, other_masks) = one, other
        if not len(places) or not len(other_places):
            return
        leaves = matches[0].leaves[places], matches[1].leaves[other_places]
        one_roots, other_roots = matches[0].roots[places], matches[1].roots[other_places]
        for left, right in self._joined(*leaves):
            # A symmetric rule takes each pair once, the lower class first, as in an e-graph without
            # subgraphs.
            first, second = one_roots[left], other_roots[right]
            is_pair = first < second if self.is_symmetric else first != second
            left, right = left[is_pair], right[is_pair]
            together = some_subgraph(masks[left] & other_masks[right])
            left, right = left[together], right[together]
            for leaf, same in self.shared[2:]:  # one number has no room for these
                agree = leaves[0][left, leaf] == leaves[1][right, same]
                left, right = left[agree], right[agree]
            yield (places[left] << 32) + other_places[right]

    def _joined(self, leaves: Ints, others: Ints) -> Iterator[tuple[Places, Places]]:
        """Yield rows of the two that agree on the first two shared leaves, some at a time."""
        keys, other_keys = np.zeros(len(leaves), np.int64), np.zeros(len(others), np.int64)
        for leaf, same in self.shared[:2]:  # ids are below 2^31
            keys = keys * 2**31 + leaves[:, leaf]
            other_keys = other_keys * 2**31 + others[:, same]
        order = np.argsort(other_keys, kind="stable")
        ordered = other_keys[order]
        low, high = np.searchsorted(ordered, keys), np.searchsorted(ordered, keys, "right")
        counts = high - low
        part = np.cumsum(counts) // _JOINED_AT_ONCE
        for begin, end in pairwise([*np.flatnonzero(np.diff(part, prepend=-1)), len(keys)]):
            own = counts[begin:end]
            left = np.repeat(np.arange(begin, end), own)
            starts = np.repeat(low[begin:end] - np.cumsum(own) + own, own)
            yield left, order[starts + np.arange(len(left))]


def _is_in(codes: Places, known: Places) -> NDArray[np.bool_]:
    """Whether numbers are among others, which are in order."""
    if not len(known):
        return np.zeros(len(codes), np.bool_)
    places = np.searchsorted(known, codes).clip(max=len(known) - 1)
    return np.asarray(known[places] == codes)


def _wide(rows: Ints, columns: int) -> Ints:
    wide = np.zeros((len(rows), columns), np.int32)
    wide[:, : rows.shape[1]] = rows
    return wide
