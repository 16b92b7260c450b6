"""``run --fuse`` on attention with a mask and 0 for NaN: right in onnxruntime, masked rows included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat import Options, kernels, optimize, resume
from relational_tensat.base.errors import InputError
from relational_tensat.formats import save_model
from tests.mugraph.conditions import causal_model, constant_model, given_model, leaving
from tests.mugraph.masks import guarded_model, with_mask
from tests.tiers import nightly


def test_attention_with_a_guard_is_one_kernel(tmp_path: Path) -> None:
    save_model(guarded_model(), tmp_path / "in.onnx")
    options = Options.of(
        cost="t4", fuse=True, fuse_kernels=1, fuse_time_limit_s=None, kernels=tmp_path / "kernels"
    )
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.graph.count_ops() == {"fused": 1}
    (function,) = onnx.load(tmp_path / "out.onnx").functions
    assert {"IsNaN", "Where", "Softmax"} <= {node.op_type for node in function.node}
    random = np.random.default_rng(0)
    sessions = [
        onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"])
        for name in ("in.onnx", "out.onnx")
    ]
    given = {
        value.name: random.standard_normal(value.shape).astype("float32")
        for value in sessions[0].get_inputs()
    }
    given = with_mask(given)
    ((expected,), (computed,)) = (session.run(None, given) for session in sessions)
    assert np.allclose(computed, expected, atol=1e-6)
    assert not expected[:, 1::4].any() and np.abs(expected[:, ::4]).max() > 0.1
    (kernel,) = kernels.load(tmp_path / "kernels", "numpy").values()
    by_kernel = kernel(*(given[name] for name in kernel_inputs(tmp_path)))
    assert np.allclose(by_kernel.reshape(expected.shape), expected, atol=1e-5)


def kernel_inputs(folder: Path) -> list[str]:
    """Return the model's inputs in the order in which the kernel is called with them."""
    (call,) = onnx.load(folder / "out.onnx").graph.node
    return list(call.input)


def test_attention_with_a_computed_mask_is_one_kernel(tmp_path: Path) -> None:
    """Rows of which nothing is left are means of all values, as in the model."""
    lowest = float(np.finfo("float32").min)
    save_model(causal_model(lowest), tmp_path / "in.onnx")
    options = Options.of(
        cost="t4", fuse=True, fuse_kernels=1, fuse_time_limit_s=None, kernels=tmp_path / "kernels"
    )
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.graph.count_ops() == {"fused": 1}
    (function,) = onnx.load(tmp_path / "out.onnx").functions
    assert {"Less", "Where", "Softmax"} <= {node.op_type for node in function.node}
    sessions = [
        onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"])
        for name in ("in.onnx", "out.onnx")
    ]
    random = np.random.default_rng(0)
    given = {
        value.name: random.standard_normal(value.shape).astype("float32")
        for value in sessions[0].get_inputs()
    }
    ((expected,), (computed,)) = (session.run(None, given) for session in sessions)
    assert np.allclose(computed, expected, atol=1e-6)
    (kernel,) = kernels.load(tmp_path / "kernels", "numpy").values()
    by_kernel = kernel(*(given[name] for name in kernel_inputs(tmp_path)))
    assert np.allclose(by_kernel.reshape(expected.shape), expected, atol=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("is_added", [True, False])
def test_attention_with_bools_and_minus_infinity_is_one_kernel(
    is_added: bool, tmp_path: Path
) -> None:
    """As PyTorch exports masks: bools that are given, -inf for what they do not leave."""
    save_model(given_model(is_added=is_added), tmp_path / "in.onnx")
    options = Options.of(cost="t4",
        fuse=True, fuse_kernels=1, fuse_time_limit_s=None, kernels=tmp_path / "kernels",
        db=tmp_path / "run.duckdb",
    )  # fmt: skip
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.graph.count_ops() == {"fused": 1}
    sessions = [
        onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"])
        for name in ("in.onnx", "out.onnx")
    ]
    random = np.random.default_rng(0)
    given = {name: random.standard_normal((2, 16, 16)).astype("float32") for name in "qkv"}
    given["mask"] = leaving(16, 16)
    ((expected,), (computed,)) = (session.run(None, given) for session in sessions)
    assert np.allclose(computed, expected, atol=1e-6)
    assert not expected[:, 1::4].any() and np.abs(expected[:, ::4]).max() > 0.1
    ((key, kernel),) = kernels.load(tmp_path / "kernels", "numpy").items()
    operands = [given[name] for name in kernel_inputs(tmp_path)]
    assert np.allclose(kernel(*operands).reshape(expected.shape), expected, atol=1e-5)
    numbers = [x.astype("float32") for x in operands]
    with pytest.raises(InputError, match=f"{key}: an operand of float32, expected bools"):
        kernel(*numbers)
    again = resume(tmp_path / "run.duckdb", output=tmp_path / "again.onnx")
    assert again.graph.count_ops() == {"fused": 1} and again.cost_after_us == result.cost_after_us


@pytest.mark.parametrize("nothing", [-np.inf, nightly(float(np.finfo("float32").min))])
def test_attention_with_a_mask_in_the_file_is_one_kernel(nothing: float, tmp_path: Path) -> None:
    """Such constants are extreme: other rules do not touch them, kernels were tested with them as masks."""
    model = constant_model(nothing)
    save_model(model, tmp_path / "in.onnx")
    options = Options.of(
        cost="t4", fuse=True, fuse_kernels=1, fuse_time_limit_s=None, kernels=tmp_path / "kernels"
    )
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.graph.count_ops() == {"fused": 1}
    assert not any("no place" in note for note in result.notes)
    random = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(tmp_path / "in.onnx", providers=["CPUExecutionProvider"])
    given = {
        value.name: random.standard_normal(value.shape).astype("float32")
        for value in session.get_inputs()
    }
    (expected,) = session.run(None, given)
    (kernel,) = kernels.load(tmp_path / "kernels", "numpy").values()
    given["mask"] = model.weights["mask"].data
    by_kernel = kernel(*(given[name] for name in kernel_inputs(tmp_path)))
    assert np.allclose(by_kernel.reshape(expected.shape), expected, atol=1e-5)


def test_what_is_no_mask_may_not_be_extreme(tmp_path: Path) -> None:
    """A constant that scores are multiplied by, say: kernels are tested with moderate ones."""
    save_model(constant_model(1e30, "mul"), tmp_path / "in.onnx")
    options = Options.of(cost="t4", fuse=True, fuse_kernels=1, fuse_time_limit_s=None)
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.fusion is not None and result.fusion.kernels
    for used in result.fusion.used:
        assert "mul" not in used.operators
    assert any("kernels have no place in the e-graph" in note for note in result.notes)
