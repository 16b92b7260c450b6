"""Which results take no memory of their own, as operators say and as NumPy has it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from bench.models import GraphBuilder
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.onnxruntime.integer_kernels import QUANTIZED_KERNELS
from relational_tensat.rules.backends.onnxruntime.kernels import IntegerProduct
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor.operators import Operator, operators
from relational_tensat.tensor.types import TensorType, ValueType
from relational_tensat.verify.evaluate import peak_bytes
from tests.strategies import draw_configuration

_TUPLES = [kernel.name for kernel in QUANTIZED_KERNELS if kernel.takes_tuples]
#: Leaves are given, of what is opaque nobody knows, and kernels on integers have tuples of scales.
_NOT_DRAWN = {
    "input", "weight", "opaque", "fused", IntegerProduct.name, *_TUPLES
}  # fmt: skip


def _source(operator: Operator) -> str:
    operands = [f"?x{i}" for i in range(operator.arity[0])]
    if operator.takes_tuples:
        operands = ["(split ?x0 :axis ?axis :sizes ?sizes)"]
    attributes = [f":{attr.name} ?{attr.name}" for attr in operator.attrs]
    return f"({' '.join([operator.name, *operands, *attributes])})"


def _zeros(kind: TensorType) -> Any:
    return np.zeros(kind.shape, "float64" if kind.is_float else kind.dtype)


def _results(operator: Operator, draws: int) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield operands and tensors of the results of random applications to zeros."""
    source = _source(operator)
    (rule,) = parse_rules(f'(rule r (law "x") (from {source}) (to {source}))', "views.rules")
    random = Random(1)
    for _ in range(draws):
        configuration = draw_configuration(rule, random)
        if configuration is None:
            continue
        operands = [_zeros(kind) for kind in configuration.var_types]
        values: list[Any] = operands
        kinds: tuple[ValueType, ...] = configuration.var_types
        if operator.takes_tuples:
            attrs = configuration.symbols[1][1]
            split = operators()["split"]
            values, kinds = [split.evaluate(values, attrs)], (split.infer(kinds, attrs),)
        result = operator.evaluate_typed(values, kinds, configuration.symbols[0][1])
        yield operands, list(result) if isinstance(result, tuple | list) else [result]


def _takes_no_memory(operands: list[Any], tensors: list[Any]) -> bool:
    large = [tensor for tensor in tensors if np.size(tensor) > 1]
    return bool(large) and all(
        not any(tensor.strides) or any(np.shares_memory(tensor, operand) for operand in operands)
        for tensor in large
    )


def test_views_are_what_operators_say() -> None:
    load_backend("onnxruntime")  # its kernels are operators, too
    views = set()
    for name, operator in operators().items():
        if name not in _NOT_DRAWN:
            results = list(_results(operator, draws=60))
            assert results, name
            if any(_takes_no_memory(*result) for result in results):
                views.add(name)
    assert views == {name for name, operator in operators().items() if operator.may_be_view}


def test_a_view_adds_nothing_to_what_evaluation_takes() -> None:
    build = GraphBuilder("views")
    doubled = build.op("add", build.input("x", 100, 10), build.input("y", 100, 10))
    turned = build.op("identity", build.op("transpose", doubled, perm=(1, 0)))
    assert peak_bytes(build.build(turned)) == 3 * 8 * 1000
    assert peak_bytes(build.build(build.op("neg", turned))) == 3 * 8 * 1000
