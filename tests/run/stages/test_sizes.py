"""Dynamic dimensions stay dynamic: steps are carried out at other sizes, and the files compared there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import InputError, ModelError, VerificationError
from relational_tensat.cli.main import main
from relational_tensat.run.pipeline import resume
from relational_tensat.run.reports import SizedResult

onnx = pytest.importorskip("onnx")

from relational_tensat.formats.dynamic import sized_model  # noqa: E402
from relational_tensat.run.stages import compare_sizes  # noqa: E402
from relational_tensat.run.stages.dynamic import _History  # noqa: E402
from tests.formats.dynamic.models import attention, mlp, reshaped, saved  # noqa: E402
from tests.formats.onnx_tools import assert_same_results, constant, model, tensor  # noqa: E402

node = onnx.helper.make_node
RELUS = '(rule relus (law "relu(relu(a)) = relu(a)") (from (relu (relu ?a))) (to (relu ?a)))'
#: Sound, and for a batch of 3 alone.
RELUS_OF_3 = RELUS.replace("relus", "relus-of-3").replace(
    "(to (relu ?a))", "(to (relu ?a)) (where (= (dim ?a 0) 3))"
)


def run(
    capsys: pytest.CaptureFixture[str], path: Path, *more: str
) -> tuple[dict[str, Any], onnx.ModelProto]:
    """Optimize a model; return the report and what was written."""
    output = path.with_name("out.onnx")
    command = ["run", str(path), "-o", str(output), "--for", "t4", "--quiet", "--json", *more]
    assert main(command) == 0
    return json.loads(capsys.readouterr().out), onnx.load(output)


def with_rules(folder: Path, *texts: str) -> list[str]:
    (folder / "my.rules").write_text("\n".join(texts))
    return ["--rules", str(folder / "my.rules")]


def dims(values: Any) -> list[list[Any]]:
    return [
        [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in values
    ]


def operators(proto: onnx.ModelProto) -> list[str]:
    return [item.op_type for item in proto.graph.node]


@pytest.mark.parametrize("flags", [(), ("--dim", "batch=1"), ("--dim", "batch=8")])
def test_a_perceptron_of_any_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    file = mlp()
    report, result = run(capsys, saved(file, tmp_path), *flags)
    assert report["verified"]["ok"] and not report["unchanged"]
    assert operators(result).count("Relu") == 1
    assert dims(result.graph.input) == [["batch", 4]]
    assert dims(result.graph.output) == [["batch", 5]]
    note = next(note for note in report["notes"] if "stay dynamic" in note)
    assert f"optimized at {flags[1] if flags else 'batch=3'}" in note and "batch=1" in note
    assert any("sizes chosen are" in note for note in report["notes"]) == (not flags)
    for batch in (1, 2, 50):
        x = np.random.default_rng(0).random((batch, 4)).astype(np.float32)
        assert_same_results(file, result, {"x": x})


def test_an_attention_block_of_any_batch_and_sequence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = attention()
    report, result = run(capsys, saved(file, tmp_path))
    assert report["verified"]["ok"] and not report["unchanged"]
    assert report["cost_after_us"] < report["cost_before_us"]
    assert dims(result.graph.input) == [["batch", "seq"]] * 2
    assert len(result.graph.node) < len(file.graph.node)
    generator = np.random.default_rng(1)
    for sizes in ((1, 1), (1, 40), (6, 1), (3, 250)):
        inputs = {name: generator.integers(0, 2, sizes) for name in ("ids", "mask")}
        assert_same_results(file, result, inputs)


def test_sizes_of_1_are_tried_alone_where_not_all_can_be_1(tmp_path: Path) -> None:
    """The second of the tokens is taken: with one, the model does not run."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["y"]),
        node("Gather", ["tokens", "one"], ["token"]),
    ]
    inputs = [tensor("x", ["batch", 4]), tensor("tokens", ["length"])]
    outputs = [tensor("y", ["batch", 4]), tensor("token", [1])]
    file = model(nodes, inputs, outputs, [constant("one", [1], np.int64)])
    options = Options.of(cost="t4", dims={"batch": 2, "length": 8})
    result = optimize(saved(file, tmp_path), options, output=tmp_path / "out.onnx")
    assert result.verification.ok and not result.unchanged
    compared = [str(c) for c in result.verification.compared if "dynamic files" in c.setting.what]
    assert any("at batch=1,length=5:" in text for text in compared)
    assert not any("length=1:" in text for text in compared)


