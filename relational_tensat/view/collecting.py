"""Collecting what a page shows from the tables of a finished run."""

from __future__ import annotations

import duckdb

from relational_tensat.base.resources import sql
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.view.film import film
from relational_tensat.view.forms import Forms
from relational_tensat.view.page_data import PAGE_VERSION, PageData, Summary


def collect(connection: duckdb.DuckDBPyConnection) -> PageData:
    """Return what the page of a run shows.

    Args:
        connection: to the run's database; nothing in it is changed.

    Raises:
        InputError: it is no database of a run, or of another version, or nothing was extracted.
        NoSolutionError: no explanation of the result was found within the limits.
    """
    explanation = explain(connection)
    costs = dict(connection.execute("SELECT signature, cost_us FROM cost").fetchall())
    forms = Forms(explanation.stored, [costs])
    story = film(explanation, forms, {})
    summary = _summary(explanation, connection)
    return PageData(PAGE_VERSION, summary, forms.all(), story)


def _summary(explanation: Explanation, connection: duckdb.DuckDBPyConnection) -> Summary:
    ((source, stop, e_nodes, e_classes, iterations, bound_us, optimal),) = connection.execute(
        sql("view/summary")
    ).fetchall()
    after = explanation.steps[-1].operators if explanation.steps else explanation.operators_before
    return Summary(
        model=explanation.model,
        cost_sources=(source,),
        before_us=explanation.cost_original_us,
        after_us=explanation.cost_after_us,
        bound_us=bound_us,
        optimal=optimal,
        operators_before=explanation.operators_before,
        operators_after=after,
        e_nodes=e_nodes,
        e_classes=e_classes,
        iterations=iterations,
        stop_reason=stop,
        kept_original=explanation.kept_original,
    )
