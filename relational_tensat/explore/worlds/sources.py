"""Which e-nodes a match is made of: found by what they are, since equal e-nodes are one."""

from __future__ import annotations

import numpy as np

from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.explore.compile.compiled import skeleton_walk
from relational_tensat.explore.compile.patterns import Pattern
from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays


class SourceFinder:
    """Finds the e-nodes of the matches of one pattern.

    Attributes:
        nodes: how many a match has.
        leaves: how many variables, each occurrence counted.
    """

    def __init__(self, pattern: Pattern) -> None:
        walk, columns = skeleton_walk(pattern.skeleton)
        self.nodes = len(walk)
        self.leaves = len(columns)
        self._above = walk
        self._leaf_places = [_place(column) for column in columns]

    def find(self, arrays: NodeArrays, signatures: Ints, leaves: Ints) -> Ints:
        """Return the e-nodes of matches in pre-order, a row each; 0 where one is not there any more.

        Args:
            signatures: of the nodes, a row for each match.
            leaves: the canonical classes at the leaves, a row for each match.
        """
        count = len(signatures)
        children = np.zeros((self.nodes, count, CHILD_COLUMNS), np.int32)
        for leaf, (node, operand) in enumerate(self._leaf_places):
            children[node, :, operand] = leaves[:, leaf]
        found = np.zeros((count, self.nodes), np.int32)
        for node in range(self.nodes - 1, -1, -1):
            found[:, node] = arrays.find(signatures[:, node], children[node])
            above, operand = self._above[node]
            if above >= 0:
                children[above, :, operand] = arrays.owner[found[:, node]]
        found[(found == 0).any(1)] = 0
        return found


def _place(column: str) -> tuple[int, int]:
    """Return node and operand of a leaf's column: (1, 0) of ``n1.c0``."""
    node, operand = column.split(".")
    return int(node[1:]), int(operand[1:])
