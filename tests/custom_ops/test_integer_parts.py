"""Kernels that read and store integers: onnxruntime's own kernels, one after the other, are the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest

import relational_tensat
from relational_tensat.base.errors import InputError
from relational_tensat.custom_ops.function_check import (
    compare_with_functions,
    compared_library,
    functions_of,
    model_of_call,
)
from relational_tensat.custom_ops.library import KernelOp
from relational_tensat.custom_ops.manifest import MANIFEST, folder_of, read_manifest, write_manifest
from relational_tensat.custom_ops.part_calls import graph_of
from relational_tensat.custom_ops.part_candidates import candidates_of, single_operators
from relational_tensat.formats import load_model
from relational_tensat.mugraph.fusion.candidates import KernelCandidate, with_numbers
from relational_tensat.mugraph.fusion.integer_parts import with_integers
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.floats import integer_range
from tests.custom_ops.fused_files import feeds_of, fused_file, run_sanitized, source_of
from tests.quantized_models import Quantized
from tests.with_compilers import needs_c

pytestmark = needs_c
KINDS = ("int8", "uint8")


class _Made(NamedTuple):
    """A file with one kernel: its op, and the function that this stands for."""

    graph: Graph
    file: Path
    op: KernelOp
    function: onnx.FunctionProto

    def session(self, *, with_library: bool, threads: int = 1) -> onnxruntime.InferenceSession:
        """Return a session of one call; without the library each operator runs alone."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if with_library:
            functions = {self.op.name: self.function}
            options.register_custom_ops_library(str(compared_library([self.op], functions)))
        model = model_of_call(self.op, self.op.uses[0], self.function)
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )


def _graph(build: Quantized, shapes: dict[str, list[int]], output: str, folder: Path) -> Graph:
    onnx.save(build.model(shapes, {output: shapes["x"]}, opset=20), folder / "model.onnx")
    return with_numbers(load_model(folder / "model.onnx"))


def _parts(graph: Graph) -> list[KernelCandidate]:
    parts = with_integers(graph, candidates_of(graph), single_operators(graph))
    return [part for part in parts if part.quantized]


def _made(graph: Graph, folder: Path) -> _Made:
    """Put a kernel in the place of the largest part."""
    part = max(_parts(graph), key=lambda each: len(each.nodes))
    file = folder / "fused.onnx"
    (op,) = fused_file(graph, file, [part])
    return _Made(graph, file, op, functions_of(file)[op.name])


def _one(op_type: str, shape: list[int], kind: str, folder: Path) -> _Made:
    """Return a function between integers."""
    build = Quantized()
    build.node(op_type, [build.pair("x", dtype=np.dtype(kind))], "y")
    build.pair("y", dtype=np.dtype(kind))
    return _made(_graph(build, {"x": shape}, "y_dq", folder), folder)


def _stored(kind: str, shape: list[int], folder: Path) -> _Made:
    """Return a kernel that negates numbers and stores them as integers."""
    build = Quantized()
    build.node("Neg", ["x"], "y")
    build.pair("y", dtype=np.dtype(kind))
    return _made(_graph(build, {"x": shape}, "y_dq", folder), folder)


def _feeds(made: _Made, *values: Any) -> dict[str, Array]:
    """Return operands of the types and shapes that they have."""
    use, kinds = made.op.uses[0], made.op.tensors
    named = zip(made.op.operands, use.operands, values, strict=True)
    return {
        f"given_{place}": np.asarray(value, kinds[name]).reshape(shape)
        for place, (name, shape, value) in enumerate(named)
    }


def _every(kind: str) -> Array:
    least, most = integer_range(kind)
    return np.arange(least, most + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["Relu", "Abs", "Neg", "Gelu", "Erf", "Tanh", "Sigmoid"])
