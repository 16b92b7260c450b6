"""Collecting what a page shows from the tables of a finished run."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.base import duckdb
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.base.files import sql
from relational_tensat.cost import CostModel
from relational_tensat.explain.explanation import (
    COST_TOLERANCE,
    Explanation,
    explain,
    read_meta,
)
from relational_tensat.explain.numeric import NumericCheck, check_numerically
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explain.why_not.funnel import Funnels
from relational_tensat.explore.outcome import stop_text
from relational_tensat.view.classes import Classes
from relational_tensat.view.data.graph_data import Film, SampleRow
from relational_tensat.view.data.page_data import (
    PAGE_VERSION,
    FilmAndSearch,
    PageData,
    Summary,
    Unused,
)
from relational_tensat.view.film import film
from relational_tensat.view.forms import OperatorForms
from relational_tensat.view.frames import Frames, unused
from relational_tensat.view.fused_kernels import fused_kernels
from relational_tensat.view.queries import examples
from relational_tensat.view.search_course import search


def collect(
    connection: duckdb.DuckDBPyConnection, *, check: bool = False, also: CostModel | None = None
) -> PageData:
    """Return all that a page shows which has no database behind it.

    Args:
        connection: to the run's database; nothing in it is changed.
        check: compute every tensor that a step replaces both ways.
        also: another source of costs, beside the run's: what both graphs have is costed by it, too.

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
    summary = Summary(
        model=meta.get("model", ""),
        cost_sources=(meta.get("cost_source", ""),),
        gain=meta.get("gain")
        or f"modelled for {meta.get('cost_source', '')}, not timed here: "
        f"{before_us:,.2f} µs → {after_us:,.2f} µs",
        before_us=before_us,
        after_us=after_us,
        bound_us=bound_us,
        optimal=optimal
        and after_us <= bound_us * (1 + COST_TOLERANCE),  # another may have won a race
        operators_before=frames.operators(original),
        operators_after=frames.operators(result),
        e_nodes=e_nodes,
        e_classes=e_classes,
        iterations=iterations,
        stop_reason=stop_text(meta.get("stop_reason", "")),
        kept_original=meta.get("kept_original", ""),
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
