"""What choosing each e-node of a universe costs, as arrays: as extraction has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.catalogue import Catalogue, is_foldable
from relational_tensat.explore.worlds.node_arrays import NodeArrays
from relational_tensat.tensor.operators import get_operator

#: Returns what kernels of signatures cost, in µs.
Prices = Callable[[Sequence[int]], Sequence[float]]


class NodeCosts:
    """The costs of e-nodes: 0 for what depends on weights only, and for what unpacks such.

    A class is weight-only where any e-node of the universe says so: worlds share equalities, and what one
    world knows of its value holds in all.

    Attributes:
        cost_us: by id of the e-node.
        weight_only: by class, whether its value is known before inference.
    """

    def __init__(self, catalogue: Catalogue, prices: Prices) -> None:
        self.cost_us: NDArray[np.float64] = np.zeros(1)
        self._catalogue = catalogue
        self._prices = prices
        self._price_us: list[float] = [0.0]
        self._foldable: list[bool] = [False]
        self._unpacks: list[bool] = [False]
        self.weight_only = np.zeros(1, np.bool_)

    def refresh(self, arrays: NodeArrays) -> None:
        """Price what is new."""
        self._describe(len(self._catalogue.signatures))
        ids = np.flatnonzero(arrays.exists)
        foldable = np.array(self._foldable)[arrays.signature[ids]]
        owner, children = arrays.owner[ids], arrays.children[ids]
        weight_only = np.zeros(len(arrays.parent), np.bool_)
        weight_only[arrays.parent[np.flatnonzero(self.weight_only)]] = True
        weight_only[0] = True  # no operand
        while True:
            takes_weights = weight_only[children].all(1)
            new = owner[foldable & takes_weights]
            if weight_only[new].all():
                break
            weight_only[new] = True
        unpacks = np.array(self._unpacks)[arrays.signature[ids]]
        is_free = weight_only[owner] | (unpacks & takes_weights)
        self.cost_us = np.zeros(arrays.size)
        self.cost_us[ids] = np.where(is_free, 0.0, np.array(self._price_us)[arrays.signature[ids]])
        self.weight_only = weight_only
        self.weight_only[0] = False

    def _describe(self, count: int) -> None:
        new = range(len(self._price_us), count + 1)
        self._price_us += self._prices(list(new))
        for signature in new:
            symbol = self._catalogue.symbol_of(signature)
            self._foldable.append(is_foldable(symbol))
            self._unpacks.append(get_operator(symbol.op).unpacks(dict(symbol.attrs)))
