"""Emitted CUDA computes what μGraphs mean, without races, and compiles for three architectures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.cuda_emulator import Emulated
from bench.emulation.errors import TOLERANCES, drawn, exact, norm_error, run_all
from relational_tensat.base.errors import UsageError
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_cuda import (
    ARCHITECTURES,
    CudaKernel,
    compile_cuda,
    emit_cuda,
)
from relational_tensat.mugraph.kernels.layout_choice import (
    STATIC_BYTES,
    LayoutProblem,
    chosen_layouts,
)
from relational_tensat.tensor import Array
from tests.gpu.test_nvrtc import needs_nvrtc
from tests.mugraph.kernels.inputs import numbered, with_level_keys, with_level_logits
from tests.mugraph.kernels.mugraphs import (
    CHAINS,
    SMALL,
    attention,
    lora,
    rmsnorm_linear,
    split_attention,
)
from tests.tiers import nightly
from tests.with_compilers import needs_cpp

#: What calls of functions within a kernel may put aside.
_FEW_BYTES = 64


def _emitted(graph: MuGraph, dtype: str = "float16") -> CudaKernel:
    return emit_cuda(graph.kernels[0], graph.inputs, dtype)


def _run(library: Emulated, graph: MuGraph, inputs: dict[str, Array]) -> Array:
    (kernel,) = graph.kernels
    (saver,) = kernel.block.savers
    operands = [inputs[name] for name in kernel.operands]
    shape = tuple(dim.size for dim in saver.dims)
    return library.run(_emitted(graph).name, operands, {saver.output: shape})[0]


@needs_cpp
@pytest.mark.parametrize("dtype", ["float16", nightly("float32")])
def test_kernels_compute_what_their_graphs_mean(tmp_path: Path, dtype: str) -> None:
    graphs, split = numbered(SMALL), split_attention()
    parts = [
        emit_cuda(kernel, kernel_tensors(split), dtype, split.wide, chosen)
        for kernel, chosen in zip(split.kernels, chosen_layouts(split, dtype).kernels, strict=True)
    ]
    library = Emulated([*(_emitted(graph, dtype) for graph in graphs), *parts], tmp_path)
    for graph in graphs:
        inputs = drawn(graph, dtype)
        error = norm_error(_run(library, graph, inputs), exact(graph, inputs))
        assert error <= TOLERANCES[dtype], graph.kernels[0].name
    if dtype == "float16":
        _check_large_logits(library, graphs[0])
        _check_maxima_that_leave_blocks(library, split)


def _check_large_logits(library: Emulated, graph: MuGraph) -> None:
    """Logits of up to 600, whose exponentials are beyond float32, give finite, right results."""
    inputs = drawn(graph)
    logits = np.einsum("hqd,hdk->hqk", inputs["Q"].astype(float), inputs["K"].astype(float))
    inputs["Q"] = (inputs["Q"] * (600 / np.abs(logits).max())).astype(np.float16)
    result = _run(library, graph, inputs)
    assert np.isfinite(result).all()
    assert norm_error(result, exact(graph, inputs)) <= 2e-3


def _check_maxima_that_leave_blocks(library: Emulated, graph: MuGraph) -> None:
    """Keys split among blocks: near logits of 600, elements of float16 are multiples of 0.5.

    Of values about 6,000, the sums of a block's 48 keys are no elements of float16 any more.
    """

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        shapes = {s.output: tuple(d.size for d in s.dims) for s in kernel.block.savers}
        for made, result in zip(library.run(kernel.name, operands, shapes), results, strict=True):
            result[...] = made

    level = with_level_logits(graph, drawn(graph), 600)
    for inputs in (drawn(graph), level, with_level_keys(drawn(graph), 6000)):
        error = norm_error(run_all(graph, inputs, run), exact(graph, inputs))
        assert error <= TOLERANCES["float16"]


@needs_cpp
def test_kernels_compute_the_same_whatever_layouts_are_chosen(tmp_path: Path) -> None:
    """Layouts and orders at random: other dims innermost, longer rows, chunks that change places."""
    random = np.random.default_rng(0)
    large = attention(1, 16, 64, 128, 64, (1, 1), 2)
    graphs = numbered((large, large, large, attention(), rmsnorm_linear(), CHAINS[0]))
    kernels, seen = [], set()
    for graph in graphs:
        problem = LayoutProblem.of_graph(graph, "float16")
        values = [int(random.integers(size)) for size in problem.choices.sizes]
        (chosen,) = problem.layouts(values)
        seen |= {bool(layout.swizzled) for layout in chosen.shared.values()}
        kernels.append(emit_cuda(graph.kernels[0], graph.inputs, "float16", chosen=chosen))
    assert seen == {False, True}
    library = Emulated(kernels, tmp_path)
    for graph in graphs:
        inputs = drawn(graph)
        error = norm_error(_run(library, graph, inputs), exact(graph, inputs))
        assert error <= TOLERANCES["float16"], graph.kernels[0].name


@needs_cpp
def test_without_any_one_of_its_barriers_a_kernel_has_a_race(tmp_path: Path) -> None:
    kernel = _emitted(attention())
    parts = kernel.source.split("__syncthreads();")
    waits = [step.waits for steps in kernel.schedule.steps.values() for step in steps]
    assert len(parts) == 1 + sum(waits)
    broken = []
    for place in range(1, len(parts)):
        joined = [parts[place - 1] + parts[place]]
        source = "__syncthreads();".join([*parts[: place - 1], *joined, *parts[place + 1 :]])
        name = f"{kernel.name}_{place}"
        broken.append(replace(kernel, name=name, source=source.replace(kernel.name, name)))
    library = Emulated(broken, tmp_path)
    inputs = drawn(attention())
    for one in broken:
        with pytest.raises(AssertionError, match="races in shared memory"):
            library.run(one.name, list(inputs.values()), {"Y": (2, 32, 16)})


@needs_cpp
def test_without_any_one_of_its_waits_for_copies_a_kernel_is_wrong(tmp_path: Path) -> None:
    """Or where it waits for one group of them less; a copy is there once it was waited for."""
    graph = attention(1, 16, 64, 512, 64, (1, 1), 4)
    kernel = _emitted(graph)
    assert kernel.schedule.buffers == 4 and kernel.schedule.ahead == {"k", "v"}
    waits = ("wait_for_groups<2>();", "wait_for_copies();")
    assert [kernel.source.count(wait) for wait in waits] == [1, 0]
    broken = []
    for place, instead in enumerate(("", "wait_for_groups<3>();")):
        name = f"{kernel.name}_{place}"
        source = kernel.source.replace(waits[0], instead).replace(kernel.name, name)
        broken.append(replace(kernel, name=name, source=source))
    plain = lora()
    unloaded = _emitted(plain)
    assert unloaded.source.count(waits[1]) == 1 and not unloaded.schedule.ahead
    source = unloaded.source.replace(waits[1], "")
    library = Emulated([kernel, *broken, replace(unloaded, source=source)], tmp_path)
    inputs = drawn(graph)
    want = exact(graph, inputs)
    (made,) = library.run(kernel.name, list(inputs.values()), {"Y": want.shape})
    assert norm_error(made, want) <= TOLERANCES["float16"]
    for one in broken:
        with pytest.raises(AssertionError):
            (made,) = library.run(one.name, list(inputs.values()), {"Y": want.shape})
            assert norm_error(made, want) <= TOLERANCES["float16"]
    with pytest.raises(AssertionError):
        made = _run(library, plain, drawn(plain))
        assert norm_error(made, exact(plain, drawn(plain))) <= TOLERANCES["float16"]


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_compile_and_fit(arch: str) -> None:
    """At published sizes: registers without spills, and the shared memory that the schedule says."""
    most_registers = {"flash_attention": 128, "rmsnorm_linear": 128, "lora": 128}
    for graph in (
        attention(2, 256, 64, 4096, 64, (2, 8), 64),
        rmsnorm_linear(2, 4096, 6144, 96, 64),
        lora(16, 256, 16, 4096, 64),
    ):
        kernel = _emitted(graph)
        compiled = compile_cuda(kernel, arch)
        assert 0 < compiled.most_registers <= most_registers[kernel.name]
        assert compiled.spilled_bytes <= _FEW_BYTES
        declared = 0 if kernel.dynamic_bytes else kernel.schedule.shared_bytes
        assert compiled.shared_bytes == declared
        assert kernel.schedule.shared_bytes <= 100 << 10
        assert (kernel.dynamic_bytes > 0) == (kernel.schedule.shared_bytes > STATIC_BYTES)


def test_an_unknown_element_type_is_refused() -> None:
    with pytest.raises(UsageError, match="no kernels for elements 'int8', expected float32"):
        _emitted(attention(), "int8")
