"""What was found in the windows as rows of the whole graph's tables, for all places at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.working_tables import create_working
from relational_tensat.explore.strategies.blocks.images import Images, Ints
from relational_tensat.explore.strategies.blocks.representative import Representative
from relational_tensat.explore.strategies.blocks.signatures import Signatures
from relational_tensat.explore.strategies.blocks.window_rows import WindowRows


class RowWriter:
    """Writes rows for all places; before it is made, what was found is known to be of one window each."""

    def __init__(
        self,
        database: Database,
        representative: Representative,
        window_rows: WindowRows,
        images: Images,
        first: int,
    ) -> None:
        """Prepare to write.

        Args:
            first: the id of the first class that copying makes.
        """
        self._database = database
        self._representative = representative
        self._window_rows = window_rows
        self._images = images
        self._first = first

    def classes(self, signatures: Signatures) -> None:
        """Write the classes that copying makes, and the labels of the others."""
        images, window_rows, database = self._images, self._window_rows, self._database
        kind_of = {row[1]: signatures.type_id(row[2]) for row in window_rows.nodes}
        for copies in images.copies:
            types = [kind_of[window_rows.root[class_id]] for class_id in copies.new.tolist()]
            ids = images.classes[np.ix_(copies.places, copies.new)].ravel()
            self._insert(
                "eclass",
                id=ids,
                parent=ids,
                type=np.tile(np.array(types, dtype=np.int64), len(copies.places)),
                height=images.labels[ids],
                weight_only=np.zeros(len(ids), dtype=bool),
            )
        label_ids = np.flatnonzero(images.labels[: self._first])
        create_working(database, "label")
        self._insert("label", id=label_ids, height=images.labels[label_ids])
        database.run("blocks/heights")

    def nodes(self, signatures: Signatures, heads: Sequence[int], stamp: int) -> None:
        """Write the e-nodes that copying makes.

        Args:
            heads: by signature - 1 (of the whole graph's e-graph).
        """
        last = self._representative.last
        rows = [
            (self._window_rows.owner_of((row[1], *row[3:8])), *row)
            for row in self._window_rows.nodes
            if row[0] > last
        ]
        for copies in self._images.copies:
            counterparts, places = copies.overlap.counterparts, copies.places
            own = [row[1:] for row in rows if row[0] == copies.kind and row[1] not in counterparts]
            if not own:
                continue
            node, owner, original, *children = (list(column) for column in zip(*own, strict=True))
            iteration, rule, filtered = children[CHILD_COLUMNS:]
            of, times = self._images.classes[places], len(places)
            signature = [signatures.id_of(signature_id) for signature_id in original]
            self._insert(
                "enode",
                id=of[:, node].ravel(),
                owner=of[:, owner].ravel(),
                signature=np.tile(signature, times),
                head=np.tile([heads[signature_id - 1] for signature_id in signature], times),
                **{f"c{i}": of[:, children[i]].ravel() for i in range(CHILD_COLUMNS)},
                iteration=np.tile(iteration, times),
                rule=np.tile(rule, times),
                stamp=np.full(len(own) * times, stamp),
                filtered=np.tile(filtered, times),
            )

    def unions(self) -> None:
        """Write the windows' unions, those that rules asked for with what these were applied to."""
        rows = [
            (self._window_rows.owner_of((row[1], row[2], *(row[5] or ()))), row)
            for row in self._window_rows.unions
        ]
        for copies in self._images.copies:
            own = [row for owner, row in rows if owner == copies.kind]
            self._unions(copies.places, [row for row in own if row[5] is not None])
            self._unions(copies.places, [row for row in own if row[5] is None])

    def _unions(self, places: Ints, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write unions that all have bindings, or all have none."""
        if not rows:
            return
        import pyarrow as pa  # most runs copy nothing

        rule, a, b, instance, source, bindings = zip(*rows, strict=True)
        of, times = self._images.classes[places], len(places)
        count = len(rows) * times
        lists: Any = pa.nulls(count, pa.list_(pa.int32()))
        if bindings[0] is not None:
            flat = np.array(
                [class_id or 0 for bound in bindings for class_id in bound], dtype=np.int64
            )
            lengths = np.tile([len(bound) for bound in bindings], times)
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            lists = pa.ListArray.from_arrays(offsets, of[:, flat].ravel().astype(np.int32))
        self._insert(
            "union_pair",
            round=np.zeros(count, dtype=np.int32),
            rule=np.tile(rule, times),
            a=of[:, list(a)].ravel(),
            b=of[:, list(b)].ravel(),
            instance=pa.array(list(instance) * times, pa.int32()),
            source=pa.array(list(source) * times, pa.int32()),
            bindings=lists,
        )

    def _insert(self, table: str, **columns: Any) -> None:
        self._database.insert_arrays(table, columns, f"copy {table}")
