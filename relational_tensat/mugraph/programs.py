"""Programs that kernels are sought for, by name: those of the paper's Table 4 and of Mirage's benchmarks.

A program is a μGraph of operators of libraries only. Index variables: h heads, q queries, k keys or a
summed one, d and e the widths of heads, m rows, n columns, f hidden features, r a low rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from itertools import count

from relational_tensat.base.errors import unknown
from relational_tensat.mugraph.graph.dims import Dims, dims_of
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.tensor.types import AttrValue


class ProgramBuilder:
    """Collects the inputs and operations of a program; tensors are named in the order they are made."""

    def __init__(self, name: str, **inputs: str) -> None:
        """Begin.

        Args:
            name: of the program.
            inputs: dims by name, such as ``Q="q=256 d=64"``.
        """
        self._name = name
        self._inputs: dict[str, Dims] = {key: dims_of(text) for key, text in inputs.items()}
        self._steps: list[Operation] = []
        self._numbers = count(1)

    def apply(self, op: str, *operands: str, **attrs: AttrValue) -> str:
        """Add an operation; return the name of its result."""
        output = f"t{next(self._numbers)}"
        self._steps.append(Operation(op, operands, output, attrs))
        return output

    def matmul(self, a: str, b: str, over: str) -> str:
        """Add a product summed over a variable."""
        return self.apply("matmul", a, b, over=(over,))

    def normalized(self, x: str, over: str) -> str:
        """Add the division by the root mean square over a variable."""
        return self.apply("div", x, self.apply("rms", x, over=(over,), epsilon=0.0))

    def softmax_product(self, scores: str, values: str) -> str:
        """Add exp(scores) / its sum over k, times values."""
        weights = self.apply("exp", scores)
        total = self.apply("sum", weights, over=("k",))
        return self.matmul(self.apply("div", weights, total), values, "k")

    def build(self, *outputs: str) -> MuGraph:
        """Return the program."""
        return MuGraph(self._name, self._inputs, tuple(self._steps), outputs)


def attention(h: int = 2, q: int = 256, d: int = 64, k: int = 4096, e: int = 64) -> MuGraph:
    """softmax(Q·K)·V for h heads that share nothing (or q queries of several heads that share keys)."""
    b = ProgramBuilder(
        "attention", Q=f"h={h} q={q} d={d}", K=f"h={h} d={d} k={k}", V=f"h={h} k={k} e={e}"
    )
    return b.build(b.softmax_product(b.matmul("Q", "K", "d"), "V"))


def scaled_attention(h: int = 2, q: int = 256, d: int = 64, k: int = 4096, e: int = 64) -> MuGraph:
    """softmax(Q·K / √d)·V, as the paper has it."""
    b = ProgramBuilder(
        "scaled_attention", Q=f"h={h} q={q} d={d}", K=f"h={h} d={d} k={k}", V=f"h={h} k={k} e={e}"
    )
    scores = b.apply("scale", b.matmul("Q", "K", "d"), value=d**-0.5)
    return b.build(b.softmax_product(scores, "V"))


def qknorm(h: int = 2, q: int = 256, d: int = 64, k: int = 4096, e: int = 64) -> MuGraph:
    """Attention with queries and values divided by their root mean squares, as in Mirage's benchmark."""
    b = ProgramBuilder(
        "qknorm", Q=f"h={h} q={q} d={d}", K=f"h={h} d={d} k={k}", V=f"h={h} k={k} e={e}"
    )
    queries, values = b.normalized("Q", "d"), b.normalized("V", "e")
    return b.build(b.softmax_product(b.matmul(queries, "K", "d"), values))


def rmsnorm_linear(m: int = 2, k: int = 4096, n: int = 6144) -> MuGraph:
    """(X / rms(X))·W."""
    b = ProgramBuilder("rmsnorm_linear", X=f"m={m} k={k}", W=f"k={k} n={n}")
    return b.build(b.matmul(b.normalized("X", "k"), "W", "k"))


