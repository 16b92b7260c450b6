"""Graphs on which example rules do much, little, or things that cannot go well."""

from __future__ import annotations

from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.graphs import f32


def sum_of(count: int) -> Graph:
    """Return a sum of so many inputs, from left to right: commuted and regrouped, it explodes."""
    names = [f"x{index}" for index in range(count)]
    nodes = []
    total = names[0]
    for index in range(1, count):
        nodes.append(Node("add", (total, names[index]), (f"s{index}",)))
        total = f"s{index}"
    return build_graph("sum", dict.fromkeys(names, f32(2, 2)), {}, nodes, [total])


def separate_sums(count: int) -> Graph:
    """Return so many sums that share nothing: every two of them can be joined."""
    names = [f"{side}{index}" for side in "ab" for index in range(count)]
    nodes = [Node("add", (f"a{i}", f"b{i}"), (f"s{i}",)) for i in range(count)]
    inputs = dict.fromkeys(names, f32(2, 2))
    return build_graph("sums", inputs, {}, nodes, [node.outputs[0] for node in nodes])


def product_of_its_factor(steps: int) -> Graph:
    """Return x·w and x·f(x·w), f of so many steps: joined, the first would depend on itself."""
    nodes = [Node("matmul", ("x", "w"), ("f0",))]
    nodes += [Node("tanh", (f"f{step}",), (f"f{step + 1}",)) for step in range(steps)]
    nodes += [
        Node("matmul", ("x", f"f{steps}"), ("second",)),
        Node("add", ("f0", "second"), ("y",)),
    ]
    return build_graph("chained", {"x": f32(2, 2)}, {"w": Weight(f32(2, 2))}, nodes, ["y"])


def mixed() -> Graph:
    """Return a small graph on which most of the example rules have something to do."""
    nodes = [
        Node("matmul", ("x", "w"), ("a",)),
        Node("matmul", ("x", "v"), ("b",)),
        Node("add", ("a", "b"), ("c",)),
        Node("mul", ("c", "z"), ("d",)),
        Node("sub", ("d", "a"), ("e",)),
        Node("relu", ("e",), ("f",)),
        Node("relu", ("f",), ("g",)),
        Node("identity", ("g",), ("h",)),
        Node("add", ("h", "b"), ("y",)),
    ]
    weights = {"w": Weight(f32(2, 2)), "v": Weight(f32(2, 2))}
    return build_graph("mixed", {"x": f32(2, 2), "z": f32(2, 2)}, weights, nodes, ["y", "e"])


def scaled_products() -> Graph:
    """Return a product times, and an input plus, a weight, a product of weights, an input and a mixture."""
    factors = ("u", "uv", "s", "sv")
    inputs = {"x": f32(4, 8), "s": f32(16)}
    shapes = {"w": (8, 16), "u": (16,), "v": (16,)}
    weights = {name: Weight(f32(*shape)) for name, shape in shapes.items()}
    nodes = [
        Node("mul", ("u", "v"), ("uv",)),
        Node("mul", ("s", "v"), ("sv",)),
        Node("matmul", ("x", "w"), ("y",)),
        *(Node("mul", ("y", factor), (f"by_{factor}",)) for factor in factors),
        *(Node("add", ("s", factor), (f"plus_{factor}",)) for factor in factors),
    ]
    outputs = [f"{what}_{factor}" for what in ("by", "plus") for factor in factors]
    return build_graph("scaled", inputs, weights, nodes, outputs)
