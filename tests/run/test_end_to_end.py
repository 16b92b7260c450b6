"""What is made of two graphs before they are timed."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.cost import Unmeasurable
from relational_tensat.run.end_to_end import (
    WHOLE_S,
    TimedTask,
    time_on_device,
    unmasked,
    with_drawn_weights,
)
from relational_tensat.tensor import Node, TensorType, Weight, build_graph
from tests.cost.fakes import CPU, GAIN, FakeDevice
from tests.graphs import f32, shared_matmuls


def test_masks_mask_nothing() -> None:
    feeds = {"x": np.ones(3, np.float32), "padding": np.array([True, False])}
    feeds_unmasked = unmasked(feeds)
    assert feeds_unmasked["x"] is feeds["x"]
    assert feeds_unmasked["padding"].tolist() == [False, False]


def test_weights_that_have_no_values_are_drawn_and_what_would_be_folded_too() -> None:
    nodes = [
        Node("concat", ("w1", "w2"), ("w",), {"axis": 1}),
        Node("matmul", ("x", "w"), ("y",)),
    ]
    weights = {name: Weight(f32(64, 64)) for name in ("w1", "w2")}
    graph = build_graph("merged", {"x": f32(64, 64)}, weights, nodes, ["y"])
    drawn = with_drawn_weights(graph, 0)
    assert drawn.count_ops() == {"matmul": 1}
    assert list(drawn.weights) == ["w"]
    data: Any = drawn.weights["w"].data
    assert data.shape == (64, 128)
    assert np.unique(data).size > 1000


def test_constant_weights_are_drawn_again_and_sizes_are_not() -> None:
    ones = np.broadcast_to(np.float32(1.0), (64, 64))
    where = TensorType("int64", (2,))
    graph = build_graph(
        "constant",
        {"x": f32(64, 64)},
        {"w": Weight(f32(64, 64), ones), "rows": Weight(where, np.array([5, 5]))},
        [Node("matmul", ("x", "w"), ("v",)), Node("gather", ("v", "rows"), ("y",), {"axis": 0})],
        ["y"],
    )
    drawn = with_drawn_weights(graph, 0)
    data: Any = drawn.weights["w"].data
    assert np.unique(data).size > 1000
    rows: Any = drawn.weights["rows"].data
    assert rows.tolist() == [5, 5]


def test_weights_that_are_there_are_run_as_they_are() -> None:
    graph = shared_matmuls(with_data=True)
    drawn = with_drawn_weights(graph, 0)
    assert all(drawn.weights[name].data is own.data for name, own in graph.weights.items())


def test_a_task_is_pickled_without_what_was_drawn() -> None:
    graph = shared_matmuls()
    task = TimedTask(FakeDevice(), CPU, (graph,), {}, 0)
    assert task.drawn()[0] is task.drawn()[0]
    _, arguments = task.__reduce__()
    assert arguments[2] == (graph,)
    assert not TimedTask(*arguments).known  # type: ignore[arg-type]


def test_both_graphs_get_the_same_inputs_given_ones_as_they_are() -> None:
    device = FakeDevice()
    own_inputs = {"x": np.full((64, 64), 7.0, np.float32)}
    graph = shared_matmuls()
    assert time_on_device(device, graph, graph, own_inputs, 0) is GAIN
    assert WHOLE_S > 0
    (((first, second), inputs),) = device.timed
    assert inputs["x"] is own_inputs["x"]
    assert all(
        weight.data is not None for graph in (first, second) for weight in graph.weights.values()
    )


def test_inputs_that_cannot_be_drawn_are_a_reason() -> None:
    text = TensorType("string", (1,))
    graph = build_graph("words", {"x": text}, {}, [Node("identity", ("x",), ("y",))], ["y"])
    device = FakeDevice()
    timing = time_on_device(device, graph, graph, {}, 0)
    assert isinstance(timing, Unmeasurable)
    assert "cannot be drawn" in timing.reason
    assert device.timed == []
