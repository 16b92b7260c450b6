"""``run --fuse`` on attention with a mask and 0 for NaN: right in onnxruntime, masked rows included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat import Options, Result, kernels, optimize, resume
from relational_tensat.base.errors import InputError
from relational_tensat.formats import save_model
from relational_tensat.tensor import Graph
from tests.mugraph.conditions import causal_model, constant_model, given_model, leaving
from tests.mugraph.masks import guarded_model, with_mask
from tests.tiers import nightly


def fused(model: Graph, folder: Path, **more: object) -> Result:
    """Return what becomes of a model, which is one kernel; its files are in.onnx and out.onnx."""
    save_model(model, folder / "in.onnx")
    options = Options.of(
        cost="t4", fuse=True, fuse_kernels=1, fuse_time_limit_s=None, kernels=folder / "kernels", **more
    )  # fmt: skip
    result = optimize(folder / "in.onnx", options, output=folder / "out.onnx")
    assert result.graph.count_ops() == {"fused": 1}
    return result


def session_of(file: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


def drawn(folder: Path) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        value.name: random.standard_normal(value.shape).astype("float32")
        for value in session_of(folder / "in.onnx").get_inputs()
    }


def both_files_give(folder: Path, given: dict[str, np.ndarray]) -> np.ndarray:
    ((expected,), (computed,)) = (
        session_of(folder / name).run(None, given) for name in ("in.onnx", "out.onnx")
    )
    assert np.allclose(computed, expected, atol=1e-6)
    return np.asarray(expected)


def operands_of(folder: Path, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the model's inputs in the order in which the kernel is called with them."""
    (call,) = onnx.load(folder / "out.onnx").graph.node
    return [given[name] for name in call.input]


def check_kernel(folder: Path, given: dict[str, np.ndarray], expected: np.ndarray) -> None:
    (kernel,) = kernels.load(folder / "kernels", "numpy").values()
    by_kernel = kernel(*operands_of(folder, given))
    assert np.allclose(by_kernel.reshape(expected.shape), expected, atol=1e-5)


def operators_of(folder: Path) -> set[str]:
    (function,) = onnx.load(folder / "out.onnx").functions
    return {node.op_type for node in function.node}


def test_attention_with_a_guard_is_one_kernel(tmp_path: Path) -> None:
    fused(guarded_model(), tmp_path)
    assert {"IsNaN", "Where", "Softmax"} <= operators_of(tmp_path)
    given = with_mask(drawn(tmp_path))
    expected = both_files_give(tmp_path, given)
    assert not expected[:, 1::4].any() and np.abs(expected[:, ::4]).max() > 0.1
    check_kernel(tmp_path, given, expected)


def test_attention_with_a_computed_mask_is_one_kernel(tmp_path: Path) -> None:
    """Rows of which nothing is left are means of all values, as in the model."""
    fused(causal_model(float(np.finfo("float32").min)), tmp_path)
    assert {"Less", "Where", "Softmax"} <= operators_of(tmp_path)
    given = drawn(tmp_path)
    check_kernel(tmp_path, given, both_files_give(tmp_path, given))


@pytest.mark.nightly
@pytest.mark.parametrize("is_added", [True, False])
def test_attention_with_bools_and_minus_infinity_is_one_kernel(
    is_added: bool, tmp_path: Path
) -> None:
    """As PyTorch exports masks: bools that are given, -inf for what they do not leave."""
    result = fused(given_model(is_added=is_added), tmp_path, db=tmp_path / "run.duckdb")
    random = np.random.default_rng(0)
    given = {name: random.standard_normal((2, 16, 16)).astype("float32") for name in "qkv"}
    given["mask"] = leaving(16, 16)
    expected = both_files_give(tmp_path, given)
    assert not expected[:, 1::4].any() and np.abs(expected[:, ::4]).max() > 0.1
    check_kernel(tmp_path, given, expected)
    ((key, kernel),) = kernels.load(tmp_path / "kernels", "numpy").items()
    with pytest.raises(InputError, match=f"{key}: an operand of float32, expected bools"):
        kernel(*(x.astype("float32") for x in operands_of(tmp_path, given)))
    again = resume(tmp_path / "run.duckdb", output=tmp_path / "again.onnx")
    assert again.graph.count_ops() == {"fused": 1} and again.cost_after_us == result.cost_after_us


@pytest.mark.parametrize("nothing", [-np.inf, nightly(float(np.finfo("float32").min))])
def test_attention_with_a_mask_in_the_file_is_one_kernel(nothing: float, tmp_path: Path) -> None:
    """Such constants are extreme: other rules do not touch them, kernels were tested with them as masks."""
    model = constant_model(nothing)
    result = fused(model, tmp_path)
    assert not any("no place" in note for note in result.notes)
    given = drawn(tmp_path)
    (expected,) = session_of(tmp_path / "in.onnx").run(None, given)
    mask = model.weights["mask"].data
    assert mask is not None
    check_kernel(tmp_path, given | {"mask": mask}, np.asarray(expected))


def test_what_is_no_mask_may_not_be_extreme(tmp_path: Path) -> None:
    """A constant that scores are multiplied by, say: kernels are tested with moderate ones."""
    save_model(constant_model(1e30, "mul"), tmp_path / "in.onnx")
    options = Options.of(cost="t4", fuse=True, fuse_kernels=1, fuse_time_limit_s=None)
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert result.fusion is not None and result.fusion.kernels
    for used in result.fusion.used:
        assert "mul" not in used.operators
    assert any("kernels have no place in the e-graph" in note for note in result.notes)
