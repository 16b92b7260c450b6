"""All that a page shows, as plain data: ``page/src/data.ts`` declares the same for the drawing.

Costs are microseconds. ``SearchCourse`` shows how a run searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relational_tensat.explore.outcome import IterationReport, SubgraphReport
from relational_tensat.view.data.graph_data import Film, GraphFrame, OperatorForm, SampleRow
from relational_tensat.view.data.kernel_data import FusedUse, RunningUse


@dataclass(frozen=True, slots=True)
class ExtractionRow:
    """An extraction; see the table ``extraction_log``. A bound of 0 says nothing."""

    iteration: int
    e_nodes: int
    cost_us: float
    best_us: float
    bound_us: float
    optimal: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class CourseEvent:
    """A cheaper graph or a better bound; see the table ``run_event``."""

    seconds: float
    phase: str
    iteration: int
    incumbent_us: float | None
    bound_us: float | None


@dataclass(frozen=True, slots=True)
class RuleWork:
    """The work of a rule.

    Attributes:
        matches, unions, e_nodes: worked on, asked for, made.
        extracted: e-nodes of the result that it made.
        saved_us: by its steps in the film, together; below 0 where they prepare what others save.
        steps: their numbers.
        by_iteration: its matches, as pairs of iteration and count.
    """

    name: str
    law: str
    matches: int
    unions: int
    e_nodes: int
    extracted: int
    seconds: float
    saved_us: float
    steps: tuple[int, ...]
    by_iteration: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TimeShare:
    """Time of a phase in a statement; see the table ``time_spent``."""

    phase: str
    statement: str
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TreeDecision:
    """A decision of a tree search; see the table ``tree_decision``.

    Attributes:
        least_us, median_us: the cheapest graph of a rollout: of the best one, and of the median.
        nodes: of its tree, of which the page may hold fewer.
    """

    decision: int
    rule: str
    rollouts: int
    mean_ms: float
    cost_us: float
    best_us: float
    e_nodes: int
    seconds: float
    least_us: float
    median_us: float
    nodes: int


@dataclass(frozen=True, slots=True)
class TreeNodeRow:
    """A node of the tree of a decision; see the table ``tree_node``. A parent of 0 is the real subgraph."""

    decision: int
    id: int
    parent: int
    rule: str
    visits: int
    mean_ms: float
    cost_us: float
    e_nodes: int
    state: str


@dataclass(frozen=True, slots=True)
class SearchTree:
    """The trees of a tree search, one for each decision."""

    decisions: tuple[TreeDecision, ...]
    nodes: tuple[TreeNodeRow, ...]


@dataclass(frozen=True, slots=True)
class SearchCourse:
    """The course of a search; the tree is None for searches without one."""

    iterations: tuple[IterationReport, ...]
    extractions: tuple[ExtractionRow, ...]
    events: tuple[CourseEvent, ...]
    rules: tuple[RuleWork, ...]
    subgraphs: tuple[SubgraphReport, ...]
    tree: SearchTree | None
    time: tuple[TimeShare, ...]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A requirement of a rule, how many candidates it left, and what there was instead."""

    requirement: str
    left: int
    instead: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TreePlaceRow:
    """Where a rule applied, and what became of it; see ``explain.why_not.outcome.MatchOutcome``."""

    places: tuple[str, ...]
    status: str
    made_by: str
    iteration: int
    cost_us: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Unused:
    """Why a rule did not change the result.

    Attributes:
        conclusion: in a sentence.
        steps: of the search for its pattern, in order.
        places: the first of those where it applied.
    """

    rule: str
    conclusion: str
    steps: tuple[Narrowing, ...]
    places: tuple[TreePlaceRow, ...]


#: Raised when a field changes its meaning.
PAGE_VERSION = 2


@dataclass(frozen=True, slots=True)
class Summary:
    """The run in a few figures.

    Attributes:
        cost_source: the source of the costs in ``OperatorForm.costs_us``, one each; that of the run first.
        model: its file's name, or the graph's where there was no file.
        runs_on: the backend that the run is for; "" if unknown.
        gain: the run's gain, and whether that was measured or is modelled.
        size, search, verified: of both files, why exploration ended and what is proven, and how the result
            was compared, all as the terminal says it; "" where the run has not ended.
        before_us, after_us: of the original and of the extracted graph, under the run's costs.
        bound_us: no graph of the e-graph costs less; 0 where no bound is known.
        estimated_costs: "3 of 20 are estimated", of the costs that were used; "" where none is.
        kept_original: why the run wrote the original all the same; "" where it wrote the extracted graph.
        operators: how often each is in both files, or in both graphs where one of them is no ONNX:
            ``terms`` is then "graph", not "ONNX"; none where the run has not ended.
    """

    model: str
    cost_sources: tuple[str, ...]
    runs_on: str
    gain: str
    size: str
    search: str
    verified: str
    before_us: float
    after_us: float
    bound_us: float
    optimal: bool
    operators: tuple[tuple[str, int, int], ...]
    terms: str
    e_nodes: int
    e_classes: int
    iterations: int
    stop_reason: str
    kept_original: str
    estimated_costs: str


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The rows that a query returned: the first ones, and whether there are more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Example:
    """A query that teaches the schema, and its answer."""

    title: str
    query: str
    answer: QueryAnswer


@dataclass(frozen=True, slots=True)
class FilmAndSearch:
    """The film that was asked for later, and the search, which says what its steps saved."""

    film: Film
    search: SearchCourse


@dataclass(frozen=True, slots=True)
class PageData:
    """All that a page shows of a run.

    Attributes:
        original, result: the graph as it was given, and the extracted one.
        film: None if it is asked for later, as it needs the whole e-graph, or if no way from the one graph
            to the other was found; ``no_film`` states the reason then, and is "" otherwise.
        kernels: those that rules brought into the e-graph.
        running: those that onnxruntime runs in the written file.
    """

    version: int
    summary: Summary
    forms: tuple[OperatorForm, ...]
    original: GraphFrame
    result: GraphFrame
    film: Film | None
    no_film: str
    search: SearchCourse
    egraph: SampleRow
    kernels: tuple[FusedUse, ...]
    running: tuple[RunningUse, ...]
    unused: tuple[Unused, ...]
    examples: tuple[Example, ...]
