"""Nodes and modelled cost of a graph, counted the same way no matter which program made it.

Two ways, since a fused kernel is one node here and several in a file:

- *as written*: the graph as an ONNX file, read back. A convolution and its relu are two nodes, a
  product of rank 3 and its bias are two.
- *fused*: an activation, a bias or a residual is part of the product, convolution or pooling that
  makes it, where the shipped rules for that allow it. Graphs of others get these rules, and no
  other, before they are counted.

In both, what depends on weights only is folded and not counted.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import onnx

from relational_tensat.cost import CostModel, graph_cost_us
from relational_tensat.egraph import EGraph
from relational_tensat.explore import explore
from relational_tensat.extract import extract
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.formats import from_onnx_model, to_onnx_model
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import count_inference_ops
from relational_tensat.verify.fold import fold_weights

#: The rules that make several nodes one kernel, and change nothing else.
KERNEL_RULES = (
    "activation-into-product",
    "activation-into-product-with-bias",
    "activation-into-convolution",
    "activation-into-convolution-with-bias",
    "activation-into-max-pool",
    "activation-into-avg-pool",
    "addend-into-product",
    "addend-before-product",
    "bias-into-convolution",
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one graph is at inference: how many nodes, of which operators, and their cost."""

    nodes: int
    cost_us: float
    ops: dict[str, int]


@dataclass(frozen=True, slots=True)
class Counted:
    """One graph, counted both ways."""

    written: Figures
    fused: Figures


def count_model(model: onnx.ModelProto, cost: CostModel, where: str) -> Counted:
    """Count what a file holds; ``where`` names it in messages.

    Raises:
        InputError: it is not valid ONNX, or its shapes are not fixed.
    """
    graph = fold_weights(from_onnx_model(model, where=where))
    return Counted(_figures(graph, cost), _figures(_fuse(graph, cost), cost))


def count_optimized(graph: Graph, cost: CostModel) -> Counted:
    """Count an optimized graph of ours, whose kernels are fused already."""
    file = to_onnx_model(graph)
    written = fold_weights(from_onnx_model(file, where=f"{graph.name} as written"))
    return Counted(_figures(written, cost), _figures(fold_weights(graph), cost))


def _figures(graph: Graph, cost: CostModel) -> Figures:
    ops = count_inference_ops(graph)
    return Figures(sum(ops.values()), graph_cost_us(graph, cost), ops)


def _fuse(graph: Graph, cost: CostModel) -> Graph:
    """Return the cheapest form of the graph that the rules for kernels give."""
    with closing(EGraph.create(graph)) as egraph:
        explore(egraph, load_rules(only=KERNEL_RULES))
        table = extraction_problem(egraph, cost)
        choose(egraph, table, extract(table.problem).choice)
        return fold_weights(chosen_graph(egraph))
