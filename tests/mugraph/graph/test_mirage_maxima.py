"""Maxima of tiles, and sums that are rescaled by them, in Mirage's JSON: read, verified, code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, exact, norm_error
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
)
from relational_tensat.mugraph.graph.mugraph_json import (
    decoded,
    encoded,
    save_mugraph,
)
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.verify import verification
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verification import verify_mugraph
from tests.mugraph import slow_evaluation
from tests.mugraph.kernels.mugraphs import split_attention
from tests.mugraph.mirage_documents import Block, Document, Json, Maps
from tests.mugraph.mirage_documents import split_attention as online_softmax
from tests.mugraph.mugraphs import flash_attention, with_wide_results
from tests.with_compilers import skip_without_compiler
from tests.with_triton import skip_without_triton

ATTENTION = program("attention", h=2, q=16, d=16, k=64, e=16)


def read(document: list[Json]) -> MuGraph:
    return from_mirage(json.loads(json.dumps(document)), "online")


@pytest.mark.nightly
def test_mirages_online_softmax_is_attention_whatever_the_maxima_are() -> None:
    graph = read(online_softmax())
    checked = verify_mugraph(ATTENTION, graph, 1)
    assert checked.passed and checked.takes_large_logits
    assert not checked.takes_large_sums  # it has float16 between kernels
    assert verify_mugraph(ATTENTION, with_wide_results(graph), 1).is_stable
    assert not verify_mugraph(ATTENTION, read(online_softmax("forloop_accum_nored")), 1).passed


@pytest.mark.nightly
def test_other_variables_are_tested_at_small_sizes_and_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mirage's dims are renamed where operators align them; where none is free, no sizes are smaller."""
    monkeypatch.setattr(verification, "_MOST_ELEMENTS", 100)
    online = read(online_softmax())
    checked = verify_mugraph(ATTENTION, online, 1)
    assert checked.passed and checked.error == 1e-6
    assert checked.small_tests > 0 and checked.full_tests == 2
    small = verify_mugraph(ATTENTION, stabilized(flash_attention(h=2, q=16, d=16, k=64, e=16)), 1)
    assert small.small_tests > 0 and small.full_tests == 0
    monkeypatch.setattr(verification, "with_variables_of", lambda program, graph: None)
    alone = verify_mugraph(ATTENTION, online, 1)
    assert alone.passed and (alone.small_tests, alone.full_tests) == (0, 2)
    monkeypatch.setattr(verification, "_MOST_ELEMENTS_ALONE", 100)
    assert not verify_mugraph(ATTENTION, online, 1).passed  # nothing was tested


def test_what_is_wrong_in_a_document_is_said_by_operator() -> None:
    kernel = next(n for n, step in enumerate(online_softmax()) if "bgraph" in step)
    within = [kernel, "bgraph", "operators", 4]
    block = f"operator {kernel}, operator 4 of its block"
    for place, key, value, reason in (
        (within, "op_type", None, "operator None at the wrong level"),
        (within, "input_tensors", [{"guid": 5000}], f"{block}: there is no tensor"),
        (within, "input_tensors", [{}], f"{block}: the key 'guid' is missing"),
        ([0, "output_tensors", 0], "dim", 4, "operator 0: 'int' object is not subscriptable"),
    ):  # fmt: skip
        document = json.loads(json.dumps(online_softmax()))
        part = document
        for step in place:
            part = part[step]
        part[key] = value
        with pytest.raises(InputError, match=reason):
            from_mirage(document, "online")
    with pytest.raises(InputError, match="a list of operators was expected"):
        from_mirage(1, "online")


@pytest.mark.nightly
def test_it_is_verified_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    good, wrong, whole = (tmp_path / f"{name}.json" for name in ("good", "wrong", "program"))
    good.write_text(json.dumps(online_softmax()), encoding="utf-8")
    wrong.write_text(json.dumps(online_softmax("forloop_accum_nored")), encoding="utf-8")
    save_mugraph(ATTENTION, whole)
    assert main(["kernels", "verify", str(good), str(whole)]) == 0
    assert main(["kernels", "verify", str(wrong), str(whole)]) == 4
    capsys.readouterr()
    assert main(["kernels", "show", str(good)]) == 0
    text = capsys.readouterr().out
    assert "running max of" in text and "sum over the loop of" in text and "rescaled by" in text


