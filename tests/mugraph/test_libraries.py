"""Operators of libraries beside kernels: as text, JSON, values, cost, code, and in searches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import drawn, exact
from relational_tensat.cli.main import main
from relational_tensat.kernels import KernelEntry, function_of
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded, save_mugraph
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import first_verified
from relational_tensat.mugraph.kernels.emission import emit, order_of_steps
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.routes import FoundKernel, library_operation
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.cost_model import graph_us, operation_us
from relational_tensat.mugraph.sizes.splits import sized
from relational_tensat.mugraph.sizes.waves import a100
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph.mugraphs import with_wide_results
from tests.with_compilers import needs_c

OVER_K = {"over": ("k",)}
PRODUCT = Operation("matmul", ("X", "A"), "XA", OVER_K)


def functions() -> Kernel:
    """Return relu(XA)·XA, as a kernel of two blocks."""
    steps = (Operation("relu", ("t",), "r"), Operation("mul", ("r", "t"), "y"))
    saver = Saver("y", "Y", dims_of("m=8 n=6"), ("m",))
    return Kernel("k2", BlockGraph((2,), 1, (InputIterator("XA", "t", ("m",)),), steps, (saver,)))


def mixed() -> MuGraph:
    """Return a library's product, and a kernel after it."""
    inputs = {"X": dims_of("m=8 k=4"), "A": dims_of("k=4 n=6")}
    return MuGraph("mixed", inputs, (PRODUCT, functions()), ("Y",))


def plain() -> MuGraph:
    steps = (PRODUCT, Operation("relu", ("XA",), "R"), Operation("mul", ("R", "XA"), "Y"))
    return replace(mixed(), steps=steps)


def test_it_is_written_and_read() -> None:
    graph = mixed()
    assert decoded(encoded(graph), "mixed") == graph
    assert mugraph_text(graph).splitlines()[1] == "library XA[m=8 n=6] = matmul(X, A) over k"


def test_it_is_verified_and_what_is_wrong_refused() -> None:
    assert verify_mugraph(plain(), mixed(), 0).passed
    wrong = replace(mixed(), steps=(replace(PRODUCT, operands=("X", "X")), functions()))
    with pytest.raises(Exception, match="k"):
        verify_mugraph(plain(), wrong, 0)
    steps = (PRODUCT, replace(functions(), block=replace(functions().block, steps=(
        Operation("relu", ("t",), "r"), Operation("mul", ("r", "r"), "y2"), Operation("neg", ("y2",), "y"),
    ))))  # fmt: skip
    assert not verify_mugraph(plain(), replace(mixed(), steps=steps), 0).passed


def test_what_libraries_read_is_not_widened() -> None:
    inputs = {"X": dims_of("m=8 n=6"), "B": dims_of("n=6 e=2")}
    block = functions().block
    kernel = Kernel("k", replace(block, iterators=(InputIterator("X", "t", ("m",)),)))
    after = Operation("matmul", ("Y", "B"), "Z", {"over": ("n",)})
    assert not with_wide_results(MuGraph("g", inputs, (kernel, after), ("Z",))).wide


def test_both_cost_time() -> None:
    device, graph = a100(), mixed()
    dims = kernel_tensors(graph)
    alone = replace(graph, inputs={"XA": dims["XA"]}, steps=(functions(),))
    expected = operation_us(PRODUCT, dims, device) + graph_us(alone, device)
    assert graph_us(graph, device) == pytest.approx(expected)


def test_code_says_when_a_library_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ["library: XA[m=8 n=6] = matmul(X, A) over k", "kernel k2"]
    assert order_of_steps(mixed()) == order
    assert order_of_steps(replace(mixed(), inputs={"XA": dims_of("m=8 n=6")},
                                  steps=(functions(),))) == []  # fmt: skip
    assert [one.name for one in emit(mixed(), "c")] == ["kernel_k2"]
    save_mugraph(mixed(), tmp_path / "mixed.json")
    assert main(["kernels", "emit", str(tmp_path / "mixed.json"), "--target", "c"]) == 0
    assert capsys.readouterr().out.endswith("".join(f"// {line}\n" for line in order))


@needs_c
def test_the_loader_calls_numpy_for_it(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    save_mugraph(mixed(), path)
    entry = KernelEntry("mixed", path, "float32", ((8, 4), (4, 6)), ((8, 6),), ("c",))
    inputs = drawn(mixed(), "float32")
    made = function_of(entry, "c")(inputs["X"], inputs["A"])
    assert np.allclose(made, exact(plain(), inputs), atol=1e-6)


def test_which_kernels_are_an_operator_of_a_library() -> None:
    def found(**changes: object) -> Operation | None:
        kernel = FoundKernel(
            (("X", "x"), ("A", "a")), ("m",), "k",
            (Operation("matmul", ("x", "a"), "t", OVER_K), Accumulate("t", "s")), (("s", "XA"),),
        )  # fmt: skip
        return library_operation(replace(kernel, **changes))  # type: ignore[arg-type]

    assert found() == PRODUCT
    product = Operation("matmul", ("x", "a"), "s", OVER_K)
    assert found(loop="", steps=(product,)) == PRODUCT
    assert found(grid=("k",), loop="", steps=(product,)) is None  # parts of the sum
    assert found(wide=("XA",)) is None
    assert found(loads=(("X", "x"), ("A", "a"), ("B", "b"))) is None
    rescaled = Accumulate("t", "s", rescale="t")
    assert found(steps=(Operation("matmul", ("x", "a"), "t", OVER_K), rescaled)) is None
    assert found(steps=(product, Operation("relu", ("s",), "r")), stores=(("r", "R"),)) is None


def test_a_search_takes_one_where_it_is_faster() -> None:
    """relu(X·A)·B: the first product for a library, the rest a kernel."""
    mlp = program("mlp", m=16, k=512, r=16, n=512)
    routes = [
        r
        for r in search_kernels(mlp, SearchOptions(max_kernels=2)).routes
        if len(r.alternatives) == 2
    ]
    without, beside = (
        min((s for r in routes for s in sized(r, libraries=libraries)), key=lambda s: s.cost_us)
        for libraries in (False, True)
    )
    assert len(without.graph.kernels) == 2
    assert beside.cost_us < without.cost_us
    choice = first_verified(mlp, [beside])
    assert choice.best is not None and choice.best.cost_us == pytest.approx(beside.cost_us)
    library, kernel = choice.best.graph.steps
    assert isinstance(library, Operation) and isinstance(kernel, Kernel)
    assert choice.best.cost_us == pytest.approx(graph_us(choice.best.graph, a100()))
