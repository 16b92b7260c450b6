"""What operators are over the field: against fractions, and against their own float64 meaning."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from relational_tensat.tensor.field import PRIME, Field, Undefined
from relational_tensat.tensor.operators import Operator, get_operator, operators
from relational_tensat.tensor.types import AttrValue, TensorType

FIELD = Field(3)
RNG = np.random.default_rng(4)

#: Over the field, these are what ``evaluate`` computes of residues: they move, add or multiply.
AS_EVALUATED = {
    "add", "sub", "mul", "reduce_sum", "transpose", "reshape", "concat", "split", "slice", "gather",
    "part", "noop", "identity", "dropout", "enlarge", "expand", "merge", "input", "weight", "where",
    "logical_and", "logical_not", "logical_or",
}  # fmt: skip


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def whole(*shape: int) -> Any:
    return RNG.integers(-4, 5, size=shape)


def exact(op: str, *operands: Any, **attrs: AttrValue) -> Any:
    """Compute over the field, for float operands that hold whole numbers."""
    kinds = tuple(f32(*np.shape(operand)) for operand in operands)
    operator = get_operator(op)
    canonical = operator.canonical(kinds, attrs)
    residues = [np.asarray(operand) % PRIME for operand in operands]
    return operator.evaluate_exact(residues, kinds, canonical, FIELD)


def in_floats(op: str, *operands: Any, **attrs: AttrValue) -> Any:
    kinds = tuple(f32(*np.shape(operand)) for operand in operands)
    operator = get_operator(op)
    canonical = operator.canonical(kinds, attrs)
    return operator.evaluate([np.asarray(operand, float) for operand in operands], canonical)


def as_residues(array: Any, denominator: int = 1) -> Any:
    """The residues of numbers that are whole once multiplied by a number."""
    numbers = np.rint(np.asarray(array) * denominator).astype(np.int64)
    assert np.allclose(numbers, np.asarray(array) * denominator)
    return numbers % PRIME * pow(denominator, -1, PRIME) % PRIME


def test_every_operator_says_what_it_is_over_a_field() -> None:
    """One that computes something new must not be taken as it is evaluated, unseen."""
    inherited = {
        name
        for name, operator in operators().items()
        if type(operator).evaluate_exact is Operator.evaluate_exact
    }
    assert inherited == AS_EVALUATED


CONV: Mapping[str, AttrValue] = {"stride": (2, 1), "pad": "same", "dilation": (1, 2)}
POOL: Mapping[str, AttrValue] = {"kernel": (2, 3), "stride": (1, 2), "pad": (1, 1, 0, 1)}


@pytest.mark.parametrize(
    ("op", "shapes", "attrs", "denominator"),
    [
        ("add", [(2, 3), (3,)], {}, 1),
        ("sub", [(2, 3), (2, 1)], {}, 1),
        ("mul", [(2, 3), (3,)], {}, 1),
        ("neg", [(2, 3)], {}, 1),
        ("smul", [(2, 3)], {"value": -0.375}, 8),
        ("matmul", [(2, 3, 4), (4, 5)], {}, 1),
        ("matmul", [(3, 4), (4, 5), (5,)], {}, 1),
        ("conv", [(2, 4, 5, 6), (6, 2, 3, 2)], CONV, 1),
        ("conv", [(1, 3, 5, 6), (3, 1, 3, 2), (3,)], CONV, 1),
        ("avg_pool", [(2, 3, 4, 5)], POOL, 12),
        ("avg_pool", [(2, 3, 4, 5)], {**POOL, "count_include_pad": True}, 12),
        ("reduce_sum", [(2, 3, 4)], {"axes": (0, -1), "keepdims": False}, 1),
        ("reduce_mean", [(2, 3, 4)], {"axes": (0, -1), "keepdims": True}, 8),
        ("reduce_prod", [(2, 3, 2)], {"axes": (1,), "keepdims": False}, 1),
        ("pad", [(2, 3)], {"pads": (1, 0, 0, 2), "value": -2.5}, 2),
        ("pad", [(2, 3)], {"pads": (1, 2, 0, 2), "mode": "reflect"}, 1),
        ("concat", [(2, 3), (2, 1)], {"axis": 1}, 1),
        ("slice", [(5, 3)], {"axes": (0,), "starts": (1,), "ends": (5,), "steps": (2,)}, 1),
        ("transpose", [(2, 3, 4)], {"perm": (2, 0, 1)}, 1),
        ("enlarge", [(2, 3, 1, 2), (1, 1, 3, 3)], {}, 1),
        ("merge", [(4, 1, 2, 1)], {"count": 2, "groups": 4}, 1),
        ("identity", [(2, 3)], {}, 1),
        ("clip", [(2, 3)], {}, 1),
    ],
)  # fmt: skip
def test_polynomials_of_whole_numbers_are_what_float64_gives(
    op: str, shapes: list[tuple[int, ...]], attrs: dict[str, AttrValue], denominator: int
) -> None:
    operands = [whole(*shape) for shape in shapes]
    result, expected = exact(op, *operands, **attrs), in_floats(op, *operands, **attrs)
    assert result.dtype == np.int64 and result.min() >= 0 and result.max() < PRIME
    assert np.array_equal(result, as_residues(expected, denominator))


def as_fractions(array: Any) -> Any:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, dtype=object))


def of_fractions(array: Any) -> Any:
    """The residues of an array of fractions."""
    flat = [
        fraction.numerator * pow(fraction.denominator, -1, PRIME) for fraction in np.ravel(array)
    ]
    return np.array([number % PRIME for number in flat]).reshape(np.shape(array))


def residues(*shape: int) -> Any:
    return RNG.integers(1, PRIME, size=shape)


def test_an_l2_norm_is_the_root_of_the_sum_of_squares() -> None:
    x = residues(2, 3, 2)
    squares = exact("reduce_sum", exact("mul", x, x), axes=(1,), keepdims=False)
    norm = exact("reduce_l2", x, axes=(1,), keepdims=False)
    assert np.array_equal(norm, exact("sqrt", squares))


def test_quotients_against_fractions() -> None:
    a, b = residues(3, 4), residues(4)
    quotient = as_fractions(a) / as_fractions(b)
    assert np.array_equal(exact("div", a, b), of_fractions(quotient))
    assert np.array_equal(exact("reciprocal", b), of_fractions(Fraction(1) / as_fractions(b)))
    with pytest.raises(Undefined):
        exact("div", a, b * 0)


def slow_convolution(
    x: Any, w: Any, stride: tuple[int, int], begins: tuple[int, int], ends: tuple[int, int]
) -> Any:
    """The definition, one element after the other, in Python's whole numbers."""
    borders = [(0, 0), (0, 0), *zip(begins, ends, strict=True)]
    padded, w = np.pad(x.astype(object), borders), w.astype(object)
    per_group = w.shape[0] // (x.shape[1] // w.shape[1])
    rows = (padded.shape[2] - w.shape[2]) // stride[0] + 1
    columns = (padded.shape[3] - w.shape[3]) // stride[1] + 1
    result = np.zeros((x.shape[0], w.shape[0], rows, columns), object)
    for n, o, i, j in np.ndindex(result.shape):
        for c, di, dj in np.ndindex(w.shape[1:]):
            channel = o // per_group * w.shape[1] + c
            element = padded[n, channel, i * stride[0] + di, j * stride[1] + dj]
            result[n, o, i, j] += element * w[o, c, di, dj]
    return result


