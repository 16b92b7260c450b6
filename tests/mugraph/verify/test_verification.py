"""Verification: right μGraphs pass, wrong ones do not, and no bound is claimed where there is none."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph import evaluation
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.validity import block_tensors
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.verify.random_tests import first_difference, relative_error
from relational_tensat.mugraph.verify.small_sizes import resized, shrunk, with_full_sums
from relational_tensat.mugraph.verify.verification import LaxBound, bound, verify_mugraph
from tests.mugraph.mirage_graphs import saved
from tests.mugraph.mugraphs import flash_attention


def test_flash_attention_passes_with_a_bound() -> None:
    verification = verify_mugraph(program("attention", h=2, q=4, d=4, k=8, e=2), flash_attention())
    assert verification.passed
    assert verification.error == 1e-6
    assert verification.small_tests == 443  # 32 ln 10^6: 4 keys over 4 keys, of two graphs
    assert verification.full_tests == 2
    assert verification.float64_error is not None
    assert verification.float64_error < 1e-12


def added_four_times(factor: float) -> tuple[MuGraph, MuGraph]:
    """A program with 4 million elements, and a block whose loop adds up a term that it does not split."""
    inputs = {"X": dims_of("m=4096 k=1024"), "W": dims_of("m=4096")}
    steps = (
        Operation("sum", ("X",), "S", {"over": ("k",)}),
        Operation("scale", ("W",), "T", {"value": factor}),
        Operation("add", ("S", "T"), "Y"),
    )
    block = BlockGraph(
        grid=(64,),
        loop=4,
        iterators=(InputIterator("X", "x", ("m",), "k"), InputIterator("W", "w", ("m",))),
        steps=(
            Operation("sum", ("x",), "s", {"over": ("k",)}),
            Accumulate("s", "a"),
            Accumulate("w", "b"),
            Operation("add", ("a", "b"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of("m=4096"), ("m",)),),
    )
    program = MuGraph("added", inputs, steps, ("Y",))
    return program, MuGraph("added", inputs, (Kernel("k", block),), ("Y",))


def test_large_graphs_are_tested_with_sums_and_loops_of_their_own_sizes() -> None:
    """Where a loop of 2, the smallest, computes the program, one of 4 does not."""
    program, graph = added_four_times(2.0)
    small = shrunk(program, graph)
    assert small is not None
    assert first_difference(*small, seed=1) is None
    refused = verify_mugraph(program, graph)
    assert refused.difference is not None and not refused.passed and refused.full_tests == 0
    both = with_full_sums(program, graph)
    assert both is not None
    assert both[1].inputs == {"X": dims_of("m=4 k=1024"), "W": dims_of("m=4")}
    (kernel,) = both[1].kernels
    assert (kernel.block.grid, kernel.block.loop) == ((2,), 4)


def test_large_programs_of_benchmarks_pass_them() -> None:
    """A product of a gated MLP, over 4,096 in a grid of 128 and a loop of 64, as Mirage has it."""
    inputs = {"X": dims_of("m=8 k=4096"), "A": dims_of("k=4096 n=4096")}
    product = Operation("matmul", ("X", "A"), "Y", {"over": ("k",)})
    block = BlockGraph(
        grid=(128,),
        loop=64,
        iterators=(InputIterator("X", "x", ("",), "k"), InputIterator("A", "a", ("n",), "k")),
        steps=(Operation("matmul", ("x", "a"), "p", {"over": ("k",)}), Accumulate("p", "y")),
        savers=(Saver("y", "Y", dims_of("m=8 n=4096"), ("n",)),),
    )
    program = MuGraph("product", inputs, (product,), ("Y",))
    verification = verify_mugraph(
        program, MuGraph("product", inputs, (Kernel("k", block),), ("Y",))
    )
    assert verification.passed
    assert (verification.full_tests, verification.entry_tests) == (0, 2)
    assert verification.has_all_sums


def test_where_both_dims_of_a_weight_are_summed_over_each_has_tests_of_its_own() -> None:
    """The two products of an expert's MLP, 4,096 by 4,096: a weight alone has 16 million elements."""
    inputs = {
        "X": dims_of("m=8 k=4096"),
        "A": dims_of("k=4096 f=4096"),
        "B": dims_of("f=4096 n=64"),
    }
    first = Operation("matmul", ("X", "A"), "H", {"over": ("k",)})
    second = Operation("matmul", ("H", "B"), "Y", {"over": ("f",)})

    def kernel(name: str, over: str, columns: str, tensors: str, result: str) -> Kernel:
        a, b, made = tensors
        block = BlockGraph(
            grid=(64,),
            loop=64,
            iterators=(InputIterator(a, "a", ("",), over), InputIterator(b, "b", (columns,), over)),
            steps=(Operation("matmul", ("a", "b"), "p", {"over": (over,)}), Accumulate("p", "y")),
            savers=(Saver("y", made, dims_of(result), (columns,)),),
        )
        return Kernel(name, block)

    program = MuGraph("both", inputs, (first, second), ("Y",))
    kernels = (
        kernel("up", "k", "f", "XAH", "m=8 f=4096"),
        kernel("down", "f", "n", "HBY", "m=8 n=64"),
    )
    graph = MuGraph("both", inputs, kernels, ("Y",))
    assert with_full_sums(program, graph) is not None
    verification = verify_mugraph(program, graph)
    assert verification.passed
    assert (verification.entry_tests, verification.has_all_sums) == (4, False)


