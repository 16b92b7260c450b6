"""What was built and united in arrays, written into the tables: e-nodes and classes as they are by now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.node_hashes import Ints, Places
from relational_tensat.explore.apply.in_arrays.asking import AskedUnions
from relational_tensat.explore.apply.in_arrays.building import Building
from relational_tensat.explore.apply.in_arrays.closing import Closed

Columns = Mapping[str, NDArray[Any]]


@record
class Classes:
    """The classes of the tables, by id; 0 is none.

    Attributes:
        parents: the canonical class of each.
        heights: their labels; -1 at 0.
    """

    parents: Ints
    heights: Ints


def read_classes(egraph: EGraph) -> Classes:
    """Return the classes that the tables have."""
    rows = egraph.database.columns("apply/known_classes")
    parents = np.zeros(egraph.next_id, np.int32)
    heights = np.full(egraph.next_id, -1, np.int32)
    parents[rows["id"]] = rows["parent"]
    heights[rows["id"]] = rows["height"]
    return Classes(parents, heights)


class Writing:
    """Writes what an iteration's phase did."""

    def __init__(self, egraph: EGraph, iteration: int, building: Building, closed: Closed) -> None:
        self._database = egraph.database
        self._iteration = iteration
        self._stamp = egraph.clock
        self._building = building
        self._fresh = building.fresh
        self._closed = closed
        self._before = len(closed.nodes.ids) - building.fresh.count

    def nodes(self) -> None:
        """Write the e-nodes that are new, or were rewritten; drop those that are equal to others."""
        closed, nodes, fresh = self._closed, self._closed.nodes, self._fresh
        operands = [f"c{i}" for i in range(nodes.width)]
        kept = np.flatnonzero(~closed.is_dropped[self._before :])
        if len(kept):
            at = self._before + kept
            columns = self._node_columns(at)
            columns |= {
                "signature": nodes.signatures[at],
                "head": fresh.heads[kept],
                "rule": fresh.rules[kept],
            }
            zeros = ["0"] * (CHILD_COLUMNS - nodes.width)
            children = ", ".join([*operands, *zeros])
            self._write(
                columns,
                "-- the new e-nodes\n"
                f"INSERT INTO enode SELECT id, class, signature, head, {children}, "
                "$iteration, rule, $stamp, false FROM relational_tensat_arrays",
                "insert enode",
                iteration=self._iteration,
                stamp=self._stamp,
            )  # fmt: skip
        is_old = np.arange(len(nodes.ids)) < self._before
        changed = np.flatnonzero(closed.is_changed & ~closed.is_dropped & is_old)
        if len(changed):
            values = ", ".join(f"{name} = i.{name}" for name in ["class", *operands])
            self._write(
                self._node_columns(changed),
                "-- canonical ids, for all rules; the stamp makes these rows new to the matcher\n"
                f"UPDATE enode SET {values}, stamp = $stamp\n"
                "FROM relational_tensat_arrays AS i WHERE enode.id = i.id",
                "update enode",
                stamp=self._stamp,
            )
        dropped = np.flatnonzero(closed.is_dropped & is_old)
        if len(dropped):
            self._write(
                {"id": nodes.ids[dropped]},
                "-- of equal e-nodes one stays\n"
                "DELETE FROM enode USING relational_tensat_arrays AS i WHERE enode.id = i.id",
                "delete enode",
            )

    def _node_columns(self, at: Places) -> dict[str, NDArray[Any]]:
        nodes = self._closed.nodes
        children = {f"c{i}": column[at] for i, column in enumerate(nodes.children)}
        return {"id": nodes.ids[at], "class": nodes.classes[at], **children}

    def classes(self, known: Classes | None, labels: Ints | None) -> None:
        """Write new classes, and the old ones that are in others by now.

        Args:
            known: those of the tables; None where none of them changed.
            labels: of the new classes; None where no filter needs them.
        """
        fresh, canonical = self._fresh, self._closed.canonical
        before = fresh.classes
        parents = canonical[before]
        heights = np.ones(fresh.count, np.int32) if labels is None else labels.copy()
        if known is not None:
            old_parents = canonical[known.parents]
            old_heights = known.heights.copy()
            if labels is not None:
                _lift(old_heights, heights, known.parents, before, old_parents, parents)
            changed = np.flatnonzero(
                (old_parents != known.parents) | (old_heights != known.heights)
            )
            if len(changed):
                columns = {"id": changed.astype(np.int32), "parent": old_parents[changed]}
                text = "UPDATE eclass SET parent = i.parent"
                if labels is not None:
                    columns["height"] = old_heights[changed]
                    text += ", height = i.height"
                text += "\nFROM relational_tensat_arrays AS i WHERE eclass.id = i.id"
                self._write(columns, f"-- classes that are others by now\n{text}", "update eclass")
        if fresh.count:
            columns = {"id": fresh.ids, "parent": parents, "type": fresh.types, "height": heights}
            text = (
                "-- the classes of new e-nodes\n"
                "INSERT INTO eclass SELECT *, false FROM relational_tensat_arrays"
            )
            self._write(columns, text, "insert eclass")

    def log(self, asked: AskedUnions) -> None:
        """Write the unions: of new roots with their sources, those asked for, those of equal e-nodes."""
        fresh, found, building = self._fresh, self._building.found, self._building
        direct = np.flatnonzero(fresh.reasons >= 0)
        packed = fresh.reasons[direct]
        n_sources = len(found.roots)
        of_direct = np.searchsorted(found.ids, packed // n_sources)
        places = np.concatenate([of_direct, asked.places])
        sources = np.concatenate([packed % n_sources, asked.sources])
        ids = fresh.ids[direct]
        if len(places):
            columns: dict[str, NDArray[Any]] = {
                "rule": found.rules[places],
                "a": np.concatenate([fresh.classes[direct], asked.lower]),
                "b": np.concatenate([ids, asked.higher]),
                "instance": found.instances[places],
                "source": sources.astype(np.int32),
            }
            bindings = building.bindings[1:, places]
            roots = [building.root_positions(source, of_direct) for source in range(n_sources)]
            own = np.choose(packed % n_sources, roots)
            bindings[own - 1, np.arange(len(direct))] = ids
            names = [f"b{i}" for i in range(len(bindings))]
            columns.update(zip(names, bindings, strict=True))
            listed = [n if i < building.bound else f"nullif({n}, 0)" for i, n in enumerate(names)]
            self._write(
                columns,
                "-- the unions and their reasons\nINSERT INTO union_log\n"
                f"SELECT $iteration, rule, a, b, instance, source, [{', '.join(listed)}]\n"
                "FROM relational_tensat_arrays",
                "insert union_log",
                iteration=self._iteration,
            )
        if self._closed.congruent:
            lower, higher = (np.concatenate(c) for c in zip(*self._closed.congruent, strict=True))
            self._write(
                {"a": lower, "b": higher},
                "-- the unions of equal e-nodes\nINSERT INTO union_log\n"
                "SELECT $iteration, 0, a, b, NULL, NULL, NULL FROM relational_tensat_arrays",
                "insert union_log",
                iteration=self._iteration,
            )

    def _write(self, columns: Columns, text: str, name: str, **params: int) -> None:
        self._database.execute(text, params or None, name, columns)


def _lift(
    old_heights: Ints,
    new_heights: Ints,
    old_before: Ints,
    new_before: Ints,
    old_parents: Ints,
    new_parents: Ints,
) -> None:
    """Raise the labels of canonical classes, in place, to the highest of those that joined them."""
    heights = np.concatenate([old_heights, new_heights])
    for before, parents, own in (
        (old_before, old_parents, old_heights),
        (new_before, new_parents, new_heights),
    ):
        joined = np.flatnonzero(before != parents)
        np.maximum.at(heights, parents[joined], own[joined])
    old_heights[:], new_heights[:] = np.split(heights, [len(old_heights)])
