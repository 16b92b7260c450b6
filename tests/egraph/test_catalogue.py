from __future__ import annotations

import json
import math
import random

import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.egraph.catalogue import Catalogue, Symbol, attrs_text, type_text
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.schema import create_tables
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import ValueType
from tests.graphs import f32


def with_schema() -> Database:
    database = Database()
    create_tables(database)
    return database


def test_one_id_per_operator_attributes_and_operand_types() -> None:
    catalogue = Catalogue()
    first = catalogue.intern("matmul", {}, (f32(2, 3), f32(3, 4)))
    assert catalogue.intern("matmul", {"act": "none"}, (f32(2, 3), f32(3, 4))) == first
    other_ids = {
        catalogue.intern("matmul", {"act": "relu"}, (f32(2, 3), f32(3, 4))),
        catalogue.intern("matmul", {}, (f32(2, 3), f32(3, 5))),
        catalogue.intern("matmul", {}, (f32(2, 3), f32(3, 4), f32(4))),
    }
    assert len(other_ids | {first}) == 4
    assert len(catalogue.symbols) == 3


def test_an_id_gives_symbol_and_types() -> None:
    catalogue = Catalogue()
    catalogue.intern("relu", {}, (f32(1),))
    number = catalogue.intern("split", {"axis": 1, "sizes": (1, 2)}, (f32(2, 3),))
    assert catalogue.symbol_of(number) == Symbol("split", (("axis", 1), ("sizes", (1, 2))), 1)
    assert catalogue.type_of(number) == (f32(2, 1), f32(2, 2))
    assert catalogue.operand_types(number) == (f32(2, 3),)


def test_operands_that_do_not_fit_leave_no_trace_in_the_tables() -> None:
    catalogue, database = Catalogue(), with_schema()
    with pytest.raises(ShapeError):
        catalogue.intern("matmul", {}, (f32(2, 3), f32(4, 3)))
    catalogue.flush(database)
    assert database.execute("FROM signature") == []


def test_ids_are_those_of_a_plain_dictionary() -> None:
    """The same applications, in the same order, with ids from a dictionary."""
    rng = random.Random(7)
    catalogue = Catalogue()
    oracle: dict[tuple[str, tuple[ValueType, ...]], int] = {}
    for _ in range(300):
        op = rng.choice(["add", "mul", "relu", "tanh"])
        kind = f32(rng.randint(1, 3), rng.randint(1, 2))
        operands = (kind,) * (2 if op in ("add", "mul") else 1)
        number = catalogue.intern(op, {}, operands)
        assert number == oracle.setdefault((op, operands), len(oracle) + 1)
        assert catalogue.type_of(number) == get_operator(op).infer(operands, {})


def test_flush_writes_each_row_once() -> None:
    catalogue, database = Catalogue(), with_schema()
    catalogue.intern("relu", {}, (f32(2, 3),))
    catalogue.flush(database)
    catalogue.flush(database)
    catalogue.intern("relu", {}, (f32(2, 3),))
    catalogue.intern("clip", {"min": 0.0}, (f32(2, 3),))
    assert database.execute("SELECT id, op, attrs, arity FROM symbol") == [(1, "relu", "{}", 1)]
    catalogue.flush(database)
    symbols = database.execute("SELECT op, attrs FROM symbol ORDER BY id")
    assert [op for op, _ in symbols] == ["relu", "clip"]
    assert json.loads(symbols[1][1]) == {"min": 0.0, "max": "inf"}
    assert database.execute("FROM value_type") == [(1, "float32[2,3]")]
    signatures = database.execute("SELECT id, symbol, operands, type, head FROM signature")
    assert signatures == [(1, 1, [1], 1, 0), (2, 2, [1], 1, 0)]


class ByOperator:
    """Heads by operator, from 1 on as they are met."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, symbol: Symbol) -> int:
        if symbol.op not in self.texts:
            self.texts.append(symbol.op)
        return self.texts.index(symbol.op) + 1


def test_heads_follow_the_rules_of_the_moment() -> None:
    catalogue, database = Catalogue(), with_schema()
    relu = catalogue.intern("relu", {}, (f32(2),))
    tanh = catalogue.intern("tanh", {}, (f32(2),))
    assert catalogue.heads == [0, 0]
    assert catalogue.rehead(ByOperator()) == [1, 2]
    exp = catalogue.intern("exp", {}, (f32(2),))
    catalogue.flush(database)
    heads = dict(database.execute("SELECT id, head FROM signature"))
    assert heads == {relu: 1, tanh: 2, exp: 3}
    assert database.execute("FROM head ORDER BY id") == [(1, "relu"), (2, "tanh"), (3, "exp")]


def test_texts() -> None:
    assert attrs_text(()) == "{}"
    assert attrs_text((("min", -math.inf), ("max", 6.0))) == '{"min": "-inf", "max": 6.0}'
    assert attrs_text((("act", "relu"), ("stride", (1, 2)))) == '{"act": "relu", "stride": [1, 2]}'
    assert type_text(f32()) == "float32[]"
    assert type_text((f32(1), f32(2, 3))) == "(float32[1], float32[2,3])"