def test_a_smaller_last_tile_is_one_at_small_sizes_too() -> None:
    """Of 4,099 keys in 65 steps, 63 x 64 + 3, there are 9 in 5; of 61 rows in 4 blocks 3 in 2."""
    sizes = {"h": 2, "q": 61, "d": 4, "k": 4099, "e": 2}
    graph = resized(flash_attention(), sizes, lambda kernel: ((kernel.block.grid[0], 4), 65))
    small = shrunk(program("attention", **sizes), graph)
    assert small is not None
    assert small[1].inputs["K"] == dims_of("h=2 d=2 k=9") and small[1].inputs["Q"][1].size == 3
    (kernel,) = small[1].kernels
    partial = block_tensors(kernel, small[1].inputs).partial
    assert {name: (s.count, s.tile) for name, s in partial.items()} == {"q": (2, 2), "k": (5, 2)}
    large_prime = resized(flash_attention(), sizes, lambda _: ((2, 4), 59))
    small = shrunk(program("attention", **sizes), large_prime)
    assert small is not None and small[1].kernels[0].block.loop == 2


def test_what_adds_up_copies_beyond_the_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask left out of sums: of attention over 7 keys in 4 tiles; where tiles divide it is none."""
    for size, is_right in ((7, False), (8, True)):
        sizes = {"h": 2, "q": 4, "d": 4, "k": size, "e": 2}
        graph = flash_attention(**sizes)
        original = program("attention", **sizes)
        assert first_difference(original, graph, seed=1) is None
        with monkeypatch.context() as patched:
            patched.setattr(evaluation, "only_existing", lambda x, over, partial: x)
            assert (first_difference(original, graph, seed=1) is None) is is_right


def test_the_bound_is_that_of_the_theorem_where_it_applies() -> None:
    assert bound(program("attention", h=1, q=1, d=2, k=2, e=1)) == LaxBound(8, 2)
    assert LaxBound(8, 2).tests(1e-6) == 111
    assert bound(program("lora", m=2, k=2, n=2, r=2)) is not None
    for name in ("attention", "mlp", "gated_mlp", "rmsnorm_linear"):  # too large, or not LAX
        assert bound(program(name)) is None


def test_another_program_is_refused_with_the_entry_that_differs() -> None:
    other = program("qknorm", h=2, q=4, d=4, k=8, e=2)
    verification = verify_mugraph(other, flash_attention())
    assert not verification.passed
    assert verification.difference is not None
    assert str(verification.difference).startswith(f"{other.outputs[0]}[0, 0, 0] is ")
    with pytest.raises(VerificationError, match="inputs of sizes"):
        verify_mugraph(program("attention", h=2, q=4, d=4, k=16, e=2), flash_attention())


def test_where_a_program_has_no_result_the_signs_of_its_inputs_are_left_out() -> None:
    """1 / sqrt(x): half of all normal inputs have none."""
    root = ProgramBuilder("root", x="m=4 n=8")
    made = root.build(root.apply("reciprocal", root.apply("sqrt", "x")))
    assert relative_error(made, made, seed=1) == 0.0
    assert relative_error(made, made, seed=1, dtype="float16") < 1e-2


def test_saved_graphs_of_mirage() -> None:
    """The wrong ones of QKNorm, which Mirage's verifier accepts, and a right one."""
    wrong = from_mirage(saved("qknorm_gqa_bs1")[77], "qknorm")
    assert first_difference(program("qknorm"), wrong, seed=0) is not None
    right = from_mirage(saved("lora")[0], "lora")
    assert first_difference(program("lora"), right, seed=0) is None


def test_two_kernels_may_split_a_variable_with_and_without_a_smaller_last_tile() -> None:
    """2 blocks of 7 rows, then 4 of 4, the last of 2: at small sizes 2 of 4, then 3 of 3, the last of 2."""
    inputs = {"X": dims_of("m=14 k=4")}
    first = BlockGraph(
        (2,),
        1,
        (InputIterator("X", "x", ("m",)),),
        (Operation("exp", ("x",), "e"),),
        (Saver("e", "E", dims_of("m=14 k=4"), ("m",)),),
    )
    second = BlockGraph(
        (4,),
        1,
        (InputIterator("E", "e", ("m",)),),
        (Operation("sum", ("e",), "s", {"over": ("k",)}),),
        (Saver("s", "S", dims_of("m=14"), ("m",)),),
    )
    kernels = (Kernel("one", first), Kernel("two", second))
    graph = MuGraph("rows", inputs, kernels, ("S",))
    steps = (
        Operation("exp", ("X",), "E"),
        Operation("sum", ("E",), "S", {"over": ("k",)}),
    )
    program = MuGraph("rows", inputs, steps, ("S",))
    both = shrunk(program, graph)
    assert both is not None and both[1].inputs["X"][0].size == 8
    assert [kernel.block.grid for kernel in both[1].kernels] == [(2,), (3,)]
    assert verify_mugraph(program, graph).passed
