"""μGraphs that kernels are made of: hand-written, small, and each with something of its own."""

from __future__ import annotations

from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from tests.mugraph.kernels.parts_of_tiles import parts_of_tiles

_OVER_K = {"over": ("k",)}


def attention(
    h: int = 2, q: int = 32, d: int = 16, k: int = 64, e: int = 16,
    grid: tuple[int, int] = (2, 2), loop: int = 4,
) -> MuGraph:  # fmt: skip
    """FlashAttention with its running maximum."""
    block = BlockGraph(
        grid=grid,
        loop=loop,
        iterators=(
            InputIterator("Q", "q", ("h", "q")),
            InputIterator("K", "k", ("h", ""), "k"),
            InputIterator("V", "v", ("h", ""), "k"),
        ),
        steps=(
            Operation("matmul", ("q", "k"), "s", {"over": ("d",)}),
            RunningMax("s", "m", ("k",)),
            ThreadGraph(
                (Operation("sub", ("s", "m"), "below"), Operation("exp", ("below",), "p")), ("p",)
            ),
            Operation("sum", ("p",), "r", _OVER_K),
            Accumulate("r", "l", rescale="m"),
            Operation("matmul", ("p", "v"), "o", _OVER_K),
            Accumulate("o", "a", rescale="m"),
            Operation("div", ("a", "l"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"h={h} q={q} e={e}"), ("h", "q")),),
    )
    inputs = {
        "Q": dims_of(f"h={h} q={q} d={d}"),
        "K": dims_of(f"h={h} d={d} k={k}"),
        "V": dims_of(f"h={h} k={k} e={e}"),
    }
    return MuGraph("attention", inputs, (Kernel("flash_attention", block),), ("Y",))


