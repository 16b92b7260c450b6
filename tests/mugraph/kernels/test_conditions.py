"""Comparisons and choices as code, of NaN and infinities, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.running import DTYPES, run_kernels
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.kernels.cuda.compile_cuda import ARCHITECTURES, compile_cuda
from relational_tensat.mugraph.kernels.cuda.emit_cuda import emit_cuda
from tests.gpu.test_nvrtc import needs_nvrtc
from tests.mugraph.conditions import CHOSEN, chosen_expected, chosen_inputs


def test_they_mean_what_numpy_says() -> None:
    inputs = chosen_inputs("float64")
    (computed,) = evaluate(CHOSEN, inputs, Numbers()).values()
    np.testing.assert_array_equal(computed, chosen_expected(inputs))


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_code_does_what_they_mean(target: str, tmp_path: Path) -> None:
    inputs = chosen_inputs(DTYPES[target])
    values = run_kernels(CHOSEN, inputs, target, tmp_path)[CHOSEN.outputs[0]]
    np.testing.assert_array_equal(values, chosen_expected(inputs))


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_cuda_compiles(arch: str) -> None:
    compiled = compile_cuda(emit_cuda(CHOSEN.kernels[0], CHOSEN.inputs, "float16"), arch)
    assert compiled.most_registers <= 40 and compiled.spilled_bytes == 0
