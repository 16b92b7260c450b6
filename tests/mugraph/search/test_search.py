"""What searches find: each program's kernels, exactly as many as there are, all of them right."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.graph.mugraph import Accumulate, MuGraph, Operation
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.found import FoundGraph, FoundKernel, build
from relational_tensat.mugraph.search.kernel_search import SearchResult, search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import resized
from relational_tensat.mugraph.verify.random_tests import first_difference

#: Configurations, terms and found graphs; a search has no chance in it.
COUNTS = {
    "attention": (156, 1597, 48),
    "rmsnorm_linear": (32, 232, 16),
    "lora": (75, 2260, 20),
    "mlp": (75, 619, 20),
    "gated_mlp": (32, 352, 16),
    "ntrans": (12, 152, 2),
}


@cache
def searched(name: str) -> SearchResult:
    return search_kernels(program(name))


def formulas(kernel: FoundKernel) -> dict[str, str]:
    """Return what each of a kernel's tensors is, written out."""
    texts = {tile: tensor for tensor, tile in kernel.loads}
    for step in kernel.steps:
        operands = ", ".join(texts[name] for name in step.operands)
        if isinstance(step, Accumulate):
            texts[step.output] = (
                f"Σ({operands})" if step.kind == "sum" else f"{step.kind}({operands})"
            )
        elif isinstance(step, Operation):
            texts[step.output] = f"{step.op}({operands})"
    return texts


def stored(kernel: FoundKernel) -> str:
    """Return what a kernel stores, written out."""
    ((tile, _),) = kernel.stores
    return formulas(kernel)[tile]


def small(found: FoundGraph) -> tuple[MuGraph, MuGraph]:
    """Return a program and its found graph at sizes other than the search's."""
    names = {d.variable for dims in found.program.inputs.values() for d in dims}
    other = resized(found.program, dict.fromkeys(names, 12))
    splits = [((2,) * len(kernel.grid), 3 if kernel.loop else 1) for kernel in found.kernels]
    return other, build(replace(found, program=other), splits)


@pytest.mark.parametrize("name", COUNTS)
def test_as_many_graphs_are_found_as_there_are_and_all_are_right(name: str) -> None:
    result = searched(name)
    counts = result.counts
    assert (counts.configurations, counts.terms, len(result.found)) == COUNTS[name]
    for found in result.found:
        assert first_difference(*small(found), seed=7) is None


def test_flash_attention_is_found() -> None:
    kernels = [found.kernels[0] for found in searched("attention").found]
    (flash,) = [k for k in kernels if (k.grid, k.loop) == (("h", "q"), "k")]
    weights = "exp(matmul(Q, K))"
    assert stored(flash) in (
        f"div(Σ(matmul({weights}, V)), Σ(sum({weights})))",
        f"div(Σ(matmul(V, {weights})), Σ(sum({weights})))",
    )


def test_lora_needs_no_special_operator() -> None:
    """Its cheapest derivation is XW + (XA)B, although it has the value of X(W + AB)."""
    kernels = [found.kernels[0] for found in searched("lora").found]
    (kernel,) = [k for k in kernels if (k.grid, k.loop) == (("n",), "")]
    assert stored(kernel) in (
        "add(matmul(X, W), matmul(B, matmul(X, A)))",
        "add(matmul(X, W), matmul(matmul(X, A), B))",
    )


def test_a_block_has_at_most_so_many_operators() -> None:
    assert not search_kernels(program("mlp"), SearchOptions(max_operators=2)).found
    for found in search_kernels(program("mlp"), SearchOptions(max_operators=3)).found:
        assert len(found.kernels[0].steps) == 3


def test_a_search_that_is_ended_returns_what_it_has() -> None:
    result = search_kernels(program("attention"), watch=Watch(should_stop=lambda: True))
    assert not result.is_complete
    assert not result.found
