"""One world as arrays: what is extracted from where no table shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays
from relational_tensat.explore.worlds.node_costs import NodeCosts


@dataclass(frozen=True, slots=True, eq=False)
class WorldArrays:
    """The e-nodes of a world; classes are numbered from 0 on.

    Attributes:
        cost_us: by e-node.
        node_class: by e-node, its class.
        child_ptr: by e-node, where its children begin in ``child_idx``; one longer.
        child_idx: the distinct child classes of all e-nodes.
        n_classes: how many classes there are.
        root: the class to extract.
        known: by class, the e-node of a graph that is known; -1 for none.
    """

    cost_us: NDArray[np.float64]
    node_class: Ints
    child_ptr: Ints
    child_idx: Ints
    n_classes: int
    root: int
    known: Ints

    @classmethod
    def of(
        cls, members: Ints, known: Ints, arrays: NodeArrays, costs: NodeCosts, root: int
    ) -> WorldArrays:
        """Return a world as it is by now.

        Args:
            members: its e-nodes in the order of their ids; it is closed under children.
            known: those of a graph of it.
            root: the class to extract, by any of its ids.
        """
        classes, node_class = np.unique(arrays.owner[members], return_inverse=True)
        ordered = np.sort(arrays.children[members], axis=1)
        keep = ordered > 0
        keep[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        places = np.searchsorted(members, known)
        by_class = np.full(len(classes), -1, np.int32)
        by_class[node_class[places]] = places
        pointer = np.zeros(len(members) + 1, np.int32)
        np.cumsum(keep.sum(axis=1), out=pointer[1:])
        return cls(
            costs.cost_us[members],
            node_class.astype(np.int32),
            pointer,
            np.searchsorted(classes, ordered[keep]).astype(np.int32),
            len(classes),
            int(np.searchsorted(classes, arrays.parent[root])),
            by_class,
        )
