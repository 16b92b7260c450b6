"""Every kernel of the benchmarks' μGraphs, as they are kept: machine code and values, without a GPU.

Values: all kernels of each μGraph, at its smallest sizes; by Triton's interpreter each kernel with its own
tiles, too (by CUDA thread by thread that takes a minute: ``bench mirage --values``). Machine code: what the
kept tables have of the very same source, by the same compiler; what is not there is compiled here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from bench.common.result_file import RESULTS
from bench.emulation.errors import TOLERANCES
from bench.emulation.runs import emulated
from bench.mirage.cases import cases
from bench.mirage.machine_code import is_fit, kept_runs
from bench.mirage.values import compared, small_pairs
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded
from relational_tensat.mugraph.kernels.emit_cuda import ARCHITECTURES
from tests.gpu.test_nvrtc import needs_nvrtc
from tests.mugraph.kernels.compiled_benchmarks import compiled_rows
from tests.mugraph.kernels.inputs import numbered
from tests.with_compilers import needs_cpp
from tests.with_triton import skip_without_triton

KEPT = max(RESULTS.glob("mirage-*/benchmarks.json"))


@cache
def graphs() -> dict[str, MuGraph]:
    """Return the best μGraph of each benchmark."""
    runs = kept_runs(KEPT)
    return {run["search"]["case"]: decoded(run["mugraph"], str(KEPT)) for run in runs}


def test_each_benchmark_has_a_kept_graph() -> None:
    assert graphs().keys() == {case.name for case in cases()}


@pytest.mark.nightly
@needs_cpp
def test_cuda_computes_what_the_programs_do(tmp_path: Path) -> None:
    """Thread by thread, forward and backward: no race, nothing outside of tensors."""
    programs, small = zip(*small_pairs(graphs()).values(), strict=True)
    named = numbered(small)
    library = emulated(named, tmp_path)
    for program, graph in zip(programs, named, strict=True):
        *about, error, tolerance, remark = compared(program, graph, "cuda", library=library)
        assert not remark and 0 < float(error) <= float(tolerance), (graph.name, about, remark)


@pytest.mark.nightly
def test_triton_computes_what_the_programs_do() -> None:
    """With its own tiles, too; in a process of its own, where Triton is interpreted."""
    skip_without_triton()
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [
        sys.executable,
        "-m",
        "tests.mugraph.kernels.triton.interpreting_benchmarks",
        str(KEPT),
    ]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows = json.loads(printed.stdout)
    assert len(rows) >= len(graphs()) + sum(len(graph.kernels) for graph in graphs().values())
    for name, what, *_, error, tolerance, remark in rows:
        assert not remark and float(error) <= float(tolerance), (name, what, remark)
        assert float(tolerance) == TOLERANCES["float16"]


@pytest.mark.nightly
@needs_nvrtc
def test_cuda_compiles_for_each_generation() -> None:
    _check_codes(compiled_rows(KEPT, "cuda"))


@pytest.mark.nightly
def test_triton_compiles_for_each_generation(tmp_path: Path) -> None:
    skip_without_triton()
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    command = [
        sys.executable, "-m", "tests.mugraph.kernels.compiled_benchmarks", str(KEPT), "triton",
    ]  # fmt: skip
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    _check_codes([tuple(row) for row in json.loads(printed.stdout)])


def _check_codes(rows: list[tuple[str, ...]]) -> None:
    """Without spills, in shared memory of an A100; what is kept is what is compiled."""
    *every, last = rows
    assert len(every) == len(ARCHITECTURES) * sum(len(g.kernels) for g in graphs().values())
    for row in every:
        assert is_fit(row), row
    assert every[-1] == last
