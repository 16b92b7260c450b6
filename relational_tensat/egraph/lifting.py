"""Lifting height labels where e-nodes are not above their children."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.edges import Adjacency, edge_places
from relational_tensat.egraph.node_hashes import Ints, Places, distinct

#: In how many rounds labels converge, as a rule, where there is no cycle: e-graphs of the 13 models
#: take 1 to 19, and follow fewer edges than there are.
_FEW_ROUNDS = 32
_FEW_EDGES = 10_000


def labelled(columns: Mapping[str, Ints]) -> tuple[Ints, Places, Places, NDArray[np.int64]]:
    """Return the classes of edges, the places among them of the edges' ends, and the classes' labels.

    Args:
        columns: as ``break_cycles`` takes them.
    """
    classes, parent, child = edge_places(columns["class"], columns["child"])
    label = np.zeros(len(classes), dtype=np.int64)
    label[parent], label[child] = columns["height"], columns["child_height"]
    return classes, parent, child, label


class Lifting:
    """Labels that rise from the e-nodes that break them upwards, all that are as far from these in a round.

    Args:
        columns: the edges, as ``break_cycles`` takes them: all between classes from the lowest that
            breaks a label up to a height. If no label rises above that, it is all.
    """

    def __init__(self, columns: Mapping[str, Ints]) -> None:
        self._classes, self._parent, self._child, self._label = labelled(columns)
        self._before = self._label.copy()

    def start_from(self, classes: Ints, labels: NDArray[np.int64]) -> None:
        """Take over labels that some classes are known to need."""
        _, own_places, other_places = np.intersect1d(
            self._classes, classes, assume_unique=True, return_indices=True
        )
        self._label[own_places] = labels[other_places]

    def converges(self, check: Callable[[], None], *, soon: bool = False) -> bool:
        """Lift labels until they are the lowest that are above those of all children.

        That is so if, and only if, there is no cycle; on one they would rise for ever.

        Args:
            check: raises where this is to end.
            soon: give up, and return False, after a few rounds, or when more edges have been followed
                than there are.
        """
        label = self._label
        edges = Adjacency(self._child, self._parent, len(self._classes))
        below, above = self._child, self._parent
        rounds = followed = 0
        enough = max(len(self._parent), _FEW_EDGES)
        while True:
            check()
            bounds = label[below] + 1
            rises = bounds > label[above]
            if not rises.any():
                return True
            if soon and (rounds >= _FEW_ROUNDS or followed > enough):
                return False
            np.maximum.at(label, above[rises], bounds[rises])
            below, above = edges.following(distinct(above[rises]))
            rounds += 1
            followed += len(below)

    def moved(self) -> tuple[Ints, NDArray[np.int64]]:
        """Return the classes whose labels rose, and what they are now."""
        moved = self._label > self._before
        return self._classes[moved], self._label[moved]
