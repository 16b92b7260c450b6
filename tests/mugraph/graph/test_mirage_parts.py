"""Powers, concatenations, splits and chunks of Mirage's JSON: what they compute, and the same written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.emulation.errors import TOLERANCES, norm_error
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
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
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.programs import ProgramBuilder
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.tensor import Array

_Json = dict[str, Any]
_Compute = Callable[..., list[Array]]


def tensor(guid: int, *sizes: int) -> _Json:
    return {"guid": guid, "dim": [*sizes, *[0] * (4 - len(sizes))], "num_dims": len(sizes)}


def graph_of(inputs: list[_Json], *operators: tuple[str, list[_Json], list[_Json]]) -> list[_Json]:
    """Return a document: inputs, operators by name, and what the last of these gives."""
    document = [
        {"op_type": "kn_input_op", "input_tensors": [], "output_tensors": [one]} for one in inputs
    ]
    for name, given, made in operators:
        document.append(
            {"op_type": f"kn_{name}_op", "input_tensors": given, "output_tensors": made}
        )
    last = operators[-1][2]
    document += [
        {"op_type": "kn_output_op", "input_tensors": [t], "output_tensors": []} for t in last
    ]
    return document


A, B = tensor(1, 2, 6), tensor(2, 2, 4)
C, D, E = tensor(3, 6, 5), tensor(4, 4, 5), tensor(5, 2, 6)
DOCUMENTS: dict[str, tuple[list[_Json], _Compute]] = {
    "split_1": (
        graph_of([A], ("split_1", [A], [tensor(6, 2, 2), tensor(7, 2, 4)])),
        lambda a: [a[:, :2], a[:, 2:]],
    ),
    "chunk_1": (
        graph_of([A], ("chunk_1", [A], [tensor(n, 2, 2) for n in (6, 7, 8)])),
        lambda a: np.split(a, 3, axis=1),
    ),
    "chunk_0": (
        graph_of([A], ("chunk_0", [A], [tensor(6, 1, 6), tensor(7, 1, 6)])),
        lambda a: [a[:1], a[1:]],
    ),
    "concat_1": (
        graph_of([A, B], ("concat_1", [A, B], [tensor(6, 2, 10)])),
        lambda a, b: [np.concatenate([a, b], axis=1)],
    ),
    "concat_0": (
        graph_of([A, E], ("concat_0", [A, E, A], [tensor(6, 6, 6)])),
        lambda a, e: [np.concatenate([a, e, a])],
    ),
    "pow": (graph_of([A, E], ("pow", [A, E], [tensor(6, 2, 6)])), lambda a, e: [a**e]),
    "concat_then_matmul": (
        graph_of([A, B, C, D], ("concat_then_matmul", [A, B, C, D], [tensor(6, 2, 5)])),
        lambda a, b, c, d: [a @ c + b @ d],
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_read_it_computes_that(name: str) -> None:
    document, compute = DOCUMENTS[name]
    graph = from_mirage(document, name)
    random = np.random.default_rng(1)
    shapes = [[dim.size for dim in dims] for dims in graph.inputs.values()]
    values = [random.uniform(0.5, 1.5, shape) for shape in shapes]
    computed = evaluate(graph, dict(zip(graph.inputs, values, strict=True)), Numbers())
    for one, wanted in zip(computed.values(), compute(*values), strict=True):
        np.testing.assert_allclose(one.reshape(wanted.shape), wanted, rtol=1e-12)


def powers(op: str = "pow") -> MuGraph:
    """Return sums of powers, in a loop."""
    b = ProgramBuilder("powers", X="m=4 k=8", Y="m=4 k=8")
    program = b.build(b.apply("sum", b.apply("pow", "X", "Y"), over=("k",)))
    loads = tuple(InputIterator(name, name.lower(), ("m",), "k") for name in "XY")
    steps = (
        Operation(op, ("x", "y"), "p"),
        Operation("sum", ("p",), "s", {"over": ("k",)}),
        Accumulate("s", "t"),
    )
    (output,) = program.outputs
    saver = Saver("t", output, program.inputs["X"][:1], ("m",))
    kernel = Kernel("powers", BlockGraph((2,), 2, loads, steps, (saver,)))
    return replace(program, steps=(kernel,))


def test_powers_are_in_blocks_too() -> None:
    b = ProgramBuilder("powers", X="m=4 k=8", Y="m=4 k=8")
    program = b.build(b.apply("sum", b.apply("pow", "X", "Y"), over=("k",)))
    assert verify_mugraph(program, powers(), 1).passed
    assert not verify_mugraph(program, powers("mul"), 1).passed


def block_of(
    inputs: list[_Json], loaded: list[_Json], *operators: tuple[str, list[_Json], list[_Json]],
    result: _Json, grid: int = 1, loop: int = 1, maps: Sequence[tuple[int, int]] = (), stored: int = -1,
) -> list[_Json]:  # fmt: skip
    """Return a document of one kernel, which stores what its last operator gives.

    Args:
        inputs, loaded: tensors, and their tiles.
        operators: by name.
        result: in device memory.
        grid, loop: blocks, and iterations.
        maps: of each input, which dim the grid splits, and which the loop; -1 for none.
        stored: the result's dim that blocks have parts of.
    """
    axes = lambda x: {"x": x, "y": -1, "z": -1}  # noqa: E731
    made: list[_Json] = [
        {"op_type": "tb_input_op", "input_tensors": [], "output_tensors": [tile], "dtensor": one,
         "input_map": axes(x), "forloop_dim": along}
        for one, tile, (x, along) in zip(inputs, loaded, maps or [(-1, -1)] * len(inputs), strict=True)
    ]  # fmt: skip
    made += [
        {"op_type": f"tb_{name}_op", "input_tensors": given, "output_tensors": results}
        for name, given, results in operators
    ]
    made.append({"op_type": "tb_output_op", "input_tensors": operators[-1][2], "output_tensors": [],
                 "dtensor": result, "output_map": axes(stored)})  # fmt: skip
    block = {"grid_dim": {"x": grid, "y": 1, "z": 1}, "forloop_range": loop, "reduction_dimx": 2,
             "operators": made}  # fmt: skip
    document = graph_of(inputs, ("customized", inputs, [result]))
    document[-2]["bgraph"] = block
    return document


_NORED = "forloop_accum_no_red"
BLOCKS: dict[str, tuple[list[_Json], _Compute]] = {
    "concat_1": (  # of tiles that the loop goes through: [X ‖ A], part by part, times a weight
        block_of(
            [tensor(1, 4, 6), tensor(2, 4, 4), tensor(3, 5, 3)],
            [tensor(11, 2, 3), tensor(12, 2, 2), tensor(13, 5, 3)],
            ("concat_1", [tensor(11), tensor(12)], [tensor(14, 2, 5)]),
            ("matmul", [tensor(14), tensor(13)], [tensor(15, 2, 3)]),
            (_NORED, [tensor(15)], [tensor(16, 2, 3)]),
            result=tensor(4, 4, 3), grid=2, loop=2, maps=[(0, 1), (0, 1), (-1, -1)], stored=0,
        ),
        lambda x, a, w: [
            np.concatenate([x[:, :3], a[:, :2]], axis=1) @ w
            + np.concatenate([x[:, 3:], a[:, 2:]], axis=1) @ w
        ],
    ),
    "split_1": (
        block_of(
            [tensor(1, 4, 6)], [tensor(11, 2, 6)],
            ("split_1", [tensor(11)], [tensor(12, 2, 1), tensor(13, 2, 3), tensor(14, 2, 2)]),
            ("mul", [tensor(13), tensor(12)], [tensor(15, 2, 3)]),
            (_NORED, [tensor(15)], [tensor(16, 2, 3)]),
            result=tensor(4, 4, 3), grid=2, maps=[(0, -1)], stored=0,
        ),
        lambda x: [x[:, 1:4] * x[:, :1]],
    ),
    "chunk_0": (
        block_of(
            [tensor(1, 4, 6)], [tensor(11, 4, 3)],
            ("chunk_0", [tensor(11)], [tensor(12, 2, 3), tensor(13, 2, 3)]),
            ("div", [tensor(12), tensor(13)], [tensor(14, 2, 3)]),
            (_NORED, [tensor(14)], [tensor(16, 2, 3)]),
            result=tensor(4, 2, 3), loop=2, maps=[(-1, 1)],
        ),
        lambda x: [x[:2, :3] / x[2:, :3] + x[:2, 3:] / x[2:, 3:]],
    ),
    "concat_0": (  # of one row, which no dim stands for, and of two
        block_of(
            [tensor(1, 1, 6), tensor(2, 2, 6)], [tensor(11, 1, 6), tensor(12, 2, 6)],
            ("concat_0", [tensor(11), tensor(12)], [tensor(13, 3, 6)]),
            (_NORED, [tensor(13)], [tensor(16, 3, 6)]),
            result=tensor(4, 3, 6),
        ),
        lambda x, a: [np.concatenate([x, a])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_parts_of_tiles_are_read_and_are_code(name: str, tmp_path: Path) -> None:
    document, compute = BLOCKS[name]
    graph = from_mirage(document, name)
    random = np.random.default_rng(1)
    inputs = {
        name: random.uniform(0.5, 1.5, [dim.size for dim in dims]).astype("float16")
        for name, dims in graph.inputs.items()
    }
    shapes = [one["output_tensors"][0]["dim"] for one in document[: len(inputs)]]
    given = [
        value.astype("float64").reshape([size for size in shape if size])
        for value, shape in zip(inputs.values(), shapes, strict=True)
    ]
    (wanted,) = compute(*given)
    (output,) = graph.outputs
    for computed, tolerance in (
        (evaluate(graph, {n: v.astype("float64") for n, v in inputs.items()}, Numbers()), 1e-12),
        (run_kernels(graph, inputs, "cuda", tmp_path), 2 * TOLERANCES["float16"]),
    ):
        assert norm_error(computed[output].reshape(wanted.shape), wanted) < tolerance


def test_a_part_of_a_tile_whose_last_one_is_smaller_is_refused() -> None:
    document, _ = BLOCKS["split_1"]
    graph = from_mirage(document, "split")
    (kernel,) = graph.kernels
    rows, columns = graph.inputs["input0"]
    loads = (replace(kernel.block.iterators[0], imap=(columns.variable,)),)
    graph = replace(graph, inputs={"input0": (rows, replace(columns, size=7))})
    block = replace(kernel.block, iterators=loads)
    with pytest.raises(InputError, match=r"no window of .*, as its last tile is smaller"):
        kernel_tensors(replace(graph, steps=(replace(kernel, block=block),)))


@pytest.mark.parametrize("op", ["forloop_accum_red_ld_mean", "reduction_1_to_dimx"])
def test_means_over_the_loop_and_sums_in_strides_are_read(op: str) -> None:
    is_mean = "mean" in op
    size = 1 if is_mean else 2
    operators = [(op, [tensor(11)], [tensor(12, 2, size)])]
    if not is_mean:
        operators.append((_NORED, [tensor(12)], [tensor(13, 2, 2)]))
    document = block_of(
        [tensor(1, 2, 8)], [tensor(11, 2, 4)], *operators, result=tensor(4, 2, size), loop=2,
        maps=[(-1, 1)],
    )  # fmt: skip
    graph = from_mirage(document, "means")
    x = np.random.default_rng(1).normal(size=(2, 8))
    (computed,) = evaluate(graph, {"input0": x}, Numbers()).values()
    expected = x.mean(axis=1) if is_mean else x.reshape(2, 4, 2).sum(axis=1)
    np.testing.assert_allclose(computed.reshape(expected.shape), expected)


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_powers_are_code(target: str, tmp_path: Path) -> None:
    b = ProgramBuilder("power", X="m=4 k=8", Y="m=4 k=8")
    graph = row_kernel(b.build(b.apply("pow", "X", "Y")))
    random = np.random.default_rng(2)
    inputs = {n: random.uniform(0.5, 2, (4, 8)).astype(DTYPES[target]) for n in "XY"}
    inputs["X"][0, 0], inputs["Y"][0, 0] = -2.0, 3.0
    computed = run_kernels(graph, inputs, target, tmp_path)[graph.outputs[0]]
    wanted = np.power(*(inputs[name].astype("float64") for name in "XY"))
    assert wanted[0, 0] == -8.0 and norm_error(computed, wanted) < 2 * TOLERANCES[DTYPES[target]]


def test_what_has_no_meaning_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tensor(1, 1, 6)
    refused = {
        "parts of [2, 2], expected 6 together": (
            "split_1",
            [A],
            [tensor(6, 2, 2), tensor(7, 2, 2)],
        ),
        "parts of [2, 4], expected equal ones": (
            "chunk_1",
            [A],
            [tensor(6, 2, 2), tensor(7, 2, 4)],
        ),
        "concat_0 begins with one element": ("concat_0", [one, one], [tensor(6, 2, 6)]),
        "has a result of [2, 9], expected [2, 10]": ("concat_1", [A, B], [tensor(6, 2, 9)]),
    }
    for reason, operator in refused.items():
        inputs = [one] if operator[1][0] is one else [A, B]
        path = tmp_path / "refused.json"
        path.write_text(json.dumps([graph_of(inputs, operator)]), encoding="utf-8")
        assert main(["kernels", "show", str(path)]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert reason in line
