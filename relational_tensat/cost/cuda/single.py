"""One configuration as a graph of its own, and random values for its operands."""

from __future__ import annotations

import math

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.cost.device import Configuration
from relational_tensat.gpu.memory import rounded
from relational_tensat.tensor import (
    DTYPE_BYTES,
    Array,
    Graph,
    Node,
    TensorType,
    build_graph,
    tensors_of,
)
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.verify.random_values import random_inputs


def graph_of(configuration: Configuration) -> Graph:
    """Return the graph in which every operand is an input; tuples are made of theirs first.

    Raises:
        InputError: an operand is no tensor of numbers, or the operator does not take it.
    """
    inputs: dict[str, TensorType] = {}
    nodes: list[Node] = []
    operands: list[str] = []
    for index, kind in enumerate(configuration.inputs):
        names = []
        for part in tensors_of(kind):
            if part.dtype not in DTYPE_BYTES:
                raise InputError(f"{configuration.op}: no random values of type {part}")
            names.append(f"x{len(inputs)}")
            inputs[names[-1]] = part
        if isinstance(kind, TensorType):
            operands += names
        else:
            nodes.append(Node("noop", tuple(names), (f"tuple{index}",)))
            operands.append(f"tuple{index}")
    multiple = get_operator(configuration.op).multi_output
    count = len(tensors_of(configuration.output)) if multiple else 1
    outputs = tuple(f"y{i}" for i in range(count))
    attrs = dict(configuration.attrs)
    nodes.append(Node(configuration.op, tuple(operands), outputs, attrs, configuration.op))
    return build_graph(configuration.op, inputs, {}, nodes, outputs, where="configuration")


def weight_inputs(configuration: Configuration) -> frozenset[str]:
    """Return the inputs of ``graph_of`` that are parameters of a network wherever it runs."""
    weights = get_operator(configuration.op).weight_operands(configuration.inputs)
    names: set[str] = set()
    first = 0
    for index, kind in enumerate(configuration.inputs):
        count = len(tensors_of(kind))
        if index in weights:
            names.update(f"x{i}" for i in range(first, first + count))
        first += count
    return frozenset(names)


def draw(graph: Graph, seed: int) -> dict[str, Array]:
    """Draw inputs, rounded to what their element types hold: no operand is wrong to begin with.

    Right factors are of 1 over the root of the terms, so that sums stay about 1; so do products.
    """
    drawn = random_inputs(graph, seed)
    node = graph.nodes[-1]
    operator = get_operator(node.op)
    terms = operator.summed_terms(tuple(graph.types[name] for name in node.inputs))
    if terms is not None:
        drawn["x1"] = np.asarray(drawn["x1"], np.float64) / math.sqrt(terms)
    if operator.use_of(0) is Use.MULTIPLIED:
        terms = graph.inputs["x0"].size
        drawn["x0"] = 1.0 + np.asarray(drawn["x0"], np.float64) / math.sqrt(terms)
    return {name: rounded(array, graph.inputs[name].dtype) for name, array in drawn.items()}
