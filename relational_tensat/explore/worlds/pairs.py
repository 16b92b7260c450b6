"""Pairs of matches of multi-pattern rules: those that some world has both of.

All pairs of a universe are far more than those of any world, so that a pair is looked for only among the
matches that are present, and is found when worlds first have both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.explore.compile.compiled import CompiledRules, JoinGroup
from relational_tensat.explore.worlds.growing import Rows
from relational_tensat.explore.worlds.masks import Bits, Masks, some_world
from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays
from relational_tensat.explore.worlds.sources import SourceFinder

Places = NDArray[np.int64]

#: Most rows of two patterns that are joined at once, and most new pairs of a group of rules that one look
#: finds, give or take those: ResNeXt-50 in worlds of 50,000 e-nodes has hundreds of millions.
_JOINED_AT_ONCE, _FOUND_AT_ONCE = 1_000_000, 1_000_000

#: So many classes fit into one number, as ids are below 2^31.
_EXACT_KEYS = 2


@record
class FoundPairs:
    """Pairs of matches of two patterns that are new, and the rules whose sources they may be.

    Attributes:
        rules: the rules' ids.
        signatures, sources, leaves: of both matches, one after the other, a row each; the first match's
            columns are filled up with 0 where it has fewer than others (signatures and leaves).
        is_complete: whether these are all.
    """

    rules: tuple[int, ...]
    signatures: Ints
    sources: Ints
    leaves: Ints
    is_complete: bool


class HalfMatches:
    """The matches of one pattern, each once.

    Attributes:
        signatures, sources, leaves: a row each; e-nodes and classes as they are by now.
        versions: of each: how often matches had been added or changed when it was, for the last time.
        version: how often that was.
    """

    def __init__(self, nodes: int, leaves: int) -> None:
        self._signatures, self._sources, self._leaves = (
            Rows(nodes),
            Rows(nodes),
            Rows(max(leaves, 1)),
        )
        self._versions = Rows(1)
        self._roots = Rows(1)
        self.version = 0
        self._known: set[bytes] = set()

    @property
    def versions(self) -> Ints:
        """When each came, or was changed."""
        return self._versions.values[:, 0]

    @property
    def roots(self) -> Ints:
        """The classes of the roots."""
        return self._roots.values[:, 0]

    @property
    def signatures(self) -> Ints:
        """Of the e-nodes in pre-order."""
        return self._signatures.values

    @property
    def sources(self) -> Ints:
        """The e-nodes in pre-order."""
        return self._sources.values

    @property
    def leaves(self) -> Ints:
        """The canonical classes at the leaves."""
        return self._leaves.values

    def add(self, signatures: Ints, sources: Ints, leaves: Ints, roots: Ints) -> None:
        """Add those that are not known."""
        keys = [row.tobytes() for row in sources]
        new = []
        for row, key in enumerate(keys):
            if key not in self._known:
                self._known.add(key)
                new.append(row)
        self.version += 1
        self._signatures.add(signatures[new])
        self._sources.add(sources[new])
        self._leaves.add(leaves[new])
        self._roots.add(roots[new, None])
        self._versions.add(np.full((len(new), 1), self.version, np.int32))

    def follow(self, arrays: NodeArrays) -> None:
        """Name e-nodes and classes as they are by now."""
        self.version += 1
        changed = arrays.with_gone(self.sources)
        self.sources[changed] = arrays.became[self.sources[changed]]
        self._known.update(row.tobytes() for row in self.sources[changed])
        self.versions[changed] = self.version
        changed = arrays.with_moved(self.leaves)
        self.leaves[changed] = arrays.parent[self.leaves[changed]]
        self.versions[changed] = self.version
        roots = arrays.owner[self.sources[:, 0]]
        self.versions[roots != self.roots] = self.version
        self.roots[:] = roots


@dataclass(frozen=True, slots=True)
class Present:
    """The matches of a pattern that some worlds have.

    Attributes:
        places: of the matches.
        masks: of each, the worlds that have it.
        new_masks: of each, those of them that did not have it when they were looked at last.
    """

    places: Places
    masks: Bits
    new_masks: Bits

    @property
    def is_all_new(self) -> bool:
        """Whether no world had any of them."""
        return np.array_equal(self.masks, self.new_masks)

    def new(self) -> Present:
        """Return the matches that are new to some world, for these worlds only."""
        rows = np.flatnonzero(some_world(self.new_masks))
        return Present(self.places[rows], self.new_masks[rows], self.new_masks[rows])


class Looked:
    """Which matches some worlds had when pairs were last looked for in them."""

    def __init__(self, versions: Mapping[int, int] | None = None) -> None:
        """Begin with worlds as they are first given.

        Args:
            versions: by pattern; each of the worlds has been looked at when matches had these versions or
                later, with all that it has. None: never.
        """
        self._masks: dict[int, Bits] = {}
        self._versions = dict(versions or {})

    def look(self, pattern: int, matches: HalfMatches, masks: Masks) -> Present:
        """Return the matches that worlds have by now, and note them; those that have changed are new."""
        having = masks.have_all(matches.sources)
        before = np.zeros_like(having)
        if pattern in self._versions:
            last = self._masks.get(pattern, having)
            before[: len(last)] = last
            before[matches.versions > self._versions[pattern]] = 0
        self._masks[pattern], self._versions[pattern] = having, matches.version
        places = np.flatnonzero(some_world(having)).astype(np.int64)
        return Present(places, having[places], having[places] & ~before[places])


class Pairs:
    """Finds pairs of matches on shared leaves."""

    def __init__(self, compiled: CompiledRules) -> None:
        self._compiled = compiled
        self._matches: dict[int, HalfMatches] = {}
        for pattern in sorted(compiled.multi_patterns):
            finder = SourceFinder(compiled.patterns[pattern - 1])
            self._matches[pattern] = HalfMatches(finder.nodes, finder.leaves)
        self._groups = [_Group(*key, tuple(rules)) for key, rules in _by_patterns(compiled).items()]

    def add(
        self, pattern: int, signatures: Ints, sources: Ints, leaves: Ints, arrays: NodeArrays
    ) -> None:
        """Add matches of a pattern."""
        roots = arrays.owner[sources[:, 0]]
        self._matches[pattern].add(signatures, sources, leaves, roots)

    @property
    def versions(self) -> dict[int, int]:
        """By pattern, how often its matches have changed."""
        return {pattern: matches.version for pattern, matches in self._matches.items()}

    def follow(self, arrays: NodeArrays) -> None:
        """Name e-nodes and classes as they are by now."""
        for matches in self._matches.values():
            matches.follow(arrays)

    def find(self, masks: Masks, looked: Looked) -> Iterator[FoundPairs]:
        """Yield the pairs that some of the worlds have and that were not found before.

        Their order depends on their e-nodes only, not on when their matches were found.

        Args:
            looked: what these worlds had when they were looked at last; what they have now is noted.
        """
        present = {
            pattern: looked.look(pattern, matches, masks)
            for pattern, matches in self._matches.items()
        }
        for group in self._groups:
            first, second = self._matches[group.first], self._matches[group.second]
            one, other, is_complete = group.new_pairs(
                (first, second), (present[group.first], present[group.second])
            )
            if len(one):
                yield FoundPairs(
                    group.rules,
                    np.hstack([
                        _wide(first.signatures[one], self._compiled.node_columns),
                        second.signatures[other],
                    ]),
                    np.hstack([first.sources[one], second.sources[other]]),
                    np.hstack([
                        _wide(first.leaves[one], self._compiled.leaf_columns),
                        _wide(second.leaves[other], self._compiled.leaf_columns),
                    ]),
                    is_complete,
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
        self, matches: tuple[HalfMatches, HalfMatches], present: tuple[Present, Present]
    ) -> tuple[Places, Places, bool]:
        """Return the two matches of each pair that is new and that some world has, and whether that is all.

        What a world had when it was looked at last was found then: one of the two is new.
        """
        one, other = present
        parts, count, is_complete = [one.places[:0]], 0, True
        again = () if one.is_all_new else self._codes(matches, one, other.new())
        for codes in chain(self._codes(matches, one.new(), other), again):
            if count > _FOUND_AT_ONCE:
                is_complete = False
                break
            parts.append(codes[~_is_in(codes, self.found)])
            count += len(parts[-1])
        codes = np.sort(np.concatenate(parts))
        codes = codes[np.diff(codes, prepend=-1) > 0]
        if not len(codes):
            return codes, codes, is_complete
        self.found = np.sort(np.concatenate([self.found, codes]), kind="stable")  # two in order
        left, right = codes >> 32, codes & 0xFFFFFFFF
        enodes = np.hstack([matches[0].sources[left], matches[1].sources[right]])
        order = np.lexsort(enodes.T[::-1])
        return left[order], right[order], is_complete

    def _codes(
        self, matches: tuple[HalfMatches, HalfMatches], one: Present, other: Present
    ) -> Iterator[Places]:
        """Yield the pairs of matches that are present in one world: first match · 2^32 + second match."""
        if not len(one.places) or not len(other.places):
            return
        leaves = matches[0].leaves[one.places], matches[1].leaves[other.places]
        one_roots, other_roots = matches[0].roots[one.places], matches[1].roots[other.places]
        for left, right in self._joined(*leaves):
            # A symmetric rule takes each pair once, the lower class first, as in an e-graph without worlds.
            first, second = one_roots[left], other_roots[right]
            is_pair = first < second if self.is_symmetric else first != second
            left, right = left[is_pair], right[is_pair]
            together = np.zeros(len(left), np.bool_)
            for word in range(one.masks.shape[1]):
                together |= (one.masks[:, word][left] & other.masks[:, word][right]) != 0
            left, right = left[together], right[together]
            if len(self.shared) > _EXACT_KEYS:
                agree = self._agree(leaves[0][left], leaves[1][right])
                left, right = left[agree], right[agree]
            yield (one.places[left] << 32) + other.places[right]

    def _joined(self, leaves: Ints, others: Ints) -> Iterator[tuple[Places, Places]]:
        """Yield rows of the two that agree on the shared leaves, and perhaps others, some at a time."""
        keys, other_keys = self._keys(leaves, 0), self._keys(others, 1)
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

    def _keys(self, leaves: Ints, side: int) -> Places:
        """Return one number for the shared leaves of each row: exact for ``_EXACT_KEYS``."""
        keys = np.zeros(len(leaves), np.int64)
        for pair in self.shared:
            keys = keys * 2**31 + leaves[:, pair[side]]
        return keys

    def _agree(self, leaves: Ints, others: Ints) -> NDArray[np.bool_]:
        """Whether the shared leaves of rows are the same."""
        first = leaves[:, [pair[0] for pair in self.shared]]
        second = others[:, [pair[1] for pair in self.shared]]
        return np.asarray((first == second).all(axis=1))


def _by_patterns(
    compiled: CompiledRules,
) -> dict[tuple[int, int, bool, tuple[tuple[int, int], ...]], list[int]]:
    groups: dict[tuple[int, int, bool, tuple[tuple[int, int], ...]], list[int]] = {}
    joins: list[JoinGroup] = compiled.joins
    for join in joins:
        for number in join.rules:
            rule = compiled.rule(number)
            first, second = rule.patterns
            groups.setdefault((first, second, rule.rule.symmetric, join.shared), []).append(number)
    return groups


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
