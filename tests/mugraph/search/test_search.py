"""What searches find: each program's kernels, exactly as many as there are, all of them right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.graph.mugraph import Accumulate, MuGraph, Operation
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.routes import FoundGraph, FoundKernel, build
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import resized, structure_of
from relational_tensat.mugraph.verify.random_tests import first_difference
from tests.mugraph.searches import graphs, searched

#: Configurations and terms of one kernel, and graphs found; a search has no chance in it.
COUNTS = {
    "attention": (78, 397, 24),
    "rmsnorm_linear": (16, 44, 8),
    "lora": (45, 349, 12),
    "mlp": (45, 139, 12),
    "gated_mlp": (16, 64, 8),
    "ntrans": (8, 76, 2),
}


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
    (level,) = result.levels
    assert (level.configurations, level.terms, len(graphs(result))) == COUNTS[name]
    for found in graphs(result):
        assert first_difference(*small(found), seed=7) is None


def test_flash_attention_is_found() -> None:
    kernels = [found.kernels[0] for found in graphs(searched("attention"))]
    (flash,) = [k for k in kernels if (k.grid, k.loop) == (("h", "q"), "k")]
    weights = "exp(matmul(Q, K))"
    assert stored(flash) in (
        f"div(Σ(matmul({weights}, V)), Σ(sum({weights})))",
        f"div(Σ(matmul(V, {weights})), Σ(sum({weights})))",
    )


def test_flash_decoding_is_found() -> None:
    """Two kernels: partial products and partial sums of blocks of keys, then the quotient of their sums."""
    weights = "exp(matmul(Q, K))"
    found = {}
    for route in searched("attention", 2).routes:
        for first in route.alternatives[0]:
            if len(route.alternatives) == 2 and (first.grid, first.loop) == (("h", "q", "k"), ""):
                texts = formulas(first)
                made = frozenset(texts[tile] for tile, _ in first.stores)
                found[made] = stored(route.alternatives[1][0])
    assert found[frozenset({f"matmul(V, {weights})", f"sum({weights})"})].startswith("div(sum(")


def test_the_adapter_of_figure_10_is_found() -> None:
    """The first product summed in part by the first kernel, the rest and all else by the second."""
    texts = [
        (stored(route.alternatives[0][0]), stored(route.alternatives[1][0]))
        for route in searched("mlp", 2).routes
        if len(route.alternatives) == 2
    ]
    assert any(
        one == "matmul(X, A)" and two.endswith(f"relu(sum({part})))")
        for one, two in texts
        for part in ("part1",)
    )


def test_graphs_of_two_kernels_are_right() -> None:
    for name in ("attention", "mlp"):
        for route in searched(name, 2).routes:
            found = next(route.graphs())
            assert first_difference(*small(found), seed=11) is None


def test_graphs_of_three_kernels_are_right() -> None:
    """Of two operators each: there is no graph of one kernel then."""
    few = SearchOptions(max_operators=2, max_kernels=3)
    result = search_kernels(program("rmsnorm_linear"), few)
    assert [len(route.alternatives) for route in result.routes] == [2] * 4 + [3] * 3
    for route in result.routes[4:]:
        assert first_difference(*small(next(route.graphs())), seed=11) is None


def test_lora_needs_no_special_operator() -> None:
    """Its cheapest derivation is XW + (XA)B, although it has the value of X(W + AB)."""
    kernels = [found.kernels[0] for found in graphs(searched("lora"))]
    (kernel,) = [k for k in kernels if (k.grid, k.loop) == (("n",), "")]
    assert stored(kernel) in (
        "add(matmul(X, W), matmul(B, matmul(X, A)))",
        "add(matmul(X, W), matmul(matmul(X, A), B))",
    )


def test_a_block_has_at_most_so_many_operators() -> None:
    few = SearchOptions(max_operators=2, max_kernels=1)
    assert not search_kernels(program("mlp"), few).routes
    enough = SearchOptions(max_operators=3, max_kernels=1)
    for found in graphs(search_kernels(program("mlp"), enough)):
        assert len(found.kernels[0].steps) == 3


def test_a_search_that_is_ended_returns_what_it_has() -> None:
    result = search_kernels(program("attention"), watch=Watch(should_stop=lambda: True))
    assert not result.is_complete
    assert not result.routes


@pytest.mark.nightly
def test_what_is_switched_off_costs_work_and_loses_nothing() -> None:
    """At so few operators that the search ends without it, too."""
    for operators, every in ((1, ["pruning"]), (3, ["canonical", "merging", "variables"])):
        few = SearchOptions(max_operators=operators, max_kernels=1)
        (with_all,) = search_kernels(program("mlp"), few).levels
        for means in every:
            (level,) = search_kernels(program("mlp"), replace(few, disable=(means,))).levels
            assert level.hits == with_all.hits
            assert level.candidates >= with_all.candidates
    without = search_kernels(program("mlp"), SearchOptions(disable=("reachability",)))
    assert len(without.routes) >= len(searched("mlp", 2).routes)


def test_a_time_limit_leaves_what_was_found() -> None:
    result = search_kernels(program("attention"), SearchOptions(time_limit_s=0.0))
    assert not result.is_complete
    assert not result.routes


def test_a_sum_over_several_variables_is_one_after_the_other_in_blocks() -> None:
    """As of heads that a matrix brings together: each of these sums has an abstract class."""
    b = ProgramBuilder("heads", X="m=12 h=12 k=12", W="h=12 k=12 n=12")
    heads = b.build(b.apply("matmul", "X", "W", over=("h", "k")))
    result = search_kernels(heads, SearchOptions(max_kernels=1, max_operators=3))
    pruned = search_kernels(
        heads, SearchOptions(max_kernels=1, max_operators=3, disable=("pruning",))
    )
    assert len(result.routes) == len(pruned.routes) > 0
    for found in graphs(result):
        assert first_difference(*small(found), 1) is None


def test_structural_sizes_are_smaller_where_much_is_summed() -> None:
    b = ProgramBuilder("groups", P="h=2 g=3 q=8 k=16", V="h=2 k=16 d=32", W="h=2 g=3 d=32 n=96")
    mixed = b.apply("matmul", "P", "V", over=("k",))
    groups = b.build(b.apply("matmul", mixed, "W", over=("h", "g", "d")))
    sizes = {v.name: v.size for v in structure_of(groups).variables}
    assert [sizes[name] for name in "khgd"] == [8, 8, 8, 8]
    sizes = {v.name: v.size for v in structure_of(program("qknorm")).variables}
    assert [sizes[name] for name in "dek"] == [8, 27, 125]


def test_an_input_that_nothing_reads_is_no_matter_of_the_search() -> None:
    b = ProgramBuilder("product", U="u=4", X="m=8 k=8", W="k=8 n=8")
    product = b.build(b.apply("matmul", "X", "W", over=("k",)))
    finding = find_kernels(product, SearchOptions(max_kernels=1))
    assert finding.best is not None and set(finding.best.graph.inputs) == set("UXW")
    assert first_difference(product, finding.best.graph, 1) is None