def test_float32_has_the_number_that_goes_with_that_of_the_inputs() -> None:
    assert not read(
        online_softmax(wide=950)
    ).wide  # of today's Mirage, beside the saved ones' float16
    assert len(read(online_softmax(wide=930)).wide) == 3


def large(graph: MuGraph) -> dict[str, np.ndarray]:
    """Return inputs of a graph with three, in float16: logits of ±600, of which exp overflows."""
    random = np.random.default_rng(3)
    values = [random.standard_normal([dim.size for dim in dims]) for dims in graph.inputs.values()]
    scaled = (value * scale for value, scale in zip(values, (6.3, 6.3, 1.0), strict=True))
    return {name: v.astype("float16") for name, v in zip(graph.inputs, scaled, strict=True)}


def of_large_logits(target: str, folder: Path) -> float:
    """Return the relative error of Mirage's online softmax as code of a target."""
    graph = with_wide_results(read(online_softmax()))
    inputs = large(graph)
    computed = run_kernels(graph, inputs, target, folder)[graph.outputs[0]]
    return norm_error(computed, exact(graph, inputs))


def test_cuda_is_right_for_large_logits(tmp_path: Path) -> None:
    assert of_large_logits("cuda", tmp_path) < 2 * TOLERANCES["float16"]


def test_triton_is_right_for_large_logits() -> None:
    """In a process of its own: Triton decides when it is imported whether it is interpreted."""
    skip_without_triton()
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.interpreting_maxima"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    errors = json.loads(printed.stdout)
    assert len(errors) == 2 and max(errors) < 2 * TOLERANCES["float16"]


def largest_and_sums() -> MuGraph:
    """Of X: rows' largest elements, largest of all iterations' elements; and of Y sums of exponentials."""
    document = Document()
    x, y = document.inputs((4, 12), (4, 8))
    block = Block(document, (2, 1, 1), 4)
    maps: Maps = (0, -1, -1, 1)
    tile, other = block.load(x, (2, 3), maps), block.load(y, (2, 2), maps)
    row, _ = block.add("reduction_1_max", [tile], (2, 1), (2, 1))
    (rows,) = block.add("forloop_accum_max", [row], (2, 1))
    (own,) = block.add("forloop_accum_max", [tile], (2, 3))
    top, moved = block.add("reduction_1_max", [other], (2, 1), (2, 1))
    (factor,) = block.add("exp", [moved], (2, 1))
    (below,) = block.add("sub", [other, top], (2, 2))
    (weights,) = block.add("exp", [below], (2, 2))
    (total,) = block.add("forloop_accum_red_ld_sum_rescale", [weights, factor], (2, 1))
    stored = [
        block.store(one, size, (0, -1, -1))
        for one, size in ((rows, (4, 1)), (own, (4, 3)), (total, (4, 1)))
    ]
    block.end()
    for one in stored:
        document.add("output", [one], [])
    return read(document.operators)


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_largest_elements_of_all_iterations_are_code(target: str, tmp_path: Path) -> None:
    skip_without_compiler(target)
    assert max(of_largest(target, tmp_path)) < 2 * TOLERANCES[DTYPES[target]]


