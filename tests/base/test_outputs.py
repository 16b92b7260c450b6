"""No command returns 0 and loses a file: what may not be written over is refused before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relational_tensat import Options, optimize
from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import Written
from relational_tensat.cli.commands import build_parser
from relational_tensat.cli.main import main


def files(folder: Path) -> dict[str, Path]:
    """Make a file of each kind; return them by name."""
    folder.mkdir()
    here = {
        name: folder / name
        for name in ("m.onnx", "w.json", "run.duckdb", "e.json", "my.rules", "model.json", "p.html")
    }
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
        here["m.onnx"],
        save_as_external_data=True,
        location="w.json",
        size_threshold=0,
    )
    duckdb.connect(str(here["run.duckdb"])).close()
    here["e.json"].write_text('{"nodes": {}, "root_eclasses": []}')
    here["my.rules"].write_text("(rule a)")
    here["model.json"].write_text('{\n"format": "relational_tensat.graph",\n"version": 1}')
    (folder / "taken").mkdir()
    (folder / "taken" / "kernels.json").write_text('{"mine": 1}')
    duckdb.connect(str(folder / "page.duckdb")).close()
    (folder / "page.html").write_bytes(b"\x00\x01 no page")
    here["p.html"].write_text("<!doctype html>\n<p>mine</p>")
    os.mkfifo(folder / "fifo")
    (folder / "link.onnx").symlink_to("m.onnx")
    os.link(here["m.onnx"], folder / "same.onnx")
    return here


#: Lines that each lose a file unless they are refused; all words with a point are files of the folder.
LOSING = (
    "export run.duckdb --egraph-json run.duckdb",
    "export run.duckdb --egraph-json model.json",
    "export run.duckdb --egraph-json my.rules",
    "export run.duckdb --egraph-json fifo.",
    "rules verify relu-relu --record m.onnx",
    "rules verify relu-relu --record model.json",
    "rules verify --file my.rules --record my.rules",
    "rules import my.rules -o my.rules",
    "rules import my.rules -o run.duckdb",
    "run m.onnx -o z.onnx --db z.onnx",
    "run m.onnx -o z.onnx --db z.onnx.data",
    "run m.onnx -o z.onnx --cost-cache z.onnx",
    "run m.onnx -o z.onnx --db z.duckdb --cost-cache z.duckdb",
    "run m.onnx -o z.onnx --db z.duckdb --cost-cache z.duckdb.wal",
    "run m.onnx -o z.onnx --db fifo.",
    "run m.onnx -o z.onnx --view m.onnx",
    "run m.onnx -o m.onnx",
    "run m.onnx -o link.onnx",
    "run m.onnx -o same.onnx",
    "run m.onnx -o w.json",
    "run m.onnx -o z.onnx --rules my.rules --db my.rules",
    "run m.onnx -o z.onnx --input x=e.json --db e.json",
    "run m.onnx -o k/kernels.json --fuse --kernels k",
    "run m.onnx -o z.onnx --certificate z.onnx",
    "run m.onnx -o z.onnx --certificate my.rules",
    "run m.onnx -o z.onnx --certificate w.json",
    "run m.onnx -o run.duckdb",
    "run m.onnx -o z.onnx --fuse --kernels taken",
    "view page.duckdb",
    "run --resume run.duckdb -o m.onnx m.onnx",
    "convert m.onnx m.onnx",
    "convert m.onnx w.json",
    "convert m.onnx e.json",
    "extract e.json -o e.json",
    "extract e.json -o model.json",
    "view run.duckdb -o run.duckdb",
    "costs export run.duckdb",
    "costs export t.parquet --cost-cache t.parquet",
    "costs show --cost-cache m.onnx",
    "kernels search lora -o k.json --db k.json",
    "kernels search model.json -o model.json",
    "kernels regions m.onnx --db m.onnx",
    "kernels show model.json --html p.html.",
)


@pytest.mark.parametrize("line", LOSING)
def test_a_line_that_would_lose_a_file_is_refused(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "files"
    files(folder)
    (folder / "k").mkdir()
    (folder / "p.html.").mkdir()
    monkeypatch.chdir(folder)
    before = state(folder)
    words = [word.removesuffix(".") if word == "fifo." else word for word in line.split()]
    assert main(words) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert "exists and is not" in message or "expected" in message or "not overwritten" in message
    assert state(folder) == before


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.name: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.iterdir()
    }


def test_every_path_that_a_command_takes_is_an_input_or_an_output() -> None:
    """A flag whose value is a path says which: a new one that writes is found here."""
    written = {
        flag
        for parser in _parsers()
        for action in parser._paths
        if isinstance(action.type, Written)
        for flag in action.option_strings or [action.dest]
    }
    assert written == {
        "--output", "-o", "output", "--egraph-json", "--record", "--db", "--cost-cache", "--view",
        "--kernels", "--html", "--certificate", "--module", "file",
    }  # fmt: skip


def _parsers() -> list[object]:
    (commands,) = (a for a in build_parser()._actions if isinstance(a.choices, dict))
    return list(commands.choices.values())


@pytest.mark.parametrize("options", [{"db": "out.json"}, {"view": "out.html", "db": "out.html"}])
def test_the_same_holds_without_a_command_line(tmp_path: Path, options: dict[str, str]) -> None:
    model = files(tmp_path / "files")["m.onnx"]
    given = Options.of(**{name: tmp_path / value for name, value in options.items()})
    with pytest.raises(UsageError, match="is another output, too, expected another name"):
        optimize(model, given, output=tmp_path / "out.json")


@pytest.mark.parametrize(
    "again",
    [
        lambda folder: ["convert", folder / "m.onnx", folder / "z.onnx"],
        lambda folder: ["convert", folder / "m.onnx", folder / "z.json"],
    ],
)
def test_an_output_of_the_same_kind_is_replaced(
    tmp_path: Path, again: Callable[[Path], list[object]]
) -> None:
    folder = tmp_path / "files"
    files(folder)
    words = [str(word) for word in again(folder)]
    assert main(words) == main(words) == 0


@pytest.mark.parametrize("words", [("-o", "loop.onnx", "--force"), ("--db", "loop.onnx")])
def test_links_that_lead_to_each_other_are_no_internal_error(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.onnx").symlink_to("other.onnx")
    Path("other.onnx").symlink_to("loop.onnx")
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [y])), "m.onnx")
    assert main(["run", "m.onnx", "--for", "t4", "--quiet", *words]) in (0, 2, 3)
    assert "internal error" not in capsys.readouterr().err
