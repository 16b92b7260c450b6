"""Products of concatenations become products of their parts: against the products of the concatenations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, drawn, exact, norm_error
from bench.emulation.runs import run_kernels
from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.concat_products import with_concat_products
from relational_tensat.mugraph.graph.dims import Window
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import save_mugraph
from relational_tensat.mugraph.kernel_finder import find_kernels, made_ready
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.random_tests import first_difference
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph.mirage_documents import Block, Document, Json


def joined(b: ProgramBuilder, into: str, *parts: tuple[str, str, int]) -> str:
    """Add the concatenation of tensors along a variable of each; return its name."""
    size, start, total = sum(part[2] for part in parts), 0, ""
    for name, variable, own in parts:
        along = (variable,) if variable else ()
        window = Window(along, (into,), (size,), -start, 1, start, start + own)
        one = b.apply("window", name, **window.attrs)
        total = b.apply("add", one, total) if total else one
        start += own
    return total


def two() -> MuGraph:
    """[X ‖ U]·[A ; B], twice the same variable, and once others."""
    b = ProgramBuilder("two", X="m=4 k=6", U="m=4 r=2", A="k=6 n=3", B="s=2 n=3")
    left = joined(b, "v", ("X", "k", 6), ("U", "r", 2))
    return b.build(b.matmul(left, joined(b, "v", ("A", "k", 6), ("B", "s", 2)), "v"))


def three() -> MuGraph:
    """Three parts, one of which is one column, in a batch."""
    b = ProgramBuilder(
        "three",
        X="h=2 m=4 k=6",
        u="h=2 m=4",
        V="h=2 m=4 r=3",
        A="h=2 k=6 n=3",
        b="h=2 n=3",
        C="h=2 s=3 n=3",
    )
    left = joined(b, "v", ("X", "k", 6), ("u", "", 1), ("V", "r", 3))
    return b.build(b.matmul(left, joined(b, "v", ("A", "k", 6), ("b", "", 1), ("C", "s", 3)), "v"))


def without_rows() -> MuGraph:
    """A part that is the same for all rows: its product has fewer dims than the other's."""
    b = ProgramBuilder("without_rows", X="m=4 k=6", u="r=2", A="k=6 n=3", B="r=2 n=3")
    left = joined(b, "v", ("X", "k", 6), ("u", "r", 2))
    return b.build(b.matmul(left, joined(b, "v", ("A", "k", 6), ("B", "r", 2)), "v"))


def captured() -> MuGraph:
    """The second factor has the first one's variable as its columns."""
    b = ProgramBuilder("captured", X="m=4 k=6", U="m=4 r=2", A="s=6 k=6", B="t=2 k=6")
    left = joined(b, "v", ("X", "k", 6), ("U", "r", 2))
    return b.build(b.matmul(left, joined(b, "v", ("A", "s", 6), ("B", "t", 2)), "v"))


def renamed() -> MuGraph:
    """Of what is joined rows are renamed, to a part's own variable, and columns."""
    b = ProgramBuilder("renamed", X="m=4 k=6", U="m=4 r=2", A="s=6 n=3", B="r=2 n=3")
    left = b.apply("rename", joined(b, "v", ("X", "k", 6), ("U", "r", 2)), variable="m", into="k")
    right = b.apply("rename", joined(b, "w", ("A", "s", 6), ("B", "r", 2)), variable="n", into="j")
    return b.build(b.matmul(left, b.apply("rename", right, variable="w", into="v"), "v"))


def also_read() -> MuGraph:
    """What is joined is a result, too."""
    b = ProgramBuilder("also_read", X="m=4 k=6", U="m=4 r=2", A="k=6 n=3", B="s=2 n=3")
    left = joined(b, "v", ("X", "k", 6), ("U", "r", 2))
    product = b.matmul(left, joined(b, "v", ("A", "k", 6), ("B", "s", 2)), "v")
    return b.build(product, left)


@pytest.mark.parametrize(
    ("graph", "operators"),
    [
        (two(), ["concat_matmul", "rename"]),
        (three(), ["add", "add", "matmul", "matmul", "mul", "rename"]),
        (without_rows(), ["add", "matmul", "matmul"]),
        (captured(), ["concat_matmul", "rename", "rename", "rename"]),
        (renamed(), ["concat_matmul", *6 * ["rename"]]),
        (also_read(), ["add", "concat_matmul", "rename", "window", "window"]),
    ],
    ids=lambda value: value.name if isinstance(value, MuGraph) else "",
)
def test_folded_it_computes_the_same(graph: MuGraph, operators: list[str]) -> None:
    folded = with_concat_products(graph)
    steps = [step.op for step in folded.steps if isinstance(step, Operation)]
    assert sorted(steps) == operators
    assert first_difference(graph, folded, 1, tests=3) is None
    random = np.random.default_rng(4)
    values = {
        name: random.standard_normal([dim.size for dim in dims])
        for name, dims in graph.inputs.items()
    }
    one, other = (evaluate(which, values, Numbers()) for which in (graph, folded))
    for name in graph.outputs:
        np.testing.assert_allclose(other[name], one[name], rtol=1e-12, atol=1e-12)
    assert with_concat_products(folded) is folded


