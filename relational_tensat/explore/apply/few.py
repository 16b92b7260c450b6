"""Few applications, built in arrays: a statement takes some milliseconds, however little it does.

What is built is what ``direct`` builds, in the same order, under the same ids and for the same reasons; the
tables are read once and written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.node_hashes import HashedNodes, HashesCollideError, Ints, hashed
from relational_tensat.egraph.working_tables import create_working
from relational_tensat.explore.apply.bounds import Bounds
from relational_tensat.explore.match.target_arrays import (
    HEAD,
    OPERANDS,
    SIGNATURE,
    TYPE,
    TargetArrays,
)

#: Up to so many applications, in e-graphs of up to so many e-nodes.
FEW_APPLICATIONS, FEW_NODES = 4_000, 50_000

_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class FewBuilt:
    """What was built.

    Attributes:
        direct: new roots in the classes of their sources.
        unions: pairs of classes that roots ask for, by now in ``union_pair``.
    """

    direct: int
    unions: int


def build_few(
    egraph: EGraph,
    iteration: int,
    bounds: Bounds,
    targets: TargetArrays,
    *,
    has_labels: bool,
    has_pairs: bool,
) -> FewBuilt | None:
    """Build the targets of the applications, and note the unions that they ask for.

    None where there would be more e-nodes than the limit, or statements must do it: then nothing has been
    done.

    Args:
        has_labels: whether new classes get height labels.
        has_pairs: whether ``union_pair`` has pairs of this phase already.
    """
    try:
        building = _Building(egraph, bounds, targets)
        building.run()
    except HashesCollideError:
        return None
    if egraph.e_nodes + building.fresh.count > bounds.node_limit:
        return None
    return _Writing(egraph, iteration, building).run(has_labels=has_labels, has_pairs=has_pairs)


class _Fresh:
    """E-nodes that did not exist, in the order of their ids."""

    def __init__(self) -> None:
        self.count = 0
        #: Columns: signature, type, head, rule, class; then the child classes.
        self.nodes: Ints = np.zeros((0, 5 + CHILD_COLUMNS), np.int32)
        #: As ``fresh.reason``; below 0: it is in a class of its own.
        self.reasons: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, nodes: Ints, reasons: NDArray[np.int64]) -> None:
        self.nodes = np.concatenate([self.nodes, nodes])
        self.reasons = np.concatenate([self.reasons, reasons])
        self.count = len(self.nodes)

    def hashed(self) -> HashedNodes:
        return HashedNodes(self.nodes[:, 0], self.nodes[:, 5:], self.nodes[:, 4])


class _Building:
    """Applications whose targets are built, step by step.

    Attributes:
        bindings: a row for each application; column 0 stands for no operand.
        nodes, roots: of their targets, as ``TargetArrays`` has them.
        fresh: what did not exist.
    """

    def __init__(self, egraph: EGraph, bounds: Bounds, targets: TargetArrays) -> None:
        self.bound, self.steps = bounds.bound, bounds.steps
        self._next_id = egraph.next_id
        bound = ", ".join(f"b[{i}]" for i in range(1, bounds.bound + 1))
        rows = egraph.database.arrays(
            f"-- applications: {bounds.rules}\n"
            f"SELECT id, rule, instance, root0, root1, {bound} FROM application ORDER BY id",
            "few_applications",
        )
        columns = [np.asarray(column, dtype=np.int32) for column in rows.values()]
        self.ids, self.rules, self.instances = columns[:3]
        self.sources: Ints = np.stack(columns[3:5], axis=1)
        self.bindings: Ints = np.zeros((len(self.ids), 1 + bounds.bound + bounds.steps), np.int32)
        self.bindings[:, 1 : 1 + bounds.bound] = np.stack(columns[5:], axis=1)
        self.nodes, self.roots = targets.of(self.instances)
        self.fresh = _Fresh()
        known = egraph.database.columns("apply/known_nodes")
        self._known = HashedNodes(
            known["signature"],
            np.stack([known[f"c{i}"] for i in range(CHILD_COLUMNS)], axis=1),
            known["class"],
        )

    def run(self) -> None:
        for step in range(self.steps):
            self._build(step)

    def _build(self, step: int) -> None:
        """Find or make the e-nodes of a step, and bind their classes."""
        if step >= self.nodes.shape[1]:
            return
        places = np.flatnonzero(self.nodes[:, step, SIGNATURE])
        template = self.nodes[places, step]
        children = np.take_along_axis(self.bindings[places], template[:, OPERANDS:], axis=1)
        hashes = hashed(template[:, SIGNATURE], children)
        classes = self._known.classes(hashes, template[:, SIGNATURE], children)
        missing = np.flatnonzero(classes == 0)
        if len(missing) and self.fresh.count:
            wanted = hashes[missing], template[missing, SIGNATURE], children[missing]
            classes[missing] = self.fresh.hashed().classes(*wanted)
            missing = np.flatnonzero(classes == 0)
        if len(missing):
            classes[missing] = self._make(
                places[missing], template[missing], children[missing], hashes[missing], step
            )
        self.bindings[places, 1 + self.bound + step] = classes

    def _make(
        self,
        places: NDArray[np.intp],
        template: Ints,
        children: Ints,
        hashes: NDArray[np.uint64],
        step: int,
    ) -> Ints:
        """Make e-nodes, equal ones once; return the classes of all."""
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        like = first[group]
        is_like = template[:, SIGNATURE] == template[like, SIGNATURE]
        if not (is_like & (children == children[like]).all(axis=1)).all():
            raise HashesCollideError
        order = np.argsort(first)
        rank = np.empty(len(order), np.intp)
        rank[order] = np.arange(len(order))
        group, first = rank[group], first[order]
        homes = np.full(len(first), _NONE, np.int64)
        for source in (0, 1):
            at = np.flatnonzero(self.roots[places, source] == 1 + self.bound + step)
            home = self.sources[places[at], source].astype(np.int64) << 32
            np.minimum.at(
                homes, group[at], home | (2 * self.ids[places[at]].astype(np.int64) + source)
            )
        rules = np.full(len(first), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(rules, group, self.rules[places])
        own = self._next_id + self.fresh.count + np.arange(len(first))
        classes = np.where(homes == _NONE, own, homes >> 32).astype(np.int32)
        of_node = template[first]
        columns = [of_node[:, SIGNATURE], of_node[:, TYPE], of_node[:, HEAD], rules, classes]
        nodes = np.concatenate([np.stack(columns, axis=1), children[first]], axis=1)
        self.fresh.add(nodes, np.where(homes == _NONE, -1, homes & 0xFFFFFFFF))
        made: Ints = classes[group]
        return made


class _Writing:
    """What was built, written into the tables."""

    def __init__(self, egraph: EGraph, iteration: int, building: _Building) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._iteration = iteration
        self._building = building
        self._fresh = building.fresh
        self._ids = np.arange(egraph.next_id, egraph.next_id + building.fresh.count)

    def run(self, *, has_labels: bool, has_pairs: bool) -> FewBuilt:
        egraph, fresh = self._egraph, self._fresh
        direct = np.flatnonzero(fresh.reasons >= 0)
        if fresh.count:
            self._write_nodes()
            heights = self._labels() if has_labels else np.ones(fresh.count, np.int32)
            ids, classes, types = self._ids, fresh.nodes[:, 4], fresh.nodes[:, 1]
            columns = (ids.tolist(), classes.tolist(), types.tolist(), heights.tolist())
            self._database.append("eclass", [(*row, False) for row in zip(*columns, strict=True)])
        if len(direct):
            self._database.append("union_log", list(self._reasons(direct)))
        pairs = self._pairs()
        if pairs:
            if not has_pairs:
                create_working(self._database, "union_pair")
            self._database.append("union_pair", pairs)
        egraph.next_id += fresh.count
        egraph.e_nodes += fresh.count
        egraph.e_classes += fresh.count - len(direct)
        return FewBuilt(len(direct), len(pairs))

    def _write_nodes(self) -> None:
        nodes, stamp = self._fresh.nodes, self._egraph.clock
        rows = zip(self._ids.tolist(), nodes.tolist(), strict=True)
        self._database.append(
            "enode",
            [
                (enode, owner, signature, head, *children, self._iteration, rule, stamp, False)
                for enode, (signature, _, head, rule, owner, *children) in rows
            ],
        )

    def _labels(self) -> Ints:
        """Return the height labels of new classes, as ``direct_targets.labelled_classes_text`` says."""
        building, first = self._building, self._egraph.next_id
        labels = self._database.columns("cycles/labels")
        height_of = np.full(first + self._fresh.count, -1, np.int32)
        height_of[labels["id"]] = labels["height"]
        heights = height_of[building.bindings]
        added = heights[:, 1 + building.bound :]
        positions = np.arange(1 + building.bound, 1 + building.bound + building.steps)
        added[(building.roots[:, :, None] == positions).any(axis=1)] = -1
        bottom = heights.max(axis=1)
        lowest = np.full(self._fresh.count, np.iinfo(np.int32).max, np.int32)
        for position in positions:
            at = np.flatnonzero((building.bindings[:, position] >= first) & (bottom >= 0))
            np.minimum.at(lowest, building.bindings[at, position] - first, bottom[at] + position)
        return np.where(lowest == np.iinfo(np.int32).max, 1, lowest).astype(np.int32)

    def _reasons(self, direct: NDArray[np.intp]) -> Iterator[tuple[object, ...]]:
        """Yield the rows of ``union_log`` for new roots, as ``direct_targets.reasons_text`` says."""
        building = self._building
        packed = self._fresh.reasons[direct]
        places, sources = np.searchsorted(building.ids, packed // 2), packed % 2
        bindings = building.bindings[places, 1:]
        roots = building.roots[places, sources]
        bindings[np.arange(len(direct)), roots - 1] = self._ids[direct]
        columns = (
            building.rules[places], self._fresh.nodes[direct, 4], self._ids[direct],
            building.instances[places], sources,
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for row, listed in zip(rows, self._listed(bindings), strict=True):
            yield (self._iteration, *row, listed)

    def _pairs(self) -> list[tuple[object, ...]]:
        """Return the rows of ``union_pair``, as ``targets.unions_text`` says."""
        building = self._building
        lower: list[NDArray[np.int64]] = []
        reasons: list[NDArray[np.int64]] = []
        for source in (0, 1):
            positions = building.roots[:, [source]]
            targets = np.take_along_axis(building.bindings, positions, axis=1)[:, 0]
            roots = building.sources[:, source]
            at = np.flatnonzero((positions[:, 0] > 0) & (targets != roots) & (roots > 0))
            low = np.minimum(targets[at], roots[at]).astype(np.int64)
            lower.append(low << 32 | np.maximum(targets[at], roots[at]))
            reasons.append(2 * building.ids[at].astype(np.int64) + source)
        pairs, group = np.unique(np.concatenate(lower), return_inverse=True)
        first = np.full(len(pairs), _NONE, np.int64)
        np.minimum.at(first, group, np.concatenate(reasons))
        order = np.argsort(first)
        pairs, first = pairs[order], first[order]
        places, sources = np.searchsorted(building.ids, first // 2), first % 2
        columns = (
            building.rules[places], pairs >> 32, pairs & 0xFFFFFFFF, building.instances[places], sources,
        )  # fmt: skip
        rows = zip(*(column.tolist() for column in columns), strict=True)
        listed = self._listed(building.bindings[places, 1:])
        return [(0, *row, bindings) for row, bindings in zip(rows, listed, strict=True)]

    def _listed(self, bindings: Ints) -> Sequence[list[int | None]]:
        """Return bindings as lists, NULL for the nodes that a target does not have."""
        bound = self._building.bound
        return [
            [*row[:bound], *(owner or None for owner in row[bound:])] for row in bindings.tolist()
        ]
