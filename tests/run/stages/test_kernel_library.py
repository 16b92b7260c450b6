"""``run --fuse`` for onnxruntime: kernels of what is written, taken where the file is faster with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest

import relational_tensat
from bench.models.builder import GraphBuilder
from relational_tensat import Options, kernels, optimize
from relational_tensat.base.errors import InputError
from relational_tensat.cost.race import RaceResult, Standing
from relational_tensat.custom_ops import build, parts
from relational_tensat.custom_ops.manifest import MANIFEST, folder_of
from relational_tensat.custom_ops.parts import timed_parts
from relational_tensat.custom_ops.places import disjoint_places, with_places
from relational_tensat.custom_ops.timed_part import TimedPart, node_of
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion import kernel_builder
from relational_tensat.mugraph.fusion.candidates import KernelCandidate, region_candidates
from relational_tensat.run.account import Account
from relational_tensat.run.result import report_schema
from relational_tensat.run.stages import kernel_files, kernel_library
from relational_tensat.run.stages.kernel_library import with_kernels
from relational_tensat.run.values import CheckedRun
from relational_tensat.tensor import Node, TensorType, build_graph
from relational_tensat.verify.evaluate import evaluate_graph
from tests.custom_ops.fused_files import feeds_of
from tests.quantized_models import Quantized
from tests.with_compilers import needs_c

DOMAIN = "relational_tensat.kernels"
FASTER, SLOWER, SAME = (Standing(s, s - 0.01, s + 0.01, 5) for s in (1.5, 0.5, 1.0))
#: One that cannot decide, and one of a busy machine, which may be idle the next time.
UNCLEAR, WIDE = Standing(1.0, 0.9, 1.1, 5), Standing(1.1, 0.8, 1.5, 5)


def _model(folder: Path) -> Path:
    """Two chains with a product between them."""
    b = GraphBuilder("model")
    x = b.input("x", 16, 24)

    def chain(value: str, bias: str) -> str:
        return b.op("tanh", b.op("mul", b.op("add", value, bias), bias))

    product = b.op("matmul", chain(x, b.input("before", 24)), b.input("w", 24, 32))
    save_model(b.build(chain(product, b.input("after", 32))), folder / "model.onnx")
    return folder / "model.onnx"


def _dynamic_model(folder: Path) -> Path:
    """A residual with its norm, and a function, of a batch of sequences of any length."""
    b = GraphBuilder("model")
    x, y = b.input("x", 2, 3, 24), b.input("y", 3, 24)
    added = b.op("add", b.op("tanh", x), y)
    mean = b.op("reduce_mean", added, axes=(2,), keepdims=True)
    normed = b.op("mul", b.op("sub", added, mean), b.input("gain", 24))
    save_model(
        b.build(b.op("tanh", b.op("mul", normed, b.input("scale", 24)))), folder / "fixed.onnx"
    )
    model = onnx.load(folder / "fixed.onnx")
    symbols = {"x": ["batch", "sequence"], "y": ["sequence"]}
    for value in (*model.graph.input, *model.graph.output):
        names = symbols.get(
            value.name, ["batch", "sequence"] if value in model.graph.output else []
        )
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=False):
            dim.dim_param = name
    del model.graph.value_info[:]
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def _quantized_model(folder: Path) -> Path:
    """Functions of integers before and behind a product, in two layers of the same form."""
    build, value = Quantized(most=63), "x"
    for layer in "ab":
        value = build.pair(value, 0.03)
        rounded = build.pair(build.node("Tanh", [value], f"t{layer}"), 0.011)
        value = build.node("MatMul", [rounded, build.weight(f"w{layer}", 24, 24)], f"p{layer}")
        value = build.node("Tanh", [build.pair(value, 0.025)], f"s{layer}")
    build.node("Identity", [build.pair(value, 0.01)], "y")
    onnx.save(build.model({"x": [16, 24]}, {"y": [16, 24]}), folder / "model.onnx")
    return folder / "model.onnx"


class _Runs:
    """One run with kernels that seem to gain, and a race that ends as it is told to.

    Attributes:
        checked: what kernels were made for.
        parts: that seem to gain.
    """

    parts: list[TimedPart]

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        iterations: int = 1,
        *,
        race_again: bool = True,
        standings: tuple[Standing, ...] = (FASTER, SAME),
        is_dynamic: bool = False,
        is_quantized: bool = False,
    ) -> None:
        self.checked: list[CheckedRun] = []
        self._patch, self.parts = patch, []
        patch.setattr(kernel_library, "timed_parts", self._timed)
        patch.setattr(kernel_library, "_gain_us", lambda part: len(part.places[0].nodes))
        patch.setattr(parts, "_why_no_kernel", lambda *given: "")
        patch.setattr(kernel_library, "with_kernels", self._kept)
        self.end_with(*standings)
        options = Options.of(
            fuse=True,
            effort="low",
            iterations=iterations,
            threads_at_inference=1,
            kernels=None if is_dynamic else folder / "kernels",
            race_again=race_again,
        )
        make = _quantized_model if is_quantized else _model
        model = _dynamic_model(folder) if is_dynamic else make(folder)
        self.result = optimize(model, options, output=folder / "model.opt.onnx")

    def _kept(self, checked: CheckedRun) -> CheckedRun:
        self.checked.append(checked)
        return with_kernels(checked)

    def _timed(self, *args: Any) -> list[TimedPart]:
        self.parts = self.parts or [
            replace(part, kernel_us=2.0, plain_us=9.0 + len(part.places[0].nodes), session_us=1.0)
            for part in timed_parts(*args)
        ]
        return self.parts

    def end_with(self, *standings: Standing) -> None:
        ends = iter(standings)

        def raced(heat: object, count: int, *_: object) -> RaceResult:
            end = next(ends)
            return RaceResult((end,) * count, 1, end, SAME)

        self._patch.setattr(kernel_library, "race", raced)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Runs]:
    with pytest.MonkeyPatch.context() as patch:
        yield _Runs(tmp_path_factory.mktemp("run"), patch)


def _calls(file: Path) -> list[str]:
    return [node.op_type for node in onnx.load(file).graph.node if node.domain == DOMAIN]


@needs_c
def test_a_file_with_kernels_is_written_where_it_is_faster(runs: _Runs) -> None:
    result = runs.result
    file = result.output
    assert file is not None and result.library is not None and result.library.is_taken
    assert len(_calls(file)) == 2 and (folder_of(file) / MANIFEST).is_file()
    assert "1.500x" in result.library.outcome and "1.000x" in result.library.outcome
    assert str(folder_of(file)) in result.library.outcome
    assert result.fusion is not None and len(result.fusion.used) == 2
    assert len(kernels.entries(file.parent / "kernels")) == 2
    jsonschema.validate(json.loads(json.dumps(result.to_json())), report_schema())
    codes = [kernel["code"] for kernel in Account.of(result).to_json()["kernels"]]
    assert len(codes) == 2 and all("void kernel_rows(const float" in code for code in codes)
    assert all("code" not in kernel for kernel in result.to_json()["library"]["kernels"])
    graph = load_model(file.parent / "model.onnx")
    feeds = feeds_of(graph)
    expected = evaluate_graph(graph, feeds, {})[graph.outputs[0]]
    plain = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    for session in (relational_tensat.session(file), plain):
        np.testing.assert_allclose(session.run(None, feeds)[0], expected, rtol=1e-4, atol=1e-4)
    other = file.with_name("other.opt.onnx")
    shutil.copytree(folder_of(file), folder_of(other))
    optimize(file.parent / "model.onnx", Options.of(effort="low"), output=other)
    assert not folder_of(other).exists()  # they were of the file that was there
    folder_of(other).mkdir()
    (folder_of(other) / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is no folder of kernels"):
        optimize(file.parent / "model.onnx", Options.of(fuse=True), output=other)


@needs_c
@pytest.mark.parametrize("iterations", [1, 0])
def test_a_dynamic_file_has_kernels_of_any_sizes(
    iterations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the result, and of the original where that is returned."""
    result = _Runs(tmp_path, monkeypatch, iterations, is_dynamic=True).result
    file = result.output
    assert file is not None and result.library is not None and result.library.is_taken
    lines = [str(each) for each in result.verification.compared]
    for what in ("the file with kernels", "that file without its library"):
        assert len({line for line in lines if what in line}) >= 4, lines
    assert _calls(file) and '"loops"' in (folder_of(file) / MANIFEST).read_text()
    assert all("const int64_t *sizes" in kernel.code for kernel in result.library.kernels)
    session = relational_tensat.session(file)
    original = onnxruntime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    for batch, rows in ((1, 1), (2, 3), (5, 17), (61, 2)):
        rng = np.random.default_rng(batch)
        shapes = {"x": (batch, rows, 24), "y": (rows, 24), "gain": (24,), "scale": (24,)}
        feeds = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
        (expected,), (found,) = original.run(None, feeds), session.run(None, feeds)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@needs_c