def test_every_integer_becomes_what_the_operators_make_of_it(
    op: str, kind: str, tmp_path: Path
) -> None:
    """Of functions that round, half a step may be on the other side; ties of those that do not are many."""
    made = _one(op, [16, 16], kind, tmp_path)
    one, other = (made.session(with_library=each) for each in (True, False))
    least, most = integer_range(kind)
    for scale, to in ((0.02, 0.04), (0.03, 0.011), (0.05, 0.1), (1 / 64, 1 / 32), (0.1, 0.1)):
        for zero, at in ((least + 128, least + 128), (least + 7, most), (most, least)):
            feeds = _feeds(made, _every(kind), scale, zero, to, at)
            (found,), (expected,) = one.run(None, feeds), other.run(None, feeds)
            assert found.dtype == expected.dtype == kind
            differs = found != expected
            if op in ("Relu", "Abs", "Neg"):
                assert not differs.any()
            assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
            assert differs.mean() < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_rounded_as_onnxruntime_rounds_them(kind: str, tmp_path: Path) -> None:
    """At ties, one float beside each, beyond the range, and for scales of any mantissa."""
    made = _stored(kind, [5, 2061], tmp_path)
    assert made.op.operands[0] == "t0" and len(made.op.operands) == 3
    one, other = (made.session(with_library=each) for each in (True, False))
    random = np.random.default_rng(0)
    scales = [2.0**-100, 2.0**100, 1.0, 1.9999999, *random.uniform(0.5, 1.0, 40)]
    scales += [*(2.0 ** random.uniform(-60, 60, 40))]
    for scale in np.asarray(scales, np.float32):
        halves = (np.arange(-1030, 1031) / 2).astype(np.float32) * scale
        up, down = (np.nextafter(halves, sign * np.float32(np.inf)) for sign in (1, -1))
        far = random.standard_normal(halves.shape).astype(np.float32) * scale * 300
        far[:2] = np.inf, -np.inf
        x = np.stack([halves, up, down, far, random.permutation(far)])
        for zero in (*integer_range(kind), 3):
            feeds = _feeds(made, x, scale, zero)
            np.testing.assert_array_equal(one.run(None, feeds)[0], other.run(None, feeds)[0])


def _normed_sum(folder: Path, *, is_shared: bool = False) -> _Made:
    """Return the norm of a sum of integers of two scales, or of one."""
    build = Quantized()
    x = build.pair("x", 0.03)
    if is_shared:
        build.node("QuantizeLinear", ["y", "x_scale", "x_zero"], "y_q")
        y = build.node("DequantizeLinear", ["y_q", "x_scale", "x_zero"], "y_dq")
    else:
        y = build.pair("y", 0.02, np.int8)
    gain, bias = (build.constant(n, np.linspace(-1, 2, 33), np.float32) for n in "gb")
    build.node("LayerNormalization", [build.node("Add", [x, y], "s"), gain, bias], "z")
    build.pair("z", 0.025)
    return _made(_graph(build, {"x": [9, 33], "y": [9, 33]}, "z_dq", folder), folder)


def test_a_norm_of_two_scales_is_that_of_onnxruntime(tmp_path: Path) -> None:
    made, random = _normed_sum(tmp_path), np.random.default_rng(1)
    assert list(made.op.quantized.values()) == ["uint8", "int8", "uint8"]
    one, other = (made.session(with_library=each) for each in (True, False))
    for scale in (0.001, 0.02, 0.7):
        x, y = (random.integers(low, low + 256, (9, 33)) for low in (0, -128))
        gain, bias = random.standard_normal((2, 33))
        own = {"uint8": x, "int8": y, "float32": gain}
        values = [own[made.op.tensors[name]] for name in made.op.graph.inputs]
        values[-1] = bias
        feeds = _feeds(made, *values, scale, 100, 0.3, -5, 0.03, 128)
        (found,), (expected,) = one.run(None, feeds), other.run(None, feeds)
        difference = np.abs(found.astype(int) - expected.astype(int))
        assert difference.max() <= 1 and difference.mean() < 0.01
        assert expected.std() > 10


def test_parts_of_a_kernel_in_several_threads_compute_what_one_does(tmp_path: Path) -> None:
    made = _one("Gelu", [301, 1024], "int8", tmp_path)
    assert "long parts" in source_of(made.op)
    x = np.random.default_rng(3).integers(-128, 128, (301, 1024))
    feeds = _feeds(made, x, 0.03, 5, 0.02, -7)
    one, other = (made.session(with_library=True, threads=each) for each in (1, 3))
    (found,), (expected,) = other.run(None, feeds), one.run(None, feeds)
    np.testing.assert_array_equal(found, expected)
    assert expected.std() > 10


