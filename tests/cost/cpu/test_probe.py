"""The graphs that measure an operator: what is produced, what is a weight, what is left out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from relational_tensat.cost import Configuration
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.tensor import Graph, TensorType
from relational_tensat.tensor.operators import operators
from tests.cost.fakes import configuration
from tests.graphs import f32

_CONV = configuration(
    "conv", f32(1, 3, 8, 8), f32(4, 3, 3, 3), f32(4), stride=(1, 1), pad="same", act="relu"
)


def _ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_an_activation_is_produced_before_the_operator_and_weights_are_initializers() -> None:
    probe = make_probe(_CONV, 2)
    assert _ops(probe.with_operator) == ["abs", *["abs", "conv", "reshape"] * 2, "relu"]
    assert _ops(probe.without) == ["abs", *["abs", "reshape"] * 2, "relu"]
    first, second = (node for node in probe.with_operator.nodes if node.op == "conv")
    assert first.inputs == ("p0_0_0", "w1_0_0", "w2_0_0")
    assert second.inputs == ("p0_0_1", "w1_0_1", "w2_0_1")  # weights of its own: not in the cache
    assert probe.feeds["x0_0_0"] is probe.feeds["x0_0_1"]  # two inputs: equal nodes would be merged
    assert set(probe.with_operator.weights) == {*first.inputs[1:], *second.inputs[1:]}
    assert dict(first.attrs) == dict(_CONV.attrs)
    assert set(probe.feeds) == set(probe.with_operator.inputs) == set(probe.without.inputs)
    assert probe.with_operator.outputs == probe.without.outputs == ("out",)


@pytest.mark.parametrize(
    "what",
    [
        _CONV,
        configuration("add", f32(2, 3), f32(2, 3)),
        configuration("split", f32(4, 6), axis=1, sizes=(2, 3, 1)),
        configuration("concat", (f32(2, 3), f32(2, 5)), f32(2, 1), axis=1),
        configuration("reshape", f32(2, 3), shape=(6,)),
        configuration("dropout", f32(2, 3)),
    ],
    ids=lambda configuration: configuration.op,
)
def test_every_result_is_read_once_more_and_as_many_in_both_graphs(what: Configuration) -> None:
    """What nobody reads keeps its memory: the graph without the operator would be the slower one."""
    probe = make_probe(what, 3)
    for graph in (probe.with_operator, probe.without):
        read = Counter(name for node in graph.nodes for name in node.inputs)
        made = {
            name
            for node in graph.nodes
            for name in node.outputs
            if not name.startswith("read_") and name not in ("small", "out")
        }
        assert all(read[name] == 1 for name in made)
    added = Counter(_ops(probe.with_operator))
    added.subtract(_ops(probe.without))
    del added["noop"]  # no node in ONNX
    assert +added == {what.op: 3}


def test_no_weight_is_uniform_which_would_be_computed_at_each_run() -> None:
    for weight in make_probe(_CONV, 1).with_operator.weights.values():
        assert weight.data is not None
        assert weight.data.shape == weight.type.shape
        assert len(np.unique(weight.data)) > 1


@pytest.mark.parametrize(
    ("op", "kinds", "weights"),
    [
        ("conv", (f32(1, 2, 4, 4), f32(2, 2, 1, 1)), (1,)),
        ("matmul", (f32(4, 8), f32(8, 2)), (1,)),
        ("matmul", (f32(3, 4, 8), f32(8, 2), f32(2)), (1, 2)),
        ("matmul", (f32(3, 4, 8), f32(3, 8, 2)), ()),
        ("matmul", (f32(3, 4, 8), f32(3, 8, 2), f32(2)), (2,)),
        ("batch_norm", (f32(1, 2, 4), *(f32(2),) * 4), (1, 2, 3, 4)),
        ("layer_norm", (f32(2, 4), f32(4), f32(4)), (1, 2)),
        ("rms_norm", (f32(2, 4), f32(4)), (1,)),
        ("add", (f32(2, 4), f32(4)), ()),
    ],
)
def test_which_operands_are_weights(
    op: str, kinds: tuple[TensorType, ...], weights: tuple[int, ...]
) -> None:
    assert operators()[op].weight_operands(kinds) == weights


def test_operators_of_several_results_and_tuples_as_operands() -> None:
    split = configuration("split", f32(4, 6), axis=1, sizes=(2, 4))
    node = make_probe(split, 1).with_operator.nodes[2]
    assert (node.op, len(node.outputs)) == ("split", 2)
    joined = configuration("concat", (f32(2, 3), f32(2, 5)), f32(2, 1), axis=1)
    probe = make_probe(joined, 1)
    read = ["reshape"] * 3
    assert _ops(probe.with_operator) == [
        "abs", "abs", "abs", "noop", "abs", "concat", *read, "relu",
    ]  # fmt: skip
    assert _ops(probe.without) == ["abs", "abs", "abs", "abs", *read, "relu"]


def test_values_are_such_as_the_operator_takes() -> None:
    power = make_probe(configuration("pow", f32(3, 3), f32()), 1)
    assert power.feeds["x1_0_0"] == 2.0
    index = TensorType("int64", (50,))
    taken = make_probe(configuration("gather", f32(7, 3), index, axis=0), 1).feeds["x1_0_0"]
    assert taken.dtype == np.int64
    assert 0 <= taken.min() < taken.max() < 7
    halves = make_probe(configuration("relu", TensorType("float16", (9,))), 1).feeds["x0_0_0"]
    assert halves.dtype == np.float16
    assert 0.5 <= halves.min() < halves.max() <= 1.5
    truths = make_probe(configuration("cast", TensorType("bool", (9,)), dtype="int32"), 1)
    assert truths.feeds["x0_0_0"].dtype == np.bool_
    assert _ops(truths.without) == [
        "abs",
        "identity",
        "reshape",
        "relu",
    ]  # there is no absolute value of a truth
