"""Small graphs that several tests share."""

from __future__ import annotations

import numpy as np

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph


def f32(*shape: int) -> TensorType:
    """Return the type of a float32 tensor."""
    return TensorType("float32", shape)


def weight(*shape: int, seed: int = 0) -> Weight:
    """Return a float32 weight with random data."""
    data = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Weight(f32(*shape), data)


def shared_matmuls(*, with_data: bool = False) -> Graph:
    """Return two matmuls of one input, added: merging them pays (one kernel less to launch)."""
    weights = {
        name: weight(64, 64, seed=seed) if with_data else Weight(f32(64, 64))
        for seed, name in enumerate(("w1", "w2"))
    }
    return build_graph(
        "shared_matmuls",
        {"x": f32(64, 64)},
        weights,
        [
            Node("matmul", ("x", "w1"), ("a",)),
            Node("matmul", ("x", "w2"), ("b",)),
            Node("add", ("a", "b"), ("c",)),
            Node("relu", ("c",), ("d",)),
            Node("relu", ("d",), ("y",)),
        ],
        ["y"],
    )


def fan_of_matmuls(count: int) -> Graph:
    """Return ``count`` matmuls of one input, added up: there are many ways to merge them."""
    nodes = [Node("matmul", ("x", f"w{i}"), (f"a{i}",)) for i in range(count)]
    nodes.append(Node("identity", ("a0",), ("s0",)))
    nodes += [Node("add", (f"s{i - 1}", f"a{i}"), (f"s{i}",)) for i in range(1, count)]
    weights = {f"w{i}": Weight(f32(8, 8)) for i in range(count)}
    return build_graph("fan", {"x": f32(8, 8)}, weights, nodes, [f"s{count - 1}"])
