"""The e-nodes of the tables as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.node_hashes import Ints


@record
class Nodes:
    """E-nodes, a column each.

    Attributes:
        children: as many columns as an e-node has operands; no e-node has more.
        is_filtered: whether the cycle filter took it.
    """

    ids: Ints
    classes: Ints
    signatures: Ints
    children: Sequence[Ints]
    is_filtered: NDArray[np.bool_]

    @property
    def width(self) -> int:
        """The most operands of an e-node."""
        return len(self.children)

    @property
    def columns(self) -> list[Ints]:
        """What an e-node is: its signature and its child classes."""
        return [self.signatures, *self.children]


def read_nodes(database: Database, operands: int) -> Nodes:
    """Return the e-nodes of the tables.

    Args:
        operands: the most that an e-node to be built has.
    """
    rows: Mapping[str, NDArray[Any]] = database.columns("apply/known_nodes")
    children = [rows[f"c{i}"] for i in range(CHILD_COLUMNS)]
    while len(children) > operands and not children[-1].any():
        del children[-1]
    return Nodes(rows["id"], rows["class"], rows["signature"], children, rows["filtered"])
