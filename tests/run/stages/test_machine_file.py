"""The result as onnxruntime saves it: taken if it computes the same and a race says that it is faster.

What the race says is made up; onnxruntime saves and runs the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.cost.cpu.onnxruntime_device import OnnxRuntimeDevice
from relational_tensat.cost.device import Unmeasurable
from relational_tensat.cost.race import Standing
from relational_tensat.formats import load_model, save_model
from relational_tensat.run.reports import PACKED, SAVED, MachineForm
from relational_tensat.run.stages import machine_file
from relational_tensat.tensor import Array, Graph, Node, build_graph
from relational_tensat.verify.sessions import save_session
from tests.formats.onnx_tools import constant, feeds, model, session, tensor
from tests.graphs import f32, weight
from tests.quantized_models import Quantized

AS_FAST = {"portable": 1.0, SAVED: 1.02, PACKED: 1.1}


class Races:
    """Stands in for running files: says how fast each is, by its name; counts the heats."""

    def __init__(self, as_fast: Mapping[str, float] = AS_FAST) -> None:
        self.as_fast = dict(as_fast)
        self.heats = 0
        self.refusal = ""
        self.inputs: set[str] = set()

    def heat(
        self, files: Sequence[Path], inputs: Mapping[str, Array]
    ) -> list[float] | Unmeasurable:
        self.heats += 1
        self.inputs = set(inputs)
        if self.refusal:
            return Unmeasurable(self.refusal)
        return [self.as_fast.get(path.stem, 1.0) for path in files]


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> Races:
    made = Races()

    def heat_of_files(
        _: OnnxRuntimeDevice, files: Sequence[Path], inputs: Mapping[str, Array], seed: int
    ) -> list[float] | Unmeasurable:
        return made.heat(files, inputs)

    monkeypatch.setattr(OnnxRuntimeDevice, "heat_of_files", heat_of_files)
    return made


def layers(*, with_something_to_save: bool = True) -> Graph:
    """Return two convolutions and a product."""
    again = ("relu", "relu") if with_something_to_save else ("relu",)
    nodes = [Node("conv", ("x", "f"), ("v0",), {"stride": (1, 1), "pad": "same"})]
    nodes += [Node(op, (f"v{i}",), (f"v{i + 1}",)) for i, op in enumerate(again)]
    n = len(again)
    nodes += [
        Node("conv", (f"v{n}", "g"), ("a",), {"stride": (1, 1), "pad": "same"}),
        Node("reshape", ("a",), ("b",), {"shape": (4, 256)}),
        Node("matmul", ("b", "w"), ("y",)),
    ]
    weights = {
        "f": weight(16, 16, 3, 3),
        "g": weight(16, 16, 3, 3, seed=1),
        "w": weight(256, 32, seed=2),
    }
    return build_graph("layers", {"x": f32(1, 16, 8, 8)}, weights, nodes, ["y"])


def run(source: Path, target: Path, *more: str) -> int:
    cache = source.with_name("costs.duckdb")
    return main(
        [
            *("run", str(source), "-o", str(target), "--this-machine", "--cost", "analytic:cpu"),
            *("--search", "saturation"),
            *("--backend", "onnxruntime", "--cost-cache", str(cache), *more),
        ]
    )


def report(source: Path, target: Path, capsys: Any, *more: str) -> dict[str, Any]:
    assert run(source, target, "--json", *more) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def check_same(source: Path, target: Path) -> None:
    values = feeds(session(source))
    for a, b in zip(
        session(source).run(None, values), session(target).run(None, values), strict=True
    ):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-3)


def domains(path: Path) -> set[str]:
    return {node.domain for node in onnx.load(path, load_external_data=False).graph.node}


@pytest.mark.parametrize("is_changed", [True, False])
def test_the_fastest_form_is_written_with_its_data(
    is_changed: bool, tmp_path: Path, races: Races, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a result, and of an original that no rule makes faster."""
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save_model(layers(with_something_to_save=is_changed), source)
    races.as_fast["m"] = 1.0
    content = report(source, target, capsys)
    machine = content["machine"]
    assert machine["taken"] == machine["winner"] == PACKED and machine["timed_before"] == ""
    assert round(machine["standings"][PACKED]["speedup"], 3) == 1.1
    assert machine["data"] == str(tmp_path / "out.onnx.data")
    assert sorted(path.name for path in tmp_path.glob("*onnx*")) == [
        "m.onnx", "out.onnx", "out.onnx.data"
    ]  # fmt: skip
    assert "com.microsoft.nchwc" in domains(target)  # filters are in blocks
    check_same(source, target)
    assert content["unchanged"] == (not is_changed)
    assert content["verified"]["ok"] and content["file"]["after"]["bytes"] > 0
    assert any("has saved it for this machine" in note for note in content["notes"])
    assert not any("byte for byte" in note for note in content["notes"])
    properties = {
        each.key: each.value for each in onnx.load(target, load_external_data=False).metadata_props
    }
    assert properties["saved_by"].startswith("onnxruntime 1.")
    assert "this version only" in properties["saved_for"]


