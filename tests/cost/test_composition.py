"""What is several nodes costs what its nodes cost."""

from __future__ import annotations

import pytest

from relational_tensat.cost import Configuration, TimingSample, Unmeasurable
from relational_tensat.cost.cpu.onnxruntime_device import OnnxRuntimeDevice
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.key import nodes_of
from relational_tensat.formats import to_onnx_model
from relational_tensat.tensor import TensorType
from tests.cost.fakes import configuration
from tests.graphs import f32


def _conv(act: str) -> Configuration:
    kinds = (f32(1, 2, 4, 4), f32(2, 2, 3, 3), f32(2))
    return configuration("conv", *kinds, stride=(1, 1), pad="same", act=act)


def test_an_activation_is_a_node_of_its_own() -> None:
    assert nodes_of(_conv("relu")) == [_conv("none"), configuration("relu", f32(1, 2, 4, 4))]
    assert nodes_of(_conv("none")) == [_conv("none")]


def test_a_bias_is_added_unless_the_product_is_a_gemm() -> None:
    batched = configuration("matmul", f32(3, 4, 8), f32(8, 2), f32(2), act="tanh")
    product = f32(3, 4, 2)
    assert nodes_of(batched) == [
        configuration("matmul", f32(3, 4, 8), f32(8, 2)),
        configuration("add", product, f32(2)),
        configuration("tanh", product),
    ]
    gemm = configuration("matmul", f32(4, 8), f32(8, 2), f32(2))
    assert nodes_of(gemm) == [gemm]
    whole = TensorType("int32", (4, 4))
    assert len(nodes_of(configuration("matmul", whole, whole, whole))) == 2


@pytest.mark.parametrize(
    "what",
    [
        _conv("sigmoid"),
        configuration("matmul", f32(3, 4, 8), f32(8, 2), f32(2), act="relu"),
        configuration("matmul", f32(4, 8), f32(8, 2), f32(2), act="relu"),
        configuration(
            "max_pool", f32(1, 2, 4, 4), kernel=(2, 2), stride=(2, 2), pad="valid", act="relu"
        ),
        configuration("split", f32(4, 6), axis=1, sizes=(2, 4)),
    ],
    ids=lambda configuration: configuration.op,
)
def test_there_are_as_many_as_onnx_nodes_are_written(what: Configuration) -> None:
    probe = make_probe(what, 1)
    models = [to_onnx_model(graph) for graph in (probe.with_operator, probe.without)]
    more = len(models[0].graph.node) - len(models[1].graph.node)
    assert more == len(nodes_of(what))


def test_each_node_is_measured_once_and_the_sum_is_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[str] = []

    def measure(
        self: OnnxRuntimeDevice, what: Configuration, patience_s: float
    ) -> TimingSample | Unmeasurable:
        requests.append(what.op)
        time_us = 10.0 if what.op == "conv" else 1.0
        return TimingSample(2 * time_us, time_us, 3 * time_us, 30)

    monkeypatch.setattr(OnnxRuntimeDevice, "_measure_node", measure)
    off, full = OnnxRuntimeDevice(), OnnxRuntimeDevice("all")
    results = dict(off.measure([_conv("none"), _conv("relu")]))
    assert results[_conv("relu")] == TimingSample(22.0, 11.0, 33.0, 30)
    assert results[_conv("none")] == TimingSample(20.0, 10.0, 30.0, 30)
    assert requests == ["conv", "relu"]
    assert full.measure_one(_conv("relu")) == TimingSample(20.0, 10.0, 30.0, 30)  # one kernel


def test_what_has_a_node_that_cannot_be_measured_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, what: Configuration, patience_s: float) -> Unmeasurable:
        return Unmeasurable(f"no {what.op}")

    monkeypatch.setattr(OnnxRuntimeDevice, "_measure_node", refuse)
    assert OnnxRuntimeDevice().measure_one(_conv("relu")) == Unmeasurable("no conv")
