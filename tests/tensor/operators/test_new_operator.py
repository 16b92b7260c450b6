"""Adding an operator is a local change: one class, and everything works with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relational_tensat import Options, load_model, load_profile, optimize, save_model
from relational_tensat.base.errors import ShapeError, UsageError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness import verify_rule
from relational_tensat.tensor import Node, TensorType, ValueType, Weight, build_graph
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators import (
    Attr,
    Mapped,
    Operator,
    get_operator,
    operators,
    register,
)
from relational_tensat.tensor.operators.base import Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter, OnnxNode
from relational_tensat.tensor.operators.registry import unregister
from relational_tensat.tensor.types import Attrs
from relational_tensat.verify.evaluate import evaluate_graph
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read, read_back
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32


@pytest.fixture
def elu() -> Iterator[type[Operator]]:
    @register
    class Elu(Operator):
        """x where positive, alpha (e to the x - 1) elsewhere."""

        name = "elu"
        attrs = (Attr("alpha", "float", 1.0, samples=(0.5, 0.25)),)
        onnx = ("Elu",)

        def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
            return tensor(inputs[0], self.name)

        def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
            return np.where(inputs[0] < 0, attrs["alpha"] * np.expm1(inputs[0]), inputs[0])

        def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
            return field.function(f"elu {attrs['alpha']}", inputs[0])

        def read_onnx(self, node: OnnxNode) -> Mapped:
            return Mapped(self.name, node.inputs, {"alpha": node.attributes.get("alpha", 1.0)})

        def to_onnx(
            self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
        ) -> list[str]:
            return emitter.emit("Elu", list(inputs), alpha=attrs["alpha"])

    yield Elu
    unregister("elu")


@pytest.mark.usefixtures("elu")
def test_graphs_evaluation_and_onnx_know_it() -> None:
    graph = build_graph(
        "g",
        {"x": f32(2, 3)},
        {"w": Weight(f32(3, 3), np.eye(3, dtype=np.float32))},
        [
            Node("matmul", ("x", "w"), ("h",)),
            Node("elu", ("h",), ("y",), {"alpha": 0.5}),
        ],
        ["y"],
    )
    assert graph.types["y"] == f32(2, 3)
    x = drawn((2, 3))
    y = evaluate_graph(graph, {"x": x}, {"w": np.eye(3)})["y"]
    np.testing.assert_allclose(y, np.where(x < 0, np.expm1(x) / 2, x))
    check_against_onnxruntime("elu", [x], {"alpha": 0.5})
    assert read_back("elu", [f32(2, 3)], {"alpha": 0.5}) == {"alpha": 0.5}
    assert read(node("Elu", (2, 3))) == Mapped("elu", ("x0",), {"alpha": 1.0})
    operator = get_operator("elu")
    assert operator.flops((f32(2, 3),), f32(2, 3), {}) == 6
    assert operator.bytes_moved((f32(2, 3),), f32(2, 3), {}) == 2 * 6 * 4


RULE = """
(rule join-before-elu
  (law "a function of single elements may be applied after its operands are joined")
  (from (concat (elu ?a :alpha ?k) (elu ?b :alpha ?k) :axis ?i))
  (to (elu (concat ?a ?b :axis ?i) :alpha ?k)))
"""


@pytest.mark.usefixtures("elu")
def test_a_run_takes_it_through_every_room(tmp_path: Path) -> None:
    graph = build_graph(
        "g",
        {"x": f32(2, 3), "y": f32(2, 5)},
        {},
        [
            Node("elu", ("x",), ("a",), {"alpha": 0.5}),
            Node("elu", ("y",), ("b",), {"alpha": 0.5}),
            Node("concat", ("a", "b"), ("z",), {"axis": 1}),
        ],
        ["z"],
    )
    rules, model, output = (tmp_path / name for name in ("r.rules", "g.json", "g.onnx"))
    rules.write_text(RULE)
    save_model(graph, model)
    result = optimize(model, Options.of(rules=(rules,), cost="t4"), output=output)
    assert (result.ops_before, result.ops_after) == (
        {"elu": 2, "concat": 1},
        {"concat": 1, "elu": 1},
    )
    saved_us = load_profile("t4").launch_us
    assert result.cost_before_us - result.cost_after_us == pytest.approx(saved_us, rel=0.01)
    assert result.verification is not None and result.verification.ok
    assert [node.op for node in load_model(output).nodes] == ["concat", "elu"]


@pytest.mark.usefixtures("elu")
def test_laws_about_it_are_judged() -> None:
    (sound,) = parse_rules(RULE, "f")
    assert verify_rule(sound).status == "sound"
    false = '(rule r (law "l") (from (elu (elu ?a :alpha ?k) :alpha ?k)) (to ?a))'
    assert verify_rule(parse_rules(false, "f")[0]).status == "unsound"


@pytest.mark.usefixtures("elu")
def test_a_name_is_described_once(elu: type[Operator]) -> None:
    with pytest.raises(UsageError, match="described twice"):
        register(elu)


def test_unknown_operators_get_a_hint() -> None:
    with pytest.raises(UsageError, match="unknown operator 'matmull'; did you mean 'matmul'"):
        get_operator("matmull")


def test_every_operator_is_complete() -> None:
    for name, operator in operators().items():
        assert operator.name == name
        assert type(operator).__doc__, name
        low, high = operator.arity
        assert high is None or low <= high
        assert len({attr.name for attr in operator.attrs}) == len(operator.attrs)


def test_only_operators_without_an_onnx_form_lack_a_writer() -> None:
    lacking = {
        name
        for name, operator in operators().items()
        if type(operator).to_onnx is Operator.to_onnx and (operator.attrs or not operator.onnx)
    }
    assert lacking == {"input", "weight", "opaque"}


def test_importing_operators_does_not_import_onnx() -> None:
    import subprocess
    import sys

    code = "import sys, relational_tensat.tensor.operators; sys.exit('onnx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_operand_of_unknown_type_is_opaque() -> None:
    seen = node("Relu", (2,))
    seen.input_types = (None,)
    assert read(seen) is None


def test_a_tuple_is_no_tensor() -> None:
    with pytest.raises(ShapeError, match="is a tuple of 2 tensors, expected one tensor"):
        tensor((f32(1), f32(2)), "x")
