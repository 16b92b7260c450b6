from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace
from typing import Any

import pytest

from relational_tensat.base.records import record


def _declare(decorate: Any) -> Any:
    """Return a class with all kinds of fields."""

    class Sample:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, compare=False)
        e: int = field(default=5, repr=False)
        f: int = field(default=6, kw_only=True)
        g: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("below 0")

    Sample.__qualname__ = "Sample"
    return decorate(Sample)


Record = _declare(record)
Frozen = _declare(dataclass(frozen=True, slots=True))
GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}), ((1,), {}), ((1, "x"), {"f": 8}), ((), {"a": 2, "c": [3]}), ((1, "b", [], 9), {}),
    ((1, "b", [], 4, 0), {}),
]  # fmt: skip


@pytest.mark.parametrize("values", GIVEN)
def test_a_record_is_as_a_frozen_dataclass(values: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    args, kwargs = values
    ours, expected = Record(*args, **kwargs), Frozen(*args, **kwargs)
    assert astuple(ours) == astuple(expected) and asdict(ours) == asdict(expected)
    assert repr(ours) == repr(expected)
    assert Record.__match_args__ == Frozen.__match_args__
    assert [f.name for f in fields(ours)] == [f.name for f in fields(expected)]
    for other_args, other_kwargs in GIVEN:
        others = Record(*other_args, **other_kwargs), Frozen(*other_args, **other_kwargs)
        assert (ours == others[0]) == (expected == others[1])
    assert ours != expected
    assert astuple(replace(ours, a=5)) == astuple(replace(expected, a=5))
    assert copy.deepcopy(ours) == ours == copy.copy(ours)
    for attempt in (
        lambda o: setattr(o, "a", 2),
        lambda o: delattr(o, "a"),
        lambda o: setattr(o, "z", 1),
    ):
        with pytest.raises(FrozenInstanceError):
            attempt(ours)  # type: ignore[no-untyped-call]
    assert not hasattr(ours, "__dict__")


@pytest.mark.parametrize("kwargs", [{}, {"a": 1, "z": 2}, {"a": 1, "g": 2}])
def test_wrong_arguments_are_refused(kwargs: dict[str, int]) -> None:
    for cls in (Record, Frozen):
        with pytest.raises(TypeError):
            cls(**kwargs)
    with pytest.raises(ValueError, match="below 0"):
        Record(-1)


@record
class Place:
    """Two numbers."""

    row: int
    column: int = 0


@record
class Shown:
    """With a text of its own."""

    value: int

    def __repr__(self) -> str:
        return "shown"


def test_records_are_keys_patterns_and_travel() -> None:
    assert {Place(1), Place(1, 0), Place(2)} == {Place(1), Place(2)}
    assert hash(Place(1, 2)) == hash((1, 2))
    match Place(3, 4):
        case Place(row, column):
            assert (row, column) == (3, 4)
    assert pickle.loads(pickle.dumps(Place(5, 6))) == Place(5, 6)
    assert repr(Shown(1)) == "shown"
    with pytest.raises(TypeError):
        hash(Record(1))
