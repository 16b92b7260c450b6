"""Rules in onnxscript's rewriter: they fire where ours do, and what they write computes the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxscript", reason="needs onnxscript")

import onnx_ir
import onnx_ir.passes.common as common
import onnxscript.optimizer
from onnxscript.rewriter import RewriteRuleSet

from bench.models import MODELS
from relational_tensat import Options, optimize
from relational_tensat.adapters.onnxscript_rules import ExportedRules, export_rules
from relational_tensat.formats import load_model, save_model, to_onnx_model
from relational_tensat.rules.instance import source_nodes, tensor_vars
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.rules.soundness.draws import (
    RuleConfiguration,
    draw_configuration,
)
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.types import numpy_dtype

ROOT = Path(__file__).resolve().parents[2]
_ATTEMPTS = 25
#: A node is as dear as any other.
_COUNTED = """
bandwidth_bytes_per_s = 1e30
launch_us = 1.0
free = []
views = []
memory_bytes = 16e9
[peak_flops_per_s]
default = 1e30
"""


@pytest.fixture(scope="module")
def exported() -> ExportedRules:
    return export_rules()


def test_nine_of_ten_rules_have_the_form() -> None:
    rules = load_rules()
    exported = export_rules(rules, shrinking=False)
    assert {*exported.names, *exported.left_out} == {rule.name for rule in rules}
    assert len(exported.names) > 0.9 * len(rules)
    assert {exported.left_out[rule.name] for rule in rules if rule.is_multi} == {
        "it has several sources"
    }


def test_rules_that_are_not_known_to_be_sound_are_refused() -> None:
    from relational_tensat.base.errors import RuleError
    from relational_tensat.rules.language import parse_rules

    (rule,) = parse_rules(
        '(rule wrong (law "x = -x") (unsound) (from (neg ?x)) (to ?x))', "wrong.rules"
    )
    with pytest.raises(RuleError):
        export_rules([rule])


def test_what_fires_computes_the_same(exported: ExportedRules) -> None:
    """For each rule a drawn instance of its source, as a model, goes through the rewriter."""
    rules = {rule.name: rule for rule in load_rules()}
    fired = 0
    for name in exported.names:
        own = RewriteRuleSet([rule for rule in exported.rules if rule.name == name])
        for model in _models(rules[name]):
            rewritten = onnx_ir.from_proto(model)
            if own.apply_to_model(rewritten):
                fired += 1
                _check_equal(name, model, onnx_ir.to_proto(rewritten))
                break
    assert fired > 0.85 * len(exported.names)


_INPUTS = ("decoder_block", "encoder_block", "gated_mlp", "transformer_block", "vit_block")
_TEN = (*_INPUTS, "nasrnn", "bert", "squeezenet", "mobilenet_v2", "nasnet_a")


@pytest.mark.parametrize(
    "models",
    [("decoder_block", "encoder_block", "nasrnn"), pytest.param(_TEN, marks=pytest.mark.nightly)],
)
def test_models_have_as_many_nodes_as_after_a_search(
    exported: ExportedRules, models: Sequence[str], tmp_path: Path
) -> None:
    """A search for the fewest nodes by these rules finds no fewer, and no more, than the rewriter."""
    costs = tmp_path / "count.toml"
    costs.write_text(_COUNTED, encoding="utf-8")
    names = {rule.name for rule in load_rules() if not _has_activation(rule.targets[0])}
    options = Options.of(
        only=sorted(names & {*exported.names}), cost=str(costs), search="saturation"
    )
    shrunk = 0
    for name in models:
        source = ROOT / "bench" / "inputs" / f"{name}.onnx"
        graph = load_model(source) if name in _INPUTS else MODELS[name]()
        path = tmp_path / f"{name}.onnx"
        save_model(graph, path)
        model = onnx.shape_inference.infer_shapes(onnx.load(path))
        theirs = onnx_ir.from_proto(model)
        while RewriteRuleSet(exported.rules).apply_to_model(theirs):
            onnxscript.optimizer.fold_constants(theirs)
            common.IdentityEliminationPass()(theirs)
            common.RemoveUnusedNodesPass()(theirs)
            common.CommonSubexpressionEliminationPass()(theirs)
        ours = tmp_path / f"{name}.ours.onnx"
        save_model(optimize(path, options).graph, ours)
        counts = _count(onnx_ir.to_proto(theirs)), _count(onnx.load(ours))
        assert counts[0] == counts[1], name
        shrunk += counts[0] < _count(model)
    assert shrunk >= 3


def _two_products(number: float, **sizes: Any) -> onnx.ModelProto:
    """Return ``x · c · c`` for a constant c."""
    one = onnx.helper.make_tensor("c", onnx.TensorProto.FLOAT, [], [number])
    info = onnx.helper.make_tensor_value_info
    shape = sizes.get("shape", [2, 3])
    inputs = [info("x", onnx.TensorProto.FLOAT, shape)]
    if sizes.get("is_default"):
        inputs.append(info("c", onnx.TensorProto.FLOAT, []))
    nodes = [
        onnx.helper.make_node("Mul", ["x", "c"], ["a"]),
        onnx.helper.make_node("Mul", ["a", "c"], ["y"]),
    ]
    outputs = [info("y", onnx.TensorProto.FLOAT, shape)]
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, [one])
    opsets = [onnx.helper.make_opsetid("", sizes.get("opset", 21))]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize(
    ("case", "fires"),
    [
        ({"number": 0.5}, True),
        ({"number": 1e30}, False),  # extreme: the products overflow
        ({"number": 0.5, "shape": ["n", 3]}, False),  # of no known shape
        ({"number": 0.5, "is_default": True}, False),  # a user may give another
        ({"number": 0.5, "opset": 12}, False),  # operators are not written for it
    ],
)
def test_what_is_not_known_is_not_rewritten(
    exported: ExportedRules, case: Mapping[str, Any], fires: bool
) -> None:
    model = onnx.shape_inference.infer_shapes(_two_products(**case))
    rewritten = onnx_ir.from_proto(model)
    assert bool(RewriteRuleSet(exported.rules).apply_to_model(rewritten)) is fires


@pytest.mark.parametrize(("number", "fires"), [(2.0, True), (4000.0, False)])
def test_constants_that_cost_digits_stay(
    exported: ExportedRules, number: float, fires: bool
) -> None:
    """``(x / 10^6 + 4000) - 4000`` is all rounding: nobody knows what was meant."""
    info, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    kind = onnx.TensorProto.FLOAT
    constants = [
        onnx.helper.make_tensor("small", kind, [3], [1e-6 if number > 2 else 0.5] * 3),
        onnx.helper.make_tensor("c", kind, [3], [number] * 3),
    ]
    nodes = [
        node("Mul", ["x", "small"], ["a"]),
        node("Add", ["a", "c"], ["b"]),
        node("Sub", ["b", "c"], ["y"]),
    ]
    values = [info("x", kind, [2, 3])], [info("y", kind, [2, 3])]
    graph = onnx.helper.make_graph(nodes, "g", *values, constants)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10
    )
    rewritten = onnx_ir.from_proto(onnx.shape_inference.infer_shapes(model))
    assert bool(RewriteRuleSet(exported.rules).apply_to_model(rewritten)) is fires


def _has_activation(term: Term) -> bool:
    """Whether an operator of a term is two nodes of ONNX."""
    none = Literal("none")
    return isinstance(term, Apply) and (
        dict(term.attrs).get("act", none) != none or any(map(_has_activation, term.children))
    )


def _count(model: onnx.ModelProto) -> int:
    return sum(node.op_type not in ("Constant", "Identity") for node in model.graph.node)


def _models(rule: Rule) -> Iterator[onnx.ModelProto]:
    """Yield models of the source of a rule, for operands that it applies to."""
    plan, choices = DrawPlan(rule), SeededChoices(1)
    for _ in range(_ATTEMPTS):
        choices.restart()
        drawn = draw_configuration(plan, choices)
        if drawn is not None and drawn.instantiate(rule) is not None:
            model = to_onnx_model(_graph(rule, drawn), opset=21)
            yield onnx.shape_inference.infer_shapes(model)


def _graph(rule: Rule, drawn: RuleConfiguration) -> Graph:
    draw = np.random.default_rng(0)
    inputs: dict[str, TensorType] = {}
    weights: dict[str, Weight] = {}
    nodes: list[Node] = []
    names: dict[Term, tuple[str, ...]] = {}
    stored = {
        node.children[0]
        for node, (_, attrs) in zip(source_nodes(rule), drawn.symbols, strict=True)
        if attrs.get("stored")
    }
    for name, kind in zip(tensor_vars(rule), drawn.var_types, strict=True):
        names[Var(name)] = (name,)
        if name in rule.known or Var(name) in stored:
            data = (draw.random(kind.shape) * 1.5 + 0.5).astype(numpy_dtype(kind.dtype))
            weights[name] = Weight(kind, data)
        else:
            inputs[name] = kind
    symbols = dict(zip(source_nodes(rule), drawn.symbols, strict=True))

    def value(term: Term) -> tuple[str, ...]:
        if term in names:
            return names[term]
        assert isinstance(term, Apply)
        op, attrs = symbols[term]
        operands = tuple(name for child in term.children for name in value(child))
        made = f"value{len(names)}"
        names[term] = (made,)
        if op == "part":
            names[term] = (operands[int(attrs["index"])],)  # type: ignore[arg-type]
        elif op == "fill":
            kind = TensorType(str(attrs["dtype"]), attrs["shape"])  # type: ignore[arg-type]
            data = np.full(kind.shape, attrs["value"], numpy_dtype(kind.dtype))
            weights[made] = Weight(kind, data)
        else:
            if get_operator(op).multi_output:
                parts = len(attrs["sizes"])  # type: ignore[arg-type]
                names[term] = tuple(f"{made}.{part}" for part in range(parts))
            nodes.append(Node(op, operands, names[term], attrs))
        return names[term]

    return build_graph("source", inputs, weights, nodes, list(value(rule.sources[0])))


def _check_equal(name: str, before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    draw = np.random.default_rng(0)
    values = {
        each.name: np.asarray(
            draw.random([size.dim_value for size in each.type.tensor_type.shape.dim]) * 1.5 + 0.5,
            onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type),
        )
        for each in before.graph.input
    }
    results = []
    for model in (before, after):
        onnx.checker.check_model(model)
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
            return  # there is no kernel for this element type
        own = {each.name: values[each.name] for each in session.get_inputs()}
        results.append(session.run(None, own))
    for a, b in zip(*results, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        wide = 2e-2 if a.dtype == np.float16 else 1e-3
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=wide, atol=wide, err_msg=name
        )
