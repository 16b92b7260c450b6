"""C of regions at random: right, for NaN and infinities too, and clean under sanitizers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels import emit_c as module
from relational_tensat.mugraph.kernels.emit_c import FLAGS, CKernel, emit_c, read_functions
from relational_tensat.tensor import Array
from tests.mugraph.kernels.random_regions import Region, random_region, turned, with_name
from tests.tiers import nightly
from tests.with_compilers import needs_c

pytestmark = needs_c
#: How far off C may be beside NumPy in float32, and of the largest element.
_TIMES, _ROUNDING = 8, 4e-6
_ARM = ("aarch64-linux-gnu-gcc", "qemu-aarch64")


def _regions(which: Iterable[int]) -> list[Region]:
    every = [(seed, slides) for seed in which for slides in (False, True)]
    return [
        with_name(
            random_region(np.random.default_rng(seed), slides=slides), f"region_{seed}_{slides}"
        )
        for seed, slides in every
    ]


def _emitted(regions: Sequence[Region], *, may_be_parted: bool = False) -> list[CKernel]:
    return [
        emit_c(
            region.graph.kernels[0], region.graph.inputs, region.lying, may_be_parted=may_be_parted
        )
        for region in regions
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
        given, made = _arrays(region)
        getattr(library, kernel.name)(*(ctypes.c_void_p(a.ctypes.data) for a in (*given, *made)))
        _check(region, kernel, made)


@pytest.mark.skipif(None in map(shutil.which, _ARM), reason="ARM's compiler or emulator is missing")
@pytest.mark.parametrize("which", [range(3), nightly(range(3, 150))])
def test_regions_on_an_emulated_arm(which: range, tmp_path: Path) -> None:
    """Without clones for x86; its vectors, and quotients fused with sums, are others."""
    regions = _regions(which)
    kernels = _emitted(regions)
    arrays = [_arrays(region) for region in regions]
    calls = []
    for kernel, (given, made) in zip(kernels, arrays, strict=True):
        sizes = [f"{array.nbytes}" for array in (*given, *made)]
        operands = [f"taken({size})" for size in sizes[: len(given)]]
        results = [f"void *y{n} = malloc({size})" for n, size in enumerate(sizes[len(given) :])]
        names = [f"x{n}" for n in range(len(given))]
        taken = [f"void *{n} = {operand}" for n, operand in zip(names, operands, strict=True)]
        names += [f"y{n}" for n in range(len(made))]
        given_back = [f"fwrite(y{n}, 1, {array.nbytes}, stdout)" for n, array in enumerate(made)]
        steps = [*taken, *results, f"{kernel.name}({', '.join(names)})", *given_back]
        calls.append(f"  {{ {'; '.join(steps)}; }}\n")
    source, program = tmp_path / "main.c", tmp_path / "main"
    main = f"int main(void) {{\n{''.join(calls)}  return 0;\n}}\n"
    source.write_text(f"{_together(kernels)}{_TAKEN}{main}", encoding="utf-8")
    flags = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC")]
    subprocess.run([_ARM[0], *flags, "-static", source, "-o", program, "-lm"], check=True)
    data = b"".join(array.tobytes() for given, _ in arrays for array in given)
    printed = subprocess.run([_ARM[1], program], input=data, capture_output=True, check=True).stdout
    for region, kernel, (_, made) in zip(regions, kernels, arrays, strict=True):
        for array in made:
            array[...] = np.frombuffer(printed, np.float32, array.size).reshape(array.shape)
            printed = printed[array.nbytes :]
        _check(region, kernel, made)
    assert not printed


_TAKEN = """
#include <stdio.h>
#include <stdlib.h>
static void *taken(size_t bytes) {
  void *made = malloc(bytes);
  if (fread(made, 1, bytes, stdin) != bytes) exit(1);
  return made;
}
"""


class _Off(Numbers):
    """Float64 in which each function is off by what float32 may be, at most, up or down at random.

    GELU is x / 2 times a sum of 1 and erf, which is rounded near -1: it is off by a share of x, however
    small it is itself. What is divided by it shows that: x / gelu(x) of -2.8 is 419, and may be 0.0026 off.
    """

    def __init__(self, seed: int) -> None:
        super().__init__("float64")
        self._random = np.random.default_rng(seed)

    @property
    def in_block(self) -> Numbers:
        """The same."""
        return self

    def function(self, name: str, x: Array) -> Array:
        """Return a function that is off."""
        exact = super().function(name, x)
        whole = np.abs(x) if name == "gelu" else np.abs(exact)
        off = np.where(np.isfinite(whole), _EPSILON * whole, 0.0)
        return np.asarray(exact + off * self._random.choice((-1, 1), exact.shape))


#: Half a unit in the last place of float32: what a function near 1 is off where it is rounded well.
_EPSILON = 2.0**-25


def _arrays(region: Region) -> tuple[list[Array], list[Array]]:
    """Return a region's operands, and what its results are written to."""
    dims, (step,) = kernel_tensors(region.graph), region.graph.kernels
    given = [turned(region.inputs[n], dims[n], region.lying[n]) for n in step.operands]
    return given, [np.full([d.size for d in region.lying[n]], 7, np.float32) for n in step.outputs]


def _check(region: Region, kernel: CKernel, made: Sequence[Array]) -> None:
    graph, dims = region.graph, kernel_tensors(region.graph)
    (step,) = graph.kernels
    with np.errstate(all="ignore"):
        wide = {name: value.astype(np.float64) for name, value in region.inputs.items()}
        exact = evaluate(graph, wide, Numbers("float64"))
        rounded = evaluate(graph, dict(region.inputs), Numbers("float32"))
        others = evaluate(graph, wide, _Off(0))
        for name, own in zip(step.outputs, made, strict=True):
            want, other, off = (
                turned(values[name], dims[name], region.lying[name])
                for values in (exact, rounded, others)
            )
            _compare(own, want, other, off, f"{kernel.name}: {name}")


