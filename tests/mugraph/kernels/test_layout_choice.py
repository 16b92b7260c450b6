"""Layouts of μGraphs: the integer program beside all choices, and what it prefers."""

from __future__ import annotations

import numpy as np

from relational_tensat.mugraph.graph.dims import count, dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.kernels.accesses import accesses, order_of
from relational_tensat.mugraph.kernels.choice_program import CostedChoices, solve
from relational_tensat.mugraph.kernels.cuda_buffers import with_partials
from relational_tensat.mugraph.kernels.kernel_statements import lower
from relational_tensat.mugraph.kernels.layout_choice import (
    LayoutProblem,
    chosen_layouts,
)
from relational_tensat.mugraph.kernels.layouts import orders, shared_layouts
from relational_tensat.mugraph.kernels.statements import Compute, Load, Save
from tests.mugraph.kernels.mugraphs import (
    SMALL,
    attention,
    gated_mlp,
    lora,
    rmsnorm_linear,
    split_attention,
)


def least(choices: CostedChoices) -> int:
    """Return the cost of the cheapest choice, by looking at all of them."""
    total = np.zeros(choices.sizes, np.int64)
    for table in choices.tables:
        order = np.argsort(table.variables)
        shape = [1] * len(choices.sizes)
        for variable in table.variables:
            shape[variable] = choices.sizes[variable]
        total += table.costs.transpose(order).reshape(shape)
    for limit in choices.limits:
        used = np.zeros(choices.sizes, np.int64)
        for variable, terms in limit.terms.items():
            shape = [1] * len(choices.sizes)
            shape[variable] = len(terms)
            used += np.array(terms).reshape(shape)
        total[used > limit.most] = np.iinfo(np.int64).max
    return int(total.min())


def test_no_choice_is_cheaper_than_the_integer_programs() -> None:
    wide = attention(1, 16, 64, 64, 64, (1, 1), 2)
    for graph, most_bytes in (
        (attention(), 1 << 18), (rmsnorm_linear(), 1 << 18), (gated_mlp(), 1 << 18),
        (lora(), 1 << 18), (wide, 1 << 18), (wide, 20 << 10),
    ):  # fmt: skip
        for dtype in ("float16", "float32"):
            choices = LayoutProblem.of_graph(graph, dtype, most_bytes).choices
            solution = solve(choices)
            assert solution.bound >= solution.cost and solution.cost == least(choices)


def test_all_small_graphs_get_layouts_at_least_as_good_as_rows() -> None:
    for graph in (*SMALL, split_attention()):
        for dtype in ("float16", "float32"):
            chosen = chosen_layouts(graph, dtype)
            assert chosen.clocks == chosen.bound <= chosen.plain_clocks


def test_what_lies_between_kernels_is_stored_as_both_like_it() -> None:
    """Registers of a product are 8 rows of 2 columns: stored by columns, they fill whole sectors."""
    first, second = chosen_layouts(split_attention(), "float16").kernels
    assert first.device["A"] == second.device["A"] == dims_of("k'=2 e=8 q=16")
    chosen = chosen_layouts(split_attention(), "float16")
    assert chosen.clocks < chosen.plain_clocks
    assert second.device["Y"] == split_attention().kernels[1].block.savers[0].dims


def test_where_memory_is_short_chunks_change_places_instead_of_longer_rows() -> None:
    graph = attention(1, 64, 64, 256, 64, (1, 1), 4)
    plenty = LayoutProblem.of_graph(graph, "float16")
    (chosen,) = plenty.layouts(solve(plenty.choices).values)
    assert not any(layout.swizzled for layout in chosen.shared.values())
    short = LayoutProblem.of_graph(graph, "float16", 20 << 10)
    (chosen,) = short.layouts(solve(short.choices).values)
    swizzled = {name for name, layout in chosen.shared.items() if layout.swizzled}
    assert swizzled
    assert all(chosen.shared[name].elements == 64 * 64 for name in swizzled)


def test_a_tile_that_many_iterations_read_may_be_turned_once() -> None:
    """Q as the model has it, [d q], is read by each iteration's product along d.

    Of 12 rows, that is: by eights tensor cores read it as it lies.
    """
    for rows in (12, 16):
        block = BlockGraph(
            (1,), 64,
            (InputIterator("Q", "q", ("",)), InputIterator("K", "k", ("",), "k")),
            (Operation("matmul", ("q", "k"), "s", {"over": ("d",)}), Accumulate("s", "y")),
            (Saver("y", "Y", dims_of(f"q={rows} k=1 n=16"), ("",)),),
        )  # fmt: skip
        inputs = {"Q": dims_of(f"d=64 q={rows}"), "K": dims_of("k=64 n=16 d=64")}
        graph = MuGraph("turned", inputs, (Kernel("turned", block),), ("Y",))
        (chosen,) = chosen_layouts(graph, "float16").kernels
        assert (chosen.shared["q"].strides["d"] == 1) is (rows == 12)
        assert chosen.device["Q"] == inputs["Q"]


def test_every_element_has_a_place_of_its_own() -> None:
    dims = dims_of("a=3 b=1 c=8 d=64")
    at = dict(zip("abcd", np.indices([dim.size for dim in dims]), strict=True))
    for item_bytes in (2, 4):
        for layout in shared_layouts(dims, item_bytes):
            offsets = layout.offsets(at).ravel()
            assert len(set(offsets.tolist())) == count(dims)
            assert offsets.min() >= 0 and offsets.max() < layout.elements
            text = layout.offset({name: name for name in "abcd"}).replace("/", "//")
            for place in (0, 5, 700):
                values = {name: int(index.ravel()[place]) for name, index in at.items()}
                assert eval(text, {}, values) == offsets[place]


def test_the_threads_of_a_sweep_touch_each_element_once() -> None:
    for graph in (*SMALL, split_attention()):
        for kernel in graph.kernels:
            device = {**graph.inputs}
            for other in graph.kernels:
                device.update({saver.output: saver.dims for saver in other.block.savers})
            program = with_partials(lower(kernel, {n: device[n] for n in kernel.operands}))
            for statement in (s for part in program.statements.values() for s in part):
                dims = order_of(program, statement)
                if dims is None or count(dims) > 128:
                    continue
                assert isinstance(statement, (Load, Compute, Save))
                for order in orders(dims):
                    access = list(accesses(program, statement, order))[-1]
                    names = [dim.variable for dim in dims]
                    indices = np.broadcast_arrays(
                        access.active, *(access.at[name] for name in names)
                    )
                    touched = [
                        tuple(i) for on, *i in zip(*map(np.ravel, indices), strict=True) if on
                    ]
                    assert access.times == 1
                    assert len(touched) == len(set(touched)) == count(dims)