def test_a_quantized_file_has_kernels_between_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One serves several layers, whatever their scales; folders of kernels have none of them."""
    result = _Runs(tmp_path, monkeypatch, is_quantized=True).result
    file = result.output
    assert file is not None and result.library is not None and result.library.is_taken
    manifest = json.loads((folder_of(file) / MANIFEST).read_text())
    assert all({*op["quantized"].values()} == {"uint8"} for op in manifest["ops"])
    assert len(manifest["ops"]) < len(_calls(file)) == 4
    assert not kernels.entries(tmp_path / "kernels")
    assert any("between integers" in note for note in result.notes)
    assert all("quantized(" in kernel.code for kernel in result.library.kernels)
    original, plain = (
        onnxruntime.InferenceSession(str(each), providers=["CPUExecutionProvider"])
        for each in (tmp_path / "model.onnx", file)
    )
    feeds = feeds_of(load_model(tmp_path / "model.onnx"))
    (expected,) = original.run(None, feeds)
    assert expected.std() > 0.1
    for session in (relational_tensat.session(file), plain):
        assert np.abs(session.run(None, feeds)[0] - expected).max() <= 0.03


@needs_c
def test_one_extraction_takes_kernels_by_their_prices(runs: _Runs) -> None:
    (checked,), own = runs.checked, runs.parts
    costly = [replace(part, kernel_us=1e9) for part in own]
    for given, wanted in ((own, 2), (costly, 0), ([*own[:1], *costly[1:]], 1)):
        taken = kernel_files.extracted(checked, checked.folded, given, {})
        assert sum(node.op == "fused" for node in taken.nodes) == wanted
        assert [node.op for node in taken.nodes].count("matmul") == 1


@needs_c
@pytest.mark.parametrize("standings", [(FASTER, SAME), (UNCLEAR,)], ids=["faster", "unclear"])
def test_what_a_run_before_has_timed_and_raced_is_not_again(
    standings: tuple[Standing, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a kernel verified or compiled, and the file has the same ones."""
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
    first = _Runs(tmp_path / "first", monkeypatch, race_again=False, standings=standings)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("again")

    for place, name in (
        (parts, "PartCall"),
        (kernel_builder, "verify_mugraph"),
        (build, "compile_library"),
    ):
        monkeypatch.setattr(place, name, refuse)
    monkeypatch.setattr(parts, "gain_us", lambda plain_us, kernel_us: 1.0)
    again = _Runs(tmp_path / "again", monkeypatch, race_again=False, standings=())
    libraries = [runs.result.library for runs in (first, again)]
    assert [each and each.is_taken for each in libraries] == 2 * [FASTER in standings]
    assert ["timed on" in each.outcome for each in libraries if each] == [False, True]
    assert len({(each.with_library, each.without) for each in libraries if each}) == 1
    assert len({tuple(k.name for k in each.kernels) for each in libraries if each}) == 1


