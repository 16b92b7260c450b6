"""Whole graphs on the double: verified against float64, and timed in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.cost.cuda.protocol import WARM, Observation, Settings
from relational_tensat.cost.cuda.whole import prepare_graphs, time_graphs, verify_on_device
from relational_tensat.errors import VerificationError
from relational_tensat.graph import Graph, Node, Weight, build_graph
from tests.cost.cuda.double import CudaDouble, FakeRecording, FakeTimer
from tests.gpu.numpy_library import NumpyLibrary
from tests.graphs import f32, shared_matmuls


def _merged(factor: str = "add") -> Graph:
    """What ``shared_matmuls`` can become: one product with the sum of the weights."""
    weights = {name: Weight(f32(64, 64)) for name in ("w1", "w2")}
    nodes = [
        Node(factor, ("w1", "w2"), ("w",)),
        Node("matmul", ("x", "w"), ("y",), {"act": "relu"}),
    ]
    return build_graph("merged", {"x": f32(64, 64)}, weights, nodes, ["y"])


def test_a_graph_that_computes_the_same_passes() -> None:
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    original, merged = verify_on_device(NumpyLibrary(), prepared, "fp32")
    assert 0 < merged.worst_error < merged.tolerance == pytest.approx(1e-3)
    assert (original.implementations, merged.implementations) == ({"kernels": 5}, {"kernels": 1})


def test_a_graph_that_computes_something_else_is_refused() -> None:
    prepared = prepare_graphs(shared_matmuls(), [_merged("sub")])
    with pytest.raises(VerificationError, match=r"^merged on the device: output 'y' is off by"):
        verify_on_device(NumpyLibrary(), prepared, "fp32")


def test_weights_are_folded_and_shared_by_name() -> None:
    prepared = prepare_graphs(shared_matmuls(), [_merged()], seed=3)
    original, merged = prepared.graphs
    assert merged.count_ops() == {"matmul": 1}
    data: Any = {name: original.weights[name].data for name in ("w1", "w2")}
    total = np.sum([array.astype(np.float64) for array in data.values()], axis=0)
    found: Any = merged.weights["w"].data
    np.testing.assert_allclose(found, total, rtol=1e-6)


def test_what_grows_is_drawn_smaller() -> None:
    nodes = [Node("matmul", ("x", "x"), ("v0",))]
    nodes += [Node("mul", (f"v{i}", f"v{i}"), (f"v{i + 1}",)) for i in range(7)]
    graph = build_graph("growing", {"x": f32(8, 8)}, {}, nodes, ["v7"])
    prepared = prepare_graphs(graph, [])
    assert np.abs(prepared.exact[0]).max() <= 1e30
    assert prepared.inputs["x"].std() < 0.5


def test_graphs_are_timed_in_turn() -> None:
    library = CudaDouble()
    timer: Any = FakeTimer(library)
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    settings = Settings(short_us=0.0, warm_up_us=0.0, window=2, fewest=2, most=2, modes=(WARM,))
    given: Any = library
    found = time_graphs(given, timer, prepared, "fp32", settings, FakeRecording)  # type: ignore[arg-type]
    assert all(isinstance(each, Observation) for each in found)
    first = found[0]
    assert isinstance(first, Observation) and first.samples[WARM].median_us == 30.0
    assert first.batch == 1
    assert library.memory.live == 0 and FakeRecording.alive == 0
