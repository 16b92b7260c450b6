"""What valid instances build, as arrays: for few applications, which arrays are enough for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.loading import CHILD_COLUMNS

Ints = NDArray[np.int32]

#: Columns of a node of a target: signature, type, head, and the positions of its operands.
SIGNATURE, TYPE, HEAD, OPERANDS = 0, 1, 2, 3
_COLUMNS = OPERANDS + CHILD_COLUMNS


class TargetArrays:
    """The targets of instances, by id."""

    def __init__(self) -> None:
        self._nodes: Ints = np.zeros((0, 0, _COLUMNS), np.int32)
        self._roots: Ints = np.zeros((0, 2), np.int32)
        self._new: dict[int, tuple[Sequence[tuple[int, ...]], tuple[int, int]]] = {}

    def add(self, instance: int, nodes: Sequence[tuple[int, ...]], roots: tuple[int, int]) -> None:
        """Add an instance: rows of ``template``, and where its roots are among the bindings."""
        self._new[instance] = nodes, roots

    def of(self, instances: Ints) -> tuple[Ints, Ints]:
        """Return, for each of some instances, its nodes by step, zeros where it has none, and its roots."""
        self._take_new()
        return self._nodes[instances], self._roots[instances]

    def _take_new(self) -> None:
        if not self._new:
            return
        count = max(max(self._new) + 1, len(self._roots))
        steps = max(self._nodes.shape[1], *(len(nodes) for nodes, _ in self._new.values()))
        nodes = np.zeros((count, steps, _COLUMNS), np.int32)
        nodes[: len(self._nodes), : self._nodes.shape[1]] = self._nodes
        roots = np.zeros((count, 2), np.int32)
        roots[: len(self._roots)] = self._roots
        for instance, (rows, positions) in self._new.items():
            roots[instance] = positions
            for _, step, *columns in rows:
                nodes[instance, step - 1] = columns
        self._nodes, self._roots = nodes, roots
        self._new.clear()
