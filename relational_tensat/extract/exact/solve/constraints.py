"""Linear constraints and columns as arrays, as HiGHS takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.problem import Floats, Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows ``lower <= A x <= upper`` with A in compressed sparse rows."""

    ptr: Ints
    idx: Ints
    val: Floats
    lower: Floats
    upper: Floats

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.lower)

    def select(self, indices: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        sizes = np.diff(self.ptr)[indices]
        ends = np.cumsum(sizes)
        entries = np.arange(int(sizes.sum())) + np.repeat(
            self.ptr[:-1][indices] - (ends - sizes), sizes
        )
        return Rows(
            ptr=np.concatenate([[0], ends]).astype(np.int32),
            idx=self.idx[entries],
            val=self.val[entries],
            lower=self.lower[indices],
            upper=self.upper[indices],
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a minimisation: cost, bounds, and which must be integers."""

    cost: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]


def stack_rows(blocks: list[Rows]) -> Rows:
    """Put row blocks under each other."""
    sizes = [0, *np.cumsum([len(block.idx) for block in blocks]).tolist()]
    pointers = [block.ptr[:-1] + size for block, size in zip(blocks, sizes[:-1], strict=True)]
    return Rows(
        ptr=np.concatenate([*pointers, np.array([sizes[-1]])]).astype(np.int32),
        idx=np.concatenate([block.idx for block in blocks]).astype(np.int32),
        val=np.concatenate([block.val for block in blocks]).astype(np.float64),
        lower=np.concatenate([block.lower for block in blocks]).astype(np.float64),
        upper=np.concatenate([block.upper for block in blocks]).astype(np.float64),
    )


def rows_of_lists(rows: list[tuple[list[int], list[float]]], lower: float, upper: float) -> Rows:
    """Build rows of equal bounds from (columns, coefficients) each."""
    sizes = [len(columns) for columns, _ in rows]
    return Rows(
        ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        idx=np.array([column for columns, _ in rows for column in columns], dtype=np.int32),
        val=np.array([value for _, values in rows for value in values], dtype=np.float64),
        lower=np.full(len(rows), lower),
        upper=np.full(len(rows), upper),
    )