def test_the_report_says_so_in_one_line_and_what_was_timed_races_no_more(
    tmp_path: Path, races: Races, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save_model(layers(), source)
    assert run(source, target, "-v") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "matrices packed, weights in out.onnx.data: 1.100x [1.100, 1.100] as fast as" in text
    assert "only for this version and processors such as this" in text
    heats = races.heats
    again = report(source, target, capsys)
    assert races.heats == heats and again["machine"]["timed_before"] != ""
    assert again["machine"]["taken"] == PACKED
    assert (
        report(source, target, capsys, "--set", "race-again=yes")["machine"]["timed_before"] == ""
    )
    assert races.heats > heats
    assert run(source, target, "--quiet") == 0
    assert "saved for this machine by onnxruntime" in capsys.readouterr().out


def test_what_is_not_faster_is_not_taken(
    tmp_path: Path, races: Races, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save_model(layers(with_something_to_save=False), source)
    races.as_fast |= {SAVED: 0.99, PACKED: 1.0}
    assert run(source, target, "-v") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "not saved for this machine: measured, not known to be faster so: 1.000x" in text
    assert target.read_bytes() == source.read_bytes()
    assert not target.with_name("out.onnx.data").exists()


def test_what_computes_something_else_is_not_taken(
    tmp_path: Path,
    races: Races,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target, other = (tmp_path / f"{name}.onnx" for name in ("m", "out", "other"))
    save_model(layers(), source)
    changed = layers()
    changed.weights["w"].data[0, 0] += 40.0  # type: ignore[index]
    save_model(changed, other)

    def save_other(_: Path, *args: Any, **kwargs: Any) -> int:
        return save_session(other, *args, **kwargs)

    monkeypatch.setattr(machine_file, "save_session", save_other)
    content = report(source, target, capsys)
    (note,) = (note for note in content["notes"] if "not saved for this machine" in note)
    assert "computes something else: output 'y'" in note
    assert content["machine"] is None and content["verified"]["ok"]
    assert domains(target) == {""}  # what is written runs anywhere
    check_same(source, target)
    target.unlink()
    assert run(source, target, "--strict") == 4
    assert not target.exists() and "something else" in capsys.readouterr().err


def test_what_onnxruntime_refuses_is_noted_and_the_result_written_without(
    tmp_path: Path,
    races: Races,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save_model(layers(), source)
    races.refusal = "no room for it"
    content = report(source, target, capsys)
    assert "not saved for this machine: not timed: no room for it" in content["notes"]
    monkeypatch.setattr(machine_file, "memory_bytes", lambda: 1 << 10)
    content = report(source, target, capsys)
    assert any("GiB, the machine has 0.0" in note for note in content["notes"])

    def refuse(*_: object, **__: object) -> int:
        raise InputError("onnxruntime does not save it: why")

    monkeypatch.setattr(machine_file, "save_session", refuse)
    content = report(source, target, capsys)
    assert "not saved for this machine: onnxruntime does not save it: why" in content["notes"]
    assert domains(target) == {""}
    check_same(source, target)


def test_dynamic_dimensions_stay_and_are_compared_at_all_sizes(
    tmp_path: Path, races: Races, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    rng = np.random.default_rng(0)
    made = model(
        [
            onnx.helper.make_node("Relu", ["x"], ["r"]),
            onnx.helper.make_node("Relu", ["r"], ["s"]),
            onnx.helper.make_node("MatMul", ["s", "w"], ["y"]),
        ],
        [tensor("x", ["rows", 64])],
        [tensor("y", ["rows", 64])],
        [constant("w", rng.standard_normal((64, 64)), np.float32)],
    )
    onnx.save_model(made, source)
    content = report(source, target, capsys, "--dim", "rows=8")
    assert content["machine"]["taken"] == PACKED
    assert any("dynamic dimensions stay dynamic" in note for note in content["notes"])
    before, after = session(source), session(target)
    for rows in (1, 5, 40):
        values = {"x": rng.standard_normal((rows, 64), np.float32)}
        expected, found = (each.run(None, values)[0] for each in (before, after))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_quantized_model_is_saved_with_its_kernels(
    tmp_path: Path, races: Races, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save_model(quantized_convolution(), source)
    races.as_fast["m"] = 1.0
    content = report(source, target, capsys, "--budget", "0.5")
    assert content["machine"]["taken"] in (SAVED, PACKED)
    types = {node.op_type for node in onnx.load(target, load_external_data=False).graph.node}
    assert "QLinearConv" in types
    check_same(source, target)


def quantized_convolution() -> onnx.ModelProto:
    """Return a convolution between integers, as exporters write it."""
    q = Quantized()
    scale = q.parameters("x", np.float32(0.05), 128, np.uint8)
    rng = np.random.default_rng(0)
    filters = q.constant("f", rng.integers(-50, 50, (16, 16, 3, 3)), np.int8)
    f_scale = q.parameters("f", np.float32(0.02))
    x = q.node("DequantizeLinear", [q.node("QuantizeLinear", ["x", *scale], "xq"), *scale], "xd")
    w = q.node("DequantizeLinear", [filters, *f_scale], "wd")
    y = q.node("Conv", [x, w], "c", pads=[1, 1, 1, 1])
    out = q.parameters("y", np.float32(0.5), 128, np.uint8)
    yq = q.node("QuantizeLinear", [y, *out], "yq")
    q.node("DequantizeLinear", [yq, *out], "y")
    shape = [1, 16, 8, 8]
    return model(q.nodes, [tensor("x", shape)], [tensor("y", shape)], q.constants)


@pytest.mark.parametrize(
    ("target", "more", "reason"),
    [
        ("out.json", (), "this_machine is for .onnx files"),
        ("out.onnx", ("--budget", "0"), "decided by a race"),
        (
            "out.onnx",
            (
                "--set",
                "end-to-end=no",
            ),
            "decided by a race",
        ),
        (
            "out.onnx",
            ("--backend", "cuda", "--cost", "t4"),
            "give cost cpu, or backend onnxruntime",
        ),
    ],
)
def test_what_cannot_be_timed_is_refused_at_once(
    target: str,
    more: tuple[str, ...],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = tmp_path / "m.onnx"
    save_model(layers(), source)
    assert run(source, tmp_path / target, *more) == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert reason in line


def standing(speedup: float, half: float) -> Standing:
    return Standing(speedup, speedup - half, speedup + half, 10)


def test_packed_matrices_have_to_be_worth_their_bytes() -> None:
    def fastest(saved: Standing, packed: Standing, winner: str) -> str:
        standings = {SAVED: saved, PACKED: packed}
        return MachineForm("rt", "cpu", standings, winner, standing(1.0, 0.01)).fastest

    assert fastest(standing(1.05, 0.02), standing(1.06, 0.02), PACKED) == SAVED
    assert fastest(standing(1.01, 0.02), standing(1.06, 0.02), PACKED) == PACKED
    assert fastest(standing(1.03, 0.02), standing(1.06, 0.02), PACKED) == PACKED
    assert fastest(standing(1.03, 0.02), standing(1.01, 0.02), SAVED) == SAVED
    assert fastest(standing(1.01, 0.02), standing(1.015, 0.02), PACKED) == ""


def test_a_file_that_was_saved_is_read_again(
    tmp_path: Path, races: Races, capsys: pytest.CaptureFixture[str], recwarn: Any
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    save_model(layers(), source)
    assert run(source, target, "--quiet") == 0
    assert load_model(target).outputs == ("y",)
    assert not [each for each in recwarn if "external data key" in str(each.message)]
