"""Bodies of If, Loop and Scan: rewritten as models of their own, explained, at all sizes, in each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnx
import pytest

from relational_tensat import Options, Result, optimize
from relational_tensat.formats.onnx_names import all_nodes
from relational_tensat.run.stages import bodies
from tests.formats.onnx_tools import constant, session

IF = """g (float[N,8] x, bool c) => (float[N,8] y) {
  a = Exp(x)
  y = If (c) <then_branch = t () => (float[N,8] p) { b = Relu(a) d = Relu(b) p = Add(d, x) },
              else_branch = e () => (float[N,8] q) { k = Neg(a) q = Neg(k) }>
}"""
LOOP = """g (float[4,8] x) => (float[4,8] y, float[3,4,8] s) {
  n = Constant<value = int64 {3}>()
  y, s = Loop (n, "", x) <body = b (int64 i, bool c, float[4,8] p) => (bool o, float[4,8] q, float[4,8] r) {
    o = Identity(c) t = Transpose<perm=[1,0]>(W) m = MatMul(p, t)
    k = Relu(m) l = Relu(k) q = Add(l, B) r = Identity(q) }>
}"""
SCAN = """g (float[4] x, float[6,4] z) => (float[4] y, float[6,4] s) {
  y, s = Scan <num_scan_inputs=1, body = b (float[4] p, float[4] w) => (float[4] q, float[4] r) {
    u = Abs(w) v = Abs(u) q = Add(p, v) r = Identity(q) }> (x, z)
}"""
NESTED = """g (float[4,8] x, bool c) => (float[4,8] y) {
  n = Constant<value = int64 {3}>()
  y = If (c) <then_branch = t () => (float[4,8] p) {
      p = Loop (n, c, x) <body = b (int64 i, bool d, float[4,8] h) => (bool o, float[4,8] q) {
        o = Identity(d) u = Relu(h) v = Relu(u) q = Relu(v) }> },
    else_branch = e () => (float[4,8] q) { q = Neg(x) }>
}"""
GROWS = """g (float[4,8] x) => (float[M,8] y) {
  n = Constant<value = int64 {3}>()
  y = Loop (n, "", x) <body = b (int64 i, bool c, float[M,8] p) => (bool o, float[L,8] q) {
    o = Identity(c) u = Relu(p) v = Relu(u) q = Concat<axis=0>(v, x) }>
}"""
RANDOM = """g (float[4,8] x, bool c) => (float[4,8] y) {
  y = If (c) <then_branch = t () => (float[4,8] p) { r = RandomNormalLike(x) s = Relu(r) p = Relu(s) },
              else_branch = e () => (float[4,8] q) { q = Neg(x) }>
}"""


#: Few are read sooner than all.
_RULES = ("drop-second-application", "drop-inverse-pair")


def _model(text: str, **constants: Any) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    model.graph.initializer.extend(constant(name, value) for name, value in constants.items())
    onnx.checker.check_model(model)
    return model


def _counts(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in all_nodes(model.graph.node))


def _optimized(model: onnx.ModelProto, **options: Any) -> Result:
    return optimize(model, Options.of(cost="t4", only=_RULES, **options))


def _assert_same(before: onnx.ModelProto, after: onnx.ModelProto, **feeds: Any) -> None:
    for expected, given in zip(
        session(before).run(None, feeds), session(after).run(None, feeds), strict=True
    ):
        np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-5)


def _normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 5])
def test_branches_at_all_sizes(rows: int) -> None:
    model = _model(IF)
    result = _optimized(model, dims={"N": 3})
    assert _counts(result.model)["Relu"] == 1
    assert _counts(result.model)["Neg"] == 0
    for chosen in (True, False):
        _assert_same(model, result.model, x=_normal(rows, 8), c=np.array(chosen))


def test_a_body_knows_constants_from_outside(tmp_path: Path) -> None:
    """A transposed weight is known before inference."""
    model = _model(LOOP, W=_normal(8, 8) / 8, B=_normal(8))
    result = _optimized(model, db=tmp_path / "run.db")
    assert _counts(result.model)["Transpose"] == 0
    _assert_same(model, result.model, x=_normal(4, 8))
    with duckdb.connect(str(tmp_path / "run.db"), read_only=True) as connection:
        rows = connection.execute(
            "SELECT op_type, nodes_before, nodes_after, len(steps) FROM body_rewrite JOIN rule"
            " ON rule.name = body_rewrite.rule"
        ).fetchall()
    assert [row[0] for row in rows] == ["Loop"]
    assert rows[0][1] == 7
    assert rows[0][2] < 6
    assert rows[0][3] > 0


def test_bodies_in_bodies_are_explained() -> None:
    model = _model(NESTED)
    result = _optimized(model)
    assert _counts(result.model)["Relu"] == 1
    (rule,) = result.rules_used
    assert rule.startswith("if-bodies-1")
    assert result.tables is not None
    page = result.tables.page()._repr_html_()
    assert "then_branch, body, " in page
    for chosen in (True, False):
        _assert_same(model, result.model, x=_normal(4, 8), c=np.array(chosen))


def test_a_node_of_many_operands() -> None:
    """E-nodes have columns for five."""
    states = [f"s{number}" for number in range(5)]
    turn = " ".join(f"{state}a = Relu({state}i) {state}o = Relu({state}a)" for state in states)
    text = f"""g (float[4] x) => ({", ".join(f"float[4] {state}" for state in states)}) {{
      n = Constant<value = int64 {{3}}>()
      {", ".join(states)} = Loop (n, "", x, x, x, x, x) <body = b (int64 i, bool c,
        {", ".join(f"float[4] {state}i" for state in states)}) => (bool o,
        {", ".join(f"float[4] {state}o" for state in states)}) {{
        o = Identity(c) {turn} }}>
    }}"""
    model = _model(text)
    result = _optimized(model)
    assert _counts(result.model)["Relu"] == len(states)
    _assert_same(model, result.model, x=_normal(4))


@pytest.mark.parametrize("rows", ["6", "N"])
def test_scan(rows: str) -> None:
    """The axis that it goes along is none of the body's."""
    model = _model(SCAN.replace("6", rows))
    result = _optimized(model)
    assert _counts(result.model)["Abs"] == 1
    _assert_same(model, result.model, x=_normal(4), z=_normal(6, 4))


