"""Arrays that rows are added to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.worlds.node_arrays import Ints


class Rows:
    """A table of whole numbers that grows; 0 fills up what is not given.

    Attributes:
        count: how many rows there are.
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self._rows: Ints = np.zeros((256, columns), np.int32)

    @property
    def values(self) -> Ints:
        """The rows; what is written into them stays."""
        return self._rows[: self.count]

    def add(self, rows: NDArray[np.int32]) -> None:
        """Add rows of as many columns or fewer; of more, all get so many."""
        count, columns = rows.shape
        capacity, width = self._rows.shape
        if self.count + count > capacity or columns > width:
            capacity = max(capacity, 2 * (self.count + count))
            wider = np.zeros((capacity, max(width, columns)), np.int32)
            wider[: self.count, :width] = self.values
            self._rows = wider
        self._rows[self.count : self.count + count, :columns] = rows
        self.count += count
