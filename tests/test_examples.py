"""The scripts and notebooks of ``examples`` are run, each as a user would, and print what they promise."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
#: What each script prints, among other things.
PRINTED = {
    "optimize_and_save.py": ("encoder_block, for onnxruntime on this CPU", "saved to faster.onnx"),
    "dynamic_model.py": ("['MatMul', 'Add', 'Relu'] -> ['Gemm', 'Relu']", "batch 7 equal: True"),
    "write_a_rule.py": ("factor-out sound", "wrong unsound", "made by: {'factor-out': 2}"),
    "query_the_egraph.py": ("merge-products-sharing-left", "e_nodes: int64"),
    "many_models.py": ("layers1: 3 measured, 0 from the cache", "layers2: 0 measured, 3 from the"),
}
#: And what the cells of each notebook show.
SHOWN = {
    "optimize_and_look.ipynb": ("<table>", "gated_mlp, for t4", "<iframe"),
    "write_a_rule.ipynb": ("factor-out", "<table>", "ways: int64", "{'add': 1, 'mul': 1}"),
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)
    assert {path.name for path in EXAMPLES.glob("*.ipynb")} == set(SHOWN)


@pytest.mark.parametrize("name", PRINTED)
def test_scripts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 15 <= len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 45
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    for text in PRINTED[name]:
        assert text in printed


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cell by cell in one namespace; the last expression of each is shown."""
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    monkeypatch.chdir(EXAMPLES)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown = ""
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []
        if cell["cell_type"] == "code":
            shown += show(run_cell("".join(cell["source"]), namespace))
    shown += capsys.readouterr().out
    for text in SHOWN[name]:
        assert text in shown


def run_cell(source: str, namespace: dict[str, Any]) -> Any:
    """Execute a cell, and return the value that a notebook would show."""
    module = ast.parse(source)
    last = module.body[-1]
    body = module.body[:-1] if isinstance(last, ast.Expr) else module.body
    exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)


def show(value: Any) -> str:
    """Return a value as a notebook shows it."""
    if value is None:
        return ""
    return str(value._repr_html_() if hasattr(value, "_repr_html_") else value)