@needs_c
def test_a_race_that_told_nothing_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    for name, standings, is_taken in (("busy", (WIDE,), False), ("idle", (FASTER, SAME), True)):
        (tmp_path / name).mkdir()
        library = _Runs(
            tmp_path / name, monkeypatch, race_again=False, standings=standings
        ).result.library
        assert library is not None and library.is_taken == is_taken and not library.timed_before


@needs_c
@pytest.mark.parametrize(
    "standings", [(SLOWER, SAME), (SAME, SAME), (FASTER, SLOWER)], ids=["slower", "same", "alone"]
)
def test_it_is_not_where_it_is_no_faster_or_slower_without_its_library(
    standings: tuple[Standing, Standing], runs: _Runs
) -> None:
    (checked,) = runs.checked
    runs.end_with(*standings)
    kept = with_kernels(checked)
    assert kept.kernels is not None and not kept.kernels.ops
    assert "no kernels in the file: measured" in kept.kernels.report.outcome
    assert kept.folded is checked.folded and kept.candidate == checked.candidate


@needs_c
def test_without_a_compiler_a_note_says_so(runs: _Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    kept = with_kernels(runs.checked[0])
    assert kept.kernels is None
    assert kept.notes[-1] == (
        "no kernels in the file: kernels in C need a C compiler: set CC, or install cc"
    )


@needs_c
@pytest.mark.nightly
def test_the_original_with_kernels_is_no_copy_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _Runs(tmp_path, monkeypatch, iterations=0).result
    assert result.unchanged and result.library is not None and result.library.is_taken
    assert result.output is not None and len(_calls(result.output)) == 2
    assert result.gain.basis == "measured" and result.gain.speedup == FASTER.speedup
    assert "the original is written" not in result.report()
    assert "the original, byte for byte" not in result.report()


def test_what_several_kernels_take_parts_of_stays_where_others_read_it() -> None:
    kind = TensorType("float32", (16, 24))
    half = TensorType("float32", (16, 12))
    nodes = [
        Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (12, 12)}),
        Node("exp", ("a",), ("e",), {}),
        Node("mul", ("e", "y"), ("one",), {}),
        Node("tanh", ("b",), ("t",), {}),
        Node("add", ("t", "y"), ("two",), {}),
        Node("matmul", ("w", "b"), ("three",), {"act": "none"}),
    ]
    inputs = {"x": kind, "y": half, "w": TensorType("float32", (16, 16))}
    graph = build_graph("model", inputs, {}, nodes, ["one", "two", "three"])
    whole: dict[str, KernelCandidate] = {}
    for candidate in region_candidates(graph, 8, without=("matmul",)):
        assert not candidate.has_products
        if "split" in {node.op for node in candidate.nodes}:
            whole[candidate.outputs[-1]] = candidate
    places = [whole[name] for name in ("one", "two")]
    nodes_of = [Node("fused", p.inputs, p.outputs, node_of(p, "k0").attrs) for p in places]
    found = [
        TimedPart((place,), (node,), cast(Any, None), 1.0, 9.0, 0.5, graph)
        for place, node in zip(places, nodes_of, strict=True)
    ]
    chosen = disjoint_places(graph, found)
    fused = with_places(graph, chosen)
    assert sorted(node.op for node in fused.nodes) == ["fused", "fused", "matmul", "split"]
    feeds = feeds_of(graph)
    expected, computed = (evaluate_graph(each, feeds, {}) for each in (graph, fused))
    for name in graph.outputs:
        np.testing.assert_allclose(computed[name], expected[name], rtol=1e-6)


def test_a_kernel_costs_its_share_of_what_it_replaces() -> None:
    part = TimedPart((), (), cast(Any, None), 3.0, 9.0, 1.0, cast(Any, None))
    assert part.share == 0.25
    assert replace(part, kernel_us=0.5).share == pytest.approx(0.2 / 8)
