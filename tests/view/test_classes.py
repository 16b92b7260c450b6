"""The classes of a page are the database's, and a search finds what a plain look finds."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from relational_tensat.base.duckdb import open_database
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.swaps import Swaps
from relational_tensat.view.classes import Classes, OperatorForms
from relational_tensat.view.data.graph_data import EClass, OperatorForm
from tests.view.runs import stored_run


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_database(stored_run("shared_matmuls")) as opened:
        yield opened


@pytest.fixture(scope="module")
def read(
    connection: duckdb.DuckDBPyConnection,
) -> tuple[Classes, OperatorForms, tuple[EClass, ...]]:
    stored = StoredEGraph(connection)
    forms = OperatorForms.of(stored)
    classes = Classes(stored, forms, Swaps(stored))
    return classes, forms, classes.sample().classes


def test_a_small_e_graph_is_there_as_a_whole(
    connection: duckdb.DuckDBPyConnection, read: tuple[Classes, OperatorForms, tuple[EClass, ...]]
) -> None:
    _, forms, sample = read
    table = forms.all()
    found = {
        (
            e.id,
            k.id,
            table[e.form].op,
            table[e.form].type,
            e.children,
            e.iteration,
            e.rule or "original",
        )
        for k in sample
        for e in k.enodes
    }
    rows = connection.execute(
        "SELECT id, class, op, type, children, iteration, rule FROM enode_text"
    ).fetchall()
    assert found == {(a, b, op, t, tuple(c), i, rule) for a, b, op, t, c, i, rule in rows}
    chosen = {(k.id, e.id) for k in sample for e in k.enodes if e.chosen}
    assert chosen == set(connection.execute("SELECT class, enode FROM chosen").fetchall())
    unions = sorted((u.a, u.b) for k in sample for u in k.unions)
    assert unions == sorted(connection.execute("SELECT a, b FROM union_log").fetchall())
    users = {
        (child, k.id) for k in sample for e in k.enodes if not e.filtered for child in e.children
    }
    assert {(k.id, user) for k in sample for user in k.users} == users


def test_what_is_chosen_costs_what_the_result_costs_and_nothing_costs_less(
    connection: duckdb.DuckDBPyConnection, read: tuple[Classes, OperatorForms, tuple[EClass, ...]]
) -> None:
    ((best_us,),) = connection.execute("SELECT cost_us FROM extraction_log WHERE final").fetchall()
    enodes = [enode for found in read[2] for enode in found.enodes]
    assert all(e.forced_us == pytest.approx(best_us) for e in enodes if e.chosen)
    others = [e.forced_us for e in enodes if not e.chosen and e.forced_us is not None]
    assert others
    assert min(others) >= best_us - 1e-9


def test_e_nodes_know_the_match_that_made_them(
    read: tuple[Classes, OperatorForms, tuple[EClass, ...]],
) -> None:
    """What a rule matched has an e-node that is older than what it made."""
    first = {found.id: min(enode.iteration for enode in found.enodes) for found in read[2]}
    births = [e for found in read[2] for e in found.enodes if e.birth is not None]
    assert len(births) == sum(bool(e.rule) for found in read[2] for e in found.enodes)
    for enode in births:
        assert enode.birth is not None
        assert first[enode.birth.root] < enode.iteration
        assert all(first[operand] < enode.iteration for operand in enode.birth.operands)


@pytest.mark.parametrize(
    "text", ["matmul", "MATMUL 64", "concat", "w1", "merge", "relu y", "float32 split", "nothing"]
)
def test_words_are_found_as_by_looking_at_all(
    read: tuple[Classes, OperatorForms, tuple[EClass, ...]], text: str
) -> None:
    classes, forms, sample = read
    table = forms.all()

    def attributes(form: OperatorForm) -> str:
        return " ".join(form.attrs)

    expected = [
        found.id
        for found in sample
        if all(
            any(
                word in part.lower()
                for enode in found.enodes
                for form in [table[enode.form]]
                for part in (form.op, form.type, attributes(form), enode.rule, *found.names)
            )
            for word in text.lower().split()
        )
    ]
    assert [hit.id for hit in classes.find(text.split())] == expected
