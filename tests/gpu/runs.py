"""Graphs through plan, executor and double; what they should give from verify's evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relational_tensat.gpu.plan import Executor, plan_graph
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, build_graph, tensors_of
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.random_values import random_inputs
from tests.gpu.numpy_library import NumpyLibrary

#: Largest error, relative to the largest element, of sums rounded to each type.
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-2, "bfloat16": 1e-1}


def one_node(op: str, /, *types: TensorType, **attrs: Any) -> Graph:
    """Return the graph of one operator, all operands being inputs."""
    from relational_tensat.tensor.operators import get_operator

    operator = get_operator(op)
    names = [f"x{i}" for i in range(len(types))]
    canonical: Attrs = operator.canonical(types, attrs)
    parts = tensors_of(operator.infer(types, canonical))
    outputs = tuple(f"y{i}" for i in range(len(parts)))
    node = Node(op, tuple(names), outputs, canonical, "node")
    return build_graph(op, dict(zip(names, types, strict=True)), {}, [node], outputs)


def run_in_numpy(
    graph: Graph, inputs: Mapping[str, Any], library: NumpyLibrary, runs: int
) -> list[Any]:
    """Plan and run a graph on the double; check that it gives all memory back.

    A second run, from the same inputs in memory, must find all of them and the weights untouched.
    """
    with Executor(plan_graph(graph), library) as executor:
        results = executor.run(inputs)
        for _ in range(runs - 1):
            executor.start()
            for one, other in zip(results, executor.read_outputs(), strict=True):
                np.testing.assert_array_equal(one, other)
    assert library.memory.live == 0
    return results


def check(
    graph: Graph, inputs: Mapping[str, Any] | None = None, seed: int = 0, runs: int = 1
) -> NumpyLibrary:
    """Check a graph whose weights have data against the evaluator; return what ran it."""
    library = NumpyLibrary()
    feed = random_inputs(graph, seed) if inputs is None else inputs
    weights = {name: w.data for name, w in graph.weights.items() if w.data is not None}
    expected = compute_outputs(graph, feed, weights)
    outputs = run_in_numpy(graph, feed, library, runs)
    for kind, want, actual in zip(graph.output_types(), expected, outputs, strict=True):
        assert actual.shape == kind.shape
        assert_close(actual, want, kind.dtype)
    return library


def assert_close(actual: Any, want: Any, dtype: str) -> None:
    """Compare relative to the largest element; integers exactly."""
    if dtype not in TOLERANCES:
        np.testing.assert_array_equal(actual, want)
        return
    scale = max(float(np.abs(want).max(initial=0.0)), 1e-30)
    np.testing.assert_allclose(actual, want, rtol=0, atol=TOLERANCES[dtype] * scale)
