"""Nothing changed is returned that was not compared; the worst outcome is the file one had."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.formats import load_model, save_model
from relational_tensat.tensor import Node, TensorType, Weight, build_graph
from tests.graphs import f32

onnx = pytest.importorskip("onnx")

FLOAT = onnx.TensorProto.FLOAT


def saved(path: Path, nodes: list[object], inputs: dict[str, tuple[int, list[int]]]) -> Path:
    """Write a model that returns "y", [2, 3], and may have operators of a domain "mine"."""
    helper = onnx.helper
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
    graph = helper.make_graph(
        nodes,
        "m",
        infos,
        [helper.make_tensor_value_info("y", FLOAT, [2, 3])],
        value_info=[helper.make_tensor_value_info(n, FLOAT, [2, 3]) for n in ("a", "b", "t")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def with_strings(path: Path) -> Path:
    """A model with something to save, and an input that cannot be drawn."""
    node = onnx.helper.make_node
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("StringNormalizer", ["s"], ["upper"], case_change_action="UPPER"),
        node("Add", ["b", "x"], ["y"]),
    ]
    path = saved(path, nodes, {"x": (FLOAT, [2, 3]), "s": (onnx.TensorProto.STRING, [1])})
    model = onnx.load(path)
    upper = onnx.helper.make_tensor_value_info("upper", onnx.TensorProto.STRING, [1])
    model.graph.output.append(upper)
    onnx.save_model(model, path)
    return path


def test_nothing_that_was_not_compared_is_returned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = with_strings(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    argv = ["run", str(source), "-o", str(target), "--for", "t4", "--iterations", "2"]
    assert main([*argv, "--quiet"]) == 0
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert "verified" not in line
    assert "nothing could be compared" in line and "cannot be drawn" in line
    assert target.read_bytes() == source.read_bytes()
    assert main([*argv, "--json", "--quiet"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["unchanged"] and not content["verified"]["ok"]
    assert content["cost_after_us"] == content["cost_before_us"]
    assert not content["optimal"]
    assert "nothing could be compared" in content["rejections"][0]["why"]
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert text.startswith("nothing could be compared")
    assert "byte for byte" in " ".join(text.split())


def test_around_an_operator_that_nobody_knows_all_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Thing", ["b"], ["t"], domain="mine"),
        node("Relu", ["t"], ["c"]),
        node("Relu", ["c"], ["y"]),
    ]
    source = saved(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [2, 3])})
    target = tmp_path / "out.onnx"
    argv = ["run", str(source), "-o", str(target), "--for", "t4", "--iterations", "2"]
    argv += ["--json", "--quiet"]
    assert main(argv) == 0
    content = json.loads(capsys.readouterr().out)
    assert not content["unchanged"] and content["rejections"] == []
    assert content["verified"]["ok"] and content["verified"]["runs"] > 0
    assert content["verified"]["stand_ins"] == ["mine.Thing"]
    assert any("mine.Thing" in caution for caution in content["cautions"])
    written = [item.op_type for item in onnx.load(target).graph.node]
    assert written == ["Relu", "Thing", "Relu"]


@pytest.mark.parametrize("suffix", ["json", "onnx"])
def test_where_nothing_is_saved_the_file_is_the_original(suffix: str, tmp_path: Path) -> None:
    graph = build_graph("m", {"x": f32(2, 3)}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    source, target = tmp_path / f"m.{suffix}", tmp_path / f"out.{suffix}"
    save_model(graph, source)
    if suffix == "json":
        source.write_text(source.read_text() + "\n\n")  # as nobody else would write it
    result = optimize(source, Options.of(cost="t4", iterations=1), output=target)
    assert target.read_bytes() == source.read_bytes()
    assert result.unchanged and not result.keeps_original
    assert not result.verification.ok and result.verification.runs == 0
    assert "the written file is the original, byte for byte" in result.notes


#: Operators with one number, one after the other, on which laws of the reals once ended the run.
_FAILING_LAWS = {
    "float16": (("mul", 300.0), ("mul", 300.0)),
    "float32": (("add", 1e8), ("sub", 1e8)),
    "int32": (("div", 65536.0), ("div", 65536.0)),
}


@pytest.mark.parametrize("dtype", list(_FAILING_LAWS))
def test_a_law_that_fails_on_a_machine_ends_no_run(dtype: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    kind = TensorType(dtype, (4,))
    steps = _FAILING_LAWS[dtype]
    weights = {
        f"w{i}": Weight(TensorType(dtype, ()), np.array(number, dtype))
        for i, (_, number) in enumerate(steps)
    }
    nodes = [
        Node("relu", ("x",), ("r",)),
        Node("relu", ("r",), ("t0",)),  # something to save
        *(Node(op, (f"t{i}", f"w{i}"), (f"t{i + 1}",)) for i, (op, _) in enumerate(steps)),
    ]
    files = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save_model(build_graph("m", {"x": kind}, weights, nodes, [f"t{len(steps)}"]), files[0])
    options = Options.of(cost="t4", iterations=5, strict=True)
    result = optimize(files[0], options, output=files[1])
    assert not result.unchanged and result.verification.ok and not result.rejections
    x = np.array([1, 2, 3, 100000] if dtype == "int32" else [0.5, 1, 2, 3], dtype)
    before, after = (
        runtime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for file in files
    )
    np.testing.assert_array_equal(before, after)


def test_another_format_is_converted_and_compared(tmp_path: Path) -> None:
    graph = build_graph("m", {"x": f32(2, 3)}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    save_model(graph, tmp_path / "m.json")
    target = tmp_path / "out.onnx"
    result = optimize(tmp_path / "m.json", Options.of(iterations=1), output=target)
    assert result.unchanged and result.verification.ok
    assert load_model(target).count_ops() == graph.count_ops()
