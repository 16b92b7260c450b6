"""The functions of rules: what they give, and where they do not apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.base.errors import UsageError
from relational_tensat.rules.functions import Inapplicable, functions, get_function
from relational_tensat.tensor.types import TensorType
from tests.rules.function_values import assert_value
from tests.strategies import tensor_types

IMAGE = TensorType("float32", (2, 6, 7, 5))
FILTERS = TensorType("float32", (4, 3, 3, 1))
VECTOR = TensorType("int64", (6,))
ROW = TensorType("float32", (6, 1, 1))


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("+", (1, 2, 3), 6), ("-", (1, 3), -2), ("*", (2, 3), 6), ("//", (7, 2), 3),
        ("mod", (7, 2), 1), ("max", (1, 3), 3), ("min", (1, 3), 1),
        ("=", ((1, 2), (1, 2)), True), ("!=", ("same", "valid"), True),
        ("<", (1, 2), True), ("<=", (2, 2), True), ("not", (False,), True),
        ("list", (1, "a"), (1, "a")), ("get", ((4, 5), -1), 5), ("len", ((4, 5),), 2),
        ("sum", ((4, 5),), 9), ("product", ((),), 1), ("join", ((1,), (2, 3)), (1, 2, 3)),
        ("take", ((1, 2, 3), 2), (1, 2)), ("drop", ((1, 2, 3), 2), (3,)),
        ("replace", ((1, 2, 3), -1, 9), (1, 2, 9)), ("repeat", (7, 2), (7, 7)),
        ("range", (3,), (0, 1, 2)), ("index-of", ((4, 5), 5), 1), ("contains", ((4, 5), 5), True),
        ("permute", ((4, 5, 6), (2, 0, 1)), (6, 4, 5)), ("without", ((4, 5, 6), (1,)), (4, 6)),
        ("add-lists", ((1, 2), (3, 4)), (4, 6)), ("inverse", ((2, 0, 1),), (1, 2, 0)),
        ("ones", ((1, 4, 1, 5),), (0, 2)), ("perm-without", ((2, 0, 3, 1), (0, 1)), (0, 1)),
        ("perm-without", ((2, 0, 4, 3, 1), (2,)), (0, 3, 2, 1)), ("perm-without", ((1, 0), (5,)), (1, 0)),
        ("moves-one-axis", ((0, 3, 1, 2),), True), ("moves-one-axis", ((2, 0, 3, 4, 1),), False),
        ("moves-only-ones", ((3, 1, 4), (0, 2, 1)), True),
        ("moves-only-ones", ((3, 2, 4), (0, 2, 1)), False),
        ("rank", (IMAGE,), 4), ("shape", (IMAGE,), (2, 6, 7, 5)), ("dim", (IMAGE, -1), 5),
        ("last", (IMAGE,), 3), ("size", (IMAGE,), 420), ("dtype", (VECTOR,), "int64"),
        ("is-float", (VECTOR,), False), ("batch", (IMAGE,), (2, 6)), ("spatial", (IMAGE,), (7, 5)),
        ("broadcast", ((3, 1), (4,)), (3, 4)), ("same-except", (IMAGE, IMAGE, 1), True),
        ("same-except", (IMAGE, VECTOR, 0), False),
        ("varies-along", (ROW, 4, 1), True), ("varies-along", (VECTOR, 4, 1), False),
        ("varies-along", (IMAGE, 3, 1), False),
        ("/", (1, 4), 0.25), ("close", (0.70710677, 0.5**0.5), True), ("close", (0.707, 0.5**0.5), False),
        ("broadcast-dim", (ROW, 4, 1), 6), ("broadcast-dim", (VECTOR, 4, 1), 1),
        ("source-axis", ((2, 3, 4), (6, 4), -1), 2), ("source-axis", ((2, 3, 4), (2, 12), 0), 0),
        ("has-number", ("int8", 127), True), ("has-number", ("int8", 128), False),
        ("has-number", ("int64", 0.5), False), ("has-number", ("float16", 0.5), True),
        ("has-number", ("bool", 2), False), ("has-number", ("string", 1), False),
        ("groups", (IMAGE, FILTERS), 2),
        ("pads", ((7, 5), (3, 1), (1, 1), "same", ()), (1, 0, 1, 0)),
        ("windows", ((7, 5), (3, 1), (2, 1), "valid", ()), (3, 5)),
        ("enlargeable", ((7, 7), (1, 1), (3, 3), (1, 1), "same", "same", ()), True),
        ("enlargeable", ((8, 8), (1, 1), (3, 3), (2, 2), "same", "same", ()), False),
        ("enlargeable", ((7, 7), (3, 3), (1, 1), (1, 1), "same", "same", ()), False),
    ],
)  # fmt: skip
def test_values(name: str, args: tuple[Any, ...], expected: object) -> None:
    assert_value(name, args, expected)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("/", (1, 0)), ("broadcast-dim", (ROW, 4, 4)), ("source-axis", ((2, 3, 4), (6, 4), 0)),
        ("//", (1, 0)), ("mod", (1, 0)), ("get", ((1,), 1)), ("replace", ((), 0, 1)),
        ("dim", (VECTOR, 1)), ("last", (TensorType("float32", ()),)), ("batch", (VECTOR,)),
        ("index-of", ((1,), 2)), ("permute", ((1, 2), (2,))), ("inverse", ((0, 0),)),
        ("add-lists", ((1,), (1, 2))), ("range", (-1,)), ("repeat", (1, 1000)),
        ("broadcast", ((2,), (3,))), ("same-except", (VECTOR, VECTOR, 1)),
        ("groups", (IMAGE, TensorType("float32", (4, 4, 3, 3)))), ("groups", (VECTOR, FILTERS)),
        ("pads", ((7, 5), (3,), (1, 1), "same", ())), ("pads", ((7,), (3,), (1,), (1,), ())),
        ("windows", ((2, 2), (3, 3), (1, 1), "valid", ())),
        ("pads", ((7,), (3,), (0,), "same", ())), ("pads", ((7,), (3,), (1,), "same", (1, 1))),
    ],
)  # fmt: skip
def test_where_they_do_not_apply(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(Inapplicable):
        get_function(name).call(*args)


def test_lazy_functions_stop_early() -> None:
    def never() -> bool:
        raise Inapplicable

    assert get_function("or").call(lambda: True, never) is True
    assert get_function("and").call(lambda: False, never) is False
    assert get_function("if").call(lambda: True, lambda: 1, never) == 1


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("int", 1, True), ("number", 1.5, "1"), ("bool", False, 0), ("ints", (1,), (1.0,)),
        ("tensor", ROW, (ROW,)),
    ],
)  # fmt: skip
def test_kinds_of_arguments(kind: str, good: object, bad: object) -> None:
    known = next(f for f in functions().values() if kind in f.params or f"{kind}..." in f.params)
    check = known.check([p.removesuffix("...") for p in known.params].index(kind))
    assert check(good) and not check(bad)


def test_every_function_is_documented() -> None:
    for name, known in functions().items():
        assert known.meaning.endswith("."), name
        assert known.signature.startswith(f"({name} ")


def test_unknown_function_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'rank'"):
        get_function("ranc")


@given(tensor_types(), st.randoms(use_true_random=False))
def test_permute_is_what_transpose_does(kind: TensorType, random: Any) -> None:
    perm = list(range(kind.rank))
    random.shuffle(perm)
    array = np.zeros(kind.shape)
    moved = np.transpose(array, perm)
    assert get_function("permute").call(kind.shape, tuple(perm)) == moved.shape
    inverse = get_function("inverse").call(tuple(perm))
    assert np.transpose(moved, inverse).shape == array.shape
