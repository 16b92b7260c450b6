"""What the pages of the documentation show of other packages runs as it stands there."""

from __future__ import annotations

import re
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PAGE = (ROOT / "docs" / "how-to" / "pytorch.md").read_text(encoding="utf-8")
#: Each block, with the packages that it needs.
_BLOCKS = [
    pytest.param(code, id=title)
    for title, code in re.findall(r"\n## ([^\n]+)\n\n```python\n(.*?)```", _PAGE, re.DOTALL)
]
pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages say of themselves


def test_the_page_has_seven_blocks() -> None:
    assert len(_BLOCKS) == 7


@pytest.mark.parametrize("code", _BLOCKS)
def test_a_block_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch", "onnxscript", "onnx_ir", "olive"):
        is_used = re.search(rf"^(import|from) {package}\b", code, re.MULTILINE)
        if find_spec(package) is None and (is_used or package == "onnxscript"):
            pytest.skip(f"needs {package}")
    if "optimum" in code:  # several packages have parts of it
        pytest.importorskip("optimum.onnxruntime")
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if 'backend="relational_tensat"' in code and not _is_installed():
        code = code.replace(
            'backend="relational_tensat"',
            "backend=__import__('relational_tensat.torch').torch.backend",
        )
    (tmp_path / "bench" / "inputs").mkdir(parents=True)
    shutil.copy(ROOT / "bench" / "inputs" / "encoder_block.onnx", tmp_path / "bench" / "inputs")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    runpy.run_path("block.py", run_name="__main__")


def _is_installed() -> bool:
    """Whether PyTorch finds the backend by its name: it does where the package is installed."""
    from importlib.metadata import entry_points

    return any(
        each.name == "relational_tensat" for each in entry_points(group="torch_dynamo_backends")
    )
