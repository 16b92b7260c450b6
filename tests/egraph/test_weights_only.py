"""Classes that depend on weights only."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.egraph.weights_only import weight_only_classes


@pytest.mark.parametrize("seed", range(20))
def test_weight_only_classes_are_those_of_a_slow_search(seed: int) -> None:
    """Cycles among them, leaves of no operand, classes without any e-node."""
    rng = np.random.default_rng(seed)
    n_classes, n_nodes = 12, 25
    owner = rng.integers(1, n_classes, n_nodes).astype(np.int32)
    children = rng.integers(1, n_classes + 1, (n_nodes, 3)).astype(np.int32)
    children[rng.random((n_nodes, 3)) < 0.6] = 0
    known: set[int] = set()
    for _ in range(n_classes):
        for of, below in zip(owner.tolist(), children.tolist(), strict=True):
            if all(child in known for child in below if child):
                known.add(of)
    assert weight_only_classes(owner, children).tolist() == sorted(known)
    assert weight_only_classes(owner[:0], children[:0]).tolist() == []
