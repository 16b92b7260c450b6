"""Kernels of images in blocks are measured as onnxruntime's own operators, without reorders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.cost import load_profile
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.calibration import base_profile, profile_us
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.cpu.session import prepare
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.formats import to_onnx_model
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.onnxruntime.kernel_choice import kernels_of
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import get_operator
from tests.cost.fakes import FakeDevice, configuration
from tests.graphs import f32

#: What works element by element, or copies whole images: the same operators as of other images.
_PLAIN = ("ort_blocked_add", "ort_blocked_concat", "ort_blocked_activation")
load_backend("onnxruntime")
_WINDOW: dict[str, Any] = {"stride": (1, 1), "pad": "same"}
_POOL: dict[str, Any] = {**_WINDOW, "kernel": (3, 3)}
_IMAGE, _GATE = f32(1, 40, 7, 7), {"alpha": 0.25, "beta": 0.5}
KERNELS = [
    configuration("ort_to_blocks", _IMAGE),
    configuration("ort_to_blocks", f32(1, 7, 7, 40), channels_last=True),
    configuration("ort_from_blocks", _IMAGE),
    configuration("ort_from_blocks", _IMAGE, channels_last=True),
    configuration("ort_blocked_conv", _IMAGE, f32(24, 40, 3, 3), f32(24), act="relu", **_WINDOW),
    configuration("ort_blocked_conv", _IMAGE, f32(40, 1, 3, 3), act="hard_swish", **_WINDOW),
    configuration("ort_blocked_conv", f32(1, 3, 7, 7), f32(24, 3, 3, 3), **_WINDOW),
    configuration(
        "ort_blocked_conv", _IMAGE, f32(8, 40, 1, 1), act="hard_sigmoid", **_GATE, **_WINDOW
    ),
    configuration("ort_blocked_conv_add", _IMAGE, f32(40, 40, 1, 1), _IMAGE, **_WINDOW),
    configuration("ort_blocked_conv_add", _IMAGE, f32(40, 40, 1, 1), _IMAGE, f32(40), **_WINDOW),
    configuration("ort_blocked_max_pool", f32(1, 32, 7, 7), **_POOL),
    configuration("ort_blocked_avg_pool", f32(1, 32, 7, 7), **_POOL),
    configuration("ort_blocked_reduce_mean", f32(1, 32, 7, 7), axes=(2, 3), keepdims=True),
    configuration("ort_blocked_add", _IMAGE, _IMAGE),
    configuration("ort_blocked_concat", f32(1, 32, 7, 7), f32(1, 16, 7, 7), axis=1),
    configuration("ort_blocked_activation", _IMAGE, act="silu"),
    configuration("ort_blocked_activation", _IMAGE, act="gelu"),
]


def test_onnxruntime_runs_what_is_measured() -> None:
    for kernel in KERNELS:
        (measured,) = kernels_of(kernel, tells_computed=True)
        probe = make_probe(measured, 1)
        prepare(probe.with_operator, probe.feeds, "all")()
        nodes = to_onnx_model(probe.with_operator).graph.node
        own = [node.op_type for node in nodes if node.domain == "com.microsoft.nchwc"]
        assert len(own) == (kernel.op not in _PLAIN), kernel.op


def test_what_onnxruntime_fuses_is_measured_as_its_own_operator() -> None:
    x, vector = f32(1, 4, 8), f32(8)
    kernels = {
        configuration(
            "ort_scaled_product", x, f32(1, 6, 8), alpha=0.5, trans_b=True
        ): "FusedMatMul",
        configuration("ort_bias_gelu", x, vector): "BiasGelu",
        configuration("ort_quick_gelu", x): "QuickGelu",
        configuration("ort_blocked_activation", _IMAGE, act="silu"): "QuickGelu",
        configuration(
            "ort_skip_layer_norm", x, x, vector, vector, axis=2, epsilon=1e-5
        ): "SkipLayerNormalization",
    }
    for kernel, name in kernels.items():
        probe = make_probe(kernel, 1)
        prepare(probe.with_operator, probe.feeds, "off")()
        nodes = to_onnx_model(probe.with_operator).graph.node
        assert [node.op_type for node in nodes if node.domain == "com.microsoft"] == [name]


def test_products_of_integers_are_no_scaled_products() -> None:
    """onnxruntime makes none of them: their types say so."""
    kind = TensorType("int32", (2, 3))
    with pytest.raises(ShapeError, match="ort_scaled_product takes floats, not int32"):
        get_operator("ort_scaled_product").infer(
            (kind, kind), {"alpha": 1.0, "trans_a": False, "trans_b": True}
        )


def test_a_convolution_is_measured_as_three_kernels() -> None:
    whole = configuration("conv", f32(1, 40, 7, 7), f32(24, 40, 3, 3), **_WINDOW)
    kernels = kernels_of(whole, tells_computed=True)
    assert [(kernel.op, kernel.inputs[0], kernel.output) for kernel in kernels] == [
        ("ort_to_blocks", f32(1, 48, 7, 7), f32(1, 48, 7, 7)),
        ("ort_blocked_conv", f32(1, 48, 7, 7), f32(1, 32, 7, 7)),
        ("ort_from_blocks", f32(1, 32, 7, 7), f32(1, 32, 7, 7)),
    ]


def test_what_a_kernel_does_beside_its_arithmetic_is_no_launch() -> None:
    profile = load_profile("cpu")
    costs = BackendCosts(AnalyticSource(profile), load_backend("onnxruntime"), [])
    moved = configuration("transpose", f32(1, 5, 4, 3, 8), perm=(0, 2, 1, 3, 4))
    once_us = profile_us(profile, moved)
    twice_us = once_us + profile_us(profile.without_launches(), moved)
    assert once_us < costs.peek_us(moved) == pytest.approx(twice_us)


def test_a_profile_knows_of_operands_that_are_computed() -> None:
    costs = BackendCosts(AnalyticSource(load_profile("cpu")), load_backend("onnxruntime"), [])
    product = configuration("matmul", f32(32, 64), f32(64, 64))
    assert costs.peek_us(replace(product, computed=(1,))) > costs.peek_us(product)


def test_an_estimate_knows_what_takes_longer_on_the_target(tmp_path: Path) -> None:
    """A convolution of groups in no blocks is a product for each, which the profile alone does not say."""
    device = FakeDevice()
    costs = BackendCosts(
        MeasuredSource("cpu", device, CostCache(tmp_path / "costs.duckdb")),
        load_backend("onnxruntime"),
        [],
    )
    by_profile = BackendCosts(AnalyticSource(load_profile("cpu")), load_backend("onnxruntime"), [])
    grouped = configuration("conv", f32(1, 208, 16, 16), f32(208, 8, 3, 3), **_WINDOW)
    modelled_us = by_profile.peek_us(grouped)
    assert costs.modelled([grouped])[grouped].cost_us == pytest.approx(modelled_us)
    as_measured = AnalyticSource(base_profile(device.key))
    warm_us = BackendCosts(as_measured, load_backend("onnxruntime"), []).peek_us(grouped)
    assert modelled_us > warm_us > modelled_us - 2.0  # less what is cold in a model
    assert costs.peek_us(grouped) == pytest.approx(warm_us)  # nothing is measured yet
    alone_us = profile_us(load_profile("cpu"), grouped)
    assert modelled_us > 2 * alone_us
