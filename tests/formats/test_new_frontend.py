"""A frontend of one's own needs one class and a suffix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from relational_tensat import Options, load_model, optimize, save_model
from relational_tensat.base.errors import ModelError, UsageError
from relational_tensat.cli.main import main
from relational_tensat.formats.frontend import FRONTENDS
from relational_tensat.tensor import Graph, Node, build_graph
from tests.tensor.operators.test_matmul import f32


class Lines:
    """An example of a frontend: a line for each operator, on inputs of one shape."""

    is_onnx = is_binary = False

    def read(self, path: Path, dims: Mapping[str, int]) -> Graph:
        inputs, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        nodes = []
        for number, line in enumerate(lines, 1):
            op, *operands = line.split()
            if not operands:
                raise ModelError(f"{path}: line {number + 1}: {op!r} has no operands")
            nodes.append(Node(op, tuple(operands), (f"v{number}",)))
        shapes = {name: f32(dims.get("n", 2), 3) for name in inputs.split()}
        return build_graph(path.stem, shapes, {}, nodes, [f"v{len(nodes)}"])

    def write(self, graph: Graph, path: Path, opset: int | None) -> None:
        names = {name: name for name in graph.inputs}
        lines = [" ".join(graph.inputs)]
        for number, node in enumerate(graph.nodes, 1):
            lines.append(" ".join([node.op, *(names[name] for name in node.inputs)]))
            names[node.outputs[0]] = f"v{number}"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def data_files(self, path: Path) -> list[str]:
        return []


@pytest.fixture(autouse=True)
def _lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FRONTENDS, ".lines", Lines())


def test_models_are_read_optimized_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "a b\nrelu a\nrelu v1\nadd v2 b\n"
    Path("m.lines").write_text(text, encoding="utf-8")
    result = optimize("m.lines", Options.of(cost="t4"), output="o.lines")
    assert Path("o.lines").read_text(encoding="utf-8") == "a b\nrelu a\nadd v1 b\n"
    assert result.verification is not None and result.verification.ok
    assert main(["run", "m.lines", "--quiet"]) == 0  # for the T4: only ONNX is for onnxruntime
    assert Path("m.opt.lines").is_file()
    assert main(["convert", "m.lines", "m.onnx", "--dim", "n=5"]) == 0
    assert load_model(Path("m.onnx")).inputs["a"] == f32(5, 3)
    save_model(load_model(Path("m.onnx")), Path("again.lines"))
    assert Path("again.lines").read_text(encoding="utf-8") == text
    capsys.readouterr()


def test_it_is_named_where_a_suffix_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        UsageError, match=r"not one of .json and .onnx and .lines; did you mean '.lines'"
    ):
        load_model(tmp_path / "m.line")
    model = tmp_path / "m.lines"
    model.write_text("a\nrelu a\n", encoding="utf-8")
    assert main(["run", str(model), "-o", str(tmp_path / "o.line")]) == 2
    assert "did you mean '.lines'" in capsys.readouterr().err
    model.write_text("a\nrelu\n", encoding="utf-8")
    assert main(["run", str(model), "-o", str(tmp_path / "o.lines")]) == 3
    assert "line 2: 'relu' has no operands" in capsys.readouterr().err
