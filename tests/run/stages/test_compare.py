"""A file that is larger than the original is written only where its graph costs less."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.cli.main import main
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.formats import save_model
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.result import Result
from relational_tensat.tensor import Attrs, Node, ValueType, build_graph, tensors_of
from tests.formats.onnx_tools import constant, model, tensor
from tests.graphs import f32

RULE = """
(rule join (law "(A·B)·C = A·(B·C)")
  (from (matmul (matmul ?a ?b) ?c))
  (to (matmul ?a (matmul ?b ?c))))
"""


class ProductCosts:
    """Products cost what is given for the sizes of their right operands; 1 µs for others."""

    name = "products"

    def __init__(self, costs_us: dict[int, float]) -> None:
        self._costs_us = costs_us

    def cost_us(
        self, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
    ) -> float:
        if op != "matmul":
            return 1.0 if op == "relu" else 0.0
        return self._costs_us[tensors_of(inputs[1])[0].size]


def two_products(folder: Path) -> Path:
    """Return a model whose two factors have half of the elements that their product has."""
    random = np.random.default_rng(0)
    weights = [constant(n, random.random(s), np.float32) for n, s in (("a", (8, 2)), ("b", (2, 8)))]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "a"], ["m"]),
        onnx.helper.make_node("MatMul", ["m", "b"], ["y"]),
    ]
    proto = model(nodes, [tensor("x", [4, 8])], [tensor("y", [4, 8])], weights)
    onnx.save_model(proto, folder / "m.onnx")
    return folder / "m.onnx"


def run(folder: Path, whole_us: float) -> Result:
    (folder / "my.rules").write_text(RULE)
    options = Options.of(rules=(folder / "my.rules",), verify_runs=1)
    costs = ProductCosts({16: 1.0, 64: whole_us})
    return optimize(two_products(folder), options, output=folder / "o.onnx", cost_model=costs)


def test_a_larger_file_is_written_where_it_costs_less_and_the_report_says_why(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, whole_us=1.0)
    assert not result.unchanged
    size, old = ((tmp_path / name).stat().st_size for name in ("o.onnx", "m.onnx"))
    assert size > old
    assert (
        f"the file has {size:,} bytes, it had {old:,}: under products it costs 1.00 µs instead of 2.00"
        in result.notes
    )
    change = result.to_json()["file"]
    assert (change["before"]["nodes"], change["after"]["nodes"]) == (2, 1)
    assert (change["before"]["bytes"], change["after"]["bytes"]) == (old, size)


def test_a_larger_file_that_costs_no_less_is_not_written(tmp_path: Path) -> None:
    result = run(tmp_path, whole_us=2.0 * (1 - COST_TOLERANCE / 2))
    assert result.unchanged
    assert (tmp_path / "o.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    (note,) = (note for note in result.notes if note.startswith("the file would have "))
    assert note.endswith(", and cost no less: the original is kept")
    change = result.to_json()["file"]
    assert change["before"] == change["after"]  # the original is kept: both are its file's


def test_a_larger_file_is_not_written_for_a_saving_that_nobody_sees(tmp_path: Path) -> None:
    result = run(tmp_path, whole_us=2.0 * (1 - 1e-5))
    assert result.unchanged
    (note,) = (note for note in result.notes if note.startswith("the file would have "))
    assert note.endswith(", and cost hardly less: the original is kept")


def old_model(folder: Path) -> Path:
    """Return a model of an old version, and one relu too many."""
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["a"]),
        onnx.helper.make_node("Relu", ["a"], ["y"]),
    ]
    proto = model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 3])], opset=11)
    proto.ir_version = 6
    onnx.save_model(proto, folder / "m.onnx")
    return folder / "m.onnx"


def test_versions_that_are_raised_are_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = old_model(tmp_path), tmp_path / "o.onnx"
    argv = ["run", str(source), "-o", str(target), "--for", "t4", "--iterations", "2", "--quiet"]
    argv.append("--json")
    assert main(argv) == 0
    report = json.loads(capsys.readouterr().out)
    assert onnx.load(target).opset_import[0].version == 11
    assert not [note for note in report["notes"] if "versions" in note]
    assert main([*argv, "--opset", "17"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert onnx.load(target).opset_import[0].version == 17
    assert (
        "versions raised, as new operators need them: operator set 11 to 17, file format 6 to 8"
        in report["notes"]
    )


def test_an_original_is_written_in_the_version_that_is_named(tmp_path: Path) -> None:
    source, target = two_products(tmp_path), tmp_path / "o.onnx"
    for opset in (17, 18):
        result = optimize(source, Options.of(cost="t4", iterations=0, opset=opset), output=target)
        assert result.unchanged
        assert onnx.load(target).opset_import[0].version == opset
        assert (target.read_bytes() == source.read_bytes()) == (opset == 17)


@pytest.mark.parametrize(
    ("opset", "name", "reason"),
    [(6, "o.onnx", "opset = 6, expected 7 to"), (17, "o.json", "opset = 17 is for .onnx files")],
)
def test_versions_that_cannot_be_written(
    tmp_path: Path, opset: int, name: str, reason: str
) -> None:
    graph = build_graph("m", {"x": f32(2)}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    save_model(graph, tmp_path / "m.json")
    with pytest.raises(UsageError, match=reason):
        optimize(tmp_path / "m.json", Options.of(opset=opset), output=tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(("ir_version", "names"), [(8, "b"), (3, "")])
def test_inputs_with_a_value_that_the_result_takes_for_constants_are_in_the_report(
    ir_version: int, names: str, tmp_path: Path
) -> None:
    """In format 3 every constant is an input, too: a caller replaces none there."""
    values = [constant(n, np.ones(s), np.float32) for n, s in (("a", (4, 5)), ("b", (5,)))]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "a"], ["m"]),
        onnx.helper.make_node("Add", ["m", "b"], ["s"]),
        onnx.helper.make_node("Relu", ["s"], ["y"]),
    ]
    inputs = [tensor("x", [2, 4]), tensor("b", [5])]
    proto = model(nodes, inputs, [tensor("y", [2, 5])], values, opset=13)
    proto.ir_version = ir_version
    if ir_version == 3:
        proto.graph.input.append(tensor("a", [4, 5]))
    onnx.save_model(proto, tmp_path / "m.onnx")
    result = optimize(
        tmp_path / "m.onnx", Options.of(cost="t4", iterations=2), output=tmp_path / "o.onnx"
    )
    assert not result.unchanged
    assert [value.name for value in onnx.load(tmp_path / "o.onnx").graph.input] == ["x"]
    notes = [note for note in result.notes if note.startswith("inputs with a default value")]
    expected = (
        f"inputs with a default value are constants now: {names}; --keep-overridable keeps them"
    )
    assert notes == ([expected] if names else [])
