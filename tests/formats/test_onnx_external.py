"""A model and its data are moved to where they belong, and nothing else is lost by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.formats.onnx_external import move_with_data
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from tests.formats.onnx_tools import constant, model, tensor

SHAPE = (64, 8)


def saved(folder: Path, name: str, value: float, location: str = "") -> tuple[Path, Path]:
    """Write a model whose weights, all of one value, are in a file beside it."""
    folder.mkdir(exist_ok=True)
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["y"])]
    made = model(
        nodes,
        [tensor("x", SHAPE)],
        [tensor("y", SHAPE)],
        [constant("w", np.full(SHAPE, value), np.float32)],
    )
    location = location or f"{name}.data"
    onnx.save_model(
        made, folder / name, save_as_external_data=True, location=location, size_threshold=0
    )
    return folder / name, folder / location


def weights_of(path: Path) -> float:
    """Return the one value of a model's weights, as it is read with its data."""
    read = onnx.load(path)
    return float(onnx.numpy_helper.to_array(read.graph.initializer[0]).mean())


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_the_data_has_the_name_of_the_model(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    place = move_with_data(*saved(tmp_path / "aside", "any.onnx", 1.0), target)
    assert place == tmp_path / "out.onnx.data"
    assert files(tmp_path) == ["out.onnx", "out.onnx.data"]
    assert weights_of(target) == 1.0


def test_a_file_that_has_that_name_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    target.with_name("out.onnx.data").write_text("mine")
    target.with_name("out.onnx.1.data").symlink_to(tmp_path / "nowhere")
    place = move_with_data(*saved(tmp_path / "aside", "any.onnx", 1.0), target)
    assert place == tmp_path / "out.onnx.2.data"
    assert target.with_name("out.onnx.data").read_text() == "mine"
    assert weights_of(target) == 1.0


def test_the_same_data_is_there_once(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    for _ in range(2):
        place = move_with_data(*saved(tmp_path / "aside", "any.onnx", 1.0), target)
        assert place == tmp_path / "out.onnx.data"
        assert files(tmp_path) == ["out.onnx", "out.onnx.data"] and weights_of(target) == 1.0


def test_the_data_of_a_model_that_is_replaced_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.onnx"
    move_with_data(*saved(tmp_path / "aside", "any.onnx", 1.0), target)
    seen = []
    replace = Path.replace

    def watched(path: Path, to: Path) -> Path:
        seen.append(weights_of(target))  # readers meanwhile have the old model, whole
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", watched)
    place = move_with_data(*saved(tmp_path / "aside", "any.onnx", 2.0), target)
    assert seen == [1.0, 1.0]
    assert place == tmp_path / "out.onnx.1.data"
    assert files(tmp_path) == ["out.onnx", "out.onnx.1.data"] and weights_of(target) == 2.0


def test_data_of_other_names_or_that_is_to_be_kept_stays(tmp_path: Path) -> None:
    target, _ = saved(tmp_path, "out.onnx", 1.0, "shared.bin")
    move_with_data(*saved(tmp_path / "aside", "any.onnx", 2.0), target)
    assert files(tmp_path) == ["out.onnx", "out.onnx.data", "shared.bin"]
    kept = [tmp_path / "out.onnx.data"]
    place = move_with_data(*saved(tmp_path / "aside", "any.onnx", 3.0), target, kept)
    assert place == tmp_path / "out.onnx.1.data" and kept[0].exists()
    assert weights_of(target) == 3.0


def test_a_model_without_data_replaces_what_is_no_model(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    target.write_text("no model")
    model_file, data = saved(tmp_path / "aside", "any.onnx", 1.0)
    onnx.save_model(onnx.load(model_file), model_file)  # its weights in it
    data.unlink()
    assert move_with_data(model_file, data, target) is None
    assert files(tmp_path) == ["out.onnx"] and weights_of(target) == 1.0


@pytest.mark.parametrize("shape", [(512, 600), (16, 20)], ids=["more than a megabyte", "small"])
@pytest.mark.parametrize("is_beside", [True, False])
def test_weights_stay_where_they_were(
    shape: tuple[int, int], tmp_path: Path, *, is_beside: bool
) -> None:
    weight = np.random.default_rng(0).normal(size=shape)
    nodes = [
        onnx.helper.make_node("Add", ["x", "w"], ["a"]),
        onnx.helper.make_node("Relu", ["a"], ["b"]),
        onnx.helper.make_node("Relu", ["b"], ["y"]),
    ]
    constants = [constant("w", weight, np.float32)]
    made = model(nodes, [tensor("x", shape)], [tensor("y", shape)], constants)
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save_model(made, source, save_as_external_data=is_beside, location="w.bin")
    optimize(
        source,
        Options.of(cost="t4", iterations=2),
        output=target,
    )
    written = onnx.load(target, load_external_data=False)
    assert [node.op_type for node in written.graph.node] == ["Add", "Relu"]
    assert not written.metadata_props
    assert target.with_name("out.onnx.data").exists() == is_beside
    (read,) = onnx.load(target).graph.initializer
    assert np.array_equal(onnx.numpy_helper.to_array(read), weight.astype(np.float32))


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("keep", ["out.onnx", "out.onnx.data"]),
        ("inside", ["out.onnx"]),
        ("w.bin", ["out.onnx", "w.bin"]),
    ],
)
@pytest.mark.parametrize("is_better", [True, False])
@pytest.mark.parametrize("rows", ["2", "N"])
def test_where_large_weights_go(
    place: str, names: list[str], is_better: bool, rows: str, tmp_path: Path
) -> None:
    """Whether the result is another graph or the original, and dynamic or not."""
    source = tmp_path / "in" / "model.onnx"
    source.parent.mkdir()
    nodes = "a = Relu(x) b = Relu(a) y = MatMul(b, W)" if is_better else "y = MatMul(x, W)"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        f"g (float[{rows},512] x) => (float[{rows},512] y) {{ {nodes} }}"
    )
    weight = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "W"))
    onnx.save(model, source, save_as_external_data=True, location="model.data", size_threshold=0)
    target = tmp_path / "out" / "out.onnx"
    target.parent.mkdir()
    options = Options.of(cost="t4", only=("drop-second-application",), external_data=place)
    optimize(source, options, output=target)
    there = files(target.parent)
    assert there == (["model.data", "out.onnx"] if place == "keep" and not is_better else names)
    result = onnx.load(target)
    assert len(result.graph.node) == (2 if is_better else 1)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(result.graph.initializer[0]), weight)


@pytest.mark.parametrize("place", ["../w.bin", "out.onnx"])
def test_data_is_beside_the_result(place: str, tmp_path: Path) -> None:
    path, _ = saved(tmp_path, "a.onnx", 1.0)
    with pytest.raises(UsageError, match="--external-data"):
        optimize(path, Options.of(cost="t4", external_data=place), output=tmp_path / "out.onnx")
