"""Emitted C computes what μGraphs mean."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, drawn, exact, norm_error
from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import Dim, dims_of
from relational_tensat.mugraph.graph.mugraph import (
    BlockGraph,
    InputIterator,
    Kernel,
    Operation,
    Saver,
)
from relational_tensat.mugraph.kernels import c_emission
from relational_tensat.mugraph.kernels import emit_c as module
from relational_tensat.mugraph.kernels.emit_c import CKernel, compile_c, emit_c
from tests.mugraph.kernels.inputs import numbered
from tests.mugraph.kernels.mugraphs import CHAINS, attention, pooled
from tests.with_compilers import needs_c

#: Largest relative errors, of GELU by its operand; and the least difference that counts.
_FUNCTIONS = {
    "exp": (2.5e-7, 2.4e-38), "erf": (4e-7, 3e-45), "gelu": (3e-7, 3e-45), "sigmoid": (4e-7, 2.4e-38),
    "silu": (5e-7, 1e-36), "tanh": (4e-7, 3e-45),
}  # fmt: skip


@needs_c
def test_kernels_compute_what_their_graphs_mean(tmp_path: Path) -> None:
    for graph in numbered(CHAINS):
        (kernel,) = graph.kernels
        function = compile_c(emit_c(kernel, graph.inputs), tmp_path)
        inputs = drawn(graph, "float32")
        result = np.full([d.size for d in kernel.block.savers[0].dims], np.nan, np.float32)
        function([inputs[name] for name in kernel.operands], [result])
        assert norm_error(result, exact(graph, inputs)) <= TOLERANCES["float32"], kernel.name


@needs_c
def test_a_kernel_may_be_called_as_functions_of_the_headers_are(tmp_path: Path) -> None:
    (graph,) = numbered((pooled(),))
    for name in ("relu", "turn", "sin", "memcpy", "main"):
        kernel = replace(graph.kernels[0], name=name)
        assert compile_c(emit_c(kernel, graph.inputs), tmp_path)


@needs_c
def test_c_that_calls_what_is_not_there_is_refused(tmp_path: Path) -> None:
    declared = "float nowhere(float); "
    for text, reason in (("", "does not compile"), (declared, "is not loaded")):
        source = f"{text}void k(const float *x, float *y) {{ *y = nowhere(*x); }}\n"
        with pytest.raises(InputError, match=reason) as caught:
            compile_c(CKernel("k", source, ("x", "y")), tmp_path)
        assert "\n" not in str(caught.value)


@needs_c
def test_operands_and_results_may_lie_otherwise(tmp_path: Path) -> None:
    (graph,) = numbered((pooled(),))
    (kernel,) = graph.kernels
    dims = {**graph.inputs, **{saver.output: saver.dims for saver in kernel.block.savers}}
    lying = {name: tuple(reversed(own)) for name, own in dims.items()}
    function = compile_c(emit_c(kernel, graph.inputs, lying), tmp_path)
    inputs = drawn(graph, "float32")
    result = np.full([d.size for d in lying[graph.outputs[0]]], np.nan, np.float32)
    turned = [np.ascontiguousarray(inputs[name].T) for name in kernel.operands]
    function(turned, [result])
    assert norm_error(result.T, exact(graph, inputs)) <= TOLERANCES["float32"]


@needs_c
def test_large_logits_stay_finite_and_right(tmp_path: Path) -> None:
    graph = pooled()
    function = compile_c(emit_c(graph.kernels[0], graph.inputs), tmp_path)
    inputs = drawn(graph, "float32")
    inputs["S"] *= 600 / np.abs(inputs["S"]).max()
    shifted = {**inputs, "S": inputs["S"] - inputs["S"].max(axis=1, keepdims=True)}
    result = np.empty(4, np.float32)
    function([inputs["S"], inputs["V"]], [result])
    assert norm_error(result, exact(graph, shifted)) <= 1e-5


@needs_c
@pytest.mark.parametrize("flags", [(), ("-D__SANITIZE_THREAD__",)], ids=["clones", "plain"])
def test_functions_are_those_of_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """Of floats of all sizes, subnormal ones, infinities and NaN, too; without clones, too."""
    monkeypatch.setattr(module, "FLAGS", (*module.FLAGS, *flags))
    every = np.arange(0, 1 << 32, 65521, dtype=np.uint32).view(np.float32)
    near = np.linspace(-120, 120, 60_000, dtype=np.float32)
    special = np.array([np.inf, -np.inf, np.nan, -np.nan, 0, -0.0, 1e-45, 88.72], np.float32)
    signalled = np.array([0x7FC00001, 0xFFC12345], np.uint32).view(np.float32)
    given = np.concatenate([every, near, near / 20, special, signalled])
    dims = dims_of(f"n={given.size}")
    block = BlockGraph(
        (), 1, (InputIterator("X", "x"),),
        tuple(Operation(name, ("x",), name) for name in _FUNCTIONS),
        tuple(Saver(name, f"Y_{name}", dims, ()) for name in _FUNCTIONS),
    )  # fmt: skip
    function = compile_c(emit_c(Kernel("functions", block), {"X": dims}), tmp_path)
    results = [np.empty_like(given) for _ in _FUNCTIONS]
    function([given], results)
    for (name, (relative, least)), result in zip(_FUNCTIONS.items(), results, strict=True):
        with np.errstate(all="ignore"):
            want = Numbers("float64").function(name, given.astype(np.float64))
            whole = np.maximum(np.abs(want), np.abs(given) if name == "gelu" else 0)
            close = np.abs(result - want) <= relative * whole + least
            is_same = (result == want.astype(np.float32)) | (np.isnan(result) & np.isnan(want))
        wrong = ~(close | is_same)
        assert not wrong.any(), (name, given[wrong][:3], result[wrong][:3], want[wrong][:3])
        assert (np.isnan(result) == np.isnan(want)).all(), name


def test_products_are_left_to_libraries() -> None:
    graph = attention()
    with pytest.raises(InputError, match="flash_attention: s is a product, which no C is made of"):
        emit_c(graph.kernels[0], graph.inputs)


def test_tiles_are_of_a_stack_or_none() -> None:
    """Of one row of a softmax all exponentials are kept: a million do not fit."""
    dims = dims_of(f"m=2 n={1 << 20}")
    block = BlockGraph(
        (2,), 1, (InputIterator("X", "x", ("m",)),),
        (
            Operation("exp", ("x",), "e"),
            Operation("sum", ("e",), "s", {"over": ("n",)}),
            Operation("div", ("e", "s"), "y"),
        ),
        (Saver("y", "Y", dims, ("m",)),),
    )  # fmt: skip
    with pytest.raises(InputError, match="softmax: its tiles are too large for a stack"):
        emit_c(Kernel("softmax", block), {"X": dims})


def test_tiles_are_smaller_on_a_smaller_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels of pictures, normalized: rows of them lie far apart, and tiles have several lines."""
    c, p = Dim("c", 48), Dim("p", 1024)
    over = {"over": ("c",)}
    block = BlockGraph(
        (), 1, (InputIterator("X", "x", ()),),
        (
            Operation("rms", ("x",), "r", {**over, "epsilon": 1e-5}),
            Operation("div", ("x", "r"), "y"),
        ),
        (Saver("y", "Y", (p, c), ()),),
    )  # fmt: skip
    given = Kernel("channels", block), {"X": (c, p)}
    monkeypatch.setattr(c_emission, "MOST_STACK_BYTES", 1 << 20)
    large = _tile_elements(emit_c(*given).source)
    monkeypatch.setattr(c_emission, "MOST_STACK_BYTES", 4 * large - 1)
    small = _tile_elements(emit_c(*given).source)
    assert 0 < small < large


def _tile_elements(source: str) -> int:
    return sum(map(int, re.findall(r"_Alignas\(64\) float \w+\[(\d+)\]", source)))


def test_without_a_compiler_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingDependencyError, match="need a C compiler: set CC, or install cc"):
        compile_c(CKernel("none", "", ()), tmp_path)


@needs_c
def test_wrong_arrays_are_refused(tmp_path: Path) -> None:
    graph = pooled()
    function = compile_c(emit_c(graph.kernels[0], graph.inputs), tmp_path)
    with pytest.raises(InputError, match="pooled: in_S is no contiguous array of float32"):
        function([np.zeros((4, 24)), np.zeros((4, 24), np.float32)], [np.zeros(4, np.float32)])
