"""Choices that are known before inference: what they choose is read in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.parser import parse_model

from relational_tensat.formats import from_onnx_model, to_onnx_model
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from tests.formats.onnx_tools import assert_same_results

_HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
_IF = """r{i} = If (c) <
        then_branch = t{i} () => (float[?,?] a) {{
            ax = Constant <value = int64[1] {{1}}> ()
            a = Squeeze (x, ax)
        }},
        else_branch = e{i} () => (float[?,?] a) {{
            z = Constant <value = int64[1] {{0}}> ()
            a = Squeeze (x, z)
        }}
    >"""

_NESTED = """g (float[1,4] x) => (float[1,4] y)
<bool yes = {1}>
{
    r = If (yes) <
        then_branch = t () => (float[1,4] a) {
            no = Constant <value = bool {0}> ()
            b = Relu (x)
            a = If (no) <
                then_branch = tt () => (float[1,4] c) { c = Neg (b) },
                else_branch = ee () => (float[1,4] c) { c = Sigmoid (b) }
            >
        },
        else_branch = e () => (float[1,4] a) { a = Neg (x) }
    >
    y = Relu (r)
}"""

_SEQUENCE = """g (float[2,3] x, float[2,3] z) => (float[2,3] y)
<int64 last = {-1}>
{
    s = SequenceConstruct (x, z)
    e = SequenceAt (s, last)
    y = Relu (e)
}"""


def _twice(dims: str) -> str:
    body = _IF.format(i=1) + "\n    " + _IF.format(i=2)
    return f"""g (float[{dims}] x) => (float[?,?] y)
<int64 one = {{1}}>
{{
    s = Shape (x)
    d = Gather (s, one)
    c = Equal (d, one)
    {body}
    y = Add (r1, r2)
}}"""


def _optimized(folder: Path, text: str) -> tuple[Path, Path, list[str]]:
    source, target = folder / "in.onnx", folder / "out.onnx"
    onnx.save(parse_model(_HEAD + text), source)
    optimize(source, Options.of(cost="t4", iterations=2), output=target)
    return source, target, [node.op_type for node in onnx.load(target).graph.node]


def _same(source: Path, target: Path, *shapes: tuple[int, ...]) -> None:
    sessions = [onnxruntime.InferenceSession(str(path)) for path in (source, target)]
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        item.name: rng.normal(size=shape).astype(np.float32)
        for item, shape in zip(sessions[0].get_inputs(), shapes, strict=True)
    }
    one, other = (session.run(None, feeds)[0] for session in sessions)
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("dims", ["1,1,4", "n,1,4"])
def test_the_branch_that_is_taken_is_read_and_names_stay_apart(tmp_path: Path, dims: str) -> None:
    source, target, ops = _optimized(tmp_path, _twice(dims))
    assert "If" not in ops
    for batch in (1, 3) if "n" in dims else (1,):
        _same(source, target, (batch, 1, 4))


def test_a_choice_that_depends_on_sizes_stays(tmp_path: Path) -> None:
    source, target, ops = _optimized(tmp_path, _twice("1,n,4"))
    assert "If" in ops
    for size in (1, 3):
        _same(source, target, (1, size, 4))


def test_choices_in_branches_are_read_too(tmp_path: Path) -> None:
    source, target, ops = _optimized(tmp_path, _NESTED)
    assert "If" not in ops and "Neg" not in ops and "Sigmoid" in ops
    _same(source, target, (1, 4))


def test_an_element_of_known_values_is_that_value(tmp_path: Path) -> None:
    source, target, ops = _optimized(tmp_path, _SEQUENCE)
    assert ops == ["Relu"]
    _same(source, target, (2, 3), (2, 3))


@pytest.mark.parametrize(
    ("turns", "body", "ops"),
    [
        (0, "q = Exp(p)", ["relu"]),
        (1, "u = Exp(p) q = Sin(u)", ["exp", "relu", "sin"]),
        (2, "q = Exp(p)", ["exp", "exp", "relu"]),
        (2, "f = Cast<to=1>(i) q = Add(p, f)", ["add", "add", "relu"]),
        (5, "u = Exp(p) q = Sin(u)", ["opaque", "relu"]),
    ],
)
def test_a_loop_of_few_turns_is_its_turns(turns: int, body: str, ops: list[str]) -> None:
    """Where they are no more nodes than the loop; the number of a turn is known in it."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[3] x) => (float[3] y) {{
      n = Constant<value = int64 {{{turns}}}>()
      a = Loop (n, "", x) <body = b (int64 i, bool c, float[3] p) => (bool o, float[3] q) {{
        o = Identity(c) {body} }}>
      y = Relu(a) }}"""
    proto = parse_model(text)
    graph = from_onnx_model(proto)
    assert sorted(node.op for node in graph.nodes if node.op != "identity") == ops
    assert_same_results(proto, to_onnx_model(graph))


def test_a_loop_that_may_end_before_stays() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, bool e) => (float[3] y) {
      n = Constant<value = int64 {1}>()
      y = Loop (n, e, x) <body = b (int64 i, bool c, float[3] p) => (bool o, float[3] q) {
        o = Identity(c) q = Exp(p) }> }"""
    (node,) = from_onnx_model(parse_model(text)).nodes
    assert node.op == "opaque"
