"""Configurations as text, and back."""

from __future__ import annotations

import json
import math

import pytest

from bench.models import MODELS
from relational_tensat.base.errors import InputError
from relational_tensat.cost.key import (
    configuration_of,
    configuration_text,
    libraries_text,
    parse_configuration,
    parse_libraries,
)
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.uses import inference_nodes
from tests.cost.fakes import configuration
from tests.graphs import f32

OPAQUE = {
    "op_type": "Mystery", "domain": "ai.me", "opset": 17, "payload": "AA==",
    "out_types": (("float32", (2, 3)), ("opaque:seq(tensor(float))", ())),
}  # fmt: skip
EXAMPLES = [
    configuration("matmul", f32(4, 8), f32(8, 2), f32(2), act="relu"),
    configuration("transpose", f32(4, 8), perm=(1, 0)),
    configuration("split", f32(4, 8), axis=1, sizes=(3, 5)),
    configuration("concat", (f32(4, 3), f32(4, 5)), f32(4, 8), axis=-1),
    configuration("conv", f32(1, 3, 8, 8), f32(4, 3, 3, 3), stride=(1, 1), pad="same"),
    configuration("clip", TensorType("float16", ()), min=0.0, max=math.inf),
    configuration("opaque", f32(2), **OPAQUE),
]


@pytest.mark.parametrize("configuration", EXAMPLES, ids=lambda configuration: configuration.op)
def test_a_text_is_read_back(configuration) -> None:  # type: ignore[no-untyped-def]
    text = configuration_text(configuration)
    assert parse_configuration(text) == configuration
    assert configuration_text(parse_configuration(text)) == text


def test_what_a_text_looks_like() -> None:
    text = configuration_text(configuration("transpose", f32(64, 1024), perm=(1, 0)))
    assert text == (
        '{"op":"transpose","attrs":{"perm":[1,0]},"inputs":["float32[64,1024]"],"layout":"row-major"}'
    )


def test_equal_applications_have_one_text() -> None:
    x = f32(4, 8)
    spelled = [
        configuration("smul", x, value=2),
        configuration("smul", x, value=2.0),
    ]
    assert spelled[0] == spelled[1]
    assert configuration_text(spelled[0]) == configuration_text(spelled[1])
    assert configuration("softmax", x, axis=-1) == configuration("softmax", x, axis=1)
    assert configuration_text(configuration("smul", x, value=-0.0)) == configuration_text(
        configuration("smul", x, value=0.0)
    )


def test_a_split_in_one_piece_is_one_configuration_however_its_result_is_named() -> None:
    x, attrs = f32(4, 8), {"axis": 0, "sizes": (4,)}
    assert configuration_of("split", (x,), x, attrs) == configuration_of("split", (x,), (x,), attrs)


def test_random_operators_differ_by_name_and_not_in_time() -> None:
    named = configuration("opaque", f32(2), **OPAQUE, key="dropout_3")
    assert named == configuration("opaque", f32(2), **OPAQUE)


def test_a_number_that_a_kernel_computes_with_changes_no_time() -> None:
    half, double = (configuration("smul", f32(4), value=value) for value in (0.5, 2.0))
    assert half == double == parse_configuration(configuration_text(double))
    assert configuration("clip", f32(4), max=6.0) != configuration("clip", f32(4), max=1.0)


def test_the_configurations_of_a_model_are_read_back() -> None:
    graph = MODELS["bert"]()
    configurations = {
        configuration_of(node.op, inputs, output, node.attrs)
        for node, inputs, output in inference_nodes(graph)
    }
    texts = {configuration_text(configuration): configuration for configuration in configurations}
    assert len(texts) == len(configurations)
    assert all(parse_configuration(text) == configuration for text, configuration in texts.items())


GOOD = json.loads(configuration_text(EXAMPLES[0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"op": "matmal"}, "unknown operator 'matmal'; did you mean 'matmul'"),
        ({"layout": "NHWC"}, "layout 'NHWC', expected 'row-major'"),
        ({"inputs": ["float32[4,8]"]}, "matmul takes 2 to 3 inputs"),
        ({"inputs": ["float32[4,8]", "float32[7,2]"]}, "differ in the summed dimension"),
        ({"inputs": ["float32[4,8", "float32[8,2]"]}, "a type like float32"),
        ({"inputs": ["float32[4,0]", "float32[0,2]"]}, "a type like float32"),
        ({"inputs": "float32[4,8]"}, "expected an array"),
        ({"attrs": {"act": "rela"}}, "did you mean 'relu'"),
        ({"attrs": {"acts": "relu"}}, "no attribute 'acts'; did you mean 'act'"),
        ({"attrs": []}, "expected an object"),
        ({"output": "float32[4,2]"}, "unknown key 'output'"),
    ],
)
def test_texts_that_are_none(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_configuration(json.dumps({**GOOD, **change}), "a.parquet: row 3")
    assert str(caught.value).startswith("a.parquet: row 3: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "matmul", "[]", '{"op":"relu"}'])
def test_texts_that_are_no_objects(text: str) -> None:
    with pytest.raises(InputError, match="row 3"):
        parse_configuration(text, "row 3")


def test_libraries_have_one_text() -> None:
    assert libraries_text({"b": "2", "a": "1"}) == '{"a":"1","b":"2"}'
    assert parse_libraries('{"a":"1"}', "") == {"a": "1"}
    with pytest.raises(InputError, match="row 1: libraries"):
        parse_libraries('{"a":1}', "row 1")
