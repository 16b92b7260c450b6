"""Inputs that would take all time or memory, paths of any bytes, Ctrl-C: one line, and a stated code."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from relational_tensat.base import files as base_files
from relational_tensat.base.errors import InputError, ModelError
from relational_tensat.base.files import whole_content
from relational_tensat.cli.main import _is_ctrl_c, main
from relational_tensat.formats.onnx_read import MOST_NODES, check_calls
from tests.cli.files import FILES
from tests.tiers import nightly


def line(capsys: pytest.CaptureFixture[str], *argv: object, code: int) -> str:
    """Run a command line that must end with a code and one line."""
    assert main([str(argument) for argument in argv]) == code
    (text,) = capsys.readouterr().err.splitlines()
    return text


def test_functions_that_call_functions_have_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = FILES / "functions_exponential.onnx"
    text = line(capsys, "run", model, "-o", tmp_path / "o.onnx", code=3)
    assert "67,108,864 nodes with its local functions in place of their calls" in text
    assert f"the limit is {MOST_NODES:,}" in text


def chain(depth: int, calls: int, last: str | None = None) -> onnx.ModelProto:
    """Return a model whose functions call the next one so often; the last calls ``last``."""
    names = [f"f{k}" for k in range(depth)]
    functions = []
    for place, name in enumerate(names):
        callee = names[place + 1] if place + 1 < depth else last
        op, domain = (callee, "own") if callee else ("Relu", "")
        nodes = [helper.make_node(op, ["x"], [f"y{k}"], domain=domain) for k in range(calls)]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        functions.append(helper.make_function("own", name, ["x"], ["y0"], nodes, imports))
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        [helper.make_node("f0", ["x"], ["y"], domain="own")], "g", [value], [result]
    )
    return helper.make_model(graph, functions=functions)


@pytest.mark.parametrize("depth, calls", [(1, 1), (19, 2), (3, 99)])
def test_what_is_below_the_limit_passes(depth: int, calls: int) -> None:
    check_calls(chain(depth, calls), "m")


@pytest.mark.parametrize(
    "depth, calls, last, reason",
    [
        (20, 2, None, "1,048,576 nodes"), (500, 9, None, "nodes"), (1, 1, "f0", "'f0' calls itself"),
        (3, 2, "f1", "'f1' calls itself"), (2000, 2, None, "countless nodes"),
    ],
)  # fmt: skip
def test_what_is_above_it_or_has_no_end_does_not(
    depth: int, calls: int, last: str | None, reason: str
) -> None:
    with pytest.raises(ModelError, match=reason):
        check_calls(chain(depth, calls, last), "m")


@pytest.mark.parametrize(
    "words", ["run A.onnx", "run A.json", "convert A.json B.json", "kernels show A.json",
              "extract A.json", "kernels regions A.onnx", "run B.onnx --cost A.toml"]
)  # fmt: skip
def test_a_device_without_end_is_no_file(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_files, "MOST_BYTES", 1 << 20)
    monkeypatch.chdir(tmp_path)
    for name in ("A.onnx", "A.json", "A.toml"):
        (tmp_path / name).symlink_to("/dev/zero")
    shutil.copy(FILES / "fuse_one_element.onnx", tmp_path / "B.onnx")
    text = line(capsys, *words.split(), code=3)
    assert "is a device or a pipe, expected" in text or "has more than 1 MiB, the limit" in text


def test_what_unpacks_without_end_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_files, "MOST_BYTES", 1000)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b" " * 1001))
    with pytest.raises(InputError, match="unpacked, it has more than"):
        whole_content(path)
    path.write_bytes(gzip.compress(b" " * 1000))
    assert len(whole_content(path)) == 1000
    path.write_bytes(gzip.compress(b" " * 1000)[:-3])
    with pytest.raises(InputError, match="truncated"):
        whole_content(path)


def test_products_of_one_element_are_fused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = FILES / "fuse_one_element.onnx"
    flags = ["--fuse", "--cost", "a100", "--set", "fuse-time-limit=1", "--quiet"]
    assert main(["run", str(model), "-o", str(tmp_path / "o.onnx"), *flags]) == 0
    assert "50.00% less" in capsys.readouterr().out
    search = ["kernels", "search", str(model), "--region", "0", "--no-cache", "--time-limit", "1"]
    assert main(search) in (0, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="names have to be UTF-8 elsewhere")
def test_paths_of_any_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff\xfe")
    folder.mkdir()
    model = folder / os.fsdecode(b"m\xe9.onnx")
    shutil.copy(FILES / "fuse_one_element.onnx", model)
    rules = folder / os.fsdecode(b"r\xe9.rules")
    shutil.copy(Path(__file__).parents[2] / "rules" / "merge.rules", rules)
    outputs = [folder / os.fsdecode(name) for name in (b"o\xe9.onnx", b"p\xe9.html", b"k\xe9")]
    output, page, kernels = map(str, outputs)
    db = str(folder / "run.duckdb")
    lines = [
        ["-o", output, "--view", page, "--db", db],
        ["-o", output, "--rules", str(rules), "--quiet"],
        [
            "-o",
            output,
            "--fuse",
            "--cost",
            "a100",
            "--set",
            "fuse-time-limit=2",
            "--kernels",
            kernels,
        ],
    ]
    for flags in lines:
        assert main(["run", str(model), *flags]) == 0
    assert main(["run", "--resume", db, "-o", output, "--quiet"]) == 0
    assert main(["convert", str(model), str(folder / os.fsdecode(b"c\xe9.json"))]) == 0
    assert "m\\udce9.onnx" in capsys.readouterr().out
    assert all(path.exists() for path in outputs)
    assert [path.name for path in folder.iterdir() if path.name.endswith(".part")] == []
    named = folder / os.fsdecode(b"x\xe9.duckdb")
    assert "the name is not UTF-8" in line(
        capsys, "run", model, "--db", named, "-o", output, "--quiet", code=3
    )


def run(*argv: object, before: str = "") -> subprocess.Popen[str]:
    """Start a command line, after some lines of Python."""
    code = f"{before}\nfrom relational_tensat.cli.main import process; process()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="others do not limit it so")
@pytest.mark.parametrize("megabytes", [250, 500])
def test_too_little_memory_is_no_internal_error(megabytes: int, tmp_path: Path) -> None:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({megabytes << 20},) * 2)"
    model = FILES / "fuse_one_element.onnx"
    process = run("run", model, "-o", tmp_path / "o.onnx", before=limit)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (0, 5), errors
    assert "internal error" not in errors


def test_ctrl_c_that_a_library_has_made_another_error_of_is_ctrl_c() -> None:
    assert _is_ctrl_c(RuntimeError("Query interrupted"))
    error = ValueError("what was going on")
    error.__context__ = KeyboardInterrupt()
    assert _is_ctrl_c(error)
    assert not _is_ctrl_c(ValueError("Query"))


@pytest.mark.parametrize("words", [nightly("rules derive RULES"), "run M --fuse --cost a100 -o O"])
def test_ctrl_c_twice_ends_with_130_or_a_result(words: str, tmp_path: Path) -> None:
    places = {
        "RULES": Path(__file__).parents[2] / "rules" / "merge.rules", "O": tmp_path / "o.onnx",
        "M": Path(__file__).parents[2] / "bench" / "inputs" / "encoder_block.onnx",
    }  # fmt: skip
    process = run(*(places.get(word, word) for word in words.split()))
    time.sleep(2)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (0, 130, -signal.SIGINT), errors
    assert "internal error" not in errors
