"""Graphs with what is awkward to load: many operands, several outputs, shared and equal values."""

from __future__ import annotations

from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.graphs import f32


def wide_concat(operands: int) -> Graph:
    """Return a graph that joins so many inputs along axis 0."""
    names = [f"x{i}" for i in range(operands)]
    inputs = {name: f32(1 + i % 3, 2) for i, name in enumerate(names)}
    nodes = [Node("concat", tuple(names), ("y",), {"axis": 0}, "join")]
    return build_graph(f"wide_{operands}", inputs, {}, nodes, ["y"])


def pieces() -> Graph:
    """Return a split with an unused part; its parts are used, swapped, twice."""
    return build_graph(
        "pieces",
        {"x": f32(6, 2)},
        {},
        [
            Node("split", ("x",), ("a", "b", "c"), {"axis": 0, "sizes": (2, 2, 2)}, "cut"),
            Node("sub", ("c", "a"), ("d",), {}, "difference"),
            Node("mul", ("d", "c"), ("y",), {}, "product"),
        ],
        ["y"],
    )


def opaque_of(operands: int) -> Graph:
    """Return an unknown operator of so many operands and two outputs, of which one is returned."""
    names = tuple(f"x{i}" for i in range(operands))
    attrs = {
        "op_type": "Mystery",
        "domain": "test",
        "opset": 1,
        "payload": "",
        "out_types": (("float32", (2, 3)), ("int64", (4,))),
    }
    nodes = [Node("opaque", names, ("p", "q"), attrs, "mystery"), Node("relu", ("p",), ("y",))]
    return build_graph("opaque", dict.fromkeys(names, f32(2, 3)), {}, nodes, ["y", "q"])


def many_outputs() -> Graph:
    """Return seven outputs, an input among them; two weights, one used twice and one unused."""
    nodes = [
        Node("matmul", ("x", "w"), ("a",), {}, "first"),
        Node("relu", ("a",), ("b",), {}, "second"),
        Node("matmul", ("b", "w"), ("c",), {}, "third"),
        Node("tanh", ("c",), ("d",), {}, "fourth"),
        Node("add", ("d", "x"), ("e",), {}, "fifth"),
        Node("exp", ("e",), ("f",), {}, "sixth"),
        Node("neg", ("f",), ("unused",), {}, "dead"),
    ]
    weights = {"w": Weight(f32(2, 2)), "v": Weight(f32(3, 3))}
    inputs = {"x": f32(2, 2), "z": f32(5)}
    outputs = ["f", "x", "a", "b", "c", "d", "e"]
    return build_graph("many_outputs", inputs, weights, nodes, outputs)


def repeated() -> Graph:
    """Return a graph in which the same chain of two operators stands three times."""
    nodes = [
        Node("relu", ("x",), ("r1",), {}, "relu one"),
        Node("relu", ("x",), ("r2",), {}, "relu two"),
        Node("relu", ("x",), ("r3",), {}, "relu three"),
        Node("tanh", ("r1",), ("t1",), {}, "tanh one"),
        Node("tanh", ("r2",), ("t2",), {}, "tanh two"),
        Node("sigmoid", ("r3",), ("s3",), {}, "other"),
        Node("add", ("t1", "t2"), ("sum",)),
        Node("mul", ("sum", "s3"), ("y",)),
    ]
    return build_graph("repeated", {"x": f32(2, 2)}, {}, nodes, ["y"])
