"""What valid instances build, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.egraph.node_hashes import Ints

#: Rows of a step: signature, type, head, and the positions of its operands among the bindings.
SIGNATURE, TYPE, HEAD, OPERANDS = 0, 1, 2, 3
_ROWS = OPERANDS + CHILD_COLUMNS


class TargetArrays:
    """The targets of instances, by id.

    Attributes:
        sources: the most that a rule has, two at least.
    """

    def __init__(self, sources: int) -> None:
        self.sources = sources
        self._steps: NDArray[np.int32] = np.zeros((0, _ROWS, 0), np.int32)
        self._roots: NDArray[np.int32] = np.zeros((sources, 0), np.int32)
        self._new: dict[int, tuple[Sequence[tuple[int, ...]], Sequence[int]]] = {}

    def add(self, instance: int, nodes: Sequence[tuple[int, ...]], roots: Sequence[int]) -> None:
        """Add an instance: rows of ``template``, and where its roots are among the bindings."""
        self._new[instance] = nodes, roots

    def roots(self) -> Ints:
        """Return a row for each source: its position among the bindings, by instance; 0 for none."""
        self._take_new()
        return self._roots

    def step(self, step: int) -> Ints | None:
        """Return the rows of a step, from 0 on, by instance, zeros for no node; None after the last."""
        self._take_new()
        return self._steps[step] if step < len(self._steps) else None

    def _take_new(self) -> None:
        if not self._new:
            return
        count = max(max(self._new) + 1, self._roots.shape[1])
        before = len(self._steps)
        most = max(before, *(len(nodes) for nodes, _ in self._new.values()))
        steps = np.zeros((most, _ROWS, count), np.int32)
        steps[:before, :, : self._steps.shape[2]] = self._steps
        roots = np.zeros((len(self._roots), count), np.int32)
        roots[:, : self._roots.shape[1]] = self._roots
        for instance, (rows, positions) in self._new.items():
            roots[:, instance] = positions
            for _, step, *values in rows:
                steps[step - 1, :, instance] = values
        self._steps, self._roots = steps, roots
        self._new.clear()
