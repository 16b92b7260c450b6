"""``bench fused --c-kernels``: each model becomes one kernel, which computes what onnxruntime does."""

from __future__ import annotations

import pytest

from bench.fused.c_kernels import HEADER, MODELS, cells, run_kernel
from tests.tiers import nightly
from tests.with_compilers import needs_c

_SUITE = "windows + norm"


@needs_c
@pytest.mark.parametrize("name", [_SUITE, *(nightly(name) for name in MODELS if name != _SUITE)])
def test_a_model_becomes_one_kernel(name: str) -> None:
    row = run_kernel(name, heats=2)
    assert row.error < 1e-6
    assert min(row.c_us, row.pass_us) > 0 and len(cells(row)) == len(HEADER)
