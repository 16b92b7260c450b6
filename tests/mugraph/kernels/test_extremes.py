"""Maxima as models have them, absolute values and powers: as code, searched, verified, and in a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, norm_error
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat import Options, optimize
from relational_tensat.mugraph.fusion.candidates import chain_candidates
from relational_tensat.mugraph.fusion.kernel_builder import computes_nodes
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import Accumulate, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.regions.node_programs import lowered
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.verify.evaluate import evaluate_graph
from tests.mugraph.extremes import absmax_linear, drawn, expected, kernel, powers_model
from tests.with_compilers import skip_without_compiler
from tests.with_triton import skip_without_triton

LOOPS = (1, 3)


def errors(target: str, loop: int, folder: Path) -> list[float]:
    """Return the relative errors of what a kernel stores, which has to be infinite, or NaN, where it is."""
    graph, inputs = kernel(loop), drawn(DTYPES[target])
    computed = run_kernels(graph, inputs, target, folder)
    found = []
    for name, wanted in zip(graph.outputs, expected(inputs, loop > 1), strict=True):
        value = computed[name].astype("float64")
        is_finite = np.isfinite(wanted)
        np.testing.assert_array_equal(value[~is_finite], wanted[~is_finite], err_msg=name)
        found.append(norm_error(value[is_finite], wanted[is_finite]))
    return found


def test_they_mean_what_numpy_says() -> None:
    for loop in LOOPS:
        graph, inputs = kernel(loop), drawn("float64")
        computed = evaluate(graph, inputs, Numbers())
        for name, wanted in zip(graph.outputs, expected(inputs, loop > 1), strict=True):
            np.testing.assert_allclose(computed[name], wanted, rtol=1e-12)
        assert decoded(json.loads(json.dumps(encoded(graph))), "again") == graph
    assert "t[m=2] = reduce_max over the loop of x along k" in mugraph_text(kernel(3))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("target", ["c", "cuda"])
def test_code_does_what_they_mean(target: str, loop: int, tmp_path: Path) -> None:
    skip_without_compiler(target)
    assert max(errors(target, loop, tmp_path)) < TOLERANCES[DTYPES[target]]


def test_triton_does_what_they_mean() -> None:
    """In a process of its own: Triton decides when it is imported whether it is interpreted."""
    skip_without_triton()
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.interpreting_extremes"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(printed.stdout)
    assert len(found) == 2 * len(kernel().outputs) and max(found) < TOLERANCES["float16"]


def test_a_search_divides_by_the_largest_after_the_product() -> None:
    """As for the root mean square: X·W and rows' largest absolute values in one loop, then the quotient."""
    model = absmax_linear(8, 8192, 1024)
    program = lowered(model, model.nodes, model.name).program
    assert [step.op for step in program.operators] == ["abs", "reduce_max", "div", "matmul"]
    best = find_kernels(program, SearchOptions(max_kernels=1, max_operators=6)).best
    assert best is not None
    (found,) = best.graph.kernels
    kinds = {step.kind for step in found.block.steps if isinstance(step, Accumulate)}
    assert kinds == {"sum", "reduce_max"} and found.block.loop > 1
    assert verify_mugraph(program, best.graph, 5).passed
    for change in ("max", "rms"):
        assert not verify_mugraph(program, _changed(best.graph, change), 5).passed


def _changed(graph: MuGraph, kind: str) -> MuGraph:
    (found,) = graph.kernels
    steps = tuple(
        replace(step, kind=kind)
        if isinstance(step, Accumulate) and step.kind == "reduce_max"
        else step
        for step in found.block.steps
    )
    if kind == "max":  # over the row first: finite where all is -inf
        place = next(
            n for n, s in enumerate(steps) if isinstance(s, Accumulate) and s.kind == "max"
        )
        step = steps[place]
        assert isinstance(step, Accumulate)
        row = Operation("max", (step.operand,), f"{step.output}_row", {"over": step.along})
        whole = Accumulate(row.output, step.output, "max")
        steps = (*steps[:place], row, whole, *steps[place + 1 :])
    return replace(graph, steps=(replace(found, block=replace(found.block, steps=steps)),))


def test_a_region_and_a_chain_compute_what_their_nodes_compute() -> None:
    model = powers_model()
    (chain,) = chain_candidates(model)
    ops = {step.op for step in chain.program.operators}
    assert ops == {"abs", "power", "pow", "mul", "add", "sub", "reduce_max"}
    assert computes_nodes(chain, 3)
    region = lowered(model, model.nodes, model.name)
    assert {step.op for step in region.program.operators} == {*ops, "square"}  # of the cube
    random = np.random.default_rng(2)
    given = {name: random.standard_normal((4, 8)) for name in model.inputs}
    numbers = {name: weight.data for name, weight in model.weights.items()}
    (wanted,) = evaluate_graph(model, given, numbers).values()
    values = {
        key: given[name] for key, name in zip(region.program.inputs, region.inputs, strict=True)
    }
    (computed,) = evaluate(region.program, values, Numbers()).values()
    np.testing.assert_allclose(computed.reshape(4, 8), wanted, rtol=1e-6)


@pytest.mark.nightly
def test_in_a_run_they_are_one_kernel() -> None:
    for model in (powers_model(), absmax_linear()):
        result = optimize(model, Options.of(fuse=True, fuse_kernels=1))
        assert result.graph.count_ops() == {"fused": 1}
        assert result.verification.runs
