"""One configuration alone: its graph, its operands, and whether its result is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cost.cuda.single import draw, graph_of, weight_inputs
from relational_tensat.cost.cuda.subject import fault
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.tensor import TensorType, ValueType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.outputs import compute_outputs
from tests.gpu.runs import check
from tests.graphs import f32


def configuration(op: str, *inputs: ValueType, **attrs: Any) -> Configuration:
    """Return a configuration from operands and attributes alone."""
    operator = get_operator(op)
    canonical = operator.canonical(inputs, attrs)
    return configuration_of(op, inputs, operator.infer(inputs, canonical), attrs)


@pytest.mark.parametrize(
    "configuration",
    [
        configuration("relu", f32(3, 4)),
        configuration("matmul", f32(3, 4), f32(4, 5), f32(5), act="relu"),
        configuration("conv", f32(1, 4, 5, 5), f32(6, 4, 3, 3), stride=(1, 1), pad="same"),
        configuration("split", f32(4, 6), axis=1, sizes=(2, 4)),
        configuration("concat", (f32(2, 3), f32(1, 3)), f32(4, 3), axis=0),
        configuration("gather", f32(4, 6), TensorType("int64", (3,)), axis=0),
    ],
    ids=lambda configuration: configuration.op,
)
def test_a_configuration_runs_alone(configuration: Configuration) -> None:
    graph = graph_of(configuration)
    check(graph, draw(graph, seed=1))


def test_weights_are_those_that_networks_have() -> None:
    conv = configuration(
        "conv", f32(1, 4, 5, 5), f32(6, 4, 3, 3), f32(6), stride=(1, 1), pad="same"
    )
    assert weight_inputs(conv) == {"x1", "x2"}
    assert weight_inputs(configuration("add", f32(2), f32(2))) == frozenset()


def test_operands_are_what_their_type_holds() -> None:
    kind = TensorType("bfloat16", (64, 64))
    values = draw(graph_of(configuration("matmul", kind, kind)), 0)
    for array in values.values():
        bits = array.astype(np.float32).view(np.uint32)
        assert not (bits & 0xFFFF).any()
    assert 0.1 < values["x1"].std() < 0.15


def test_what_is_no_number_is_refused() -> None:
    strings = TensorType("string", (2,))
    identity = Configuration("identity", (strings,), strings, ())
    with pytest.raises(InputError, match=r"identity: no random values of type string\[2\]"):
        graph_of(identity)


def test_wrong_results_are_found() -> None:
    graph = graph_of(configuration("matmul", f32(8, 8), f32(8, 8)))
    exact: Any
    (exact,) = compute_outputs(graph, draw(graph, 0), {})
    kinds = graph.output_types()
    assert fault([exact.astype(np.float32)], [exact], kinds, "fp32") == ""
    off = exact * (1 + 1e-3)
    assert fault([off], [exact], kinds, "fp32").startswith("the result is off by 1.0e-03")
    assert fault([off], [exact], kinds, "tf32") == ""
    poisoned = exact.copy()
    poisoned[0, 0] = np.nan
    assert "1 elements that are not finite" in fault([poisoned], [exact], kinds, "fp32")


def test_exact_types_must_be_exact() -> None:
    kinds = [TensorType("int64", (3,))] * 2
    want = np.array([1, 2, 3])
    assert fault([want, want], [want, want], kinds, "fp32") == ""
    message = fault([want, want + 1], [want, want], kinds, "fp32")
    assert message == "result 1 differs from the exact one in 3 elements"