def rmsnorm_linear(m: int = 16, k: int = 64, n: int = 32, grid: int = 2, loop: int = 4) -> MuGraph:
    """X·W / rms(X): the division has gone past the product."""
    block = BlockGraph(
        grid=(grid,),
        loop=loop,
        iterators=(InputIterator("X", "x", ("",), "k"), InputIterator("W", "w", ("n",), "k")),
        steps=(
            Accumulate("x", "norm", "rms", ("k",)),
            Operation("matmul", ("x", "w"), "o", _OVER_K),
            Accumulate("o", "a"),
            Operation("div", ("a", "norm"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m} n={n}"), ("n",)),),
    )
    inputs = {"X": dims_of(f"m={m} k={k}"), "W": dims_of(f"k={k} n={n}")}
    return MuGraph("rmsnorm_linear", inputs, (Kernel("rmsnorm_linear", block),), ("Y",))


def gated_mlp(m: int = 16, k: int = 64, n: int = 32, grid: int = 2, loop: int = 4) -> MuGraph:
    """silu(X·A) times X·B."""
    block = BlockGraph(
        grid=(grid,),
        loop=loop,
        iterators=(
            InputIterator("X", "x", ("",), "k"),
            InputIterator("A", "a", ("n",), "k"),
            InputIterator("B", "b", ("n",), "k"),
        ),
        steps=(
            Operation("matmul", ("x", "a"), "xa", _OVER_K),
            Accumulate("xa", "gate"),
            Operation("matmul", ("x", "b"), "xb", _OVER_K),
            Accumulate("xb", "value"),
            ThreadGraph(
                (
                    Operation("silu", ("gate",), "bent"),
                    Operation("mul", ("bent", "value"), "y"),
                ),
                ("y",),
            ),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m} n={n}"), ("n",)),),
    )
    inputs = {
        "X": dims_of(f"m={m} k={k}"),
        "A": dims_of(f"k={k} n={n}"),
        "B": dims_of(f"k={k} n={n}"),
    }
    return MuGraph("gated_mlp", inputs, (Kernel("gated_mlp", block),), ("Y",))


def lora(m: int = 16, k: int = 32, r: int = 16, n: int = 32, grid: int = 2) -> MuGraph:
    """X·W + (X·A)·B: a product is the operand of another, and no loop."""
    block = BlockGraph(
        grid=(grid,),
        loop=1,
        iterators=(
            InputIterator("X", "x", ("",)),
            InputIterator("W", "w", ("n",)),
            InputIterator("A", "a", ("",)),
            InputIterator("B", "b", ("n",)),
        ),
        steps=(
            Operation("matmul", ("x", "w"), "xw", _OVER_K),
            Operation("matmul", ("x", "a"), "xa", _OVER_K),
            Operation("matmul", ("xa", "b"), "xab", {"over": ("r",)}),
            Operation("add", ("xw", "xab"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m} n={n}"), ("n",)),),
    )
    inputs = {
        "X": dims_of(f"m={m} k={k}"),
        "W": dims_of(f"k={k} n={n}"),
        "A": dims_of(f"k={k} r={r}"),
        "B": dims_of(f"r={r} n={n}"),
    }
    return MuGraph("lora", inputs, (Kernel("lora", block),), ("Y",))


def ntrans(m: int = 4, n: int = 256, grid: int = 4) -> MuGraph:
    """rms(X + alpha (rms(H) + X)), rows by rows; no product."""
    over = {"over": ("n",), "epsilon": 1e-6}
    block = BlockGraph(
        grid=(grid,),
        loop=1,
        iterators=tuple(InputIterator(n, f"{n}_rows", ("m",)) for n in ("H", "X", "alpha")),
        steps=(
            Operation("rms", ("H_rows",), "norm", over),
            ThreadGraph(
                (
                    Operation("div", ("H_rows", "norm"), "h"),
                    Operation("add", ("h", "X_rows"), "moved"),
                    Operation("mul", ("alpha_rows", "moved"), "scaled"),
                    Operation("add", ("scaled", "X_rows"), "z"),
                ),
                ("z",),
            ),
            Operation("rms", ("z",), "size", over),
            Operation("div", ("z", "size"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m} n={n}"), ("m",)),),
    )
    inputs = {name: dims_of(f"m={m} n={n}") for name in ("H", "X", "alpha")}
    return MuGraph("ntrans", inputs, (Kernel("ntrans", block),), ("Y",))


def grouped_attention(
    h: int = 2, g: int = 3, q: int = 5, d: int = 12, k: int = 20, e: int = 10, loop: int = 2
) -> MuGraph:
    """Queries of several heads that share keys; no size fits an instruction."""
    plain = attention(h, q, d, k, e, (h, 1), loop)
    (kernel,) = plain.kernels
    inputs = {**plain.inputs, "Q": dims_of(f"h={h} g={g} q={q} d={d}")}
    saver = Saver("y", "Y", dims_of(f"h={h} g={g} q={q} e={e}"), ("h", ""))
    block = BlockGraph(
        kernel.block.grid, loop, kernel.block.iterators, kernel.block.steps, (saver,)
    )
    return MuGraph("grouped", inputs, (Kernel("grouped_attention", block),), ("Y",))


def pooled(m: int = 4, n: int = 24, grid: int = 2, loop: int = 3) -> MuGraph:
    """sum(exp(S) V) / sum(exp(S)) over n, without a product; relabelled on the way."""
    halves = (2, n // loop // 2)
    block = BlockGraph(
        grid=(grid,),
        loop=loop,
        iterators=(InputIterator("S", "s2", ("m",), "n"), InputIterator("V", "v", ("m",), "n")),
        steps=(
            Operation("rename", ("s2",), "s1", {"variable": "n", "into": "t"}),
            Operation("split", ("s1",), "s0", {"variable": "t", "into": ("u", "w"), "sizes": halves}),
            Operation("merge", ("s0",), "s", {"variables": ("u", "w"), "into": "n"}),
            RunningMax("s", "top", ("n",)),
            Operation("sub", ("s", "top"), "below"),
            Operation("exp", ("below",), "p"),
            Operation("sum", ("p",), "r", {"over": ("n",)}),
            Accumulate("r", "total", rescale="top"),
            Operation("mul", ("p", "v"), "weighted"),
            Accumulate("weighted", "a", rescale="top"),
            Operation("sum", ("a",), "whole", {"over": ("n",)}),
            Operation("div", ("whole", "total"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m}"), ("m",)),),
    )  # fmt: skip
    inputs = {name: dims_of(f"m={m} n={n}") for name in ("S", "V")}
    return MuGraph("pooled", inputs, (Kernel("pooled", block),), ("Y",))


def logsumexp(m: int = 4, n: int = 48, grid: int = 2, loop: int = 3) -> MuGraph:
    """log(sum exp(S)) over n: the running maximum is used after the loop."""
    block = BlockGraph(
        grid=(grid,),
        loop=loop,
        iterators=(InputIterator("S", "s", ("m",), "n"),),
        steps=(
            RunningMax("s", "top", ("n",)),
            Operation("sub", ("s", "top"), "below"),
            Operation("exp", ("below",), "p"),
            Operation("sum", ("p",), "r", {"over": ("n",)}),
            Accumulate("r", "total", rescale="top"),
            Accumulate("top", "top_final", "max"),
            Operation("log", ("total",), "more"),
            Operation("add", ("more", "top_final"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m}"), ("m",)),),
    )
    inputs = {"S": dims_of(f"m={m} n={n}")}
    return MuGraph("logsumexp", inputs, (Kernel("logsumexp", block),), ("Y",))


def layer_norm_gelu(m: int = 16, k: int = 24, n: int = 32, grid: int = 2) -> MuGraph:
    """x (1 + erf(x / sqrt 2)) / 2 of a normalized layer's product: numbers added, differences."""
    block = BlockGraph(
        grid=(grid,),
        loop=1,
        iterators=(InputIterator("X", "x", ("",)), InputIterator("W", "w", ("n",))),
        steps=(
            Operation("sum", ("x",), "total", _OVER_K),
            Operation("scale", ("total",), "mean", {"value": 1 / k}),
            Operation("sub", ("x", "mean"), "centred"),
            Operation("rms", ("centred",), "size", {"over": ("k",), "epsilon": 1e-3}),
            Operation("div", ("centred", "size"), "unit"),
            Operation("matmul", ("unit", "w"), "o", _OVER_K),
            ThreadGraph(
                (
                    Operation("scale", ("o",), "small", {"value": 0.5**0.5}),
                    Operation("erf", ("small",), "odd"),
                    Operation("shift", ("odd",), "weight", {"value": 1.0}),
                    Operation("mul", ("o", "weight"), "twice"),
                    Operation("scale", ("twice",), "y", {"value": 0.5}),
                ),
                ("y",),
            ),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m} n={n}"), ("n",)),),
    )
    inputs = {"X": dims_of(f"m={m} k={k}"), "W": dims_of(f"k={k} n={n}")}
    return MuGraph("layer_norm_gelu", inputs, (Kernel("layer_norm_gelu", block),), ("Y",))


def concat_lora(m: int = 16, k: int = 32, r: int = 16, n: int = 32, grid: int = 2) -> MuGraph:
    """[X ‖ U]·[W ‖ B] + a bias that is repeated: the operator that the paper adds for LoRA."""
    block = BlockGraph(
        grid=(grid,),
        loop=1,
        iterators=(
            InputIterator("X", "x", ("",)),
            InputIterator("U", "u", ("",)),
            InputIterator("W", "w", ("n",)),
            InputIterator("B", "b", ("n",)),
            InputIterator("C", "c", ("n",)),
        ),
        steps=(
            Operation("concat_matmul", ("x", "u", "w", "b"), "o", {"over": ("k", "r")}),
            Operation("repeat", ("c",), "rows", {"variable": "m", "size": m}),
            Operation("add", ("o", "rows"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"m={m} n={n}"), ("n",)),),
    )
    inputs = {
        "X": dims_of(f"m={m} k={k}"),
        "U": dims_of(f"m={m} r={r}"),
        "W": dims_of(f"k={k} n={n}"),
        "B": dims_of(f"r={r} n={n}"),
        "C": dims_of(f"n={n}"),
    }
    return MuGraph("concat_lora", inputs, (Kernel("concat_lora", block),), ("Y",))


def split_attention(q: int = 16, d: int = 16, k: int = 96, e: int = 8, loop: int = 3) -> MuGraph:
    """FlashDecoding: each of two blocks has half of the keys and stores its maximum beside its sums."""
    block = BlockGraph(
        grid=(2,),
        loop=loop,
        iterators=(
            InputIterator("Q", "q", ("",)),
            InputIterator("K", "k", ("k",), "k"),
            InputIterator("V", "v", ("k",), "k"),
        ),
        steps=(
            Operation("matmul", ("q", "k"), "s", {"over": ("d",)}),
            RunningMax("s", "m", ("k",)),
            Operation("sub", ("s", "m"), "below"),
            Operation("exp", ("below",), "p"),
            Operation("sum", ("p",), "r", _OVER_K),
            Accumulate("r", "l", rescale="m"),
            Operation("matmul", ("p", "v"), "o", _OVER_K),
            Accumulate("o", "a", rescale="m"),
            Accumulate("m", "m_final", "max"),
        ),
        savers=(
            Saver("a", "A", dims_of(f"k'=2 q={q} e={e}"), ("k'",), is_wide=True),
            Saver("l", "L", dims_of(f"k'=2 q={q}"), ("k'",), is_wide=True),
            Saver("m_final", "M", dims_of(f"k'=2 q={q}"), ("k'",), is_wide=True),
        ),
    )
    over = {"over": ("k'",)}
    together = BlockGraph(
        grid=(2,),
        loop=1,
        iterators=(
            InputIterator("A", "a", ("q",)), InputIterator("L", "l", ("q",)),
            InputIterator("M", "m", ("q",)),
        ),
        steps=(
            Operation("max", ("m",), "top", over),
            Operation("sub", ("m", "top"), "below"),
            Operation("exp", ("below",), "factor"),
            Operation("mul", ("a", "factor"), "a_scaled"),
            Operation("mul", ("l", "factor"), "l_scaled"),
            Operation("sum", ("a_scaled",), "a_sum", over),
            Operation("sum", ("l_scaled",), "l_sum", over),
            Operation("div", ("a_sum", "l_sum"), "y"),
        ),
        savers=(Saver("y", "Y", dims_of(f"q={q} e={e}"), ("q",)),),
    )  # fmt: skip
    inputs = {
        "Q": dims_of(f"q={q} d={d}"),
        "K": dims_of(f"d={d} k={k}"),
        "V": dims_of(f"k={k} e={e}"),
    }
    kernels = (Kernel("split_attention", block), Kernel("together", together))
    return MuGraph("split_attention", inputs, kernels, ("Y",))


def powers() -> MuGraph:
    """Sums of powers of what is positive, and powers of two of anything."""
    block = BlockGraph(
        (2,), 2, (InputIterator("X", "x", ("m",), "k"), InputIterator("Y", "y", ("m",), "k")),
        (
            Operation("square", ("x",), "xx"),
            Operation("shift", ("xx",), "base", {"value": 0.5}),
            Operation("pow", ("base", "y"), "p"),
            Operation("sum", ("p",), "s", _OVER_K),
            Accumulate("s", "t"),
        ),
        (Saver("t", "T", dims_of("m=6"), ("m",)),),
    )  # fmt: skip
    inputs = {"X": dims_of("m=6 k=20"), "Y": dims_of("m=6 k=20")}
    return MuGraph("powers", inputs, (Kernel("powers", block),), ("T",))


#: Those without products, of which C is made.
CHAINS = (ntrans(), pooled(), ntrans(6, 100, 3), logsumexp(), parts_of_tiles(with_product=False))
#: Those of which CUDA and Triton are made.
SMALL = (
    attention(), rmsnorm_linear(), rmsnorm_linear(3, 28, 6), gated_mlp(), lora(), ntrans(), pooled(),
    grouped_attention(), attention(grid=(1, 2)), logsumexp(), layer_norm_gelu(), concat_lora(),
    parts_of_tiles(), parts_of_tiles(with_product=False), powers(),
)  # fmt: skip
