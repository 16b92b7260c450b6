"""Random graphs of [8, 8] tensors, full of views: reshapes, splits, transposes, slices, tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.graphs import f32

_UNARY = ("tanh", "relu", "sigmoid", "identity", "neg")
_BINARY = ("add", "sub", "mul", "matmul")


@st.composite
def graphs_of_views(draw: st.DrawFn, most_steps: int = 12) -> Graph:
    """Graphs with two inputs and a weight; whatever is not used is returned."""
    names = ["x", "y", "w"]
    nodes: list[Node] = []

    def add(op: str, *operands: str, outputs: int = 1, **attrs: Any) -> list[str]:
        made = [f"v{len(nodes)}_{i}" for i in range(outputs)]
        nodes.append(Node(op, operands, tuple(made), attrs))
        return made

    def operand() -> str:
        return draw(st.sampled_from(names))

    for _ in range(draw(st.integers(1, most_steps))):
        match draw(
            st.sampled_from(("unary", "binary", "transpose", "reshape", "split", "parts", "concat"))
        ):
            case "unary":
                names += add(draw(st.sampled_from(_UNARY)), operand())
            case "binary":
                names += add(draw(st.sampled_from(_BINARY)), operand(), operand())
            case "transpose":
                names += add("transpose", operand(), perm=(1, 0))
            case "reshape":
                (flat,) = add("reshape", operand(), shape=(2, 4, 8))
                names += add("reshape", flat, shape=(8, 8))
            case "split":
                axis = draw(st.integers(0, 1))
                parts = add("split", operand(), outputs=2, axis=axis, sizes=(4, 4))
                names += add("concat", *reversed(parts), axis=axis)
            case "parts":
                left, right = add("split", operand(), outputs=2, axis=1, sizes=(4, 4))
                if draw(st.booleans()):  # reads rows that lie apart as they are, or a copy
                    (left,) = (
                        add("relu", left) if draw(st.booleans()) else add("softmax", left, axis=1)
                    )
                (joined,) = add(draw(st.sampled_from(_BINARY[:-1])), left, right)
                (other,) = add("reshape", right, shape=(4, 8))
                names += add("matmul", draw(st.sampled_from((left, right, joined))), other)
            case _:
                axis = draw(st.integers(0, 1))
                (joined,) = add("concat", operand(), operand(), axis=axis)
                start = draw(st.integers(0, 8))
                names += add("slice", joined, axes=(axis,), starts=(start,), ends=(start + 8,),
                             steps=(1,))  # fmt: skip
    used = {name for node in nodes for name in node.inputs}
    produced = [name for node in nodes for name in node.outputs]
    outputs = [name for name in produced if name not in used]
    data = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    weights = {"w": Weight(f32(8, 8), data)}
    return build_graph("views", {"x": f32(8, 8), "y": f32(8, 8)}, weights, nodes, outputs)
