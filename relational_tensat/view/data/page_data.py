"""All that a page shows, as plain data: ``page/src/data.ts`` declares the same for the drawing.

Costs are microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relational_tensat.view.data.egraph_data import Sample
from relational_tensat.view.data.film_data import Film
from relational_tensat.view.data.graph_data import Form, Frame
from relational_tensat.view.data.kernel_data import FusedUse
from relational_tensat.view.data.search_data import Search, Unused

#: Raised when a field changes its meaning.
PAGE_VERSION = 2


@dataclass(frozen=True, slots=True)
class Summary:
    """The run in a few figures.

    Attributes:
        cost_source: what the costs in ``Form.costs_us`` are from, one for each of them; the run's first.
        gain: what the run gained, and whether that was measured or is modelled.
        before_us, after_us: of the original and of the extracted graph, under the run's costs.
        bound_us: no graph of the e-graph costs less; 0 where no bound is known.
        estimated_costs: "3 of 20 are estimated", of the costs that were used; "" where none is.
        kept_original: why the run wrote the original all the same; "" where it wrote the extracted graph.
    """

    model: str
    cost_sources: tuple[str, ...]
    gain: str
    before_us: float
    after_us: float
    bound_us: float
    optimal: bool
    operators_before: int
    operators_after: int
    e_nodes: int
    e_classes: int
    iterations: int
    stop_reason: str
    kept_original: str
    estimated_costs: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query returned: the first rows, and whether there are more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Example:
    """A query that teaches the schema, and its answer."""

    title: str
    query: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class FilmAndSearch:
    """The film that was asked for later, and the search, which says what its steps saved."""

    film: Film
    search: Search


@dataclass(frozen=True, slots=True)
class PageData:
    """All that a page shows of a run.

    Attributes:
        original, result: the graph as it was given, and the extracted one.
        film: None where it is asked for later, as it needs the whole e-graph, or where no way from the one
            graph to the other was found; ``no_film`` states why then, and is "" otherwise.
        kernels: those that rules brought into the e-graph.
    """

    version: int
    summary: Summary
    forms: tuple[Form, ...]
    original: Frame
    result: Frame
    film: Film | None
    no_film: str
    search: Search
    egraph: Sample
    kernels: tuple[FusedUse, ...]
    unused: tuple[Unused, ...]
    examples: tuple[Example, ...]