def test_products_of_large_residues_against_whole_numbers() -> None:
    a, b = residues(2, 3, 300), residues(300, 4)
    product = np.matmul(a.astype(object), b.astype(object)) % PRIME
    assert np.array_equal(exact("matmul", a, b), product.astype(np.int64))
    x, w, bias = residues(1, 4, 6, 5), residues(6, 2, 3, 3), residues(6)
    expected = slow_convolution(x, w, stride=(1, 2), begins=(1, 0), ends=(1, 2))
    attrs: dict[str, AttrValue] = {"stride": (1, 2), "pad": (1, 0, 1, 2)}
    result = exact("conv", x, w, bias, **attrs)
    assert np.array_equal(result, (expected + bias.reshape(1, -1, 1, 1)) % PRIME)


def test_normalizations_are_quotients_by_a_random_root() -> None:
    x, scale, shift = residues(2, 3, 4), residues(4), residues(4)
    result = exact("layer_norm", x, scale, shift, axis=-1, epsilon=0.125)
    row = as_fractions(x[1, 2])
    centred = row - sum(row) / 4
    variance = sum(centred * centred) / 4 + Fraction(1, 8)
    root = FIELD.function("sqrt", of_fractions(np.array([variance], dtype=object)))
    expected = of_fractions(centred / Fraction(int(root[0])) * as_fractions(scale) + shift)
    assert np.array_equal(result[1, 2], expected)
    mean, var = residues(3), residues(3)
    normal = exact("batch_norm", x, scale[:3], shift[:3], mean, var, epsilon=0.25)
    root = FIELD.function("sqrt", (var[1] + FIELD.constant(0.25)) % PRIME)
    at = Fraction(int(x[1, 1, 2]) - int(mean[1])) * int(scale[1]) / int(root) + int(shift[1])
    assert normal[1, 1, 2] == of_fractions(np.array(at, dtype=object))