def test_static_writes_what_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(mlp(), tmp_path)
    report, result = run(capsys, path, "--static", "--dim", "batch=2")
    assert report["verified"]["ok"]
    assert dims(result.graph.input) == [[2, 4]]
    assert main(["run", str(path), "-o", str(tmp_path / "b.onnx"), "--static"]) == 3
    assert "--dim batch=1" in capsys.readouterr().err


def test_a_step_that_holds_at_one_size_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two rules one needs a batch of 3; what the other does is kept."""
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Tanh", ["b"], ["c"]),
        node("Neg", ["c"], ["d"]),
        node("Neg", ["d"], ["y"]),
    ]
    path = saved(model(nodes, [tensor("x", ["batch", 4])], [tensor("y", ["batch", 4])]), tmp_path)
    negations = '(rule negations (law "-(-a) = a") (from (neg (neg ?a))) (to ?a))'
    rules = with_rules(tmp_path, RELUS_OF_3, negations)
    report, result = run(capsys, path, *rules)
    (note,) = [note for note in report["notes"] if "left out" in note]
    assert note.startswith("relus-of-3 at a does not hold at all sizes: at batch=")
    assert note.endswith("the rule relus-of-3 is left out")
    assert report["verified"]["ok"] and not report["rejections"]
    assert sorted(operators(result)) == ["Relu", "Relu", "Tanh"]
    report, result = run(capsys, path, *rules, "--static", "--dim", "batch=3")
    assert sorted(operators(result)) == ["Relu", "Tanh"]


def test_an_original_that_runs_at_few_sizes_is_no_rules_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_sizes, "_FEWEST_SIZES", 99)
    report, _ = run(capsys, saved(attention(), tmp_path))
    (rejection,) = report["rejections"]
    assert report["unchanged"] and not rejection["rule"]
    assert rejection["why"].startswith("no dynamic result: the files could be compared at ")


def test_where_no_step_holds_the_original_is_returned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(reshaped(["batch", "seq", 2, 4]), tmp_path)
    report, _ = run(capsys, path, *with_rules(tmp_path, RELUS_OF_3))
    assert report["unchanged"] and any("left out" in note for note in report["notes"])
    before, after = (onnx.load(file).graph.node for file in (path, path.with_name("out.onnx")))
    assert sum(each.op_type == "Relu" for each in after) == 2
    assert len(after) < len(before)  # what computes sizes is written shorter


def test_values_that_are_equal_at_one_size_are_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """[batch, 12] as [batch, 2, 6] and as [2, -1, 6] is one value for a batch of 2 alone."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Slice", ["sizes", "zero", "one"], ["batch"]),
        node("Concat", ["batch", "two", "six"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
        node("Reshape", ["x", "fixed"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Relu", ["b"], ["z"]),
    ]
    integers = {"zero": [0], "one": [1], "two": [2], "six": [6], "fixed": [2, -1, 6]}
    constants = [onnx.numpy_helper.from_array(np.array(v), k) for k, v in integers.items()]
    outputs = [tensor("y", ["batch", 2, 6]), tensor("z", [2, "batch", 6])]
    file = model(nodes, [tensor("x", ["batch", 12])], outputs, constants)
    path = saved(file, tmp_path)
    report, _ = run(capsys, path, "--dim", "batch=2", *with_rules(tmp_path, RELUS))
    assert report["unchanged"]
    assert "computed as another value is, at the sizes given only" in report["rejections"][0]["why"]
    report, result = run(capsys, path, "--dim", "batch=5", *with_rules(tmp_path, RELUS))
    assert report["verified"]["ok"] and operators(result).count("Relu") == 1
    for batch in (1, 2, 7):
        assert_same_results(file, result, {"x": np.ones((batch, 12), np.float32)})


def test_a_model_that_is_another_graph_elsewhere_is_returned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At batch = 1 Squeeze takes another axis away than at any other size."""
    nodes = [
        node("Squeeze", ["x"], ["s"]),
        node("Relu", ["s"], ["a"]),
        node("Relu", ["a"], ["y"]),
    ]
    path = saved(model(nodes, [tensor("x", ["batch", 4])], [tensor("y", ["n", 4])]), tmp_path)
    report, _ = run(capsys, path, "--dim", "batch=1")
    assert report["unchanged"]
    assert any("no dynamic result" in note and "--static" in note for note in report["notes"])
    assert path.with_name("out.onnx").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("flags", [(), ("--opset", "17"), ("--cost", "cpu")])
def test_equal_nodes_of_a_model_of_one_size_stay_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    """To let equal nodes be one is a change, and what was changed has the one size that was read."""
    nodes = [
        node("Exp", ["x"], ["a"]),
        node("Exp", ["x"], ["b"]),
        node("Mul", ["a", "b"], ["c"]),
        node("Add", ["c", "t"], ["y"]),
    ]
    kinds = [tensor("x", ["N", 4])], [tensor("y", [2, 4])]
    path = saved(model(nodes, *kinds, [constant("t", np.ones((2, 4)), np.float32)], 18), tmp_path)
    costs = ("--cost-cache", str(tmp_path / "costs.duckdb"), "--budget", "1")
    report, _ = run(capsys, path, "--dim", "N=2", *costs, *flags)
    assert report["unchanged"]
    assert report["cost_before_us"] == report["cost_after_us"]
    assert path.with_name("out.onnx").read_bytes() == path.read_bytes()


def test_a_run_of_a_model_of_one_size_is_resumed_to_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        *(node("Exp", ["x"], [name]) for name in "ab"),
        node("Mul", ["a", "b"], ["c"]),
        node("Add", ["c", "t"], ["y"]),
    ]
    kinds = [tensor("x", ["N", 4])], [tensor("y", [2, 4])]
    path = saved(model(nodes, *kinds, [constant("t", np.ones((2, 4)), np.float32)]), tmp_path)
    db, content = tmp_path / "run.duckdb", path.read_bytes()
    run(capsys, path, "--dim", "N=2", "--db", str(db))
    resume(db, output=tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == content
    path.unlink()
    with pytest.raises(InputError, match="is gone"):
        resume(db, output=tmp_path / "never.onnx")
    assert not (tmp_path / "never.onnx").exists()


def test_a_dynamic_file_that_is_not_valid_is_not_returned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(self: SizedResult, file: Path) -> None:
        raise ModelError(f"{file}: not written, the result is no valid ONNX model: a MatMul")

    monkeypatch.setattr(SizedResult, "save", save)
    nodes = [node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["y"])]
    kinds = [tensor("x", ["batch", 4])], [tensor("y", ["batch", 4])]
    path = saved(model(nodes, *kinds), tmp_path)
    report, _ = run(capsys, path, *with_rules(tmp_path, RELUS))
    assert report["unchanged"]
    why = "no dynamic result: not written, the result is no valid ONNX model: a MatMul"
    assert f"{why}: the original is kept" in report["notes"]
    assert path.with_name("out.onnx").read_bytes() == path.read_bytes()


def test_dynamic_outputs_are_onnx_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has fixed sizes only: they are to be given, as with --static."""
    path, output = saved(mlp(), tmp_path), tmp_path / "out.json"
    command = ["run", str(path), "-o", str(output), "--for", "t4", "--quiet"]
    assert main(command) == 3
    assert main([*command, "--dim", "batch=2"]) == 0


def test_what_was_not_rewritten_stays_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where it takes what was rewritten; shapes that are computed are written as shapes."""
    nodes = [
        node("Gemm", ["x", "w"], ["g"], name="fc", doc_string="a layer", alpha=1.0, transB=1),
        node("Relu", ["g"], ["r"], name="act"),
        node("Relu", ["r"], ["r2"]),
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Concat", ["n", "four", "two", "one"], ["t"], axis=0),
        node("Reshape", ["r2", "t"], ["i"], name="as_image"),
        node("GlobalAveragePool", ["i"], ["y"], name="pool"),
    ]
    sizes = [("zero", [0]), ("four", [4]), ("two", [2]), ("one", [1])]
    weight = constant("w", np.random.default_rng(0).random((8, 8)), np.float32)
    constants = [weight, *(constant(name, value, np.int64) for name, value in sizes)]
    inputs, outputs = [tensor("x", ["batch", 8])], [tensor("y", ["batch", 4, 1, 1])]
    proto = model(nodes, inputs, outputs, constants)
    declared = [tensor("g", ["batch", 8]), tensor("i", ["batch", 4, 2, 1])]
    proto.graph.value_info.extend(declared)
    report, result = run(capsys, saved(proto, tmp_path), *with_rules(tmp_path, RELUS))
    assert not report["unchanged"]
    gemm, relu, reshape, pool = result.graph.node
    assert (gemm, relu, pool) == (nodes[0], nodes[1], nodes[7])
    assert (reshape.name, reshape.input[0], reshape.output[0]) == ("as_image", "r", "i")
    assert list(result.graph.value_info) == declared
    for batch in (1, 3):
        value = np.random.default_rng(batch).random((batch, 8), dtype=np.float32)
        assert_same_results(proto, result, {"x": value})


def test_a_run_that_is_resumed_needs_its_model(tmp_path: Path) -> None:
    path, db = saved(mlp(), tmp_path), tmp_path / "run.duckdb"
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    optimize(path, Options.of(cost="t4", db=db, dims={"batch": 4}), output=first)
    result = resume(db, output=second)
    assert result.verification.ok and second.read_bytes() == first.read_bytes()
    assert result.graph.inputs["x"].shape == (4, 4)
    path.unlink()
    with pytest.raises(InputError, match=r"its model .* is gone"):
        resume(db, output=second)


def test_positions_are_weights_of_the_graph_that_python_gets(tmp_path: Path) -> None:
    path = saved(attention(), tmp_path)
    options = Options.of(cost="t4", dims={"batch": 2, "seq": 5}, search="saturation", iterations=2)
    result = optimize(path, options, output=tmp_path / "o.onnx")
    assert list(result.graph.inputs) == list(result.original.inputs) == ["ids", "mask"]
    data = result.graph.weights["positions"].data
    assert data is not None and data.tolist() == [0, 1, 2, 3, 4]
    assert optimize(path, options).graph.inputs["ids"].shape == (2, 5)


def test_no_images_are_right_although_sizes_are_promised_from_1_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gather and Flatten become other operators; the report says from which size on that was compared."""
    nodes = [
        node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["b"]),
        node("Gather", ["b", "one"], ["c"], axis=1), node("Unsqueeze", ["c", "axis"], ["d"]),
        node("Concat", ["b", "d"], ["e"], axis=1), node("Flatten", ["e"], ["y"], axis=1),
    ]  # fmt: skip
    initializers = [constant("one", np.int64(1)), constant("axis", np.array([1], np.int64))]
    file = model(nodes, [tensor("x", ["n", 3, 4])], [tensor("y", ["n", 16])], initializers)
    report, written = run(capsys, saved(file, tmp_path))
    assert operators(written).count("Relu") == 1
    assert any("from 1 on" in note for note in report["notes"])
    for batch in (0, 1, 4):
        assert_same_results(file, written, {"x": np.ones((batch, 3, 4), np.float32)})


def test_a_model_of_much_work_is_compared_at_small_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same result, but for where it is compared: no file of fixed sizes is needed then."""
    proto = attention()
    path, output = saved(proto, tmp_path), tmp_path / "out.onnx"
    expected = optimize(path, Options.of(cost="t4"), output=output)
    before = output.read_bytes()
    monkeypatch.setattr(sized_model, "_FEW_FLOPS", 0)
    result = optimize(path, Options.of(cost="t4"), output=output)
    assert result.verification.ok and output.read_bytes() == before
    places = {item.setting.sizes for item in result.verification.compared}
    assert any("batch=3,seq=5" in place for place in places)
    assert not any("seq=61" in place for place in places)
    assert result.graph.weights.keys() == expected.graph.weights.keys()


def test_a_model_of_much_work_is_not_returned_where_its_graphs_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs are compared only beside their file; another one is chosen then, as everywhere."""
    path = saved(attention(), tmp_path)
    monkeypatch.setattr(sized_model, "_FEW_FLOPS", 0)

    def differ(*_: object) -> None:
        raise VerificationError("the graphs differ")

    monkeypatch.setattr(compare_sizes, "compare_graphs", differ)
    result = optimize(path, Options.of(cost="t4"), output=tmp_path / "out.onnx")
    assert result.unchanged
    assert any("the graphs differ" in note for note in result.notes)
    with pytest.raises(VerificationError, match="the graphs differ"):
        optimize(path, Options.of(cost="t4", strict=True), output=tmp_path / "out.onnx")


def test_a_result_without_steps_has_no_step_at_fault() -> None:
    explanation: Any = SimpleNamespace(rewrites=())
    nothing: Any = None
    assert _History(explanation, nothing, nothing, [], None).first_unwritable() is None
