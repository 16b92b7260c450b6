"""Normalizations in groups of channels against onnxruntime, how they are read, and their rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.formats import from_onnx_model
from tests.formats.onnx_tools import assert_same_results, constant
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime
from tests.tensor.operators.test_elementwise import drawn

RULES = ("rules/group_norm.rules",)
FILTERS = drawn((4, 3, 2, 2), 3)


def _model(nodes: str, channels: int, opset: int, **constants: Any) -> onnx.ModelProto:
    shape = f"float[2,{channels},4,5]"
    text = (
        f'<ir_version: 10, opset_import: ["" : {opset}]> g ({shape} x) => (float y) {{ {nodes} }}'
    )
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    given = {"S": drawn((4,), 1), "B": drawn((4,), 2), **constants}
    model.graph.initializer.extend(constant(name, value) for name, value in given.items())
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("shape", [(2, 4, 3), (1, 4, 2, 5)])
def test_against_onnxruntime(groups: int, opset: int, shape: tuple[int, ...]) -> None:
    operands = [drawn(shape), drawn((4,), 1), drawn((4,), 2)]
    check_against_onnxruntime("group_norm", operands, {"groups": groups, "epsilon": 1e-3}, opset)


def test_how_they_are_read() -> None:
    instance = _model("y = InstanceNormalization<epsilon=0.5>(x, S, B)", 4, 17)
    (node,) = from_onnx_model(instance).nodes
    assert (node.op, node.attrs) == ("group_norm", {"groups": 4, "epsilon": 0.5})
    grouped = _model("y = GroupNormalization<num_groups=2>(x, S, B)", 4, 21)
    (node,) = from_onnx_model(grouped).nodes
    assert (node.op, node.attrs["groups"]) == ("group_norm", 2)


@pytest.mark.parametrize(
    ("nodes", "channels", "opset", "ops"),
    [
        ("n = InstanceNormalization(x, S, B) m = Mul(n, K) y = Add(m, K)", 4, 17,
         ["InstanceNormalization"]),
        ("n = GroupNormalization<num_groups=2>(x, S, B) y = Mul(n, K)", 4, 21, ["GroupNormalization"]),
        ("c = Add(x, K) y = InstanceNormalization(c, S, B)", 4, 17, ["InstanceNormalization"]),
    ],
)  # fmt: skip
def test_what_is_per_channel_joins_or_goes(
    nodes: str, channels: int, opset: int, ops: list[str]
) -> None:
    model = _model(nodes, channels, opset, K=drawn((4, 1, 1), 5))
    result = optimize(model, Options.of(cost="t4", rules=RULES))
    assert [node.op_type for node in result.model.graph.node] == ops
    assert_same_results(model, result.model)


def test_a_bias_that_an_instance_norm_cancels() -> None:
    model = _model("c = Conv(x, W, B) y = InstanceNormalization(c, S, B)", 3, 17, W=FILTERS)
    result = optimize(
        model,
        Options.of(cost="analytic:cpu", backend="onnxruntime", rules=RULES),
    )
    conv, _ = result.model.graph.node
    assert len(conv.input) == 2
    assert_same_results(model, result.model)


def test_groups_are_channels_where_the_runtime_has_no_other_kernel() -> None:
    model = _model("n = GroupNormalization<num_groups=2>(x, S, B) y = Relu(n)", 4, 21)
    options = Options.of(backend="onnxruntime", cost="analytic:cpu", rules=RULES)
    result = optimize(model, options)
    assert "GroupNormalization" not in [node.op_type for node in result.model.graph.node]
    assert_same_results(model, result.model)
    assert np.isfinite(result.cost_before_us)
