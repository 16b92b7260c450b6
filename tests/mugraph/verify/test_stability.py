"""Stability: a maximum goes wherever rows of exponentials may be scaled, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.mugraph import MuGraph, RunningMax
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.search.routes import build
from relational_tensat.mugraph.verify import random_tests, verification
from relational_tensat.mugraph.verify.random_tests import (
    OutputDifference,
    first_difference,
    relative_error,
    scaling_difference,
)
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph.mugraphs import flash_attention
from tests.mugraph.searches import searched

SIZES = {"h": 2, "q": 8, "d": 16, "k": 64, "e": 8}
#: Inputs of this size have logits of ±600, of which exp overflows float16, float32 and float64 sums of it.
LARGE = 6.3


def decodings() -> Iterator[MuGraph]:
    """Yield μGraphs of two kernels for attention: one of each way."""
    for route in searched("attention", 2).routes:
        if len(route.alternatives) == 2:
            found = replace(next(route.graphs()), program=program("attention", **SIZES))
            splits = [((2,) * len(k.grid), 2 if k.loop else 1) for k in found.kernels]
            yield build(found, splits)


def test_flash_attention_gets_the_online_maximum() -> None:
    raw = flash_attention(**SIZES)
    stable = stabilized(raw)
    (kernel,) = stable.kernels
    assert any(isinstance(step, RunningMax) for step in kernel.block.steps)
    reference = stabilized(program("attention", **SIZES))
    assert relative_error(reference, stable, 1) < 1e-12
    assert relative_error(reference, raw, 1, "float16", LARGE) == float("inf")
    assert relative_error(reference, stable, 1, "float16", LARGE) < 0.05
    assert first_difference(program("attention", **SIZES), stable, 1) is None


def test_scaling_is_tested_at_small_sizes_of_kernels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[int] = []

    def noted(program: MuGraph, graph: MuGraph, seed: int) -> OutputDifference | None:
        tested.extend(dim.size for dims in program.inputs.values() for dim in dims)
        return first_difference(program, graph, seed)

    monkeypatch.setattr(random_tests, "first_difference", noted)
    sizes = {"h": 256, "q": 512, "d": 128, "k": 4096, "e": 128}
    assert scaling_difference(flash_attention(**sizes)) is None
    assert scaling_difference(program("attention", **sizes)) is None
    assert max(tested) == 4


def test_kernels_that_split_keys_store_their_maxima() -> None:
    reference = stabilized(program("attention", **SIZES))
    stable = []
    for graph in decodings():
        try:
            stable.append(stabilized(graph))
        except VerificationError as error:
            assert "cannot be made stable" in str(error)
    assert any("max" in output for graph in stable for k in graph.kernels for output in k.outputs)
    for graph in stable:
        assert first_difference(program("attention", **SIZES), graph, 1) is None
        assert relative_error(reference, graph, 1, "float16", LARGE) < 0.05


def test_what_scaling_changes_is_refused() -> None:
    """An exponential as an activation: its rows are added to others, or the result itself."""
    builder = ProgramBuilder("activation", X="m=4 k=8", A="k=8 f=4", B="f=4 n=2")
    hidden = builder.apply("exp", builder.matmul("X", "A", "k"))
    graph = builder.build(builder.matmul(hidden, "B", "f"))
    difference = scaling_difference(graph)
    assert difference is not None
    with pytest.raises(VerificationError, match="when rows of exp are scaled, "):
        stabilized(graph)


def test_what_has_no_exponentials_stays_as_it_is() -> None:
    graph = program("lora", m=2, k=4, n=2, r=2)
    assert stabilized(graph) is graph


def test_verification_says_what_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "ERROR", 0.1)
    attention = program("attention", **SIZES)
    raw = verify_mugraph(attention, flash_attention(**SIZES))
    assert raw.passed
    assert not raw.is_stable
    assert verify_mugraph(attention, stabilized(flash_attention(**SIZES))).is_stable
