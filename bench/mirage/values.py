"""What the kernels of kept μGraphs compute, run on the CPU, beside what they mean in float64.

Each kernel runs with its own tiles, but few blocks; then all kernels of a μGraph one after the other, at
its smallest sizes, beside the program.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.emulation.cuda_emulator import Emulated
from bench.emulation.errors import TOLERANCES, exact_outputs, norm_error
from bench.emulation.fewer_blocks import single_kernels, with_fewer_blocks, with_outputs
from bench.emulation.runs import DTYPES, run_kernels
from bench.mirage.cases import cases
from bench.mirage.table import Table
from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash, decoded
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.verify.small_sizes import shrunk
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.tensor import Array

HEADER = ("benchmark", "what runs", "sizes", "grid and loop", "error", "tolerance", "remark")
#: What a language has no words for is no error of a kernel.
LEFT_OUT = "left out: "
_WHOLE = "all kernels, beside the program"


def value_rows(run: Mapping[str, Any], target: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kernel of a kept run, and one for all of them together."""
    name = run["search"]["case"]
    graph = decoded(run["mugraph"], name)
    for single in single_kernels(graph):
        few = with_fewer_blocks(single)
        yield name, single.kernels[0].name, *compared(with_outputs(few), few, target, graph.wide)
    for small in small_pairs({name: graph}).values():
        yield name, _WHOLE, *compared(*small, target)


def small_pairs(graphs: Mapping[str, MuGraph]) -> dict[str, tuple[MuGraph, MuGraph]]:
    """Return benchmarks' programs with μGraphs at their smallest sizes, equal ones once.

    Args:
        graphs: by the names of benchmarks.
    """
    programs = {case.name: case.build() for case in cases() if case.name in graphs}
    pairs: dict[str, tuple[MuGraph, MuGraph]] = {}
    known: set[str] = set()
    for name, graph in graphs.items():
        small = shrunk(programs[name], graph)
        if small is not None and content_hash(small[1]) not in known:
            known.add(content_hash(small[1]))
            pairs[name] = small
    return pairs


def is_right(row: tuple[str, ...]) -> bool:
    """Whether a row's kernels computed what they should, or are none of the target's."""
    error, tolerance, remark = row[-3:]
    return remark.startswith(LEFT_OUT) or (not remark and float(error) <= float(tolerance))


def value_table(rows: list[tuple[str, ...]], target: str) -> Table:
    """Return the rows under a title."""
    return Table(f"Values, by way of {target}", HEADER, tuple(rows))


def compared(
    program: MuGraph,
    graph: MuGraph,
    target: str,
    wide: Collection[str] = (),
    library: Emulated | None = None,
) -> tuple[str, ...]:
    """Return sizes, splits, the largest error of an output of the program, the tolerance, and a remark.

    Args:
        program: what the kernels shall compute.
        graph: of them.
        target: a language.
        wide: the inputs that are float32.
        library: see ``run_kernels``.
    """
    dtype = DTYPES[target]
    inputs = _drawn(graph, dtype, wide)
    kinds = dict.fromkeys(dim for dims in kernel_tensors(graph).values() for dim in dims)
    about = (" ".join(map(str, kinds)), "; ".join(_splits(graph)))
    wanted = exact_outputs(_without_overflow(program), inputs)
    outputs = graph.outputs or program.outputs
    try:
        with tempfile.TemporaryDirectory() as folder:
            made = run_kernels(graph, inputs, target, Path(folder), library)
    except InputError as error:
        return *about, "-", "-", f"{LEFT_OUT}{error}"
    except AssertionError as error:
        return *about, "-", "-", str(error)
    pairs = zip(outputs, wanted.values(), strict=True)
    worst = max(norm_error(made[name], want) for name, want in pairs)
    return *about, f"{worst:.1e}", f"{TOLERANCES[dtype]:.0e}", ""


def _without_overflow(program: MuGraph) -> MuGraph:
    return program if program.kernels else stabilized(program)


def _drawn(graph: MuGraph, dtype: str, wide: Collection[str]) -> dict[str, Array]:
    """Return inputs; the wide ones, which kernels store, are positive, as sums of exponentials are."""
    random = np.random.default_rng(zlib.crc32(graph.name.encode()))
    inputs = {}
    for name, dims in graph.inputs.items():
        value = random.standard_normal([dim.size for dim in dims]) / 2
        is_wide = name in wide
        inputs[name] = (np.abs(value) + 0.5).astype("float32") if is_wide else value.astype(dtype)
    return inputs


def _splits(graph: MuGraph) -> Iterator[str]:
    for kernel in graph.kernels:
        grid = " x ".join(map(str, kernel.block.grid)) or "1"
        yield f"{grid} loop {kernel.block.loop}" if kernel.block.loop > 1 else grid