def test_softmax_sums_to_one_over_a_random_exponential() -> None:
    x = residues(2, 5)
    result = exact("softmax", x, axis=1)
    assert np.all(result.sum(axis=1) % PRIME == 1)
    powers = exact("exp", x)
    assert np.array_equal(result * powers.sum(axis=1, keepdims=True) % PRIME, powers)


def test_activations_are_the_same_functions_fused_or_not() -> None:
    a, b = residues(2, 3), residues(3, 2)
    for act in ("relu", "tanh", "sigmoid"):
        apart = exact(act, exact("matmul", a, b))
        assert np.array_equal(exact("matmul", a, b, act=act), apart)
        assert not np.array_equal(apart, exact("matmul", a, b))
    x, w = residues(1, 2, 3, 3), residues(2, 2, 1, 1)
    attrs: dict[str, AttrValue] = {"stride": (1, 1), "pad": "valid"}
    apart = exact("relu", exact("conv", x, w, **attrs))
    assert np.array_equal(exact("conv", x, w, act="relu", **attrs), apart)


def test_functions_differ_by_their_parameters() -> None:
    x = residues(4)
    assert not np.array_equal(exact("gelu", x), exact("gelu", x, approximate="tanh"))
    assert not np.array_equal(exact("clip", x, min=0.0), exact("clip", x, min=1.0))
    assert np.array_equal(exact("clip", x, min=0.0), exact("clip", x, min=0.0))


def test_largest_elements_are_elements_and_padding_is_never_one() -> None:
    x = residues(2, 3, 4, 5)
    result = exact("max_pool", x, kernel=(2, 2), stride=(1, 1), pad="same")
    assert result.shape == x.shape and np.isin(result, x).all()
    whole_image = exact("max_pool", x, kernel=(4, 5), stride=(1, 1), pad="valid")
    kept = exact("reduce_max", x, axes=(2, 3), keepdims=True)
    assert np.array_equal(whole_image, kept)
    assert np.isin(exact("reduce_min", x, axes=(1,), keepdims=False), x).all()


def test_conversions_between_element_types() -> None:
    operator = get_operator("cast")
    numbers = np.array([[-2, 3]])
    into = operator.evaluate_exact(
        [numbers], (TensorType("int64", (1, 2)),), {"dtype": "float32"}, FIELD
    )
    assert into.tolist() == [[PRIME - 2, 3]]
    x = residues(50)
    same = operator.evaluate_exact([x], (f32(50),), {"dtype": "float64"}, FIELD)
    assert np.array_equal(same, x)
    truth = operator.evaluate_exact([x], (f32(50),), {"dtype": "bool"}, FIELD)
    assert truth.dtype == bool and 0 < truth.sum() < 50
    rounded = operator.evaluate_exact([x], (f32(50),), {"dtype": "int32"}, FIELD)
    assert rounded.dtype == np.int64


def test_constants_are_exact() -> None:
    fill = get_operator("fill")
    attrs: dict[str, AttrValue] = {"value": 0.1, "dtype": "float32", "shape": (2,)}
    result = fill.evaluate_exact([], (), attrs, FIELD)
    assert result.tolist() == [FIELD.constant(0.1)] * 2
    with pytest.raises(Undefined):
        fill.evaluate_exact([], (), {**attrs, "value": float("-inf")}, FIELD)


def test_an_operator_that_says_nothing_is_refused_rather_than_wrong() -> None:
    class Cubic(type(get_operator("identity"))):  # type: ignore[misc]
        def evaluate(self, inputs: Any, attrs: Any) -> Any:
            return inputs[0] ** 0.5

    with pytest.raises(TypeError, match="whole numbers"):
        Cubic().evaluate_exact([residues(2)], (f32(2),), {}, FIELD)
