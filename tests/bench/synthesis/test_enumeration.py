"""Enumerated terms against every tree, evaluated one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from bench.synthesis.batches import BatchArithmetic
from bench.synthesis.candidates import TermReaderOfTables
from bench.synthesis.enumeration import TermBank
from bench.synthesis.store import SynthesisStore
from bench.synthesis.vocabulary import OperatorChoice, TermSetting, settings_of_operators
from relational_tensat.rules.model import term_text
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import TensorType
from tests.bench.synthesis.slow_terms import trees, value_of

_ROW = TensorType("float32", (7,))
SETTING = TermSetting(
    "test",
    {"x": _ROW, "y": _ROW},
    (
        OperatorChoice("relu", 1), OperatorChoice("neg", 1), OperatorChoice("add", 2),
        OperatorChoice("sub", 2), OperatorChoice("smul", 1, ((("value", 2.0),),)),
    ),
)  # fmt: skip


def enumerated(store: SynthesisStore, setting: TermSetting, size: int, seed: int = 0) -> TermBank:
    store.add_setting(0, setting)
    bank = TermBank(setting, 0, store, seed)
    bank.grow(size)
    bank.write()
    return bank


def test_terms_have_the_fingerprints_of_all_trees() -> None:
    """A tree is equal to a smaller or earlier one exactly where the tables say so."""
    with SynthesisStore(None) as store:
        bank = enumerated(store, SETTING, 2)
        values = {name: bank.value_of(number) for number, name in enumerate(SETTING.inputs)}
        reader = TermReaderOfTables(store, 0)
        rows = store.connection.execute(
            "SELECT symbol, c0, c1, c2, fingerprint FROM term"
        ).fetchall()
    by_fingerprint: dict[int, list[np.ndarray]] = {}
    for *row, fingerprint in rows:
        value = value_of(reader.term(*row), values)
        by_fingerprint.setdefault(fingerprint, []).append(value)
    for equal in by_fingerprint.values():
        assert all(np.allclose(equal[0], other, atol=1e-9) for other in equal)
    distinct = [equal[0] for equal in by_fingerprint.values()]
    slow: list[np.ndarray] = []
    for size in (1, 2):
        for tree in trees(SETTING, size):
            value = value_of(tree, values)
            constant = np.ptp(value) == 0
            if not constant and not any(np.allclose(value, known, atol=1e-9) for known in slow):
                slow.append(value)
    assert len(distinct) == len(slow)
    assert all(any(np.allclose(a, b, atol=1e-9) for b in distinct) for a in slow)


def test_shared_operators_count_once() -> None:
    """A square of a sum has two operators, and stands among the terms of two."""
    choices = (OperatorChoice("add", 2), OperatorChoice("mul", 2))
    with SynthesisStore(None) as store:
        enumerated(store, TermSetting("test", {"x": _ROW, "y": _ROW}, choices), 2)
        reader = TermReaderOfTables(store, 0)
        rows = store.connection.execute(
            "SELECT symbol, c0, c1, c2 FROM term WHERE size = 2"
        ).fetchall()
        assert "(mul (add ?x ?y) (add ?x ?y))" in {term_text(reader.term(*row)) for row in rows}


def test_the_same_seed_gives_the_same_tables() -> None:
    tables = []
    for _ in range(2):
        with SynthesisStore(None) as store:
            enumerated(store, SETTING, 2, seed=3)
            tables.append(store.connection.execute("SELECT * FROM term ORDER BY id").fetchall())
    assert tables[0] == tables[1]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("op", "attrs", "shapes"),
    [
        ("add", {}, [(4, 3), (3,)]),
        ("matmul", {"act": "none"}, [(4, 3), (3, 5)]),
        ("transpose", {"perm": (1, 0)}, [(4, 3)]),
        ("concat", {"axis": 1}, [(4, 3), (4, 2)]),
        ("reduce_sum", {"axes": (1,), "keepdims": True}, [(4, 3)]),
        ("reshape", {"shape": (12,)}, [(4, 3)]),
        ("conv", {"stride": (1, 1), "pad": "same"}, [(2, 4, 5, 3), (6, 2, 3, 3)]),
        ("max_pool", {"kernel": (3, 3), "stride": (1, 1), "pad": "same"}, [(2, 4, 5, 3)]),
        ("split", {"axis": 1, "sizes": (1, 2)}, [(4, 3)]),
    ],
)
def test_a_batch_is_what_its_rows_are(
    op: str, attrs: dict[str, object], shapes: list[tuple[int, ...]], exact: bool
) -> None:
    arithmetic, random = BatchArithmetic(exact, 0), np.random.default_rng(0)
    types = tuple(TensorType("float32", shape) for shape in shapes)
    operands = [np.concatenate([arithmetic.draw(kind, random) for _ in range(6)]) for kind in types]
    items = tuple(get_operator(op).canonical(types, attrs).items())  # type: ignore[arg-type]
    results, valued = arithmetic.apply(op, items, types, operands)
    assert valued.all()
    for row in range(6):
        (*expected,), _ = arithmetic.apply(op, items, types, [x[row : row + 1] for x in operands])
        for part, one in zip(results, expected, strict=True):
            assert np.allclose(part[row], one[0], rtol=1e-12, atol=1e-12)


def test_rows_without_a_value_are_told() -> None:
    arithmetic = BatchArithmetic(True, 0)
    kind = TensorType("float32", (2,))
    operand = np.array([[1, 2], [0, 3], [4, 5], [6, 7]])
    results, valued = arithmetic.apply("reciprocal", (), (kind,), [operand])
    assert valued.tolist() == [True, False, True, True]
    assert results[0].shape == (4, 2)


def test_operators_choose_the_inputs_that_they_take() -> None:
    (setting,) = settings_of_operators(["relu", "logical_not"])
    assert list(setting.inputs) == ["x", "p"]
    assert [one.positive for one in settings_of_operators(["sqrt", "relu"])] == [False, True]


def test_positive_inputs_give_roots_values() -> None:
    _, setting = settings_of_operators(["sqrt", "relu"])
    with SynthesisStore(None) as store:
        bank = enumerated(store, setting, 2)
        assert (bank.value_of(0) > 0).all()
        rows = store.connection.execute(
            "SELECT count(*), count(DISTINCT fingerprint) FROM term WHERE size = 1"
        ).fetchall()
    assert rows == [(2, 2)]  # the rectifier is the input, the root another value
