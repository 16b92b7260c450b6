"""A model on which merging products takes several iterations, and the rules for it."""

from __future__ import annotations

from relational_tensat.base.files import resource_dir
from relational_tensat.tensor import Graph, Node, build_graph
from tests.graphs import f32, weight

#: Files of rules that ship, so that no rule has to be verified.
RULES = tuple(resource_dir("rules") / f"{name}.rules" for name in ("merge", "algebra"))


def layers(steps: int = 2, width: int = 4) -> Graph:
    """Return layers of products that share a factor, added up, and a function of each sum."""
    nodes, weights = [], {}
    value = "x"
    for step in range(steps):
        total = ""
        for index in range(width):
            name = f"{step}_{index}"
            weights[f"w{name}"] = weight(4, 4, seed=step * width + index)
            nodes.append(Node("matmul", (value, f"w{name}"), (f"p{name}",)))
            if index:
                nodes.append(Node("add", (total, f"p{name}"), (f"s{name}",)))
            total = f"s{name}" if index else f"p{name}"
        nodes.append(Node("relu", (total,), (f"r{step}",)))
        value = f"r{step}"
    return build_graph("layers", {"x": f32(4, 4)}, weights, nodes, [value])
