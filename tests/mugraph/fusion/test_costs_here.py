"""With costs that are measured on the processor: kernels are measured as C, and what runs is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, kernels, optimize
from relational_tensat.base.errors import MissingDependencyError, VerificationError
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.cpu import onnxruntime_device, quiet, samples
from relational_tensat.cost.cpu.samples import Pair
from relational_tensat.cost.device import TimingSample
from relational_tensat.mugraph.fusion import savings
from relational_tensat.mugraph.fusion.candidates import chain_candidates
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.fusion.savings import measured
from relational_tensat.mugraph.kernels import emit_c
from relational_tensat.run.result import Result
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.cost.fakes import FakeDevice, plug_in
from tests.with_compilers import needs_c

#: Loaded before a fake device takes the package's place.
assert onnxruntime_device.KIND == "cpu"
#: Lets kernels take so many µs; returns, for each that is timed, how often it runs in a sample.
Takes: TypeAlias = Callable[[float], list[int]]

pytestmark = needs_c


def row() -> Graph:
    """Return tanh((sigmoid(x) + y) x)."""
    builder = GraphBuilder("row")
    x, y = builder.input("x", 8, 16), builder.input("y", 8, 16)
    total = builder.op("add", builder.op("sigmoid", x), y)
    return builder.build(builder.op("tanh", builder.op("mul", total, x)))


def masked_row() -> Graph:
    """Return tanh(x) x where a mask says so, and -inf elsewhere."""
    kinds = {"x": TensorType("float32", (8, 16)), "mask": TensorType("bool", (8, 16))}
    nothing = Weight(TensorType("float32", ()), np.asarray(-np.inf, "float32"))
    nodes = [
        Node("tanh", ("x",), ("bent",)),
        Node("mul", ("bent", "x"), ("product",)),
        Node("where", ("mask", "product", "nothing"), ("y",)),
    ]
    return build_graph("masked", kinds, {"nothing": nothing}, nodes, ["y"])


@pytest.fixture
def kernel_us(monkeypatch: pytest.MonkeyPatch) -> Takes:
    """Let kernels take so long; what is timed is run once, and counted, instead."""

    def take(us: float) -> list[int]:
        runs: list[int] = []

        def difference(pair: Pair, copies: int, watch: object, patience_s: float) -> TimingSample:
            pair.longer()
            runs.append(copies)
            return TimingSample(us + 1, us, us + 2, 30)

        monkeypatch.setattr(samples, "difference", difference)
        monkeypatch.setattr(quiet, "thread_us", lambda function: function() or 50.0)
        monkeypatch.setattr(quiet, "processor_watch", lambda: None)
        return runs

    return take


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: Graph | None = None) -> Result:
    device = plug_in(monkeypatch, FakeDevice(time_us=lambda configuration: 2.0))
    assert device.key.kind == "cpu"
    options = Options.of(
        cost="cpu", cost_cache=tmp_path / "costs.duckdb", fuse=True, kernels=tmp_path / "kernels"
    )
    return optimize(model or row(), options, output=tmp_path / "out.onnx")


def test_what_is_chosen_by_a_mask_is_within_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kernel_us: Takes,
) -> None:
    """Infinite numbers, too: where a kernel and its program both have them, they are equal."""
    runs = kernel_us(1.5)
    result = run(monkeypatch, tmp_path, masked_row())
    assert runs and (result.cost_before_us, result.cost_after_us) == (6.0, 1.5)
    (call,) = kernels.load(tmp_path / "kernels").values()
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    mask = x > 0.5
    expected = np.where(mask, np.tanh(x) * x, -np.inf)
    (node,) = onnx.load(tmp_path / "out.onnx").graph.node
    assert np.allclose(call(*({"x": x, "mask": mask}[name] for name in node.input)), expected)


def test_a_kernel_is_chosen_where_it_takes_less_than_the_operators(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kernel_us: Takes,
) -> None:
    runs = kernel_us(1.5)
    result = run(monkeypatch, tmp_path)
    assert (result.cost_before_us, result.cost_after_us) == (8.0, 1.5)
    assert set(runs) == {4}  # 200 µs a sample
    assert result.fusion is not None and len(result.fusion.used) == 1
    assert any("the file has them as local functions" in note for note in result.notes)
    assert any(note.startswith("not raced") for note in result.notes)
    (call,) = kernels.load(tmp_path / "kernels").values()
    x, y = np.random.default_rng(0).standard_normal((2, 8, 16)).astype(np.float32)
    assert np.allclose(call(x, y), np.tanh((1 / (1 + np.exp(-x)) + y) * x), atol=1e-6)


@pytest.mark.nightly
def test_a_kernel_is_measured_once_for_its_code_and_compiler(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kernel_us: Takes,
) -> None:
    runs = kernel_us(1.5)
    first = run(monkeypatch, tmp_path)
    kernels_timed = len(runs)
    assert kernels_timed
    kernel_us(7.0)
    again = run(monkeypatch, tmp_path)
    assert again.cost_after_us == first.cost_after_us == 1.5
    monkeypatch.setattr(savings, "FLAGS", (*savings.FLAGS, "-O0"))
    runs = kernel_us(7.0)
    assert run(monkeypatch, tmp_path).cost_after_us == 7.0
    assert len(runs) == kernels_timed
    cache = CostCache(tmp_path / "costs.duckdb")
    assert cache.forget(FakeDevice().key)
    runs = kernel_us(1.0)
    run(monkeypatch, tmp_path)
    assert len(runs) == kernels_timed


def test_operators_stay_where_the_kernel_takes_longer(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kernel_us: Takes,
) -> None:
    kernel_us(8.5)
    result = run(monkeypatch, tmp_path)
    assert result.cost_after_us == 8.0
    assert result.fusion is not None and result.fusion.kernels and not result.fusion.used


def test_what_runs_whole_is_not_the_kernel_in_c(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kernel_us: Takes,
) -> None:
    kernel_us(1.5)
    result = run(monkeypatch, tmp_path)
    assert result.whole is not None
    assert (result.whole.modelled_before_us, result.whole.modelled_after_us) == (8.0, 8.0)
    assert "run whole with kernels as the plain operators of the file, not in C" in result.notes


def test_c_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (candidate,) = chain_candidates(row())
    graph = row_kernel(candidate.program)
    compiled = savings.compiled_kernels

    def swapped(*arguments: object) -> dict[str, object]:
        functions = compiled(*arguments)  # type: ignore[arg-type]
        for function in functions.values():
            bound = function.bound
            function.bound = lambda x, y, bound=bound: bound(x[::-1], y)  # type: ignore[method-assign]
        return dict(functions)

    monkeypatch.setattr(savings, "compiled_kernels", swapped)
    with pytest.raises(VerificationError, match="the kernel's C computes something else"):
        measured(candidate, graph)


def test_without_a_compiler_the_run_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(emit_c.shutil, "which", lambda name: None)
    with pytest.raises(MissingDependencyError, match="set CC, or install cc"):
        run(monkeypatch, tmp_path)
