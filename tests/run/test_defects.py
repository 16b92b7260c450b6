"""Small models that runs did harm to, refused or left as they were: what became of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat.cli.main import main
from tests.tiers import nightly

FILES = Path(__file__).parent / "defects"


def run(name: str, folder: Path, *words: str) -> tuple[int, onnx.ModelProto | None]:
    """Optimize a model without looking far; return the exit code and the result."""
    target = folder / "out.onnx"
    code = main(["run", str(FILES / f"{name}.onnx"), "-o", str(target), *_FAST, *words])
    return code, onnx.load(target) if target.exists() else None


_FAST = ("--for", "t4", "--iterations", "2", "--quiet")


def results(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """Run a model in onnxruntime by its defaults."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(None, feeds))


def ops(model: onnx.ModelProto | None) -> list[str]:
    assert model is not None
    return [node.op_type for node in model.graph.node]


def _dims(model: onnx.ModelProto) -> list[str]:
    return [dim.dim_param for item in model.graph.input for dim in item.type.tensor_type.shape.dim]


def _metadata(model: onnx.ModelProto) -> set[tuple[str, str]]:
    return {(item.key, item.value) for node in model.graph.node for item in node.metadata_props}


def _as_demanded(name: str, folder: Path) -> bool:
    """Whether a model becomes what it should."""
    words = {
        "gqa_dynamic": [
            "--dim", "b=1,s=4,p=4", "--input", f"tl={FILES / 'gqa_tl.npy'}",
            "--input", f"sl={FILES / 'gqa_sl.npy'}",
        ],
        "overridable_inputs": ["--keep-overridable"],
    }  # fmt: skip
    original = onnx.load(FILES / f"{name}.onnx")
    code, result = run(name, folder, *words.get(name, []))
    if code != 0 or result is None:
        return False
    match name:
        case "floor_fpn" | "floor_yolo" | "gqa_dynamic":
            return len(result.graph.node) < len(original.graph.node)
        case "constant_if":
            return "If" not in ops(result)
        case "metadata":
            return _metadata(result) == {
                ("namespace", "a/b, a/b/c"), ("pkg.torch.onnx.fx_node", "%relu"),
            }  # fmt: skip
        case "device_config":
            return any(node.device_configurations for node in result.graph.node)
        case "overridable_inputs":
            names = [tensor.name for tensor in result.graph.initializer]
            return result.graph.input == original.graph.input and {"w", "b", "w2", "sc"} <= {*names}
        case _:
            return True


@pytest.mark.parametrize(
    "name",
    [
        "metadata",
        "device_config",
        "floor_fpn",
        "floor_yolo",
        "overridable_inputs",
        "constant_if",
        "empty_torch_upsample_opset11",
        "empty_past",
        "empty_roi",
        "empty_loop",
        "gqa_dynamic",
    ],
)
def test_models_become_what_they_should(name: str, tmp_path: Path) -> None:
    assert _as_demanded(name, tmp_path)


def test_outputs_that_are_sequences_are_compared(tmp_path: Path) -> None:
    code, result = run("sequence_output", tmp_path)
    assert code == 0 and ops(result) == ["Relu", "SequenceConstruct"]


@pytest.mark.parametrize("name", ["newly_quantized_gemm", nightly("newly_quantized_gemm_bn")])
def test_weights_stay_floats_where_they_were(name: str, tmp_path: Path) -> None:
    """The default session computes what it computed of the original."""
    original = onnx.load(FILES / f"{name}.onnx")
    code, result = run(name, tmp_path, "--for", "onnxruntime", "--effort", "low")
    assert code == 0 and result is not None
    session = onnxruntime.InferenceSession(original.SerializeToString())
    rng = np.random.default_rng(0)
    feeds = {
        item.name: rng.normal(size=item.shape).astype(np.float32) for item in session.get_inputs()
    }
    for a, b in zip(results(original, feeds), results(result, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_model_that_is_valid_at_some_sizes_only_keeps_its_dims(tmp_path: Path) -> None:
    code, result = run("dynamic_written_static", tmp_path, "--dim", "N=2")
    assert code == 0 and result is not None
    assert _dims(result) == _dims(onnx.load(FILES / "dynamic_written_static.onnx")) != []


def test_nothing_that_a_terminal_obeys_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(
        ["run", str(FILES / "terminal_escapes.onnx"), "-o", str(tmp_path / "out.onnx"), *_FAST[:-1]]
    )
    printed = capsys.readouterr()
    shown = (printed.out + printed.err).replace("\n", "").replace("\r", "")
    assert shown and shown.isprintable()


@pytest.mark.parametrize("version", [None, 13, 18, 21])
def test_old_versions_become_newer_ones_or_the_reason_is_said(
    version: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = onnx.load(FILES / "opset9.onnx")
    words = [] if version is None else ["--opset", str(version)]
    target = tmp_path / "out.onnx"
    arguments = ["run", str(FILES / "opset9.onnx"), "-o", str(target), *_FAST[:-1], *words, "-v"]
    assert main(arguments) == 0
    result = onnx.load(target)
    (imported,) = result.opset_import
    assert imported.version == (version or 9) or "operator set 9 to" in capsys.readouterr().out
    (item,) = original.graph.input
    shape = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
    for scale in (0.0, 1.0, -30.0):  # 0: all are equal, and the first is the largest
        x = (scale * np.random.default_rng(0).normal(size=shape)).astype(np.float32)
        for a, b in zip(results(original, {"x": x}), results(result, {"x": x}), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


#: Models that are too large for the tests' own folder.
_SHARED = Path(__file__).parents[3] / "shared" / "data" / "defects"


@pytest.mark.skipif(not _SHARED.exists(), reason="the larger models are not here")
def test_sizes_are_promised_from_one_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", str(_SHARED / "batch_zero.onnx"), "-o", str(tmp_path / "out.onnx")]
    assert (
        main([*arguments, "--for", "onnxruntime", "--effort", "low", "--iterations", "2", "-v"])
        == 0
    )
    assert "stay dynamic, from 1 on" in capsys.readouterr().out


@pytest.mark.skipif(not _SHARED.exists(), reason="the larger models are not here")
def test_a_gain_that_was_not_timed_is_called_modelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(_SHARED / "stft_opaque_cost.onnx"), "-o", str(tmp_path / "out.onnx")]
    assert main([*arguments, "--for", "onnxruntime", "--effort", "low", "--iterations", "2"]) == 0
    printed = capsys.readouterr().out
    assert "not timed here" in printed and "faster" not in printed