def test_what_a_loop_carries_changes_its_shape() -> None:
    model = _model(GROWS)
    result = _optimized(model)
    assert _counts(result.model)["Relu"] == 1
    _assert_same(model, result.model, x=_normal(4, 8))


def test_a_loop_that_begins_with_nothing() -> None:
    model = _model(GROWS.replace('"", x)', '"", e)'), e=np.zeros((0, 8), np.float32))
    result = _optimized(model)
    assert _counts(result.model)["Relu"] == 1
    _assert_same(model, result.model, x=_normal(4, 8))
    (there,) = session(result.model).run(None, {"x": _normal(4, 8)})
    assert there.shape == (12, 8)


def test_a_loop_of_nothing_stays() -> None:
    text = GROWS.replace('"", x)', '"", e)').replace("Concat<axis=0>(v, x)", "Relu(v)")
    model = _model(text, e=np.zeros((0, 8), np.float32))
    assert _counts(_optimized(model).model)["Relu"] == 3


def test_what_is_random_stays() -> None:
    """It cannot be compared."""
    assert _counts(_optimized(_model(RANDOM)).model)["Relu"] == 2


def test_equal_bodies_with_other_constants() -> None:
    """Two loops have the same body, but for what is outside: nothing of it is known inside."""
    body = """<body = b (int64 i, bool c, float[4,8] p) => (bool o, float[4,8] q) {
      o = Identity(c) m = Add(p, %s) k = Relu(m) q = Relu(k) }>"""
    text = f"""g (float[4,8] x) => (float[4,8] y) {{
      n = Constant<value = int64 {{2}}>()
      h = Loop (n, "", x) {body % "A"}
      y = Loop (n, "", h) {body % "B"}
    }}"""
    model = _model(text, A=_normal(8), B=2 * _normal(8))
    result = _optimized(model)
    assert _counts(result.model)["Relu"] == 2
    _assert_same(model, result.model, x=_normal(4, 8))


def test_equal_bodies_of_other_types() -> None:
    """One rule would match both loops: none may know the constants of one of them."""
    loop = """Loop (n, "", %s) <body = b (int64 i, bool c, float[M,8] p) => (bool o, float[M,8] q) {
      o = Identity(c) t = Transpose<perm=[1,0]>(%s) m = MatMul(p, t) k = Relu(m) q = Relu(k) }>"""
    text = f"""g (float[4,8] x, float[2,8] z) => (float[4,8] y, float[2,8] w) {{
      n = Constant<value = int64 {{9}}>()
      y = {loop % ("x", "A")}
      w = {loop % ("z", "B")}
    }}"""
    model = _model(text, A=_normal(8, 8) / 4, B=_normal(8, 8) / 8)
    result = _optimized(model)
    _assert_same(model, result.model, x=_normal(4, 8), z=_normal(2, 8))
    assert _counts(result.model)["Transpose"] == 2


def test_outputs_that_are_no_tensors_are_compared() -> None:
    text = """g (float[5,3] x) => (seq(float[5,3]) y) {
      a = MatMul(x, W) b = Relu(a) c = Relu(b) y = SequenceConstruct(b, c)
    }"""
    result = _optimized(_model(text, W=_normal(3, 3)))
    assert _counts(result.model)["Relu"] == 1
    assert result.verification.runs >= 2


def test_an_output_without_a_shape(tmp_path: Path) -> None:
    model = _model("g (float[5,3] x) => (float[5,3] y) { a = Relu(x) y = Relu(a) }")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    optimize(source, Options.of(effort="low"), output=target)
    assert _counts(onnx.load(target)) == {"Relu": 1}
    _assert_same(model, onnx.load(target), x=_normal(5, 3))


def test_the_time_for_bodies_is_for_those_within_others_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bodies that hold bodies are many in a small file."""
    clock = iter(range(1000))
    monkeypatch.setattr(bodies, "now_s", lambda: float(next(clock)))
    monkeypatch.setattr(bodies, "_MOST_S", 2.0)
    model = _model(NESTED)
    result = _optimized(model)
    assert "bodies of 1 node are as they were: the time for bodies was over" in result.notes
    assert _counts(result.model)["Relu"] == 3
