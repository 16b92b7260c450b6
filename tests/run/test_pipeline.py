"""``optimize``: what it does with the outcome of a search, and whole runs on small graphs."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat import Options, Result, optimize, resume
from relational_tensat.base.errors import (
    InputError,
    ModelError,
    RuleError,
    UsageError,
    VerificationError,
)
from relational_tensat.cost import Profile, load_profile
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.explore import Exploration, IterationReport
from relational_tensat.extract import Extraction
from relational_tensat.formats import load_model, save_model
from relational_tensat.run import summary
from relational_tensat.run.progress import Silent
from relational_tensat.run.stages.explore import extractor_of
from relational_tensat.run.stages.extract import choose
from relational_tensat.run.summary import count_size_nodes
from relational_tensat.run.values import ExploredRun, ExtractedRun, LoadedRun, Start
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.formats.dynamic.models import attention, mlp, saved
from tests.formats.onnx_tools import model, tensor
from tests.graphs import f32, shared_matmuls, weight

RUN = load_profile("cpu").run

#: Where a run finds its stages once it begins.
_STAGES = "relational_tensat.run.stages"


def run(
    model: onnx.ModelProto, folder: Path, cost: str = "analytic:cpu", **others: object
) -> Result:
    options = Options.of(cost=cost, iterations=2, **others)
    return optimize(saved(model, folder), options, output=folder / "out.onnx")


def test_onnxruntime_says_how_many_nodes_compute_sizes() -> None:
    """It merges Unsqueeze of equal values and folds what it can; weights need not be there for that."""
    model = attention()
    written = count_size_nodes(model, ())
    assert 5 <= written <= 9
    assert count_size_nodes(model, [f"w{name}" for name in "qkvo"] + ["tokens"]) == written
    assert count_size_nodes(mlp(), ()) == 0


def test_sizes_that_a_result_need_not_compute_are_gained(tmp_path: Path) -> None:
    result = run(attention(), tmp_path)
    assert not result.unchanged
    before, after = (
        count_size_nodes(onnx.load(tmp_path / name), ()) for name in ("m.onnx", "out.onnx")
    )
    assert after < before
    gained_us = result.run_us - result.run_after_us
    assert gained_us >= (before - after) * RUN.size_us
    assert gained_us <= (before - after) * (RUN.size_us + RUN.cold_size_us)
    report = result.to_json()
    assert (report["run_us"], report["run_after_us"]) == (result.run_us, result.run_after_us)


def test_a_run_alone_takes_the_same_before_and_after(tmp_path: Path) -> None:
    for others in ({}, {"dims": {"batch": 4}, "static": True}):
        result = run(mlp(), tmp_path, **others)
        assert result.run_us == result.run_after_us > 0
    assert run(attention(), tmp_path, "t4").run_us == 0


def test_what_onnxruntime_does_not_take_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("no such\n operator")

    monkeypatch.setattr(summary, "count_size_nodes", refuse)
    result = run(attention(), tmp_path)
    assert result.run_us == result.run_after_us > 0
    note = "times leave out nodes that compute sizes: onnxruntime does not take the graph: "
    assert note + "no such operator" in result.notes


FLAT = Profile("flat", 1e15, 1e15, 1.0)  # every kernel costs its launch: 1 µs


def search_finds(
    monkeypatch: pytest.MonkeyPatch, graph: Graph, *, cost_us: float, bound_us: float
) -> None:
    """Let a search return a graph."""

    def explore(loaded: LoadedRun) -> ExploredRun:
        exploration = Exploration("saturated", 1, {}, (), 10, 0.1)
        return ExploredRun(loaded, exploration, extractor_of(loaded), loaded.notes)

    def extract(explored: ExploredRun) -> ExtractedRun:
        extraction = Extraction(
            np.zeros(1, np.int32), cost_us, bound_us, 0.0, cost_us == bound_us, "ilp", 0.1, ""
        )
        original = explored.loaded.original
        return choose(
            ExtractedRun(
                explored, Start(), graph, extraction, {"some-rule": 1}, 3, 2, (), TimeSpent(),
                original, explored.notes,
            )
        )  # fmt: skip

    monkeypatch.setattr(f"{_STAGES}.explore.explore", explore)
    monkeypatch.setattr(f"{_STAGES}.extract.extract", extract)


def variant(nodes: list[Node]) -> Graph:
    original = shared_matmuls(with_data=True)
    return build_graph("v", original.inputs, original.weights, nodes, ["y"])


def one_relu_less() -> Graph:
    return variant([*shared_matmuls().nodes[:3], Node("relu", ("c",), ("y",))])


def test_the_cheaper_graph_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    search_finds(monkeypatch, one_relu_less(), cost_us=4.0, bound_us=4.0)
    output = tmp_path / "out.json"
    result = optimize(shared_matmuls(with_data=True), cost_model=FLAT, output=output)
    assert result.cost_before_us == pytest.approx(5.0, rel=1e-3)
    assert result.cost_after_us == pytest.approx(4.0, rel=1e-3)
    assert result.ops_before["relu"] == 2
    assert result.ops_after["relu"] == 1
    assert result.rules_used == {"some-rule": 1}
    assert result.verification.ok
    assert result.cost_profile == "flat"
    assert load_model(output).count_ops() == result.graph.count_ops()
    phases = {
        "load", "bodies", "price", "fuse", "explore", "extract", "verify", "whole", "write", "measure",
        "total",
    }  # fmt: skip
    assert set(result.seconds) == phases


def test_a_graph_that_costs_more_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    worse = variant([*shared_matmuls().nodes, Node("neg", ("y",), ("n",))])
    worse = build_graph("w", worse.inputs, worse.weights, worse.nodes, ["n"])
    search_finds(monkeypatch, worse, cost_us=6.0, bound_us=3.0)
    result = optimize(shared_matmuls(with_data=True), cost_model=FLAT)
    assert result.cost_after_us == result.cost_before_us
    assert result.graph.count_ops() == shared_matmuls().count_ops()
    assert result.rules_used == {}
    assert "more than the original's" in result.notes[0]
    assert result.gap == pytest.approx(0.4, rel=1e-2)  # of the graph that is returned


def test_a_wrong_graph_is_refused_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = variant([Node("add", ("w1", "w2"), ("s",)), Node("matmul", ("x", "s"), ("y",))])
    search_finds(monkeypatch, wrong, cost_us=1.0, bound_us=1.0)
    output = tmp_path / "out.json"
    with pytest.raises(VerificationError, match="output 'y'"):
        optimize(
            shared_matmuls(with_data=True),
            Options.of(strict=True),
            cost_model=FLAT,
            output=output,
        )
    assert list(tmp_path.iterdir()) == []
    result = optimize(shared_matmuls(with_data=True), cost_model=FLAT, output=output)
    assert result.unchanged and result.keeps_original and result.verification.ok
    assert load_model(output).count_ops() == shared_matmuls().count_ops()
    (rejection,) = result.rejections
    assert "output 'y'" in rejection.why and rejection.why in result.notes


def test_weights_are_folded_in_what_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    merged = variant(
        [
            Node("concat", ("w1", "w2"), ("w",), {"axis": 1}),
            Node("matmul", ("x", "w"), ("ab",)),
            Node("split", ("ab",), ("a", "b"), {"axis": 1, "sizes": (64, 64)}),
            Node("add", ("a", "b"), ("c",)),
            Node("relu", ("c",), ("y",)),
        ]
    )
    search_finds(monkeypatch, merged, cost_us=4.0, bound_us=4.0)
    output = tmp_path / "out.onnx"
    pytest.importorskip("onnx")
    result = optimize(shared_matmuls(with_data=True), cost_model=FLAT, output=output)
    assert "concat" not in result.graph.count_ops()
    assert list(result.graph.weights) == ["w"]
    assert any("onnxruntime" in c.setting.what for c in result.verification.compared)
    assert load_model(output).output_types() == result.original.output_types()


def test_alike_weights_are_checked_in_onnxruntime_with_random_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    zero = Weight(f32(4), np.zeros(4, np.float32))
    nodes = [
        Node("mul", ("x", "w"), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("relu", ("b",), ("c",)),
    ]
    model = build_graph("z", {"x": f32(3, 4)}, {"w": zero}, nodes, ["c"])
    save_model(model, tmp_path / "m.onnx")
    loaded = load_model(tmp_path / "m.onnx")
    cheaper = build_graph(
        "z",
        loaded.inputs,
        loaded.weights,
        [loaded.nodes[0], Node("relu", loaded.nodes[0].outputs, ("c",))],
        ["c"],
    )
    search_finds(monkeypatch, cheaper, cost_us=2.0, bound_us=2.0)
    result = optimize(tmp_path / "m.onnx", cost_model=FLAT)
    checks = [check.setting.what for check in result.verification.outputs if check.proves_something]
    assert "onnxruntime, random weights" in checks
    assert "onnxruntime, the two files" not in checks


def far_and_back() -> tuple[Graph, Graph]:
    """Return |x| after 12 relus, and as roots of x^64: float64 alone has such numbers."""
    names = ["x", *"abcdefghijk", "y"]
    steps = list(pairwise(names))
    squares = [Node("mul", (before, before), (after,)) for before, after in steps[:6]]
    roots = [Node("sqrt", (before,), (after,)) for before, after in steps[6:]]
    relus = [
        Node("relu", (before,), (after,))
        for before, after in zip("zabcdefghijk", names[1:], strict=True)
    ]
    original, changed = (
        build_graph("far", {"x": f32(64, 64)}, {}, nodes, ["y"])
        for nodes in ([Node("abs", ("x",), ("z",)), *relus], [*squares, *roots])
    )
    return original, changed


def test_a_graph_of_no_file_is_compared_with_numbers_that_machines_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("onnxruntime")
    original, far = far_and_back()
    search_finds(monkeypatch, far, cost_us=12.0, bound_us=12.0)
    result = optimize(original, cost_model=FLAT)
    assert result.unchanged
    (rejection,) = result.rejections
    assert "output 'y'" in rejection.why and "onnxruntime, the two files" in rejection.why


def test_a_large_graph_of_no_file_is_compared_in_float64_only_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("relational_tensat.verify.inputs._MOST_BYTES", 1 << 10)
    search_finds(monkeypatch, one_relu_less(), cost_us=4.0, bound_us=4.0)
    result = optimize(shared_matmuls(with_data=True), cost_model=FLAT)
    assert result.verification.ok and not result.unchanged
    assert not any("onnxruntime" in c.setting.what for c in result.verification.compared)
    (warning,) = [text for text in result.verification.warnings if "float64 only" in text]
    assert "write the model as .onnx" in warning


class Watcher(Silent):
    """Progress that remembers."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.iterations: list[IterationReport] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def iteration(self, report: IterationReport) -> None:
        self.iterations.append(report)

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        pass


