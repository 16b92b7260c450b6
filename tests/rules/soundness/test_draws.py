"""Configurations: valid, varied, and such that rarely met conditions are met."""

from __future__ import annotations

import math

import pytest

from relational_tensat.rules.backends.onnxruntime.integer_kernels import QUANTIZED_KERNELS
from relational_tensat.rules.backends.onnxruntime.kernels import INTEGER_KERNELS
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.operators import get_operator, operators
from relational_tensat.tensor.operators.attributes import ints_of, padding_of
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.operators.windows import resolve_padding


def rule_of(source: str, target: str, where: str = "") -> Rule:
    return parse_rules(f'(rule r (law "l") (from {source}) (to {target}) {where})', "f")[0]


def drawn(rule: Rule, attempts: int, seed: int = 0) -> list[RuleConfiguration]:
    plan, choices = DrawPlan(rule), SeededChoices(seed)
    draws = [draw_configuration(plan, choices) for _ in range(attempts)]
    return [configuration for configuration in draws if configuration is not None]


CONV = rule_of("(conv ?x ?w :stride ?s :pad ?p :dilation ?d)", "?x")
SUM = rule_of("(add (matmul ?a ?b) (matmul ?a ?c))", "?a")


def test_parameters_of_windows_are_varied() -> None:
    configurations = drawn(CONV, 800)
    assert len(configurations) > 300
    attrs = [configuration.symbols[0][1] for configuration in configurations]
    for key, least in (("stride", 4), ("pad", 4), ("dilation", 2)):
        assert len({values[key] for values in attrs}) >= least
    groups = {
        configuration.var_types[0].shape[1] // configuration.var_types[1].shape[1]
        for configuration in configurations
    }
    assert {1, 2} <= groups
    assert {configuration.var_types[0].rank for configuration in configurations} == {3, 4, 5}


def test_operands_broadcast_have_sizes_of_one_and_different_ranks() -> None:
    configurations = drawn(SUM, 300)
    assert len(configurations) > 100
    shapes = {configuration.var_types for configuration in configurations}
    assert any(b != c for _, b, c in shapes)
    assert any(b.rank != c.rank for _, b, c in shapes)
    assert any(1 in a.shape for a, _, _ in shapes)


def test_element_types_are_those_that_operators_take() -> None:
    of_sums = {configuration.var_types[0].dtype for configuration in drawn(SUM, 600)}
    assert {"float32", "float64", "float16", "int64", "int32", "int8", "uint8"} <= of_sums
    assert "bool" not in of_sums
    joined = {
        configuration.var_types[0].dtype
        for configuration in drawn(rule_of("(concat ?a ?b :axis ?i)", "?a"), 600)
    }
    assert "bool" in joined


@pytest.mark.parametrize(
    ("source", "where", "least"),
    [
        ("(add ?a (add ?b ?c))", "(where (= (shape ?a) (shape ?b)) (= (shape ?b) (shape ?c)))", 150),
        ("(concat ?a ?b ?c :axis ?i)", "(where (= ?i (- (rank ?a) 1)) (!= (dim ?a ?i) 1))", 60),
        (
            "(part (split (concat ?a ?b :axis ?i) :axis ?i :sizes ?z) :index 1)",
            "(where (= ?z (list (dim ?a ?i) (dim ?b ?i))))",
            100,
        ),
        ("(conv ?x ?w :stride ?s :pad ?p :dilation ?d)", "(where (= (groups ?x ?w) 3))", 15),
        ("(reduce_sum ?x :axes ?a :keepdims ?k)", "(where (= (len ?a) (rank ?x)))", 100),
    ],
)  # fmt: skip
def test_rarely_met_conditions_are_met(source: str, where: str, least: int) -> None:
    rule = rule_of(source, "?x" if "?x" in source else "?a", where)
    plan = DrawPlan(rule)
    configurations = [
        configuration
        for configuration in drawn(rule, 400)
        if plan.compiled.targets(configuration.symbols, configuration.var_types) is not None
    ]
    assert len({configuration.key for configuration in configurations}) >= least


def test_decisions_are_recorded_and_replayed() -> None:
    choices = SeededChoices(1)
    plan = DrawPlan(SUM)
    first = draw_configuration(plan, choices)
    taken = choices.taken
    choices.restart()
    draw_configuration(plan, choices)
    assert taken != choices.taken

    class Replayed(SeededChoices):
        def below(self, bound: int) -> int:
            return 0 if bound == 1 else taken.pop(0)

    assert draw_configuration(plan, Replayed(0)) == first


def test_every_operator_can_be_drawn() -> None:
    # An attribute of fused is a whole kernel; operands of kernels on integers are tuples of weights and
    # their scales, which the rules that make such kernels draw.
    leaves = {"input", "weight", "fill", "opaque", "fused"}
    leaves |= {kernel.name for kernel in (*QUANTIZED_KERNELS, *INTEGER_KERNELS)}
    for name, operator in operators().items():
        if name in leaves:
            continue
        low, high = operator.arity
        operands = " ".join(f"?x{i}" for i in range(high or low + 1))
        attrs = " ".join(f":{attr.name} ?a{i}" for i, attr in enumerate(operator.attrs))
        configurations = drawn(rule_of(f"({name} {operands} {attrs})", "?x0"), 400)
        assert len(configurations) >= 20, name
        kinds, given_attrs = configurations[0].var_types, configurations[0].symbols[0][1]
        assert get_operator(name).check(kinds, given_attrs) == configurations[0].root_types[0]


def test_images_with_their_borders_are_of_moderate_size() -> None:
    """A kernel of 9 with dilation 9 in three dimensions made one of 19 GiB."""
    (rule,) = load_rules(only=["bias-into-convolution"])
    plan, choices = DrawPlan(rule), SeededChoices(0)
    sizes = []
    for _ in range(1_500):
        choices.restart()
        configuration = draw_configuration(plan, choices, far=True)
        if configuration is None:
            continue
        image, filters, _ = configuration.var_types
        ((_, attrs),) = [symbol for symbol in configuration.symbols if symbol[0] == "conv"]
        dilation = ints_of(attrs, "dilation") or (1,) * (image.rank - 2)
        space, kernel = image.shape[2:], filters.shape[2:]
        borders = resolve_padding(
            padding_of(attrs), space, kernel, ints_of(attrs, "stride"), dilation
        )
        with_border = map(sum, zip(space, *borders, strict=True))
        sizes.append(math.prod((*image.shape[:2], *with_border)))
    assert len(sizes) > 100
    assert max(sizes) <= 1 << 22
