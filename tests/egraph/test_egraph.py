"""An e-graph's transaction: tables, counters and catalogue go back together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from tests.graphs import f32, fan_of_matmuls


def _work(egraph: EGraph) -> None:
    """Change what a transaction must take back."""
    egraph.next_id, egraph.clock = egraph.next_id + 5, egraph.clock + 1
    egraph.catalogue.intern("tanh", {}, (f32(1),))
    egraph.catalogue.flush(egraph.database)


def _operators(egraph: EGraph) -> list[str]:
    return [op for (op,) in egraph.database.execute("SELECT op FROM symbol ORDER BY id")]


def test_what_ends_well_stays() -> None:
    egraph = EGraph.create(fan_of_matmuls(2))
    before = egraph.counters()
    with egraph.transaction():
        _work(egraph)
    assert egraph.next_id == before.next_id + 5
    assert _operators(egraph).count("tanh") == 1


@pytest.mark.parametrize(
    "reason",
    [Interrupted(), OutOfMemory("too little"), ValueError("a rule's"), KeyboardInterrupt()],
)
def test_whatever_ends_it_undoes_it(reason: BaseException) -> None:
    egraph = EGraph.create(fan_of_matmuls(2))
    before, operators = egraph.counters(), _operators(egraph)
    with pytest.raises(type(reason)), egraph.transaction():
        _work(egraph)
        raise reason
    assert egraph.counters() == before
    assert _operators(egraph) == operators
    with egraph.transaction():  # what was interned is written again
        _work(egraph)
    assert _operators(egraph) == [*operators, "tanh"]


@pytest.mark.parametrize("reason", [Interrupted(), OutOfMemory("too little")])
def test_a_flush_that_cannot_end_is_as_if_it_had_not_begun(
    reason: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    egraph = EGraph.create(fan_of_matmuls(2))
    operators, append = _operators(egraph), egraph.database.append

    def fails(table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if table == "signature":
            raise reason
        append(table, rows)

    monkeypatch.setattr(egraph.database, "append", fails)
    with pytest.raises(type(reason)), egraph.transaction():
        _work(egraph)
    assert _operators(egraph) == operators
    monkeypatch.undo()
    with egraph.transaction():
        _work(egraph)
    assert _operators(egraph) == [*operators, "tanh"]
