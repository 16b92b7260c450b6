"""Values that are told apart: a class of terms, and one term that was computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.synthesis.batches import Batch


@dataclass
class TermClass:
    """A distinct value.

    Attributes:
        kind: the number of its type.
        row: of the values of that type.
        size: operators of its first term, shared ones counted once.
        within: the classes of its operators, itself among them.
    """

    kind: int
    row: int
    size: int
    within: frozenset[int]


@dataclass
class ComputedTerm:
    """One term, computed.

    Attributes:
        symbol: its operator's number.
        kind: the number of its type.
        fingerprint: an array of one.
    """

    symbol: int
    kind: int
    value: Batch
    fingerprint: NDArray[np.uint64]
