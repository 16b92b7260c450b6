"""Comparisons and choices as code, of NaN and infinities, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, drawn, exact
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.rewrites import core, with_windows
from relational_tensat.mugraph.kernels.emit_c import compiled_kernels
from relational_tensat.mugraph.kernels.emit_cuda import ARCHITECTURES, compile_cuda, emit_cuda
from relational_tensat.mugraph.regions.node_programs import lowered
from relational_tensat.mugraph.verify.stability import stabilized
from tests.gpu.test_nvrtc import needs_nvrtc
from tests.mugraph.conditions import (
    CHOSEN,
    chosen_expected,
    chosen_inputs,
    leaving,
    sliced_model,
)
from tests.mugraph.masks import BY_BOOLS
from tests.with_compilers import needs_c


def test_they_mean_what_numpy_says() -> None:
    inputs = chosen_inputs("float64")
    (computed,) = evaluate(CHOSEN, inputs, Numbers()).values()
    np.testing.assert_array_equal(computed, chosen_expected(inputs))


@needs_c
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_code_does_what_they_mean(target: str, tmp_path: Path) -> None:
    inputs = chosen_inputs(DTYPES[target])
    values = run_kernels(CHOSEN, inputs, target, tmp_path)[CHOSEN.outputs[0]]
    np.testing.assert_array_equal(values, chosen_expected(inputs))


def sliced() -> MuGraph:
    """Return the kernel of a softmax of what a part of a table of bools leaves."""
    model = sliced_model()
    program = lowered(model, model.nodes, model.name).program
    return with_windows(stabilized(row_kernel(core(program))), program)


@needs_c
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_code_reads_bools_from_where_they_lie(target: str, tmp_path: Path) -> None:
    graph = sliced()
    inputs = drawn(graph, DTYPES[target])
    (name,) = graph.conditions
    inputs[name] = np.zeros((6, 12), bool)
    inputs[name][1:5, 2:10] = leaving(4, 8)
    values = run_kernels(graph, inputs, target, tmp_path)[graph.outputs[0]]
    wanted = exact(graph, inputs)
    assert np.isnan(wanted[1]).all() and np.isfinite(wanted[[0, 2, 3]]).all()
    np.testing.assert_allclose(values, wanted, atol=TOLERANCES[DTYPES[target]])


def test_c_takes_bools_as_such(tmp_path: Path) -> None:
    graph = sliced()
    (function,) = compiled_kernels(graph, tmp_path).values()
    given = [value.astype("float32") for value in drawn(graph, "float32").values()]
    with pytest.raises(InputError, match=r"in_\w+ is no contiguous array of bool$"):
        function(given, [np.zeros((4, 8), "float32")])


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_cuda_compiles(arch: str) -> None:
    compiled = compile_cuda(emit_cuda(CHOSEN.kernels[0], CHOSEN.inputs, "float16"), arch)
    assert compiled.most_registers <= 40 and compiled.spilled_bytes == 0
    for dtype in ("float16", "float32"):
        attention = emit_cuda(BY_BOOLS[0].kernels[0], BY_BOOLS[0].inputs, dtype)
        assert compile_cuda(attention, arch).spilled_bytes <= 64  # what calls put aside
