"""Many choices of sizes of one kernel at once: arrays with an element per choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Many choices of sizes of one kernel: arrays with an element per choice.

    Attributes:
        whole: of variables in device memory.
        tile: of variables in a block and an iteration.
        after: of variables in a block after the loop, which concatenation makes longer.
        blocks, loop: how many there are.
    """

    whole: Mapping[str, Floats]
    tile: Mapping[str, Floats]
    after: Mapping[str, Floats]
    blocks: Floats
    loop: Floats


def sum_of(terms: Iterable[Floats], sizes: Sizes) -> Floats:
    """Return a sum of arrays, zeros of none."""
    total = np.zeros_like(sizes.blocks)
    for term in terms:
        total = total + term
    return total


def product_of(labels: Iterable[str], extents: Mapping[str, Floats], sizes: Sizes) -> Floats:
    """Return the product of the extents of some variables, ones of none."""
    total = np.ones_like(sizes.blocks)
    for label in labels:
        total = total * extents[label]
    return total