def test_a_value_is_stored_and_goes_on_as_it_was(tmp_path: Path) -> None:
    """What is computed of a result is computed of the number, not of its integer."""
    build = Quantized()
    build.node("Relu", [build.pair("x")], "y")
    build.pair("y", 0.5)
    build.node("Neg", [build.node("Abs", ["y"], "a")], "z")
    build.node("Add", [build.pair("z", 0.01), "y_dq"], "both")
    graph = _graph(build, {"x": [16, 16]}, "both", tmp_path)
    part = max(_parts(graph), key=lambda each: len(each.quantized))
    assert len(part.quantized) == 3 and len(part.outputs) == 2
    file = tmp_path / "fused.onnx"
    (op,) = fused_file(graph, file, [part])
    made = _Made(graph, file, op, functions_of(file)[op.name])
    feeds = _feeds(made, _every("uint8"), 0.02, 100, 0.5, 0, 0.01, 255)
    one, other = (made.session(with_library=each).run(None, feeds) for each in (True, False))
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(np.unique(one[0])) < 10 < len(np.unique(one[1]))


def test_what_moves_elements_lies_within(tmp_path: Path) -> None:
    """Integers are read in another order, and stored as they go on."""
    build = Quantized()
    build.node("Transpose", [build.pair("x", dtype=np.int8)], "t", perm=[1, 0])
    build.node("Mul", ["t", build.constant("c", 0.3, np.float32)], "y")
    build.pair("y", 0.02)
    made = _made(_graph(build, {"x": [37, 37]}, "y_dq", tmp_path), tmp_path)
    assert {*made.op.quantized.values()} == {"int8", "uint8"}
    assert "Transpose" in {node.op_type for node in made.function.node}
    x = np.random.default_rng(4).integers(-128, 128, (37, 37))
    feeds = _feeds(made, x, 0.05, 3, 0.02, 90)
    one, other = (made.session(with_library=each).run(None, feeds)[0] for each in (True, False))
    np.testing.assert_array_equal(one, other)
    assert other.std() > 10


def test_nodes_of_one_scale_are_a_place_like_any_other(tmp_path: Path) -> None:
    """A kernel has an operand for each scale, so one serves places where some are equal."""
    folders = [tmp_path / name for name in ("shared", "own")]
    for folder in folders:
        folder.mkdir()
    made = [_normed_sum(folder, is_shared=folder.name == "shared") for folder in folders]
    assert [len(each.op.operands) for each in made] == [10, 10]
    write_manifest([made[0].op], made[0].file)
    assert read_manifest(made[0].file).ops == (made[0].op,)
    session = relational_tensat.session(made[0].file)
    plain = onnxruntime.InferenceSession(tmp_path / "shared" / "model.onnx")
    feeds = feeds_of(made[0].graph)
    (found,), (expected,) = session.run(None, feeds), plain.run(None, feeds)
    assert np.abs(found - expected).max() <= 0.025 * 1.001


@pytest.mark.parametrize("op", ["Relu", "Reciprocal"])
@pytest.mark.parametrize("wrong", ["scale", "zero", "rounding"])
def test_what_computes_something_else_is_refused(op: str, wrong: str, tmp_path: Path) -> None:
    """Where some numbers are infinite, too."""
    made = _one(op, [16, 16], "uint8", tmp_path)
    library = compared_library([made.op], {made.op.name: made.function})
    function = onnx.FunctionProto.FromString(made.function.SerializeToString())
    if wrong == "rounding":  # of a number that is one step away
        function.node[1].op_type = "Softplus"
    else:
        place = {"scale": 1, "zero": 2}[wrong]
        function.node[-1].input[place] = function.node[0].input[place]
    with pytest.raises(InputError, match="computes something else"):
        compare_with_functions(library, [made.op], {made.op.name: function})


def test_a_number_alone_has_a_kernel_too(tmp_path: Path) -> None:
    made = _one("Neg", [], "int8", tmp_path)
    one, other = (made.session(with_library=each) for each in (True, False))
    for x in (-128, 0, 127):
        feeds = _feeds(made, x, 0.1, 3, 0.07, -5)
        np.testing.assert_array_equal(one.run(None, feeds)[0], other.run(None, feeds)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_runs_with_any_scale_as_in_onnxruntime(kind: str, tmp_path: Path) -> None:
    """A scale that the model computes may be 0, subnormal, negative, infinite or NaN."""
    made = _stored(kind, [4, 39], tmp_path)
    one, other = (made.session(with_library=each) for each in (True, False))
    random = np.random.default_rng(6)
    sizes = [0.0, 2.0**-149, 7e-45, 2.0**-126, 2.0**-101, 2.0**101, 1e38, 3.4e38, np.inf]
    for scale in np.asarray([*sizes, *np.negative(sizes), -0.1, np.nan], np.float32):
        step = float(scale) if np.isfinite(scale) else 1.0
        near = random.standard_normal((3, 39)) * 100 * step
        ends = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 3e38, -3e38, 1e-40, 2.0**-149, 5, -5]
        with np.errstate(over="ignore"):
            x = np.concatenate([near, [ends * 3]]).astype(np.float32)
        for zero in (*integer_range(kind), 3):
            feeds = _feeds(made, x, scale, zero)
            np.testing.assert_array_equal(one.run(None, feeds)[0], other.run(None, feeds)[0])