def _compare(own: Array, want: Array, rounded: Array, off: Array, where: str) -> None:
    """Compare C with float64; where NumPy's float32 is infinite or none, that is right, too."""
    is_plain = np.isfinite(want) & np.isfinite(rounded) & (np.abs(want) < 1e30)
    same_kind = (np.isnan(own) & (np.isnan(want) | np.isnan(rounded))) | (own == rounded)
    same_kind |= own == want.astype(np.float32)
    assert (is_plain | same_kind | (np.abs(want) >= 1e30)).all(), where
    assert np.isfinite(own[is_plain]).all(), where
    size = np.abs(want[is_plain]).max(initial=0)
    error = np.abs(own - want)[is_plain].max(initial=0)
    is_known = is_plain & np.isfinite(off)
    usual = max(
        np.abs(rounded - want)[is_plain].max(initial=0), np.abs(off - want)[is_known].max(initial=0)
    )
    assert error <= _TIMES * usual + _ROUNDING * size, (where, error, usual, size)


_MAIN = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *some(long bytes, int is_bool) {
  char *made = malloc(bytes + 4);  // at four bytes, no more
  for (long k = 0; k < bytes; ++k) made[4 + k] = 0;
  if (!is_bool) for (long k = 0; k < bytes / 4; ++k) ((float *)(made + 4))[k] = (float)(k % 13) / 7 - 0.8f;
  return made + 4;
}
static long parts;
static void in_threads(void *(*run)(void *), long number) {
  pthread_t threads[5];
  parts = number;
  for (long part = 0; part < parts; ++part) pthread_create(&threads[part], NULL, run, (void *)part);
  for (long part = 0; part < parts; ++part) pthread_join(threads[part], NULL);
}
"""


def _called(kernel: CKernel, region: Region) -> tuple[str, str]:
    """Return C that is outside of ``main``, and within: a kernel's parts, in threads, beside all of it."""
    dims, (step,) = kernel_tensors(region.graph), region.graph.kernels
    sizes = [4 * count(dims[name]) for name in (*step.operands, *step.outputs)]
    if kernel.most_parts == 1:
        return "", f"  {kernel.name}({', '.join(f'some({size}, 0)' for size in sizes)});\n"
    name, first = f"of_{kernel.name}", len(step.operands)
    given = ", ".join(f"{name}[{n}]" for n in range(len(sizes)))
    outside = f"""static void *{name}[{len(sizes)}];
static void *run_{name}(void *part) {{ {kernel.name}({given}, (long)part, parts); return NULL; }}
"""
    inside = "".join(f"  {name}[{n}] = some({size}, 0);\n" for n, size in enumerate(sizes))
    inside += f"  in_threads(run_{name}, 1);\n"
    places = range(first, len(sizes))
    inside += "".join(
        f"  void *whole_{n}_{name} = {name}[{n}]; {name}[{n}] = some({sizes[n]}, 0);\n"
        for n in places
    )
    inside += f"  in_threads(run_{name}, {min(kernel.most_parts, 5)});\n"
    return outside, inside + "".join(
        f'  if (memcmp(whole_{n}_{name}, {name}[{n}], {sizes[n]})) return printf("{name}"), 1;\n'
        for n in places
    )


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
@pytest.mark.parametrize("which", [range(6), nightly(range(6, 150))])
def test_kernels_are_clean_under_sanitizers(
    which: range, sanitizers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is touched outside of arrays, on the stack or off it, nothing is undefined, and no part
    writes what another one does: together they compute what the whole does."""
    monkeypatch.setattr(module, "LEAST_PART_US", 1e-3)
    regions = _regions(which)
    kernels = _emitted(regions, may_be_parted=True)
    assert sum(kernel.most_parts > 1 for kernel in kernels) * 6 > len(kernels)
    calls = [_called(kernel, region) for region, kernel in zip(regions, kernels, strict=True)]
    outside, inside = ("".join(each) for each in zip(*calls, strict=True))
    path, program = tmp_path / "main.c", tmp_path / "main"
    source = f"{_together(kernels)}{_MAIN}{outside}int main(void) {{\n{inside}  return 0;\n}}\n"
    path.write_text(source, encoding="utf-8")
    flags = ["-std=c11", "-O1", "-g", "-fopenmp-simd", f"-fsanitize={sanitizers}", "-pthread"]
    command = ["cc", *flags, "-fno-sanitize-recover=all", str(path), "-o", str(program), "-lm"]
    subprocess.run(command, check=True)
    plain = ["setarch", "-R"] if sanitizers == "thread" else []  # its shadow has fixed places
    run = subprocess.run(
        [*plain, program], capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert run.returncode == 0, run.stdout + run.stderr[:2000]


def test_parts_that_overlap_are_seen(tmp_path: Path) -> None:
    """The sanitizer of threads does see two threads that write one element."""
    path, program = tmp_path / "main.c", tmp_path / "main"
    own = (
        "static float cell;\nstatic void *run(void *part) { cell += (float)parts; return part; }\n"
    )
    path.write_text(f"{_MAIN}{own}int main(void) {{ in_threads(run, 4); return !cell; }}\n")
    flags = ["-std=c11", "-O1", "-g", "-fsanitize=thread", "-pthread"]
    subprocess.run(["cc", *flags, str(path), "-o", str(program)], check=True)
    run = subprocess.run(["setarch", "-R", program], capture_output=True, text=True)
    assert "data race" in run.stderr