def unequal() -> MuGraph:
    b = ProgramBuilder("unequal", X="m=4 k=6", U="m=4 r=2", A="k=5 n=3", B="s=3 n=3")
    left = joined(b, "v", ("X", "k", 6), ("U", "r", 2))
    return b.build(b.matmul(left, joined(b, "v", ("A", "k", 5), ("B", "s", 3)), "v"))


def overlapping() -> MuGraph:
    """Two sums of the same places: no concatenation."""
    b = ProgramBuilder("overlapping", X="m=4 k=8", U="m=4 r=8", W="k=8 n=3", Z="s=8 n=3")

    def both(one: str, x: str, other: str, u: str) -> str:
        windows = [
            b.apply("window", name, **Window((variable,), ("v",), (8,), 0, 1, 0, 8).attrs)
            for name, variable in ((one, x), (other, u))
        ]
        return b.apply("add", *windows)

    return b.build(b.matmul(both("X", "k", "U", "r"), both("W", "k", "Z", "s"), "v"))


def gap() -> MuGraph:
    """Between the parts, and behind them, are zeros: no concatenation."""
    b = ProgramBuilder("gap", X="m=4 k=3", U="m=4 r=2", A="k=3 n=3", B="s=2 n=3")

    def parts(x: str, along: str, u: str, other: str) -> str:
        first = b.apply("window", x, **Window((along,), ("v",), (8,), 0, 1, 0, 3).attrs)
        second = b.apply("window", u, **Window((other,), ("v",), (8,), -4, 1, 4, 6).attrs)
        return b.apply("add", first, second)

    return b.build(b.matmul(parts("X", "k", "U", "r"), parts("A", "k", "B", "s"), "v"))


def test_other_products_of_windows_stay() -> None:
    for graph in (unequal(), overlapping(), gap(), program("lora", m=2, k=4, r=2, n=2)):
        assert with_concat_products(graph) is graph


def document() -> list[Json]:
    """Mirage's concat, concat and matmul within a kernel: (X·A + U·B) of a grid of two."""
    made = Document()
    x, u, a, b = made.inputs((4, 6), (4, 2), (6, 8), (2, 8))
    block = Block(made, (2, 2, 1), 1)
    left = [block.load(one, (2, size), (0, -1, -1, -1)) for one, size in ((x, 6), (u, 2))]
    right = [block.load(one, (size, 4), (-1, 1, -1, -1)) for one, size in ((a, 6), (b, 2))]
    (rows,), (columns,) = block.add("concat_1", left, (2, 8)), block.add("concat_0", right, (8, 4))
    (product,) = block.add("matmul", [rows, columns], (2, 4))
    (kept,) = block.add("forloop_accum_no_red", [product], (2, 4))
    stored = block.store(kept, (4, 8), (0, 1, -1))
    block.end()
    made.add("output", [stored], [])
    return made.operators


def _operators(graph: MuGraph) -> set[str]:
    (kernel,) = graph.kernels
    return {step.op for step in kernel.block.steps if isinstance(step, Operation)}


def test_mirages_concat_concat_matmul_becomes_its_concat_then_matmul(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    graph = from_mirage(document(), "joined")
    assert "window" in _operators(graph)  # read as it is
    folded = made_ready(graph)
    assert "concat_matmul" in _operators(folded) and "window" not in _operators(folded)
    assert first_difference(graph, folded, 1) is None
    inputs = drawn(folded)
    for place, which in enumerate((graph, folded)):
        folder = tmp_path / str(place)
        folder.mkdir()
        computed = run_kernels(which, inputs, "cuda", folder)[which.outputs[0]]
        assert norm_error(computed, exact(which, inputs)) < TOLERANCES["float16"]
    file, whole = tmp_path / "joined.json", tmp_path / "program.json"
    file.write_text(json.dumps(document()), encoding="utf-8")
    b = ProgramBuilder("sum", X="m=4 k=6", U="m=4 r=2", A="k=6 n=8", B="r=2 n=8")
    product = b.build(b.apply("add", b.matmul("X", "A", "k"), b.matmul("U", "B", "r")))
    save_mugraph(product, whole)
    assert main(["kernels", "verify", str(file), str(whole)]) == 0
    capsys.readouterr()


@pytest.mark.nightly
def test_a_search_finds_what_has_no_zeros() -> None:
    """A program of concatenations is as cheap as the sum of products that it is."""
    b = ProgramBuilder("joined", X="m=16 k=256", U="m=16 r=64", A="k=256 n=512", B="r=64 n=512")
    left = joined(b, "v", ("X", "k", 256), ("U", "r", 64))
    graph = b.build(b.matmul(left, joined(b, "v", ("A", "k", 256), ("B", "r", 64)), "v"))
    b = ProgramBuilder("sum", X="m=16 k=256", U="m=16 r=64", A="k=256 n=512", B="r=64 n=512")
    plain = b.build(b.apply("add", b.matmul("X", "A", "k"), b.matmul("U", "B", "r")))
    options = SearchOptions(max_kernels=1)
    found, wanted = (find_kernels(one, options).best for one in (graph, plain))
    assert found is not None and wanted is not None
    assert found.cost_us == wanted.cost_us
    assert verify_mugraph(graph, found.graph, 7).passed
    assert all(not it.windows for k in found.graph.kernels for it in k.block.iterators)