def mlp(m: int = 16, k: int = 8192, r: int = 8, n: int = 8192) -> MuGraph:
    """relu(X·A)·B, the adapter of Figure 10."""
    b = ProgramBuilder("mlp", X=f"m={m} k={k}", A=f"k={k} r={r}", B=f"r={r} n={n}")
    return b.build(b.matmul(b.apply("relu", b.matmul("X", "A", "k")), "B", "r"))


def residual_mlp(m: int = 16, k: int = 8192, r: int = 8, n: int = 8192) -> MuGraph:
    """relu(X·A)·B + R, the adapter with what it is added to."""
    b = ProgramBuilder(
        "residual_mlp", X=f"m={m} k={k}", A=f"k={k} r={r}", B=f"r={r} n={n}", R=f"m={m} n={n}"
    )
    low = b.matmul(b.apply("relu", b.matmul("X", "A", "k")), "B", "r")
    return b.build(b.apply("add", low, "R"))


def moe(x: int = 8, m: int = 8, k: int = 4096, f: int = 4096, n: int = 4096) -> MuGraph:
    """An MLP of each of x experts."""
    b = ProgramBuilder(
        "moe", X=f"x={x} m={m} k={k}", A=f"x={x} k={k} f={f}", B=f"x={x} f={f} n={n}"
    )
    return b.build(b.matmul(b.apply("relu", b.matmul("X", "A", "k")), "B", "f"))


def lora(m: int = 16, k: int = 256, n: int = 4096, r: int = 16) -> MuGraph:
    """X·W + X·A·B."""
    b = ProgramBuilder(
        "lora", X=f"m={m} k={k}", W=f"k={k} n={n}", A=f"k={k} r={r}", B=f"r={r} n={n}"
    )
    low = b.matmul(b.matmul("X", "A", "k"), "B", "r")
    return b.build(b.apply("add", b.matmul("X", "W", "k"), low))


def gated_mlp(m: int = 8, k: int = 4096, n: int = 4096) -> MuGraph:
    """silu(X·A) times X·B."""
    b = ProgramBuilder("gated_mlp", X=f"m={m} k={k}", A=f"k={k} n={n}", B=f"k={k} n={n}")
    return b.build(
        b.apply("mul", b.apply("silu", b.matmul("X", "A", "k")), b.matmul("X", "B", "k"))
    )


def swiglu(m: int = 8, k: int = 4096, f: int = 4096, n: int = 4096) -> MuGraph:
    """The gated MLP with its down projection: (silu(X·A) times X·B)·C."""
    b = ProgramBuilder(
        "swiglu", X=f"m={m} k={k}", A=f"k={k} f={f}", B=f"k={k} f={f}", C=f"f={f} n={n}"
    )
    gate = b.apply("silu", b.matmul("X", "A", "k"))
    return b.build(b.matmul(b.apply("mul", gate, b.matmul("X", "B", "k")), "C", "f"))


def ntrans(m: int = 8, n: int = 4096) -> MuGraph:
    """The normalized transformer's step: rms(X + alpha (rms(H) + X))."""
    b = ProgramBuilder("ntrans", H=f"m={m} n={n}", X=f"m={m} n={n}", alpha=f"m={m} n={n}")
    moved = b.apply("mul", "alpha", b.apply("add", b.normalized("H", "n"), "X"))
    return b.build(b.normalized(b.apply("add", moved, "X"), "n"))


#: By name, at the sizes of Mirage's benchmarks for batch 1.
PROGRAMS: Mapping[str, Callable[..., MuGraph]] = {
    build.__name__: build
    for build in (
        attention, scaled_attention, qknorm, rmsnorm_linear, mlp, residual_mlp, moe, lora,
        gated_mlp, swiglu, ntrans,
    )
}  # fmt: skip


def program(name: str, **sizes: int) -> MuGraph:
    """Return the program of that name.

    Args:
        name: of ``PROGRAMS``.
        sizes: of index variables, in place of the benchmark's.

    Raises:
        UsageError: no program has that name, or it has no such variable; names the nearest.
    """
    if name not in PROGRAMS:
        raise unknown("program", name, PROGRAMS)
    known = signature(PROGRAMS[name]).parameters
    for variable in sizes:
        if variable not in known:
            raise unknown(f"index variable of {name}", variable, known)
    return PROGRAMS[name](**sizes)
