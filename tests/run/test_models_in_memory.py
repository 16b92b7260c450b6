"""Models in memory: optimized as files are, dynamic dimensions included, and given back as models."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import onnx
import pytest

from relational_tensat import InputError, Options, Result, UsageError, optimize, resume
from relational_tensat.formats import to_onnx_model
from relational_tensat.formats.onnx_frame import is_dynamic
from relational_tensat.run import result_model
from relational_tensat.run.models_in_memory import placed
from tests.formats.dynamic.models import mlp, saved
from tests.graphs import shared_matmuls

QUICK: dict[str, Any] = {"cost": "t4", "iterations": 1, "extractor": "greedy-dag"}
MODEL = mlp()
BLOCK = Path(__file__).parents[2] / "bench" / "inputs" / "encoder_block.onnx"


def run(model: Any, **others: Any) -> Result:
    output = others.pop("output", None)
    return optimize(model, Options.of(**QUICK, **others), output=output)


@pytest.fixture(scope="module")
def result() -> Result:
    return run(MODEL)


def test_a_model_is_optimized_as_its_file_is_and_stays_dynamic(
    tmp_path: Path, result: Result
) -> None:
    before = MODEL.SerializeToString()
    run(saved(MODEL, tmp_path), output=tmp_path / "out.onnx")
    assert is_dynamic(MODEL)
    assert is_dynamic(result.model)
    assert result.model == onnx.load(tmp_path / "out.onnx") != MODEL
    assert before == MODEL.SerializeToString()
    assert (result.source, result.output) == (MODEL.graph.name, None)
    assert MODEL.graph.name in result.report()
    assert not any("relational-tensat-" in note for note in result.notes)


def test_a_result_is_pickled_without_its_tables_in_memory(result: Result) -> None:
    again = pickle.loads(pickle.dumps(result))
    assert again.model == result.model
    assert again.to_json() == result.to_json()
    assert again.report() == result.report()
    assert to_onnx_model(again.graph) == to_onnx_model(result.graph)
    with pytest.raises(
        UsageError, match="in the memory of another process: run with the option db"
    ):
        again.view()


def test_files_without_an_output_give_the_same(tmp_path: Path, result: Result) -> None:
    of_file = run(saved(MODEL, tmp_path))
    assert of_file.model == result.model
    assert of_file.source == str(tmp_path / "m.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    with pytest.raises(UsageError, match=r"x\.json: the result has dynamic dimensions"):
        of_file.save(tmp_path / "x.json")
    with pytest.raises(UsageError, match="would overwrite the model"):
        of_file.save(tmp_path / "m.onnx")
    assert onnx.load(of_file.save(tmp_path / "saved.onnx")) == result.model


def test_fixed_sizes_are_written_where_they_are_asked_for() -> None:
    """Of bytes, too: they are what a file has."""
    result = run(MODEL.SerializeToString(), static=True, dims={"batch": 4})
    assert not is_dynamic(result.model)
    assert result.model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_a_model_of_onnx_ir_is_one_too(result: Result) -> None:
    onnx_ir = pytest.importorskip("onnx_ir")
    again = run(onnx_ir.from_proto(MODEL))
    assert is_dynamic(again.model)
    assert len(again.model.graph.node) == len(result.model.graph.node)


def test_a_large_model_has_its_weights_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_model, "_MOST_BYTES", 1)
    model = onnx.load(BLOCK)
    result_model.write_model(model, tmp_path / "large.onnx")
    assert (tmp_path / "large.onnx.data").stat().st_size > 100_000
    assert (
        weights(onnx.load(tmp_path / "large.onnx")) == weights(model) == weights(onnx.load(BLOCK))
    )
    with placed(model, None, Options()) as place:
        assert isinstance(place.source, Path)
        assert weights(onnx.load(place.source)) == weights(model)
        assert len(list(place.source.parent.iterdir())) == 2


def weights(model: onnx.ModelProto) -> dict[str, bytes]:
    return {tensor.name: tensor.raw_data for tensor in model.graph.initializer}


@pytest.mark.parametrize("wrong", [3, None, [MODEL], MODEL.graph, object])
def test_what_is_no_model_is_said_with_what_is(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"the model is of type \w+, expected a path, an onnx\.M"):
        optimize(wrong)


@pytest.mark.parametrize("wrong", [b"", b"no model", onnx.ModelProto()])
def test_what_is_wrong_with_a_model_is_said_without_the_private_folder(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^model\.onnx: "):
        run(wrong)


def test_a_model_without_its_weights_is_rejected(tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(MODEL.SerializeToString())
    onnx.external_data_helper.convert_model_to_external_data(
        model, location="w.data", size_threshold=0
    )
    onnx.save(model, tmp_path / "m.onnx")
    without = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    with pytest.raises(InputError, match=r"its weights are in other files, expected a model that"):
        run(without)


def test_a_run_of_a_model_in_memory_is_resumed_with_it(tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    first = run(MODEL, db=db)
    with pytest.raises(InputError, match="in memory and in no file, expected it to be given"):
        resume(db)
    assert "test" in pickle.loads(pickle.dumps(first)).view().html
    again = resume(db, MODEL, output=tmp_path / "o.onnx", iterations=1)
    assert again.cost_after_us <= first.cost_after_us
    assert is_dynamic(again.model)


def test_the_folder_is_gone_afterwards_even_after_an_error() -> None:
    places = []
    with pytest.raises(InputError, match=r"^m here$"), placed(MODEL, None, Options()) as place:
        places.append(place)
        raise InputError(f"{place.folder}/m here")
    assert places[0].folder is not None
    assert not places[0].folder.exists()


def test_a_graph_has_a_model_and_a_json_file_has_none(tmp_path: Path) -> None:
    of_graph = run(shared_matmuls())
    assert of_graph.model == to_onnx_model(of_graph.graph)
    assert of_graph.save(tmp_path / "x.json").exists()
    with pytest.raises(UsageError, match=r"x\.json: is no ONNX model, expected one: graph is"):
        _ = run(tmp_path / "x.json").model
    assert onnx.load(of_graph.save(tmp_path / "x.onnx")) == of_graph.model
    for wrong, why in (("x.txt", "suffix"), ("none/x.onnx", "does not exist")):
        with pytest.raises(UsageError, match=why):
            of_graph.save(tmp_path / wrong)
