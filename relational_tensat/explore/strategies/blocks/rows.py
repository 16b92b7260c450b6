"""What was found in the windows as rows of the whole graph's tables, for all places at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.explore.strategies.blocks.found import Found
from relational_tensat.explore.strategies.blocks.images import Images, Ints
from relational_tensat.explore.strategies.blocks.representative import Representative
from relational_tensat.explore.strategies.blocks.signatures import Signatures


class RowWriter:
    """Writes rows for all places; before it is made, what was found is known to be of one window each."""

    def __init__(
        self,
        database: Database,
        representative: Representative,
        found: Found,
        images: Images,
        first: int,
    ) -> None:
        """Prepare to write.

        Args:
            first: the number of the first class that copying makes.
        """
        self._database = database
        self._representative = representative
        self._found = found
        self._images = images
        self._first = first

    def classes(self, signatures: Signatures) -> None:
        """Write the classes that copying makes, and the labels of the others."""
        images, found, database = self._images, self._found, self._database
        kind_of = {row[1]: signatures.type_number(row[2]) for row in found.nodes}
        for copies in images.copies:
            types = [kind_of[found.root[number]] for number in copies.new.tolist()]
            numbers = images.classes[np.ix_(copies.places, copies.new)].ravel()
            self._insert(
                "eclass",
                id=numbers,
                parent=numbers,
                type=np.tile(np.array(types, dtype=np.int64), len(copies.places)),
                height=images.labels[numbers],
                weight_only=np.zeros(len(numbers), dtype=bool),
            )
        known = np.flatnonzero(images.labels[: self._first])
        database.run("blocks/label")
        self._insert("label", id=known, height=images.labels[known])
        database.run("blocks/heights")

    def nodes(self, signatures: Signatures, heads: Sequence[int], stamp: int) -> None:
        """Write the e-nodes that copying makes.

        Args:
            heads: by signature - 1 (of the whole graph's e-graph).
        """
        last = self._representative.last
        rows = [
            (self._found.owner_of((row[1], *row[3:8])), *row)
            for row in self._found.nodes
            if row[0] > last
        ]
        for copies in self._images.copies:
            twins, places = copies.overlap.twins, copies.places
            own = [row[1:] for row in rows if row[0] == copies.kind and row[1] not in twins]
            if not own:
                continue
            number, owner, was, *children = (list(column) for column in zip(*own, strict=True))
            iteration, rule, filtered = children[CHILD_COLUMNS:]
            of, times = self._images.classes[places], len(places)
            signature = [signatures.number(each) for each in was]
            self._insert(
                "enode",
                id=of[:, number].ravel(),
                owner=of[:, owner].ravel(),
                signature=np.tile(signature, times),
                head=np.tile([heads[each - 1] for each in signature], times),
                **{f"c{i}": of[:, children[i]].ravel() for i in range(CHILD_COLUMNS)},
                iteration=np.tile(iteration, times),
                rule=np.tile(rule, times),
                stamp=np.full(len(own) * times, stamp),
                filtered=np.tile(filtered, times),
            )

    def unions(self) -> None:
        """Write the windows' unions, those that rules asked for with what these were applied to."""
        rows = [
            (self._found.owner_of((row[1], row[2], *(row[5] or ()))), row)
            for row in self._found.unions
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
            flat = np.array([each or 0 for bound in bindings for each in bound], dtype=np.int64)
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
