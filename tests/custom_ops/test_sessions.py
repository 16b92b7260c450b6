"""``session`` and ``register``: kernels run in onnxruntime, and nothing in a folder is trusted."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import relational_tensat
from bench.models.builder import GraphBuilder
from relational_tensat.base.errors import InputError
from relational_tensat.custom_ops import build
from relational_tensat.custom_ops.function_check import functions_of
from relational_tensat.custom_ops.library import KernelOp, sources_of
from relational_tensat.custom_ops.manifest import MANIFEST, folder_of, remove_stale, write_manifest
from relational_tensat.custom_ops.sessions import register_ops
from relational_tensat.formats import save_model
from relational_tensat.verify.evaluate import evaluate_graph
from tests.custom_ops.fused_files import feeds_of, fused_file, normed
from tests.with_compilers import needs_c

pytestmark = needs_c
GRAPH = normed()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[KernelOp, ...]]:
    """A file, its manifest beside it."""
    file = tmp_path_factory.mktemp("written") / "model.opt.onnx"
    ops = fused_file(GRAPH, file)
    assert len(ops) == 1
    write_manifest(ops, file)
    return file, ops


@pytest.fixture
def file(written: tuple[Path, tuple[KernelOp, ...]], tmp_path: Path) -> Path:
    """A copy of it."""
    source, ops = written
    copy = tmp_path / source.name
    copy.write_bytes(source.read_bytes())
    write_manifest(ops, copy)
    return copy


def _kernels_run(file: Path, options: onnxruntime.SessionOptions, folder: Path) -> list[str]:
    """Return the kernels in the graph that a session of the options runs."""
    options.optimized_model_filepath = str(folder / "as_run.onnx")
    onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(folder / "as_run.onnx").graph.node
    return [node.op_type for node in nodes if node.op_type.startswith("fused_")]


def _check_right(session: Any) -> None:
    feeds = feeds_of(GRAPH)
    expected = evaluate_graph(GRAPH, feeds, {})
    for name, value in zip(GRAPH.outputs, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5)


def test_kernels_run_where_they_are_registered_and_only_there(file: Path, tmp_path: Path) -> None:
    _check_right(relational_tensat.session(file))
    options = onnxruntime.SessionOptions()
    names = relational_tensat.register(options, str(file))
    assert names and _kernels_run(file, options, tmp_path) == list(names)
    plain = onnxruntime.SessionOptions()
    assert _kernels_run(file, plain, tmp_path) == []
    _check_right(onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"]))


def test_a_bias_behind_a_kernel_joins_its_product(tmp_path: Path) -> None:
    """Only where onnxruntime knows sizes, which a custom op does not tell."""
    b = GraphBuilder("biased")
    x = b.input("x", 1, 6, 8)
    normed = b.op("mul", b.op("tanh", x), b.op("sigmoid", x))
    product = b.op("matmul", normed, b.input("w", 8, 4))
    graph = b.build(b.op("add", product, b.input("v", 4)))
    file, options = tmp_path / "biased.onnx", onnxruntime.SessionOptions()
    write_manifest(fused_file(graph, file), file)
    assert relational_tensat.register(options, file)
    options.optimized_model_filepath = str(tmp_path / "as_run.onnx")
    onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    operators = [node.op_type for node in onnx.load(tmp_path / "as_run.onnx").graph.node]
    assert "Gemm" in operators and "Add" not in operators


@pytest.mark.parametrize("shape", [(1, 5), (1, 768), (3, 1)])
def test_a_kernel_of_one_row_runs(shape: tuple[int, int], tmp_path: Path) -> None:
    graph, file = normed(*shape), tmp_path / "one.onnx"
    write_manifest(fused_file(graph, file), file)
    feeds = feeds_of(graph)
    (found,) = relational_tensat.session(file).run(None, feeds)
    expected = evaluate_graph(graph, feeds, {})[graph.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_parts_of_a_kernel_in_several_threads_compute_what_one_does(tmp_path: Path) -> None:
    """Rows that no number of parts divides, of enough work for several."""
    graph, file = normed(1201, 301), tmp_path / "large.onnx"
    ops = fused_file(graph, file)
    write_manifest(ops, file)
    (parts,) = re.findall(r"in_parts\(.*, (\d+)\);", sources_of(ops)["library.c"])
    assert int(parts) > 8
    feeds, found = feeds_of(graph), []
    for threads in (1, 2, 3):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        found += relational_tensat.session(file, options).run(None, feeds)
    expected = evaluate_graph(graph, feeds, {})[graph.outputs[0]]
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)
    assert all(each.tobytes() == found[0].tobytes() for each in found)


def test_a_file_without_a_folder_runs_as_any(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(file.read_bytes())
    assert relational_tensat.register(onnxruntime.SessionOptions(), other) == ()
    _check_right(relational_tensat.session(other))


def test_a_library_is_compiled_once_and_outlives_options_and_sessions(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = relational_tensat.session(file)

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(build, "compile_library", refuse)
    for _ in range(3):
        one = relational_tensat.session(file)
        _check_right(one)
        del one
        gc.collect()
    _check_right(kept)


def test_other_sizes_are_refused_in_one_line(
    written: tuple[Path, tuple[KernelOp, ...]],
) -> None:
    file, ops = written
    model = onnx.load(file)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "rows"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    register_ops(options, ops, functions_of(file))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    _check_right(session)
    given = {name: value[:5] for name, value in feeds_of(GRAPH).items()}
    with pytest.raises(Exception, match=r"operand 0 is \[5, 33\], expected \[7, 33\]"):
        session.run(None, given)


def test_what_lies_in_the_folder_is_not_run(file: Path, tmp_path: Path) -> None:
    """Neither the C there nor a library beside it."""
    witness, evil = tmp_path / "witness", tmp_path / "evil.c"
    evil.write_text(
        "#include <stdio.h>\n"
        f'__attribute__((constructor)) static void run(void) {{ fclose(fopen("{witness}", "w")); }}\n'
        "void *RegisterCustomOps(void *options, void *base) { return 0; }\n"
    )
    for name in ("library.so", "kernel_0_0.so", "model.opt.so"):
        target = folder_of(file) / name
        subprocess.run(["cc", "-shared", "-fPIC", str(evil), "-o", str(target)], check=True)
    for source in folder_of(file).glob("*.c"):
        source.write_text("#error not to be compiled\n")
    _check_right(relational_tensat.session(file))
    assert not witness.exists()


def _without_tanh(content: dict[str, Any]) -> None:
    text = json.dumps(content["ops"][0]["mugraph"])
    assert '"tanh"' in text
    content["ops"][0]["mugraph"] = json.loads(text.replace('"tanh"', '"sigmoid"'))


def _renamed(content: dict[str, Any]) -> None:
    content["ops"][0]["name"] = 'fused_x", 1); //'


def _other_function(content: dict[str, Any]) -> None:
    content["ops"][0]["name"] = "fused_k0123456789abcdef"


def _larger(content: dict[str, Any]) -> None:
    content["ops"][0]["uses"][0]["operands"][0] = [7, 330]


def _huge(content: dict[str, Any]) -> None:
    text = json.dumps(content["ops"][0])
    for small, large in (("=7", "=70000000"), ("[7", "[70000000")):
        text = text.replace(small, large)
    content["ops"][0] = json.loads(text)


def _longer(content: dict[str, Any]) -> None:
    content["ops"][0]["uses"][0]["operands"][0] = [1] * 40 + [7, 33]


def _negative(content: dict[str, Any]) -> None:
    content["ops"][0]["uses"][0]["operands"][0] = [-7, -33]


def _fewer(content: dict[str, Any]) -> None:
    del content["ops"][0]["uses"][0]["operands"][0]


def _unused(content: dict[str, Any]) -> None:
    content["ops"][0]["uses"] = []


def _with_library(content: dict[str, Any]) -> None:
    content["ops"][0]["library"] = "evil.so"


def _of_another(content: dict[str, Any]) -> None:
    content["model"] = "0" * 64


def _of_products(content: dict[str, Any]) -> None:
    inputs = content["ops"][0]["mugraph"]["inputs"]
    first, second = inputs
    product = {"op": "matmul", "operands": [first, second], "output": "z", "attrs": {"over": []}}
    content["ops"][0]["mugraph"] |= {"steps": [product], "outputs": ["z"]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without_tanh, "computes something else than its function"),
        (_renamed, "no name of a kernel"),
        (_other_function, "has no function fused_k0123456789abcdef"),
        (_larger, "other than 231 elements"),
        (_huge, "a tensor of more than 268,435,456 elements"),
        (_longer, "a shape of 42 dims"),
        (_negative, "a shape of 2 dims"),
        (_fewer, "a use of 1 operands"),
        (_unused, "in 0 uses"),
        (_with_library, "unknown key 'library'"),
        (_of_another, "those of another model.opt.onnx"),
        (_of_products, "steps that are no kernels"),
    ],
)
def test_a_manifest_that_was_changed_is_refused(
    change: Callable[[dict[str, Any]], None], reason: str, file: Path
) -> None:
    manifest = folder_of(file) / MANIFEST
    content = json.loads(manifest.read_text())
    change(content)
    manifest.write_text(json.dumps(content))
    with pytest.raises(InputError, match=reason) as error:
        relational_tensat.session(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "[", "[]", "[" * 100_000, '{"format": 1}', "\x00"])
def test_what_is_no_manifest_is_refused(text: str, file: Path) -> None:
    (folder_of(file) / MANIFEST).write_text(text)
    with pytest.raises(InputError) as error:
        relational_tensat.register(onnxruntime.SessionOptions(), file)
    assert "\n" not in str(error.value)


def test_a_model_that_was_changed_is_refused(file: Path) -> None:
    model = onnx.load(file)
    model.doc_string = "another"
    onnx.save(model, file)
    with pytest.raises(InputError, match=r"those of another model\.opt\.onnx"):
        relational_tensat.session(file)


def test_stale_kernels_are_removed_and_nothing_else(file: Path) -> None:
    save_model(GRAPH, file)
    folder = folder_of(file)
    (folder / "thesis.txt").write_text("mine")
    remove_stale(file)
    _check_right(relational_tensat.session(file))
    assert [each.name for each in folder.iterdir()] == ["thesis.txt"]
    (folder / MANIFEST).write_text('{"format": "of others"}')
    remove_stale(file)
    assert (folder / MANIFEST).exists()


def test_without_a_compiler_the_functions_run(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    with caplog.at_level(logging.WARNING, "relational_tensat"):
        _check_right(relational_tensat.session(file))
    (record,) = caplog.records
    assert "runs without its kernels: kernels in C need a C compiler" in record.getMessage()


def test_an_older_onnxruntime_runs_the_functions(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(onnxruntime, "__version__", "1.17.3")
    with caplog.at_level(logging.WARNING, "relational_tensat"):
        _check_right(relational_tensat.session(file))
    (record,) = caplog.records
    assert "kernels need onnxruntime 1.18 or later, this is 1.17.3" in record.getMessage()


def test_a_library_refuses_a_table_that_it_does_not_know(
    written: tuple[Path, tuple[KernelOp, ...]], tmp_path: Path
) -> None:
    """Whatever Python says: only the place of the function that makes a status is used of an older one."""
    build.compile_library(sources_of(written[1]), tmp_path, "cc")
    told: list[bytes] = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    def create_status(code: int, text: bytes) -> int:
        told.append(text)
        return 1

    table = (ctypes.c_void_p * 1)(ctypes.cast(create_status, ctypes.c_void_p))

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
    def get_api(version: int) -> int | None:
        return ctypes.addressof(table) if version == 1 else None

    base = (ctypes.c_void_p * 2)(ctypes.cast(get_api, ctypes.c_void_p), None)
    assert ctypes.CDLL(str(tmp_path / build.LIBRARY)).RegisterCustomOps(None, base) == 1
    assert told == [b"kernels need onnxruntime 1.18 or later"]


def test_a_cache_that_others_may_write_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    relational_tensat.session(file)
    (library,) = (tmp_path / "cache").glob("custom-ops/*/library.so")
    assert library.stat().st_mode & 0o077 == 0 == library.parent.stat().st_mode & 0o077
    library.parent.chmod(0o770)
    with pytest.raises(InputError, match="others may write it"):
        relational_tensat.session(file)


def test_a_folder_of_others_is_not_overwritten(
    written: tuple[Path, tuple[KernelOp, ...]], tmp_path: Path
) -> None:
    file = tmp_path / "model.opt.onnx"
    file.write_bytes(written[0].read_bytes())
    folder_of(file).mkdir()
    (folder_of(file) / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is no folder of kernels"):
        write_manifest(written[1], file)
    assert [each.name for each in folder_of(file).iterdir()] == ["thesis.txt"]