_MAIN = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
extern void kernel_0_0(const float *, const float *, const {kind} *, {kind} *);
int main(void) {{
  float *x = malloc({n} * 4), scale = 0.1f;
  {kind} *y = malloc({n}), zero = 3;
  for (int i = 0; i < {n}; ++i) x[i] = i % 2 ? INFINITY : -1e38f * i;
  x[0] = NAN;
  kernel_0_0(x, &scale, &zero, y);
  for (int i = 0; i < 3; ++i) printf("%d ", y[i]);
  free(x), free(y);
}}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_becomes_an_integer(kind: str, tmp_path: Path) -> None:
    """The compiler watches each access to memory, and each conversion."""
    made = _stored(kind, [3, 17], tmp_path)
    c_kind = {"int8": "signed char", "uint8": "unsigned char"}[kind]
    source = source_of(made.op)
    least, most = integer_range(kind)
    printed = run_sanitized(tmp_path, source, _MAIN.format(kind=c_kind, n=51))
    assert printed.split() == [str(each) for each in (least, least, most)]


@pytest.mark.parametrize(
    ("quantized", "reason"),
    [
        ({"t9": "uint8"}, "unknown key 't9'"),
        ({"t0": "int32"}, "integers of"),
        ({"t0": 2}, "expected a text"),
        ({"t0": "uint8"}, "a use of 5 operands"),
        ({"t0": "int8", "t1": "int8"}, "does not open it"),
        ([], "expected an object"),
    ],
)
def test_a_manifest_of_other_integers_is_refused(
    quantized: Any, reason: str, tmp_path: Path
) -> None:
    made = _one("Relu", [16, 16], "uint8", tmp_path)
    write_manifest([made.op], made.file)
    manifest = folder_of(made.file) / MANIFEST
    content = json.loads(manifest.read_text())
    assert content["ops"][0]["quantized"] == {"t0": "uint8", "t1": "uint8"}
    content["ops"][0]["quantized"] = quantized
    manifest.write_text(json.dumps(content))
    with pytest.raises(InputError, match=reason) as error:
        relational_tensat.session(made.file)
    assert "\n" not in str(error.value)


def test_what_others_read_stays_a_number(tmp_path: Path) -> None:
    """A result is stored as integers where nothing else reads it; scales for slices are left alone."""
    build = Quantized()
    x = build.pair("x")
    build.node("Relu", [x], "y")
    build.pair("y")
    build.node("Add", ["y", "y_dq"], "z")
    scales = build.parameters("z", np.linspace(0.1, 0.2, 16), 128, np.uint8)
    build.node("QuantizeLinear", ["z", *scales], "zq", axis=1)
    build.node("DequantizeLinear", ["zq", *scales], "z_dq", axis=1)
    parts = _parts(_graph(build, {"x": [16, 16]}, "z_dq", tmp_path))
    assert {(part.nodes[-1].op, *part.quantized) for part in parts} == {
        ("relu", "t0"),
        ("add", "t1"),
    }


def test_a_part_is_timed_among_what_onnxruntime_makes_kernels_of(tmp_path: Path) -> None:
    build = Quantized()
    build.node("Relu", [build.pair("x", dtype=np.int8)], "y")
    build.pair("y", dtype=np.int8)
    (part,) = _parts(_graph(build, {"x": [16, 16]}, "y_dq", tmp_path))
    alone, among = (graph_of(part, part.nodes, among=each) for each in (False, True))
    (kind,), (real,) = alone.inputs.values(), among.inputs.values()
    assert (kind.dtype, real.dtype) == ("int8", "float32")
    assert [node.op for node in among.nodes] == [
        "quantize",
        *("dequantize", "relu", "quantize"),
        "dequantize",
    ]
