"""Powers, concatenations, splits and chunks of Mirage's JSON: what they compute, and the same written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.emulation.comparing import TOLERANCES, norm_error
from bench.emulation.running import DTYPES, run_kernels
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.mugraph.fusion.chain_program import row_kernel
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mirage_json import from_mirage
from relational_tensat.mugraph.graph.mirage_writing import ACCUMULATORS, to_mirage
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    Iterator,
    Kernel,
    MuGraph,
    Operation,
    Saver,
)
from relational_tensat.mugraph.kernels.emission import emit
from relational_tensat.mugraph.programs import ProgramBuilder
from relational_tensat.mugraph.verify.random_tests import first_difference
from relational_tensat.mugraph.verify.verifying_mugraphs import verify_mugraph
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
def test_read_it_computes_that_and_written_it_is_the_same(name: str) -> None:
    document, compute = DOCUMENTS[name]
    graph = from_mirage(document, name)
    random = np.random.default_rng(1)
    shapes = [[dim.size for dim in dims] for dims in graph.inputs.values()]
    values = [random.uniform(0.5, 1.5, shape) for shape in shapes]
    computed = evaluate(graph, dict(zip(graph.inputs, values, strict=True)), Numbers())
    for one, wanted in zip(computed.values(), compute(*values), strict=True):
        np.testing.assert_allclose(one.reshape(wanted.shape), wanted, rtol=1e-12)
    for accumulators in ACCUMULATORS:
        written = to_mirage(graph, accumulators)
        assert [o["op_type"] for o in written] == [o["op_type"] for o in document]
        again = from_mirage(json.loads(json.dumps(written)), name)
        assert again == graph and first_difference(graph, again, 1) is None


def powers(op: str = "pow") -> MuGraph:
    """Return sums of powers, in a loop."""
    b = ProgramBuilder("powers", X="m=4 k=8", Y="m=4 k=8")
    program = b.build(b.apply("sum", b.apply("pow", "X", "Y"), over=("k",)))
    loads = tuple(Iterator(name, name.lower(), ("m",), "k") for name in "XY")
    steps = (
        Operation(op, ("x", "y"), "p"),
        Operation("sum", ("p",), "s", {"over": ("k",)}),
        Accumulate("s", "t"),
    )
    (output,) = program.outputs
    saver = Saver("t", output, program.inputs["X"][:1], ("m",))
    kernel = Kernel("powers", BlockGraph((2,), 2, loads, steps, (saver,)))
    return replace(program, steps=(kernel,))


@pytest.mark.parametrize("accumulators", ACCUMULATORS)
def test_powers_are_in_blocks_too(accumulators: str) -> None:
    graph = powers()
    written = to_mirage(graph, accumulators)
    assert {"tb_pow_op", f"tb_{accumulators}_red_ld_sum_op"} <= {
        o["op_type"] for o in written[2]["bgraph"]["operators"]
    }
    assert first_difference(graph, from_mirage(written, "again"), 1) is None
    b = ProgramBuilder("powers", X="m=4 k=8", Y="m=4 k=8")
    program = b.build(b.apply("sum", b.apply("pow", "X", "Y"), over=("k",)))
    assert verify_mugraph(program, graph, 1).passed
    assert not verify_mugraph(program, powers("mul"), 1).passed


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
    with pytest.raises(InputError, match="Triton has no pow"):
        emit(graph, "triton")


def test_what_the_json_cannot_say_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = from_mirage(DOCUMENTS["split_1"][0], "part")
    alone = replace(part, steps=part.steps[:1], outputs=part.outputs[:1])
    with pytest.raises(
        InputError, match="a part of input0 alone; Mirage's JSON has splits into all"
    ):
        to_mirage(alone)
    (first,) = alone.steps
    assert isinstance(first, Operation)
    strided = replace(first, attrs={**first.attrs, "step": 2})
    with pytest.raises(InputError, match=r"window .* has no form in Mirage's JSON"):
        to_mirage(replace(alone, steps=(strided,)))
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
