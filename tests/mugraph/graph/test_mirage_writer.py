"""μGraphs as Mirage's JSON: read again, they are the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.mirage.mirage_writer import ACCUMULATORS, to_mirage
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph, save_mugraph
from relational_tensat.mugraph.programs import ProgramBuilder, program
from relational_tensat.mugraph.verify.random_tests import first_difference
from tests.mugraph.mirage_graphs import saved
from tests.mugraph.mugraphs import flash_attention, with_wide_results

_SAVED = (
    "gqa_bs1", "gqa_bs8", "mqa_bs1", "lora", "gated_mlp", "rmsnorm_bs1", "ntrans_bs1", "qknorm_gqa_bs1",
    "single_gated_mlp", "single_lora", "single_mqa_bs1",
)  # fmt: skip
_SMALL = {
    "attention": {"h": 2, "q": 3, "d": 4, "k": 5, "e": 6},
    "qknorm": {"h": 2, "q": 3, "d": 4, "k": 5, "e": 6},
    "rmsnorm_linear": {"m": 2, "k": 3, "n": 4},
    "mlp": {"m": 2, "k": 3, "r": 4, "n": 5},
    "moe": {"x": 2, "m": 3, "k": 4, "f": 5, "n": 6},
    "lora": {"m": 2, "k": 3, "r": 4, "n": 5},
    "gated_mlp": {"m": 2, "k": 3, "n": 4},
    "swiglu": {"m": 2, "k": 3, "f": 4, "n": 5},
    "ntrans": {"m": 2, "n": 3},
}


def again(graph: MuGraph, accumulators: str = ACCUMULATORS[0]) -> MuGraph:
    document = json.loads(json.dumps(to_mirage(graph, accumulators)))
    return from_mirage(document, graph.name)


@pytest.mark.parametrize("name", _SAVED)
def test_what_mirage_saved_is_the_same_again(name: str) -> None:
    for document in saved(name):
        graph = from_mirage(document, name)
        assert all(again(graph, accumulators) == graph for accumulators in ACCUMULATORS)
        written = to_mirage(graph, "accum")
        if (
            name != "qknorm_gqa_bs1"
        ):  # there, tiles of 1 of a longer dim meet whole ones: sums, here
            assert _operators(written) == _operators(document)


def _operators(document: list[dict[str, object]]) -> list[object]:
    inner = [op["bgraph"]["operators"] for op in document if "bgraph" in op]  # type: ignore[index]
    return [op["op_type"] for op in (*document, *(one for part in inner for one in part))]


def _beside_libraries() -> tuple[MuGraph, MuGraph]:
    """(relu(X·A)·B + C) by its root mean square, whose second product is a kernel; and its program."""
    b = ProgramBuilder("beside", X="m=4 k=8", A="k=8 r=4", B="r=4 n=8", C="m=4 n=8")
    hidden = b.apply("relu", b.matmul("X", "A", "k"))
    total = b.apply("add", b.matmul(hidden, "B", "r"), "C")
    graph = b.build(b.normalized(total, "n"))
    block = BlockGraph(
        (2, 2), 2,
        (InputIterator("t1", "P", ("m", ""), "r"), InputIterator("B", "Bt", ("", "n"), "r")),
        (
            Operation("relu", ("P",), "R"),
            Operation("matmul", ("R", "Bt"), "S", {"over": ("r",)}),
            Accumulate("S", "T"),
        ),
        (Saver("T", "t3", dims_of("m=4 n=8"), ("m", "n")),),
    )  # fmt: skip
    first, _, _, *rest = graph.steps
    return replace(graph, steps=(first, Kernel("k1", block), *rest)), graph


@pytest.mark.parametrize("accumulators", ACCUMULATORS)
def test_operators_of_libraries_beside_a_kernel(
    accumulators: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, computed = _beside_libraries()
    document = to_mirage(graph, accumulators)
    assert [operator["op_type"] for operator in document if operator["output_tensors"]][4:] == [
        "kn_matmul_op", "kn_customized_op", "kn_add_op", "kn_rms_norm_op"
    ]  # fmt: skip
    read = again(graph, accumulators)
    assert to_mirage(read, accumulators) == document
    file, wrong, whole = (tmp_path / f"{name}.json" for name in ("one", "wrong", "program"))
    file.write_text(json.dumps(document), encoding="utf-8")  # one graph, or a list of them
    text = json.dumps([document]).replace("kn_add_op", "kn_mul_op")
    wrong.write_text(text, encoding="utf-8")
    save_mugraph(computed, whole)
    assert main(["kernels", "verify", str(file), str(whole)]) == 0
    assert main(["kernels", "verify", str(wrong), str(whole)]) == 4
    capsys.readouterr()
    assert to_mirage(load_mugraph(file), accumulators) == document


@pytest.mark.parametrize("name", _SMALL)
def test_programs_compute_the_same_again(name: str) -> None:
    graph = program(name, **_SMALL[name])
    assert first_difference(graph, again(graph), seed=1) is None


@pytest.mark.parametrize("accumulators", ACCUMULATORS)
def test_a_block_with_a_loop_and_a_thread_graph(accumulators: str) -> None:
    graph = flash_attention(h=2, q=4, d=6, k=8, e=10)
    assert f"tb_{accumulators}_red_ld_sum_op" in json.dumps(to_mirage(graph, accumulators))
    read = again(graph, accumulators)
    assert first_difference(graph, read, seed=1) is None
    assert (read.kernels[0].block.grid, read.kernels[0].block.loop) == ((2, 2), 4)


def summed(*steps: BlockStep, x: str = "m=4 k=8", y: str = "m=4") -> MuGraph:
    iterators = (InputIterator("X", "x", ("m",), "k"),)
    block = BlockGraph((2,), 2, iterators, steps, (Saver("y", "Y", dims_of(y), ("m",)),))
    return MuGraph("summed", {"X": dims_of(x)}, (Kernel("k", block),), ("Y",))


def test_a_sum_over_two_variables_and_one_that_is_not_last() -> None:
    total = Operation("sum", ("x",), "s", {"over": ("j", "k")})
    graph = summed(total, Accumulate("s", "y"), x="m=4 j=3 k=8")
    assert first_difference(graph, again(graph), seed=1) is None
    first = Operation("sum", ("x",), "s", {"over": ("j",)})
    graph = summed(first, Accumulate("s", "y"), x="m=4 j=3 k=8", y="m=4 k=4")
    assert "tb_reduction_1_op" in json.dumps(to_mirage(graph))
    assert first_difference(graph, again(graph), seed=1) is None


def test_a_rename_needs_no_operator() -> None:
    steps = (
        Operation("rename", ("X",), "Z", {"variable": "k", "into": "n"}),
        Operation("mul", ("Z", "W"), "Y"),
    )
    inputs = {"X": dims_of("k=3 m=2"), "W": dims_of("n=3 m=2")}
    graph = MuGraph("renamed", inputs, steps, ("Y",))
    assert [op["op_type"] for op in to_mirage(graph)][2:] == ["kn_mul_op", "kn_output_op"]
    assert first_difference(graph, again(graph), seed=1) is None
    steps = (steps[0], Operation("matmul", ("X", "Z"), "Y", {"over": ("m",)}))
    with pytest.raises(InputError):  # the last dim of both: Mirage needs another input, transposed
        to_mirage(replace(graph, steps=steps))


def test_what_mirage_has_no_form_for_is_refused_in_one_line() -> None:
    concat = summed(Accumulate("x", "y", "concat", ("k",)), y="m=4 k=8")
    transposed = {"X": dims_of("k=3 m=2"), "W": dims_of("n=4 k=3")}
    product = (Operation("matmul", ("X", "W"), "Y", {"over": ("k",)}),)
    refused = {
        "concat over the loop": concat,
        "last dim with the last but one": MuGraph("product", transposed, product, ("Y",)),
        "at most 4 dims": MuGraph("five", {"X": dims_of("a=2 b=2 c=2 d=2 e=2")}, (), ("X",)),
        "scale": MuGraph(
            "scaled",
            {"X": dims_of("m=2")},
            (Operation("scale", ("X",), "Y", {"value": 2.0}),),
            ("Y",),
        ),
        "sub within kernels": MuGraph(
            "less", {"X": dims_of("m=2")}, (Operation("sub", ("X", "X"), "Y"),), ("Y",)
        ),
    }
    for reason, graph in refused.items():
        with pytest.raises(InputError, match=reason) as caught:
            to_mirage(graph)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("accumulators", ACCUMULATORS)
def test_wide_results_have_numbers_of_their_own(accumulators: str) -> None:
    graph = with_wide_results(from_mirage(saved("gqa_bs1")[0], "gqa"))
    assert graph.wide and again(graph, accumulators) == graph
    types = {"forloop_accum": {941, 950}, "accum": {921, 930}}[accumulators]
    text = json.dumps(to_mirage(graph, accumulators))
    assert set(map(int, re.findall(r'"data_type": (\d+)', text))) == types


def test_the_commands_read_a_file_of_it(tmp_path: Path) -> None:
    path = tmp_path / "flash.json"
    path.write_text(json.dumps([to_mirage(flash_attention(), "accum")]), encoding="utf-8")
    assert first_difference(flash_attention(), load_mugraph(path), seed=1) is None
