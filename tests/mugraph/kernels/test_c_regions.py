"""C of regions at random: right, for NaN and infinities too, and clean under sanitizers."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import FLAGS, CKernel, emit_c, read_functions
from relational_tensat.tensor import Array
from tests.mugraph.kernels.random_regions import Region, random_region, turned, with_name
from tests.tiers import nightly
from tests.with_compilers import needs_c

pytestmark = needs_c
#: How far off C may be beside NumPy in float32, and of the largest element.
_TIMES, _ROUNDING = 8, 4e-6


def _regions(which: Iterable[int]) -> list[Region]:
    return [with_name(random_region(np.random.default_rng(s)), f"region_{s}") for s in which]


def _emitted(regions: Sequence[Region]) -> list[CKernel]:
    return [
        emit_c(region.graph.kernels[0], region.graph.inputs, region.lying) for region in regions
    ]


def _together(kernels: Sequence[CKernel]) -> str:
    """Return one source of several kernels."""
    functions = read_functions()
    return functions + "".join(kernel.source.removeprefix(functions) for kernel in kernels)


def _compiled(source: str, folder: Path, *flags: str) -> Path:
    path, made = folder / "kernels.c", folder / "kernels.so"
    path.write_text(source, encoding="utf-8")
    subprocess.run(["cc", *flags, str(path), "-o", str(made), "-lm"], check=True)
    return made


@pytest.mark.parametrize("which", [range(10), nightly(range(10, 250))])
def test_regions_compute_what_they_mean(which: range, tmp_path: Path) -> None:
    regions = _regions(which)
    kernels = _emitted(regions)
    library = ctypes.CDLL(str(_compiled(_together(kernels), tmp_path, *FLAGS)))
    for region, kernel in zip(regions, kernels, strict=True):
        _check(region, kernel, library)


def _check(region: Region, kernel: CKernel, library: ctypes.CDLL) -> None:
    graph, dims = region.graph, kernel_tensors(region.graph)
    (step,) = graph.kernels
    given = [turned(region.inputs[n], dims[n], region.lying[n]) for n in step.operands]
    made = [np.full([d.size for d in region.lying[n]], 7, np.float32) for n in step.outputs]
    getattr(library, kernel.name)(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, *made)))
    with np.errstate(all="ignore"):
        wide = {name: value.astype(np.float64) for name, value in region.inputs.items()}
        exact = evaluate(graph, wide, Numbers("float64"))
        rounded = evaluate(graph, dict(region.inputs), Numbers("float32"))
        for name, own in zip(step.outputs, made, strict=True):
            want, other = (
                turned(values[name], dims[name], region.lying[name]) for values in (exact, rounded)
            )
            _compare(own, want, other, f"{kernel.name}: {name}")


def _compare(own: Array, want: Array, rounded: Array, where: str) -> None:
    """Compare C with float64; where NumPy's float32 is infinite or none, that is right, too."""
    is_plain = np.isfinite(want) & np.isfinite(rounded) & (np.abs(want) < 1e30)
    same_kind = (np.isnan(own) & (np.isnan(want) | np.isnan(rounded))) | (own == rounded)
    same_kind |= own == want.astype(np.float32)
    assert (is_plain | same_kind | (np.abs(want) >= 1e30)).all(), where
    assert np.isfinite(own[is_plain]).all(), where
    size = np.abs(want[is_plain]).max(initial=0)
    error = np.abs(own - want)[is_plain].max(initial=0)
    usual = np.abs(rounded - want)[is_plain].max(initial=0)
    assert error <= _TIMES * usual + _ROUNDING * size, (where, error, usual, size)


_MAIN = """
#include <stdio.h>
#include <stdlib.h>
static void *some(long bytes, int is_bool) {
  char *made = malloc(bytes + 4);  // at four bytes, no more
  for (long k = 0; k < bytes; ++k) made[4 + k] = 0;
  if (!is_bool) for (long k = 0; k < bytes / 4; ++k) ((float *)(made + 4))[k] = (float)(k % 13) / 7 - 0.8f;
  return made + 4;
}
int main(void) {
"""


@pytest.mark.parametrize("which", [range(6), nightly(range(6, 150))])
def test_kernels_are_clean_under_sanitizers(which: range, tmp_path: Path) -> None:
    """Nothing is touched outside of arrays, on the stack or off it, and nothing is undefined."""
    regions = _regions(which)
    kernels = _emitted(regions)
    source = _together(kernels) + _MAIN
    for region, kernel in zip(regions, kernels, strict=True):
        dims, (step,) = kernel_tensors(region.graph), region.graph.kernels
        arrays = [f"some({4 * count(dims[name])}, 0)" for name in (*step.operands, *step.outputs)]
        source += f"  {kernel.name}({', '.join(arrays)});\n"
    path, program = tmp_path / "main.c", tmp_path / "main"
    path.write_text(source + "  return 0;\n}\n", encoding="utf-8")
    flags = ["-std=c11", "-O1", "-g", "-fopenmp-simd", "-fsanitize=address,undefined"]
    command = ["cc", *flags, "-fno-sanitize-recover=all", str(path), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    run = subprocess.run(
        [program], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert run.returncode == 0, run.stderr[:2000]
