"""Reports of runs of several kinds are what the published schema says, and have nothing else.

That of a tree search is checked with its other tests, that of what is timed with those of timing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest

from relational_tensat import Options, optimize, save_model
from relational_tensat.cli.main import main
from relational_tensat.run.result import SCHEMA_VERSION, report_schema
from relational_tensat.tensor import Graph, Node, build_graph
from tests.cli.schema import check_schema
from tests.formats.dynamic.models import mlp, saved
from tests.graphs import f32, shared_matmuls

QUICK: dict[str, Any] = {"cost": "t4", "iterations": 1, "extractor": "greedy-dag"}


def elementwise() -> Graph:
    """Return a graph that has a kernel for all of it."""
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("tanh", ("a",), ("b",)),
        Node("exp", ("b",), ("y",)),
    ]
    return build_graph("elementwise", {"x": f32(64, 64)}, {}, nodes, ["y"])


def relu() -> Graph:
    return build_graph("relu", {"x": f32(4, 4)}, {}, [Node("relu", ("x",), ("y",))], ["y"])


@pytest.mark.parametrize(
    "others", [{"static": True, "dims": {"batch": 4}}, {}], ids=["fixed", "dynamic"]
)
def test_of_an_onnx_file(others: dict[str, Any], tmp_path: Path) -> None:
    options = Options.of(**{**QUICK, **others})
    result = optimize(saved(mlp(), tmp_path), options, output=tmp_path / "out.onnx")
    report = result.to_json()
    check_schema(report)
    assert report["schema_version"] == SCHEMA_VERSION
    assert report["file"]["after"]["nodes"] == len(onnx.load(tmp_path / "out.onnx").graph.node)


def test_of_a_json_file(tmp_path: Path) -> None:
    save_model(shared_matmuls(), tmp_path / "m.json")
    report = optimize(tmp_path / "m.json", Options.of(**QUICK)).to_json()
    check_schema(report)
    assert report["file"] is None


def test_of_kernels_of_its_own() -> None:
    report = optimize(
        elementwise(), Options.of(**QUICK, fuse=True, fuse_time_limit_s=2.0)
    ).to_json()
    check_schema(report)
    assert report["fusion"]["used"]


def test_of_a_graph_that_is_kept() -> None:
    report = optimize(relu(), Options.of(**QUICK)).to_json()
    check_schema(report)
    assert report["unchanged"]
    assert report["gain"]["original_kept"]


def test_it_is_printed_and_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "report"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == report_schema()
    assert printed["properties"]["schema_version"]["const"] == SCHEMA_VERSION
    report = optimize(relu(), Options.of(**QUICK)).to_json()
    for key, wrong in (("gap", -1.0), ("gain", None), ("e_nodes", 1.5), ("notes", "a note")):
        with pytest.raises(jsonschema.ValidationError):
            check_schema({**report, key: wrong})
    for key in report:
        with pytest.raises(jsonschema.ValidationError):
            check_schema({name: value for name, value in report.items() if name != key})
