"""Random weights that are kept between runs are those that are drawn each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify import shrinking
from relational_tensat.verify.drawing import SeededWeights
from relational_tensat.verify.shrinking import RandomWeights

#: What weights of each element type take, as NumPy holds them.
STORED_BYTES = {"float16": 2, "bfloat16": 4, "float32": 4, "float64": 8}


def product(dtype: str) -> Graph:
    """Return x @ w of 4 x 4 matrices."""
    kind = TensorType(dtype, (4, 4))
    node = Node("matmul", ("x", "w"), ("y",))
    return build_graph("product", {"x": kind}, {"w": Weight(kind)}, [node], ["y"])


@pytest.mark.parametrize("dtype", sorted(STORED_BYTES))
def test_what_is_kept_is_what_is_drawn_and_drawn_once(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kind = product(dtype), TensorType(dtype, (4, 4))
    drawn: list[str] = []
    draw = SeededWeights.draw

    def counted(self: SeededWeights, name: str, *others: Any) -> Any:
        drawn.append(name)
        return draw(self, name, *others)

    monkeypatch.setattr(SeededWeights, "draw", counted)
    for most, times in ((16 * STORED_BYTES[dtype], 1), (16 * STORED_BYTES[dtype] - 1, 4)):
        monkeypatch.setattr(shrinking, "_FEW_BYTES", most)
        weights = RandomWeights(graph, seed=1, step=2)
        drawn.clear()
        stored, computed = weights["w"], weights("w", kind)
        again = weights["w"], weights("w", kind)
        assert len(drawn) == times
        assert stored.itemsize == STORED_BYTES[dtype]
        assert computed.dtype == np.float64
        assert np.array_equal(computed, stored)
        assert all(np.array_equal(value, stored) for value in again)
        assert np.array_equal(stored, RandomWeights(graph, seed=1, step=2, keep=False)["w"])
