"""Emitted Triton computes what μGraphs mean, and compiles for three architectures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.emulation.errors import TOLERANCES
from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.mugraph.graph.dims import dims_of, variables
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels import emission
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from tests.mugraph.kernels.mugraphs import SMALL, attention, split_attention
from tests.with_triton import skip_without_triton

ATTENTION = '''\
"""flash_attention: grid 2 x 2, loop 4, 4 warps."""

import triton
import triton.language as tl


@triton.jit
def flash_attention(in_Q, in_K, in_V, out_Y):
    i_q = tl.arange(0, 16)
    i_d = tl.arange(0, 16)
    i_k = tl.arange(0, 16)
    i_e = tl.arange(0, 16)
    q = tl.load(in_Q + tl.program_id(0) * 512 + (tl.program_id(1) * 16) * 16 + i_q[:, None] * 16 + i_d[None, :])
    m = tl.full([16], -3.4028234663852886e38, tl.float32)
    l = tl.full([16], 0.0, tl.float32)
    a = tl.full([16, 16], 0.0, tl.float32)
    for iteration in range(4):
        k = tl.load(in_K + tl.program_id(0) * 1024 + (iteration * 16) + i_d[:, None] * 64 + i_k[None, :])
        v = tl.load(in_V + tl.program_id(0) * 1024 + (iteration * 16) * 16 + i_k[:, None] * 16 + i_e[None, :])
        s = tl.dot(q, k)
        m_now = tl.maximum(m, tl.max(s, axis=1))
        m_fade = tl.where(m == m_now, 1.0, tl.exp(m - m_now))
        m = m_now
        below = s - m[:, None]
        p = tl.exp(below)
        r = tl.sum(p, axis=1)
        l = l * m_fade
        l = l + r
        a = a * m_fade[:, None]
        a = tl.dot(p.to(tl.float16), v, acc=a)
    y = a / l[:, None]
    tl.store(out_Y + tl.program_id(0) * 512 + (tl.program_id(1) * 16) * 16 + i_q[:, None] * 16 + i_e[None, :], y.to(tl.float16))


flash_attention_num_warps = 4  # for the launch
'''  # noqa: E501


def test_a_kernel_as_people_read_it() -> None:
    graph = attention()
    emitted = emit_triton(graph.kernels[0], graph.inputs)
    assert emitted.source.rstrip() == ATTENTION.rstrip()
    assert emitted.parameters == ("in_Q", "in_K", "in_V", "out_Y")
    assert emitted.grid == (2, 2, 1)


def test_what_was_computed_is_not_transposed_for_a_product() -> None:
    """Probabilities lie by rows, so they come first, in whatever order the μGraph has the operands."""
    graph = attention()
    (kernel,) = graph.kernels
    steps = tuple(
        replace(step, operands=step.operands[::-1])
        if isinstance(step, Operation) and step.op == "matmul"
        else step
        for step in kernel.block.steps
    )
    block = replace(kernel.block, steps=steps)
    source = emit_triton(replace(kernel, block=block), graph.inputs).source
    assert "tl.permute(v" not in source and "tl.dot(p.to(tl.float16), v, acc=a)" in source


def test_names_of_variables_need_be_no_identifiers() -> None:
    """A variable of partial results has a prime: without Triton, too, what is emitted is Python."""
    graph = split_attention()
    device = kernel_tensors(graph)
    assert "k'" in variables(device["A"])
    for kernel in graph.kernels:
        source = emit_triton(kernel, device, wide=graph.wide).source
        assert compile(source, kernel.name, "exec")


def test_kernels_compute_what_their_graphs_mean() -> None:
    """In a process of its own: Triton decides when it is imported whether it is interpreted."""
    skip_without_triton()
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.interpreter_program"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    errors = json.loads(printed.stdout)
    assert len(errors) == 2 * len(SMALL) + 3
    for dtype, name, error in errors:
        assert error <= TOLERANCES[dtype], name


@pytest.mark.nightly
def test_a_kernel_compiles_for_each_generation_of_tensor_cores(tmp_path: Path) -> None:
    """And what needs more shared memory than there is is refused."""
    skip_without_triton()
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.compiler_program"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    made = json.loads(printed.stdout)
    expected = {"sm_80": "mma.sync", "sm_90": "wgmma.mma_async", "sm_100": "tcgen05.mma"}
    assert [code["arch"] for code in made["codes"]] == list(expected)
    for code in made["codes"]:
        assert {expected[code["arch"]], "cp.async.cg"} <= set(code["instructions"])
        assert code["spilled_bytes"] == 0
        assert 0 < code["registers"] <= 192
        assert 0 < code["shared_bytes"] <= 64 << 10
        assert bytes.fromhex(code["begins"]) == b"\x7fELF"
    assert made["of_bools"] == [0, 0]
    assert re.search(r"needs [\d,]+ bytes of shared .*, sm_80 has 1,024", made["refused"])


def test_what_triton_cannot_say_is_refused() -> None:
    block = BlockGraph(
        (), 2, (InputIterator("X", "x", (), "k"),), (Accumulate("x", "all", "concat", ("k",)),),
        (Saver("all", "Y", dims_of("k=8"), ()),),
    )  # fmt: skip
    with pytest.raises(InputError, match="joined: all: Triton has no concat of iterations"):
        emit_triton(Kernel("joined", block), {"X": dims_of("k=8")})


def test_without_triton_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    graph = attention()
    with pytest.raises(MissingDependencyError, match=r"pip install '.*\[triton\]'"):
        emission.load_triton(emit_triton(graph.kernels[0], graph.inputs))
