"""Sums of parts between kernels: float32, as float16 has no room for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.emulation.errors import drawn, exact, norm_error
from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.routes import FoundGraph, build
from relational_tensat.mugraph.sizes.cost_model import graph_us
from relational_tensat.mugraph.sizes.waves import a100
from relational_tensat.mugraph.verify import verification
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph.kernels.inputs import with_level_keys
from tests.mugraph.kernels.mugraphs import split_attention
from tests.mugraph.mugraphs import with_wide_results
from tests.mugraph.searches import searched

SIZES = {"h": 1, "q": 8, "d": 8, "k": 512, "e": 4}


def narrow(graph: MuGraph) -> MuGraph:
    """Return a graph that stores everything as the model's elements."""
    steps = []
    for kernel in graph.kernels:
        savers = tuple(replace(saver, is_wide=False) for saver in kernel.block.savers)
        steps.append(Kernel(kernel.name, replace(kernel.block, savers=savers)))
    return replace(graph, steps=tuple(steps))


def test_sums_of_4096_level_keys_are_right_in_float16() -> None:
    """Each of two blocks adds up 2,048 values of 24 and more, which no float16 holds."""
    graph = split_attention(k=4096, loop=8)
    inputs = with_level_keys(drawn(graph), 48)
    want = exact(graph, inputs)
    (wide,) = evaluate(graph, inputs, Numbers("float16")).values()
    assert wide.dtype == np.float16 and norm_error(wide, want) < 1e-3
    (other,) = evaluate(narrow(graph), inputs, Numbers("float16")).values()
    assert np.isinf(other).any()


def test_flash_decoding_is_found_with_wide_sums_and_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first kernel stores sums of exponentials, and of what they weigh, of a part of the keys."""
    monkeypatch.setattr(verification, "ERROR", 0.1)
    decoding = [r for r in searched("attention", 2).routes if len(r.alternatives) == 2][-1]
    first = next(k for k in decoding.alternatives[0] if (k.grid, k.loop) == (("k",), "k"))
    kernels = (first, decoding.alternatives[1][0])
    found = FoundGraph(program("attention", **SIZES), kernels, ())
    raw = build(found, [((2,), 4), ((), 1)])
    graph = stabilized(replace(raw, outputs=raw.kernels[-1].outputs))
    assert graph.wide == {"part5", "part6", "part5_max"}
    passed = verify_mugraph(found.program, graph)
    assert passed.is_stable and passed.level_error is not None
    refused = verify_mugraph(found.program, narrow(graph))
    assert refused.passed and refused.takes_large_logits and not refused.takes_large_sums


def test_what_the_program_has_itself_stays_as_it_is_there() -> None:
    """Between the kernels of an MLP lie X·A or its relu, of float16, or sums of parts, of float32."""
    routes = [r for r in searched("mlp", 2).routes if len(r.alternatives) == 2]
    kinds = set()
    for kernel in (kernel for route in routes for kernel in route.alternatives[0]):
        units = [((1,) * len(kernel.grid), 1)]
        (saver,) = build(FoundGraph(program("mlp"), (kernel,), ()), units).kernels[0].block.savers
        has_parts = any(dim.variable.endswith("'") for dim in saver.dims)
        assert saver.is_wide == has_parts
        kinds.add(has_parts)
    assert kinds == {False, True}


def test_wide_results_are_kept_in_files_and_cost_their_bytes() -> None:
    graph = split_attention(k=4096, loop=8)
    assert decoded(encoded(graph), "file") == graph
    assert with_wide_results(narrow(graph)) == graph
    assert graph_us(graph, a100()) > graph_us(narrow(graph), a100())


def test_no_output_is_wide() -> None:
    content = encoded(split_attention())
    content["steps"][-1]["savers"][0]["wide"] = True
    with pytest.raises(InputError, match="the output 'Y' is wide"):
        decoded(content, "file")
