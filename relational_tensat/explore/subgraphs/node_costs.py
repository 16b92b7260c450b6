"""The cost of choosing each e-node of a universe, as extraction has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.egraph.catalogue import Catalogue, is_foldable
from relational_tensat.egraph.egraph import weight_only_classes
from relational_tensat.explore.subgraphs.node_arrays import Ints, NodeArrays
from relational_tensat.tensor.operators import get_operator


@record
class SubgraphArrays:
    """The e-nodes of a subgraph; classes are numbered from 0 on.

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


class SignatureCosts:
    """The costs of signatures' kernels, and whether they run before inference.

    Args:
        prices_us: returns what kernels of signatures cost, in µs.
    """

    def __init__(
        self, catalogue: Catalogue, prices_us: Callable[[Sequence[int]], Sequence[float]]
    ) -> None:
        self._catalogue = catalogue
        self._prices_us = prices_us
        self._known: list[tuple[float, bool, bool]] = [(0.0, False, False)]

    def refresh(self) -> None:
        """Ask for the prices of new signatures."""
        new = list(range(len(self._known), len(self._catalogue.signatures) + 1))
        for signature, price_us in zip(new, self._prices_us(new) if new else (), strict=True):
            symbol = self._catalogue.symbol_of(signature)
            unpacks = get_operator(symbol.op).unpacks(dict(symbol.attrs))
            self._known.append((price_us, is_foldable(symbol), unpacks))

    def by_signature(self) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the costs in µs, which signatures are foldable, and which unpack."""
        self.refresh()
        costs_us, foldable, unpacking = zip(*self._known, strict=True)
        return np.array(costs_us), np.array(foldable), np.array(unpacking)


class NodeCosts:
    """The e-nodes of a universe with what they cost, as lists: it holds until the universe changes.

    E-nodes that depend on weights only cost nothing, nor do those that unpack such. A class is weight-only
    where any e-node of the universe says so: subgraphs share equalities, and what one subgraph knows of its
    value holds in all.

    Attributes:
        arrays: the e-nodes.
        root: the class to extract.
        owner, children, cost_us: by e-node: its class, its distinct child classes, its cost if chosen.
        weight_only: by class, whether its value is known before inference.
        members, users: by class, its e-nodes, and those that have it as a child.
    """

    def __init__(self, arrays: NodeArrays, signatures: SignatureCosts, root: int) -> None:
        self.arrays = arrays
        self.root = int(arrays.parent[root])
        price_us, foldable, unpacks = signatures.by_signature()
        ids = np.flatnonzero(arrays.exists)
        kind, owner, children = arrays.signature[ids], arrays.owner[ids], arrays.children[ids]
        weight_only = np.zeros(len(arrays.parent), np.bool_)
        weight_only[weight_only_classes(owner[foldable[kind]], children[foldable[kind]])] = True
        no_operand = np.zeros_like(weight_only)
        no_operand[0] = True
        unpacks_weights = unpacks[kind] & (weight_only | no_operand)[children].all(1)
        self._cost_us = np.zeros(arrays.size)
        self._cost_us[ids] = np.where(weight_only[owner] | unpacks_weights, 0.0, price_us[kind])
        self.cost_us: list[float] = self._cost_us.tolist()
        self.weight_only: list[bool] = weight_only.tolist()
        self.owner: list[int] = arrays.owner.tolist()
        self.children: list[tuple[int, ...]] = [
            tuple(dict.fromkeys(filter(None, row))) for row in arrays.children.tolist()
        ]
        self.users: list[list[int]] = [[] for _ in range(len(arrays.parent))]
        self.members: list[list[int]] = [[] for _ in range(len(arrays.parent))]
        for enode, row in enumerate(self.children):
            self.members[self.owner[enode]].append(enode)
            for child in row:
                self.users[child].append(enode)

    def subgraph(self, members: Ints, known: Ints) -> SubgraphArrays:
        """Return a subgraph.

        Args:
            members: its e-nodes in the order of their ids; it is closed under children.
            known: those of a graph of it.
        """
        classes, node_class = np.unique(self.arrays.owner[members], return_inverse=True)
        ordered = np.sort(self.arrays.children[members], axis=1)
        keep = ordered > 0
        keep[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
        places = np.searchsorted(members, known)
        by_class = np.full(len(classes), -1, np.int32)
        by_class[node_class[places]] = places
        pointer = np.zeros(len(members) + 1, np.int32)
        np.cumsum(keep.sum(axis=1), out=pointer[1:])
        return SubgraphArrays(
            self._cost_us[members],
            node_class.astype(np.int32),
            pointer,
            np.searchsorted(classes, ordered[keep]).astype(np.int32),
            len(classes),
            int(np.searchsorted(classes, self.root)),
            by_class,
        )
