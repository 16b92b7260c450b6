"""The search, as a page shows it: growth, cost and bound, what the rules did, where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.files import sql
from relational_tensat.explore.outcome import IterationReport, WorldReport
from relational_tensat.view.data.graph_data import Film, FilmStep
from relational_tensat.view.data.page_data import (
    CourseEvent,
    ExtractionRow,
    RuleWork,
    SearchCourse,
    SearchTree,
    TimeShare,
    TreeDecision,
    TreeNodeRow,
)
from relational_tensat.view.frames import has_table

#: Nodes of all search trees that a page holds.
MOST_TREE_NODES = 3_000


def search(connection: duckdb.DuckDBPyConnection, film: Film | None) -> SearchCourse:
    """Return how the search of a run went.

    Args:
        film: its steps tell what rules saved; None where they are not known yet.
    """
    steps = () if film is None else film.steps
    start_us = 0.0 if film is None else film.start_us
    return SearchCourse(
        iterations=tuple(IterationReport(*row) for row in _rows(connection, "inspect/growth")),
        extractions=tuple(ExtractionRow(*row) for row in _rows(connection, "view/extractions")),
        events=tuple(
            CourseEvent(*row)
            for row in connection.execute(
                "SELECT seconds, phase, iteration, incumbent_us, bound_us FROM run_event ORDER BY rowid"
            ).fetchall()
        ),
        rules=_rules(connection, steps, start_us),
        worlds=_worlds(connection),
        tree=_tree(connection),
        time=tuple(TimeShare(*row) for row in _rows(connection, "view/time_spent")),
    )


def _worlds(connection: duckdb.DuckDBPyConnection) -> tuple[WorldReport, ...]:
    if not has_table(connection, "world"):
        return ()
    return tuple(WorldReport(*row) for row in _rows(connection, "worlds/worlds"))


def _tree(connection: duckdb.DuckDBPyConnection) -> SearchTree | None:
    if not has_table(connection, "tree_decision"):
        return None
    nodes = connection.execute(sql("view/tree_nodes"), {"most": MOST_TREE_NODES}).fetchall()
    return SearchTree(
        tuple(TreeDecision(*row) for row in _rows(connection, "view/tree_decisions")),
        tuple(TreeNodeRow(*row) for row in nodes),
    )


def _rules(
    connection: duckdb.DuckDBPyConnection, steps: Sequence[FilmStep], start_us: float
) -> tuple[RuleWork, ...]:
    """Return what each rule did that matched or was looked for; those that matched most first."""
    matches: dict[int, list[tuple[int, int]]] = {}
    for rule, iteration, count in _rows(connection, "view/matches"):
        matches.setdefault(rule, []).append((iteration, count))
    saved_us: dict[str, float] = {}
    applied: dict[str, list[int]] = {}
    before_us = start_us
    for step in steps:
        saved_us[step.rule] = saved_us.get(step.rule, 0.0) + before_us - step.cost_us
        applied.setdefault(step.rule, []).append(step.number)
        before_us = step.cost_us
    return tuple(
        RuleWork(
            name=name,
            law=law,
            matches=total,
            unions=unions,
            e_nodes=e_nodes,
            extracted=extracted,
            seconds=seconds,
            saved_us=saved_us.get(name, 0.0),
            steps=tuple(applied.get(name, ())),
            by_iteration=tuple(matches.get(rule, ())),
        )
        for rule, name, law, total, unions, e_nodes, extracted, seconds in _rows(
            connection, "view/rules"
        )
    )


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql(name)).fetchall()
