"""CUDA of tiles the last of which is smaller, thread by thread: right, and each mask is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.emulation.cuda_emulator import Emulated
from bench.emulation.errors import TOLERANCES, drawn, exact, norm_error
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.kernels import cuda_statements
from relational_tensat.mugraph.kernels.emit_cuda import CudaKernel, emit_cuda
from relational_tensat.mugraph.kernels.indices import exists
from relational_tensat.tensor import Array
from tests.mugraph.kernels.inputs import with_level_logits
from tests.mugraph.kernels.mugraphs import attention
from tests.mugraph.kernels.partial import PARTIAL
from tests.tiers import nightly
from tests.with_compilers import needs_cpp

pytestmark = needs_cpp


def _run(library: Emulated, graph: MuGraph, inputs: Mapping[str, Array], name: str = "") -> Array:
    (kernel,) = graph.kernels
    (saver,) = kernel.block.savers
    shapes = {saver.output: tuple(dim.size for dim in saver.dims)}
    return library.run(name or kernel.name, [inputs[n] for n in kernel.operands], shapes)[0]


def _with_low_logits(graph: MuGraph, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return inputs whose logits are about -80: a key that is not there, of logit 0, would be all."""
    level = with_level_logits(graph, inputs, 80)
    return {**level, "Q": -level["Q"]}


@pytest.mark.parametrize("dtype", [nightly("float16"), "float32"])
def test_kernels_compute_what_their_graphs_mean_and_no_more(tmp_path: Path, dtype: str) -> None:
    library = Emulated(
        [emit_cuda(graph.kernels[0], graph.inputs, dtype) for graph in PARTIAL], tmp_path
    )
    for graph in PARTIAL:
        inputs = drawn(graph, dtype)
        given = [inputs]
        if graph.name == "attention" and dtype == "float16":
            given.append(_with_low_logits(graph, inputs))
        for one in given:
            error = norm_error(_run(library, graph, one), exact(graph, one))
            assert error <= TOLERANCES[dtype], graph.kernels[0].name


@pytest.mark.nightly
def test_without_any_one_of_its_masks_a_kernel_is_wrong_or_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = attention(q=31, k=61)
    count = 0

    def left_out(dims: Dims, at: Mapping[str, str]) -> str:
        nonlocal count
        condition = exists(dims, at)
        count += bool(condition)
        return "" if condition and count == place else condition

    broken: list[CudaKernel] = []
    monkeypatch.setattr(cuda_statements, "exists", left_out)
    place, masks = 0, 1
    while place <= masks:
        count = 0
        kernel = emit_cuda(graph.kernels[0], graph.inputs)
        masks, name = count, f"{kernel.name}_{place}"
        broken.append(replace(kernel, name=name, source=kernel.source.replace(kernel.name, name)))
        place += 1
    assert masks == 7  # three loads, a maximum, a sum, a product's operand, a store
    library, inputs = Emulated(broken, tmp_path), _with_low_logits(graph, drawn(graph))
    expected = exact(graph, inputs)
    assert norm_error(_run(library, graph, inputs, broken[0].name), expected) <= 1e-3
    for one in broken[1:]:
        try:
            error = norm_error(_run(library, graph, inputs, one.name), expected)
        except AssertionError as outside:
            assert "outside of tensors" in str(outside) or "not equal" in str(outside)
        else:
            assert not error <= 0.01, one.source
