"""Targets built in arrays: the e-nodes that exist are found, the others made, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.node_hashes import (
    Groups,
    HashedRows,
    Ints,
    Places,
    equal_rows,
    hash_columns,
)
from relational_tensat.explore.apply.in_arrays.nodes import Nodes
from relational_tensat.explore.match.found import Found
from relational_tensat.explore.match.target_arrays import (
    HEAD,
    OPERANDS,
    SIGNATURE,
    TYPE,
    TargetArrays,
)

NO_REASON = -1
_NONE = np.iinfo(np.int64).max


class Fresh:
    """E-nodes that did not exist, in the order of their ids.

    Attributes:
        ids, classes: a root is in the class of its source.
        types, heads, rules: of each; the rule is the one that made it.
        signatures, children: what it is.
        reasons: the id of the application that asks for it as its root, times the most sources, and which
            of its sources that is; below 0: it is in a class of its own.
    """

    def __init__(self, first: int, width: int) -> None:
        none = np.zeros(0, np.int32)
        self._first = first
        self.classes: Ints = none
        self.types: Ints = none
        self.heads: Ints = none
        self.rules: Ints = none
        self.signatures: Ints = none
        self.children: list[Ints] = [none] * width
        self.reasons: NDArray[np.int64] = np.zeros(0, np.int64)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.classes)

    @property
    def ids(self) -> Ints:
        """Their ids, which follow on each other."""
        return np.arange(self._first, self._first + self.count, dtype=np.int32)

    def add(
        self,
        signatures: Ints,
        children: Sequence[Ints],
        others: tuple[Ints, Ints, Ints, Ints],
        reasons: NDArray[np.int64],
    ) -> None:
        """Add some; ``others`` are their types, heads, rules and classes."""
        self.signatures = np.concatenate([self.signatures, signatures])
        self.children = [np.concatenate(c) for c in zip(self.children, children, strict=True)]
        types, heads, rules, classes = others
        self.types = np.concatenate([self.types, types])
        self.heads = np.concatenate([self.heads, heads])
        self.rules = np.concatenate([self.rules, rules])
        self.classes = np.concatenate([self.classes, classes])
        self.reasons = np.concatenate([self.reasons, reasons])


class Building:
    """Applications whose targets are built.

    Attributes:
        found: the applications.
        bound, steps: how many bindings each has before, and the most nodes that are added.
        bindings: a row for each position among the bindings, from 1 on; row 0 stands for no operand.
        fresh: what did not exist.
    """

    def __init__(
        self, found: Found, steps: int, targets: TargetArrays, known: Nodes, next_id: int
    ) -> None:
        self.found = found
        self.bound, self.steps = len(found.bindings), steps
        self._targets = targets
        self._known = known
        self._known_rows: HashedRows | None = None
        self._next_id = next_id
        self.fresh = Fresh(next_id, known.width)
        self.bindings: Ints = np.zeros((1 + self.bound + steps, found.count), np.int32)
        for position, column in enumerate(found.bindings, start=1):
            self.bindings[position] = column

    def root_positions(self, source: int, places: Places | None = None) -> Ints:
        """Return where the root of a source is among the bindings; 0 for no such source."""
        instances = self.found.instances
        of_places: Ints = self._targets.roots()[source][
            instances if places is None else instances[places]
        ]
        return of_places

    def run(self) -> None:
        """Build all steps."""
        for step in range(self.steps):
            self._build(step)

    def _build(self, step: int) -> None:
        """Find or make the e-nodes of a step, and bind their classes."""
        rows = self._targets.step(step)
        if rows is None:
            return
        instances = self.found.instances
        signatures = rows[SIGNATURE][instances]
        places = np.flatnonzero(signatures)
        if not len(places):
            return
        if len(places) < len(signatures):
            signatures, instances = signatures[places], instances[places]
        children = [
            self.bindings[rows[OPERANDS + i][instances], places] for i in range(self._known.width)
        ]
        groups = equal_rows(
            hash_columns([signatures, *children]), columns := [signatures, *children]
        )
        columns = [column[groups.first] for column in columns]
        classes = self._existing(groups, columns)
        missing = np.flatnonzero(classes == 0)
        if len(missing):
            instances = instances[groups.first[missing]]
            wanted = [column[missing] for column in columns]
            of_node = rows[TYPE][instances], rows[HEAD][instances]
            classes[missing] = self._make(step, places, groups, missing, wanted, of_node)
        self.bindings[1 + self.bound + step, places] = classes[groups.of_row]

    def _existing(self, groups: Groups, columns: Sequence[Ints]) -> Ints:
        """Return the classes of e-nodes; 0 where there is none."""
        if self._known_rows is None:
            self._known_rows = HashedRows(self._known.columns)
        classes = np.zeros(len(groups.hashes), np.int32)
        at = self._known_rows.find(groups.hashes, columns)
        is_there = at >= 0
        classes[is_there] = self._known.classes[at[is_there]]
        if self.fresh.count:
            fresh = HashedRows([self.fresh.signatures, *self.fresh.children])
            at = fresh.find(groups.hashes, columns)
            is_there = at >= 0
            classes[is_there] = self.fresh.classes[at[is_there]]
        return classes

    def _make(
        self,
        step: int,
        places: Places,
        groups: Groups,
        missing: Places,
        columns: Sequence[Ints],
        of_node: tuple[Ints, Ints],
    ) -> Ints:
        """Make the e-nodes of missing groups, in the order of the applications; return their classes."""
        found = self.found
        first = groups.first[missing]
        order = np.argsort(first)
        rank = np.full(len(groups.hashes), -1, np.int32)
        rank[missing[order]] = np.arange(len(missing), dtype=np.int32)
        made = rank[groups.of_row]
        asking = np.flatnonzero(made >= 0)
        made = made[asking]
        asking = places[asking]
        homes = np.full(len(missing), _NONE, np.int64)
        sources = len(found.roots)
        for source in range(sources):
            at = np.flatnonzero(self.root_positions(source, asking) == 1 + self.bound + step)
            home = found.roots[source][asking[at]].astype(np.int64) << 32
            home |= sources * found.ids[asking[at]].astype(np.int64) + source
            np.minimum.at(homes, made[at], home)
        rules = np.full(len(missing), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(rules, made, found.rules[asking])
        own = self._next_id + self.fresh.count + np.arange(len(missing))
        classes = np.where(homes == _NONE, own, homes >> 32).astype(np.int32)
        types, heads = (column[order] for column in of_node)
        signatures, *children = (column[order] for column in columns)
        reasons = np.where(homes == _NONE, NO_REASON, homes & 0xFFFFFFFF)
        self.fresh.add(signatures, children, (types, heads, rules, classes), reasons)
        of_missing: Ints = np.empty(len(missing), np.int32)
        of_missing[order] = classes
        return of_missing

    def labels(self, height_of: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the height labels of new classes, as ``direct_targets.labelled_classes_text`` says.

        Args:
            height_of: by class that there was before; -1 at 0.
        """
        first = self._next_id
        height_of = np.concatenate([height_of, np.full(self.fresh.count, -1, np.int32)])
        added = range(1 + self.bound, 1 + self.bound + self.steps)
        roots = np.array([self.root_positions(n) for n in range(len(self.found.roots))])
        bottom = np.full(self.found.count, -1, np.int32)
        for position in range(1, 1 + self.bound + self.steps):
            heights = height_of[self.bindings[position]]
            if position in added:
                heights[(roots == position).any(0)] = -1
            np.maximum(bottom, heights, out=bottom)
        lowest = np.full(self.fresh.count, np.iinfo(np.int32).max, np.int32)
        for position in added:
            at = np.flatnonzero((self.bindings[position] >= first) & (bottom >= 0))
            np.minimum.at(lowest, self.bindings[position][at] - first, bottom[at] + position)
        return np.where(lowest == np.iinfo(np.int32).max, 1, lowest).astype(np.int32)