def test_a_whole_run(tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    save_model(shared_matmuls(with_data=True), model)
    watcher = Watcher()
    options = Options.of(cost="tensat_t4", search="saturation")
    result = optimize(model, options, output=tmp_path / "out.json", progress=watcher)
    assert result.source == str(model)
    assert result.cost_after_us < result.cost_before_us
    assert result.stop_reason == "saturated"
    assert result.saturated
    assert result.optimal
    assert result.gap == 0.0
    assert result.rules_used
    assert set(result.rules_used) <= set(result.rules)
    assert result.verification.ok
    assert result.verification.max_relative_error < 1e-6
    assert len(watcher.iterations) == result.iterations == len(result.log)
    phases = ["load", "price", "explore", "extract", "verify", "write"]
    assert list(dict.fromkeys(watcher.phases)) == phases
    assert result.seconds["total"] >= result.seconds["explore"] > 0


@pytest.mark.parametrize("extractor", ["greedy", "greedy-dag", "ilp"])
@pytest.mark.parametrize("cycle_filter", ["efficient", "vanilla", "none"])
def test_every_extractor_and_filter(extractor: str, cycle_filter: str) -> None:
    options = Options.of(extractor=extractor, cycle_filter=cycle_filter, cost="tensat_t4")
    result = optimize(shared_matmuls(), options)
    assert result.verification.ok
    assert result.cost_after_us <= result.cost_before_us
    assert result.extractor == extractor


def test_only_and_skip_choose_rules() -> None:
    graph = shared_matmuls()
    every = optimize(graph, Options.of(cost="tensat_t4"))
    rule_name = next(iter(every.rules_used))
    without = optimize(graph, Options.of(cost="tensat_t4", skip=(rule_name,)))
    assert rule_name not in without.rules
    alone = optimize(graph, Options.of(cost="tensat_t4", only=(rule_name,)))
    assert list(alone.rules) == [rule_name]


def test_the_node_limit_holds() -> None:
    result = optimize(shared_matmuls(), Options.of(node_limit=12, search="saturation"))
    assert result.e_nodes <= 12
    assert result.stop_reason == "nodes"
    assert result.cost_after_us <= result.cost_before_us


def test_the_database_is_kept(tmp_path: Path) -> None:

    db = tmp_path / "run.duckdb"
    result = optimize(shared_matmuls(), Options.of(db=db))
    with duckdb.connect(str(db), read_only=True) as connection:
        rows = connection.execute("SELECT count(*) FROM enode WHERE NOT filtered").fetchall()
    assert rows[0][0] <= result.e_nodes
    assert rows[0][0] > 0


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    graph = shared_matmuls()
    with pytest.raises(UsageError, match="unknown cost profile"):
        optimize(graph, Options.of(cost="t44"))
    with pytest.raises(UsageError, match="unknown rule"):
        optimize(graph, Options.of(only=("no-such-rule",)))
    with pytest.raises(RuleError):
        optimize(graph, Options.of(rules=(tmp_path / "absent.rules",)))
    with pytest.raises(InputError, match="no such file"):
        optimize(tmp_path / "absent.json")
    with pytest.raises(UsageError, match="suffix"):
        optimize(graph, output=tmp_path / "x.txt")
    with pytest.raises(UsageError, match="no input 'z'"):
        optimize(graph, Options.of(inputs={"z": tmp_path / "z.npy"}))


def test_an_original_that_is_not_valid_is_named(tmp_path: Path) -> None:
    """Its fault is not called one of the result, which has its nodes."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0),
        helper.make_node("Relu", ["z"], ["r"]),
        helper.make_node("Relu", ["r"], ["s"]),
    ]
    inputs = [tensor("x", [4], onnx.TensorProto.INT16), tensor("z", [4])]
    outputs = [tensor("y", [], onnx.TensorProto.INT16), tensor("s", [4])]
    proto = model(nodes, inputs, outputs)
    with pytest.raises(ModelError, match=r"m\.onnx: not a valid ONNX model: .*ReduceMax"):
        run(proto, tmp_path)


def test_equal_branches_are_shared() -> None:
    graph = build_graph(
        "twice",
        {"x": f32(8, 8)},
        {"w": weight(8, 8)},
        [
            Node("matmul", ("x", "w"), ("a",)),
            Node("matmul", ("x", "w"), ("b",)),
            Node("mul", ("a", "b"), ("y",)),
        ],
        ["y"],
    )
    result = optimize(graph, cost_model=FLAT)
    assert result.ops_after["matmul"] == 1
    assert result.verification.ok


def test_a_run_that_is_resumed_is_loaded_from_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = ["read", "load", "explore", "extract", "race", "check", "write"]
    passed: list[str] = []

    def noted(name: str) -> None:
        module = import_module(f"{_STAGES}.{'load' if name == 'read' else name}")
        stage = getattr(module, name)

        def pass_on(*values: object) -> object:
            passed.append(name)
            return stage(*values)

        monkeypatch.setattr(module, name, pass_on)
        if name == "load":
            monkeypatch.setattr("relational_tensat.run.resume.run_tables.load", pass_on)

    for name in stages:
        noted(name)
    db = tmp_path / "run.duckdb"
    optimize(shared_matmuls(), Options.of(db=db, iterations=1))
    assert passed == stages
    passed.clear()
    resume(db, shared_matmuls())
    assert passed == stages[1:]
