"""Collecting what a page shows from the tables of a finished run, the course of its search among it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.base.files import sql
from relational_tensat.cost import CostModel
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.explanation import COST_TOLERANCE, Explanation, explain, read_meta
from relational_tensat.explain.numeric import NumericCheck, check_numerically
from relational_tensat.explain.why_not.funnel import Funnels
from relational_tensat.explore.outcome import IterationReport, SubgraphReport, stop_text
from relational_tensat.view.classes import Classes, OperatorForms
from relational_tensat.view.data.graph_data import Film, FilmStep, SampleRow
from relational_tensat.view.data.kernel_data import RunningUse
from relational_tensat.view.data.page_data import (
    PAGE_VERSION,
    CourseEvent,
    ExtractionRow,
    FilmAndSearch,
    PageData,
    RuleWork,
    SearchCourse,
    SearchTree,
    Summary,
    TimeShare,
    TreeDecision,
    TreeNodeRow,
    Unused,
)
from relational_tensat.view.film import film
from relational_tensat.view.frames import Frames, has_table, unused
from relational_tensat.view.kernel_figure import fused_kernels
from relational_tensat.view.queries import examples

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
        subgraphs=_subgraphs(connection),
        tree=_tree(connection),
        time=tuple(TimeShare(*row) for row in _rows(connection, "view/time_spent")),
    )


def _subgraphs(connection: duckdb.DuckDBPyConnection) -> tuple[SubgraphReport, ...]:
    if not has_table(connection, "subgraph"):
        return ()
    return tuple(SubgraphReport(*row) for row in _rows(connection, "subgraphs/subgraphs"))


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


def collect(
    connection: duckdb.DuckDBPyConnection, *, check: bool = False, also: CostModel | None = None
) -> PageData:
    """Return all that a page shows which has no database behind it.

    Args:
        connection: to the run's database; nothing in it is changed.
        check: compute every tensor that a step replaces both ways.
        also: another source of costs, beside the run's; it prices the operators that both graphs have, too.

    Raises:
        InputError: it is no database of a run, or of another version, or nothing was extracted.
    """
    read_meta(connection)
    explanation, no_film = _explanation(connection)
    stored = StoredEGraph(connection) if explanation is None else explanation.stored
    forms = OperatorForms.of(stored)
    if also is not None:
        frames = Frames(stored, forms)
        _ = frames.original(), frames.result()  # now their operators are named
        forms.cost_also(also)
    story = None if explanation is None else _film(explanation, forms, check=check)
    funnels = Funnels(stored)
    egraph = Classes(stored, forms, funnels.swaps).sample()
    course = search(connection, story)
    page = _page(stored, forms, egraph, story, unused(funnels, course.rules))
    page = replace(page, no_film=no_film)
    if also is None:
        return page
    sources = (*page.summary.cost_sources, also.name)
    return replace(page, summary=replace(page.summary, cost_sources=sources))


def _explanation(connection: duckdb.DuckDBPyConnection) -> tuple[Explanation | None, str]:
    """Return how the result came about; or None, and why no way to it was found."""
    try:
        return explain(connection), ""
    except NoSolutionError as error:
        return None, str(error)


def _film(explanation: Explanation, forms: OperatorForms, *, check: bool) -> Film:
    checks = _checks(check_numerically(explanation)) if check else ()
    return film(explanation, forms, checks)


def collect_served(stored: StoredEGraph, forms: OperatorForms) -> PageData:
    """Return what a page shows at once which can ask for the rest.

    Raises:
        InputError: as ``collect``.
    """
    read_meta(stored.connection)
    return _page(stored, forms, SampleRow(()), None, ())


def collect_film(stored: StoredEGraph, forms: OperatorForms) -> FilmAndSearch:
    """Return what needs the whole e-graph: the film, and the search with what its steps saved.

    Raises:
        InputError: as ``collect``.
        NoSolutionError: no way from the original graph to the extracted one was found.
    """
    story = film(explain(stored.connection), forms)
    return FilmAndSearch(story, search(stored.connection, story))


def _page(
    stored: StoredEGraph,
    forms: OperatorForms,
    egraph: SampleRow,
    story: Film | None,
    rules: tuple[Unused, ...],
) -> PageData:
    connection = stored.connection
    frames = Frames(stored, forms)
    original, before_us = frames.original()
    result, after_us = frames.result()
    ((e_nodes, e_classes, iterations, bound_us, optimal),) = connection.execute(
        sql("view/summary")
    ).fetchall()
    meta = read_meta(connection)
    account = json.loads(meta.get("account", "{}"))  # none where the run has not ended
    kept_original = "the original is what was written" if account.get("is_kept") else ""
    summary = Summary(
        model=account.get("title") or meta.get("model", ""),
        cost_sources=(meta.get("cost_source", ""),),
        gain=meta.get("gain")
        or f"modelled for {meta.get('cost_source', '')}, not timed here: "
        f"{before_us:,.2f} µs → {after_us:,.2f} µs",
        runs_on=account.get("runs_on", ""),
        size=account.get("size", ""),
        search=account.get("search", ""),
        verified=account.get("verified", ""),
        before_us=before_us,
        after_us=after_us,
        bound_us=bound_us,
        optimal=optimal
        and after_us <= bound_us * (1 + COST_TOLERANCE),  # another may have won a race
        operators=tuple(tuple(row) for row in account.get("operators", ())),
        terms=account.get("terms", ""),
        e_nodes=e_nodes,
        e_classes=e_classes,
        iterations=iterations,
        stop_reason=stop_text(meta.get("stop_reason", "")),
        kept_original=meta.get("kept_original") or kept_original,
        estimated_costs=meta.get("estimated_costs", ""),
    )
    return PageData(
        version=PAGE_VERSION,
        summary=summary,
        forms=forms.all(),
        original=original,
        result=result,
        film=story,
        no_film="",
        search=search(connection, story),
        egraph=egraph,
        kernels=fused_kernels(stored),
        running=tuple(RunningUse(**row) for row in account.get("kernels", ())),
        unused=rules,
        examples=examples(connection),
    )


def _checks(check: NumericCheck) -> tuple[str, ...]:
    """Return what the comparison of the tensors that each step replaces gave, in a sentence."""
    return tuple(
        f"computed both ways in float64 on random operands: relative error {error:.1e}, "
        f"{'within' if error <= check.tolerance else 'beyond'} the tolerance of {check.tolerance:g}"
        for error in check.step_errors
    )