def of_largest(target: str, folder: Path) -> list[float]:
    """Return the relative errors of three results as code of a target."""
    graph, random = largest_and_sums(), np.random.default_rng(5)
    inputs = {
        name: (random.standard_normal([d.size for d in dims]) * 4).astype(DTYPES[target])
        for name, dims in graph.inputs.items()
    }
    x, y = (value.astype("float64") for value in inputs.values())
    wanted = [x.max(1), x.reshape(4, 4, 3).max(1), np.exp(y - y.max(1, keepdims=True)).sum(1)]
    exactly = evaluate(graph, {n: v.astype("float64") for n, v in inputs.items()}, Numbers())
    slowly = slow_evaluation.run(graph, {n: v.astype("float64") for n, v in inputs.items()})
    computed = run_kernels(graph, inputs, target, folder)
    errors = []
    for name, value in zip(graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(exactly[name], value, rtol=1e-12)
        np.testing.assert_allclose(slowly[name], value, rtol=1e-12)
        errors.append(norm_error(computed[name], value))
    return errors


def test_all_iterations_at_once_are_one_after_the_other() -> None:
    for graph in (stabilized(flash_attention()), split_attention(), read(online_softmax())):
        random = np.random.default_rng(2)
        values = {
            name: random.standard_normal([dim.size for dim in dims])
            for name, dims in graph.inputs.items()
        }
        (slow,), (fast,) = (
            slow_evaluation.run(graph, values).values(),
            evaluate(graph, values, Numbers()).values(),
        )
        np.testing.assert_allclose(fast, slow, rtol=1e-12)


def of_rows(*steps: BlockStep) -> MuGraph:
    """Return a kernel that loads X, with a loop over k, and stores y."""
    load = InputIterator("X", "x", ("m",), "k")
    block = BlockGraph((2,), 2, (load,), steps, (Saver("y", "Y", dims_of("m=4"), ("m",)),))
    return MuGraph("rows", {"X": dims_of("m=4 k=8")}, (Kernel("k", block),), ("Y",))


def test_what_has_no_meaning_gets_one_line() -> None:
    total = Accumulate("s", "y", rescale="s")
    row_sum = Operation("sum", ("x",), "s", {"over": ("k",)})
    columns = RunningMax("x", "m", ("m",))
    for steps, reason in (
        ((row_sum, total), "a sum rescaled by s, expected a sum by a running maximum"),
        ((row_sum, columns, replace(total, rescale="m")), "m has the dim k, which s has not"),
        ((RunningMax("x", "m", ("n",)), Accumulate("m", "y", "max")), "has no dim 'n'"),
        (
            (row_sum, Accumulate("s", "t"), RunningMax("t", "y", ("m",))),
            "y is a running maximum of what comes after the loop",
        ),
    ):
        with pytest.raises(InputError, match=reason):
            kernel_tensors(of_rows(*steps))
    graph = of_rows(RunningMax("x", "m", ("k",)), Accumulate("m", "y", "max"))
    assert decoded(json.loads(json.dumps(encoded(graph))), "again") == graph


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((("add", ("x", "moved")),), "by how much a maximum moved is read by something else"),
        ((("add", ("x", "factor")),), "by how much a maximum moved is read by something else"),
        ((("forloop_accum_nored_rescale", ("x", "max")),), "by something else than the exponential"),
        ((("forloop_accum_max_rescale", ("x", "factor")),), "'forloop_accum_max_rescale' is not known"),
    ],
)  # fmt: skip
def test_other_uses_of_how_much_a_maximum_moved_are_refused(
    steps: Sequence[tuple[str, tuple[str, ...]]], reason: str
) -> None:
    document = Document()
    (x,) = document.inputs((4, 8))
    block = Block(document, (1, 1, 1), 2)
    tile = block.load(x, (4, 4), (-1, -1, -1, 1))
    largest, moved = block.add("reduction_1_max", [tile], (4, 1), (4, 1))
    (factor,) = block.add("exp", [moved], (4, 1))
    named = {"x": tile, "max": largest, "moved": moved, "factor": factor}
    for op, operands in steps:
        (made,) = block.add(op, [named[name] for name in operands], (4, 4))
    stored = block.store(made, (4, 4), (-1, -1, -1))
    block.end()
    document.add("output", [stored], [])
    with pytest.raises(InputError, match=reason) as caught:
        read(document.operators)
    assert "\n" not in str(caught.value)
