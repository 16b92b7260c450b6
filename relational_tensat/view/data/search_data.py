"""How a run searched, as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.explore.outcome import IterationReport, WorldReport


@dataclass(frozen=True, slots=True)
class Extracted:
    """An extraction; see the table ``extraction_log``. A bound of 0 is none."""

    iteration: int
    e_nodes: int
    cost_us: float
    best_us: float
    bound_us: float
    optimal: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Event:
    """A cheaper graph or a better bound; see the table ``run_event``."""

    seconds: float
    phase: str
    iteration: int
    incumbent_us: float | None
    bound_us: float | None


@dataclass(frozen=True, slots=True)
class RuleWork:
    """What a rule did.

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
class Decision:
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
class TreeNode:
    """A node of the tree of a decision; see the table ``tree_node``. A parent of 0 is the real world."""

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

    decisions: tuple[Decision, ...]
    nodes: tuple[TreeNode, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """How a run searched; the tree is None where there was none."""

    iterations: tuple[IterationReport, ...]
    extractions: tuple[Extracted, ...]
    events: tuple[Event, ...]
    rules: tuple[RuleWork, ...]
    worlds: tuple[WorldReport, ...]
    tree: SearchTree | None
    time: tuple[TimeShare, ...]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A requirement of a rule, how many candidates it left, and what there was instead."""

    requirement: str
    left: int
    instead: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rule applied, and what became of it; see ``explain.why_not.outcome.Outcome``."""

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
    places: tuple[Place, ...]
