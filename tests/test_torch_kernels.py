"""Kernels of a folder as PyTorch's operators; where there is no PyTorch, what is written for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, kernels, optimize, torch_kernels
from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError
from relational_tensat.cli.main import main
from relational_tensat.tensor import Graph

ROWS, COLUMNS = 4, 8


def normed() -> Graph:
    """A softmax of a sum, as a row of functions without one operator for all of it."""
    b = GraphBuilder("normed")
    x = b.op("add", b.input("x", ROWS, COLUMNS), b.input("y", ROWS, COLUMNS))
    return b.build(b.op("tanh", b.op("mul", b.op("relu", x), x)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch") / "kernels"
    options = Options.of(fuse=True, fuse_time_limit_s=0.0, kernels=path, kernels_torch=True)
    result = optimize(normed(), options)
    assert result.graph.count_ops() == {"fused": 1}
    return path


def test_the_module_is_written_where_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    compile((folder / "torch_operators.py").read_text(), "torch_operators.py", "exec")
    with pytest.raises(UsageError, match="kernels-torch goes with --kernels"):
        optimize(normed(), Options.of(fuse=True, kernels_torch=True))
    optimize(normed(), Options.of(fuse=True, fuse_time_limit_s=0.0, kernels=tmp_path))
    assert not (tmp_path / "torch_operators.py").exists()


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is there")
def test_without_pytorch_that_is_what_is_reported(folder: Path) -> None:
    with pytest.raises(MissingDependencyError, match="pip install torch"):
        torch_kernels.register(folder)


def test_an_operator_computes_what_the_kernel_does_and_can_be_compiled(folder: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    ((key, operator),) = torch_kernels.register(folder).items()
    assert torch_kernels.register(folder)[key] is operator
    draw = np.random.default_rng(0).standard_normal
    x, y = (draw((ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    expected = kernels.load(folder, "numpy")[key](x, y)
    np.testing.assert_allclose(operator(*tensors).numpy(), expected, rtol=1e-5, atol=1e-6)
    torch.library.opcheck(operator, tensors)
    meta = getattr(torch.ops.relational_tensat, f"fused_{key}")(*(t.to("meta") for t in tensors))
    assert tuple(meta.shape) == (ROWS, COLUMNS)
    with pytest.raises(InputError, match=r"expected torch\.float32"):
        operator(*(t.double() for t in tensors))


def test_emit_writes_a_module_with_named_operands_and_a_test_that_passes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (entry,) = kernels.entries(folder).values()
    out = tmp_path / "module"
    assert main(["kernels", "emit", str(entry.path), "--module", str(out)]) == 0
    assert "the module" in capsys.readouterr().out
    text = (out / "torch_operators.py").read_text()
    assert f"def forward(self, {', '.join(entry.graph.inputs)}):" in text
    compile((out / "test_torch_operators.py").read_text(), "test_torch_operators.py", "exec")
    pytest.importorskip("torch")
    assert pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(out), str(out)]) == 0


def test_an_operator_may_have_two_results(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    b = GraphBuilder("both")
    total = b.op("add", b.input("x", ROWS, COLUMNS), b.input("y", ROWS, COLUMNS))
    graph = b.build(b.op("mul", b.op("relu", total), total), total)
    result = optimize(graph, Options.of(fuse=True, fuse_time_limit_s=0.0, kernels=tmp_path))
    assert result.graph.count_ops() == {"fused": 1}
    ((key, operator),) = torch_kernels.register(tmp_path).items()
    draw = np.random.default_rng(0).standard_normal
    arrays = [draw((ROWS, COLUMNS)).astype(np.float32) for _ in range(2)]
    tensors = tuple(map(torch.from_numpy, arrays))
    expected = kernels.load(tmp_path, "numpy")[key](*arrays)
    for actual, wanted in zip(operator(*tensors), expected, strict=True):
        np.testing.assert_allclose(actual.numpy(), wanted, rtol=1e-5, atol=1e-6)
    torch.library.opcheck(operator, tensors)
