"""Random graphs: valid, the same for a seed, of every element type; a wrong file is found out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from bench.__main__ import main
from bench.fuzz import command as fuzz_command
from bench.fuzz import trial
from bench.fuzz.extrema import with_nan
from bench.fuzz.graphs import as_model, drawn_graph
from bench.fuzz.pieces import EVERY
from relational_tensat.base.errors import VerificationError


def test_graphs_are_valid_and_the_same_for_a_seed_and_have_every_element_type() -> None:
    dtypes = set()
    for index in range(150):
        graph = drawn_graph(0, index)
        dtypes |= {value.dtype.name for value in graph.values}
        if index < 20:
            onnx.checker.check_model(as_model([graph]), full_check=True)
            assert as_model([graph]) == as_model([drawn_graph(0, index)])
    assert dtypes >= set(EVERY)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz_command, "RESULTS", tmp_path)
    assert main(["fuzz", "6", "--together", "3", "--save"]) == 0
    assert "graphs: {'equal': 6, " in capsys.readouterr().out
    (path,) = tmp_path.iterdir()
    result = json.loads(path.read_text())
    assert result["graphs"]["equal"] == 6
    assert result["models"] == 2


def test_a_wrong_file_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = trial.optimize

    def wrong(source: Path, options: Any, *, output: Path) -> Any:
        result = right(source, options, output=output)
        model = onnx.load_model(output)
        first = model.graph.output[0].name
        for node in model.graph.node:
            node.output[:] = ["before_" * (name == first) + name for name in node.output]
        kind = model.graph.output[0].type.tensor_type.elem_type
        last = onnx.helper.make_node("Concat", [f"before_{first}"], [first], axis=0)
        if kind != onnx.TensorProto.BOOL:
            last = onnx.helper.make_node("Add", [f"before_{first}"] * 2, [first])
        model.graph.node.append(last)
        output.write_bytes(model.SerializeToString())
        return result

    monkeypatch.setattr(trial, "optimize", wrong)
    assert main(["fuzz", "1", "--together", "1", "--first", "2"]) == VerificationError.exit_code
    assert "different: graphs 2 to 2: " in capsys.readouterr().out


def test_what_a_maximum_makes_of_nan_is_no_difference() -> None:
    outcome = trial.try_graphs(0, 4085, 1, fuzz_command.SETTINGS)  # GlobalMaxPool of logarithms
    assert (outcome.status, outcome.rejections) == ("equal", ())


def test_extrema_spread_nan_or_pass_over_it() -> None:
    x = np.arange(34, dtype=np.float32).reshape(1, 2, 17)
    x[0, 0, 2] = np.nan
    info = onnx.helper.make_tensor_value_info
    for op_type, attributes, passed_over in (
        ("ReduceMax", {"axes": [2]}, [16.0, 33.0]),
        ("ReduceMin", {"axes": [2]}, [0.0, 17.0]),
        ("MaxPool", {"kernel_shape": [17]}, [16.0, 33.0]),
        ("GlobalMaxPool", {}, [16.0, 33.0]),
    ):
        node = onnx.helper.make_node(op_type, ["x"], ["y"], **attributes)
        kinds = [info(name, 1, shape) for name, shape in (("x", x.shape), ("y", (1, 2, 1)))]
        graph = onnx.helper.make_graph([node], "extremum", kinds[:1], kinds[1:])
        imports = [onnx.helper.make_opsetid("", 13)]
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
        for spreads, first in ((True, np.nan), (False, passed_over[0])):
            made = with_nan(model.SerializeToString(), spreads=spreads)
            level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            (y,) = trial._run(made, {"x": x}, level)
            np.testing.assert_array_equal(y.ravel(), [first, passed_over[1]])
