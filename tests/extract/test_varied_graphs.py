"""Graphs of an e-graph in turn: each computes the same, and has what those before have not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from bench.models.builder import GraphBuilder
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.families import VariedGraphs
from relational_tensat.extract.tables import chosen_graph
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph
from relational_tensat.verify.evaluate import evaluate_graph
from tests.egraph.extraction import FlatCost


def products() -> Graph:
    """x·A + x·B, which is x·(A + B), too."""
    b = GraphBuilder("products")
    x = b.input("x", 4, 4)
    one, other = (b.op("matmul", x, b.weight(name, 4, 4)) for name in "ab")
    return b.build(b.op("relu", b.op("add", one, other)))


def test_each_graph_computes_the_same_and_has_e_nodes_that_those_before_have_not() -> None:
    graph = products()
    draw = np.random.default_rng(0).standard_normal
    given = {name: draw((4, 4)) for name in ("x", "a", "b")}
    egraph = EGraph.create(graph)
    explore(egraph, load_rules(), ExplorationOptions(3))
    varied = VariedGraphs(egraph, FlatCost(), ExtractionOptions())
    turns, left = [], [varied.left()]
    for turn in varied.graphs():
        turns.append(turn)
        left.append(varied.left())
        assert chosen_graph(egraph).nodes == turns[0].graph.nodes  # the cheapest, for others
    assert len(turns) > 2
    assert min(len(turn.graph.nodes) for turn in turns) == len(turns[0].graph.nodes)
    assert all(len(after) < len(before) for before, after in pairwise(left))
    values: dict[int, np.ndarray] = {}
    for turn in turns:
        names = [name for node in turn.graph.nodes for name in node.outputs if name in turn.classes]
        assert len(names) > len(turn.graph.nodes) / 2 and turn.graph.outputs[0] in names
        every = replace(turn.graph, outputs=tuple(names))
        computed = evaluate_graph(every, given, given)
        for name, value in computed.items():
            known = values.setdefault(turn.classes[name], value)
            np.testing.assert_allclose(value, known, rtol=1e-9, atol=1e-12)
    assert len(values) > len(graph.nodes)
