"""Counterexamples: small, in plain numbers, and code that anyone can run."""

from __future__ import annotations

import contextlib
import io
import json
import math
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import Counterexample, Typed, apply, tensor, verify_rule


def rule_of(source: str, target: str, where: str = "") -> Rule:
    return parse_rules(f'(rule r (law "a law") (from {source}) (to {target}) {where})', "f")[0]


def counterexample(source: str, target: str, where: str = "") -> Counterexample:
    example = verify_rule(rule_of(source, target, where), trials=100).counterexample
    assert example is not None
    return example


def run(snippet: str) -> tuple[dict[str, Any], list[str]]:
    """Run a snippet in a namespace of its own; return it and what it printed."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(snippet, names)
    return names, printed.getvalue().splitlines()


CONV = "(conv ?x {} :stride ?s :pad ?p :dilation ?d)"


@pytest.mark.parametrize(
    ("source", "target", "elements"),
    [
        ("(sub ?x ?y)", "(sub ?y ?x)", 2),
        ("(relu ?x)", "?x", 1),
        ("(matmul ?a ?b)", "(matmul ?b ?a)", 4),
        ("(div (mul ?x ?y) ?z)", "(mul ?x (div ?y ?z))", 3),
        ("(transpose ?x :perm ?p)", "(transpose ?x :perm (inverse ?p))", 8),
        ("(add (mul ?x ?y) ?z)", "(mul ?x (add ?y ?z))", 3),
        (f"(add {CONV.format('?v')} {CONV.format('?w')})", CONV.format("(add ?v ?w)"), 8),
    ],
)  # fmt: skip
def test_the_smallest_is_found_and_its_snippet_shows_it(
    source: str, target: str, elements: int
) -> None:
    example = counterexample(source, target)
    assert sum(kind.size for kind in example.shapes.values()) <= elements
    names, printed = run(example.text())
    left, right = names["left"], names["right"]
    assert isinstance(left, Typed) and isinstance(right, Typed)
    difference = example.difference
    assert str(left.type) == difference.left_type and str(right.type) == difference.right_type
    assert printed[-2].startswith(f"left: {left.type}")
    assert printed[-1].startswith(f"right: {right.type}")
    if difference.index is None:
        assert left.type != right.type
    else:
        assert left.value[difference.index] == difference.left
        assert right.value[difference.index] == difference.right
        assert not math.isclose(difference.left or 0, difference.right or 0, rel_tol=1e-9)
        before = list(np.ndindex(left.value.shape)).index(difference.index)
        assert np.allclose(left.value.ravel()[:before], right.value.ravel()[:before])


def test_what_differs_in_type_is_shown_as_types() -> None:
    example = counterexample("(mul ?x (fill :value 1 :dtype ?d :shape ?s))", "?x")
    _, printed = run(example.text())
    left, right = (line.partition(": ")[2] for line in printed)
    assert left != right and left == example.difference.left_type
    assert example.summary().endswith(f"{left} on the left, {right} on the right")


def test_parts_of_tuples_are_told_apart() -> None:
    source = "(split ?x :axis ?i :sizes ?z)"
    example = counterexample(source, "(split (neg ?x) :axis ?i :sizes ?z)")
    names, printed = run(example.text())
    assert example.difference.part == 0 and isinstance(names["left"].value, tuple)
    assert printed[-2] != printed[-1].replace("right", "left")


def test_the_second_of_two_targets_may_be_wrong() -> None:
    text = """(rule r (law "l") (from (relu ?x) (tanh ?y)) (to (relu ?x) (tanh (neg ?y))))"""
    example = verify_rule(parse_rules(text, "f")[0], trials=20).counterexample
    assert example is not None and example.difference.source == 1
    names, _ = run(example.text())
    assert np.array_equal(names["left"].value, -names["right"].value)


def test_parameters_are_those_of_the_rule() -> None:
    example = counterexample(
        "(reduce_sum ?x :axes ?a :keepdims ?k)", "(reduce_mean ?x :axes ?a :keepdims ?k)"
    )
    assert list(example.parameters) == ["a", "k"] and list(example.shapes) == ["x"]
    assert example.shapes["x"].shape[example.parameters["a"][0]] == 2  # type: ignore[index]


def test_variables_become_names_that_python_takes() -> None:
    example = counterexample("(sub ?lambda (sub ?left ?a-b))", "(sub ?lambda ?left)")
    names, _ = run(example.text())
    assert {"x_lambda", "x_left", "a_b"} <= names.keys()


def test_json_says_all_of_it() -> None:
    example = counterexample("(sub ?x ?y)", "(sub ?y ?x)")
    data = json.loads(json.dumps(example.to_json()))
    assert data["shapes"] == {"x": str(example.shapes["x"]), "y": str(example.shapes["y"])}
    assert data["left"] == example.difference.left and data["snippet"] == example.text()


def test_numbers_must_fill_a_tensor() -> None:
    assert apply("add", tensor("int8", [2], [1, 2]), tensor("int8", [1], [3])).value.tolist() == [
        4,
        5,
    ]
    with pytest.raises(UsageError, match="3 numbers"):
        tensor("float32", [2], [1, 2, 3])
