"""The course and the end of an exploration, as reports and tables have them.

A journal has the reports of iterations until they are written. An observer follows them, and may end it
all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field

from relational_tensat.base.records import record
from relational_tensat.base.shown_text import html_table
from relational_tensat.base.watch import Watch
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph

_STOP_TEXTS: Mapping[str, str] = {
    "saturated": "the last iteration added nothing",
    "iterations": "iteration limit reached",
    "nodes": "e-node limit reached",
    "time": "time limit reached",
    "memory": "memory limit reached",
    "interrupted": "interrupted; extracted from what was there",
    "focus": "no subgraph had a cheaper graph than what it was grown from",
    "threshold": "a graph costs less than tree-threshold",
    "universe": "e-node limit of all subgraphs together reached",
    "patience": "gains became too small",
}


def stop_text(reason: str, *, is_exhaustive: bool = False) -> str:
    """Return for people why an exploration ended.

    Args:
        is_exhaustive: as of ``Exploration``.
    """
    if is_exhaustive:
        return "no rule has anything left to add"
    return _STOP_TEXTS.get(reason, reason)


@record
class RuleStats:
    """The work of a rule: matches worked on, unions asked for, wall seconds of matching (shared)."""

    matches: int
    applied: int
    seconds: float


@record
class IterationReport:
    """Sizes after an iteration and what it did."""

    iteration: int
    e_nodes: int
    e_classes: int
    matches: int
    unions: int
    filtered: int
    statements: int
    seconds: float


@record
class SubgraphReport:
    """A subgraph of a search when it was grown, and what came out of it.

    Attributes:
        subgraph: its number, from 1 on.
        kind: its origin: original, chosen (a cheapest graph of a subgraph before), or beside (both);
            universe: it is all subgraphs together, and nothing was grown; saturation: it is the e-graph
            from before the search. A tree search has decision (the real subgraph) or rollout (the cheapest
            of any).
        node_limit: the most e-nodes that it might have.
        seed_us: cost of the cheapest graph that it was grown from.
        best_us: of the cheapest that was extracted from it.
        e_nodes, universe: e-nodes that it had, and that all subgraphs so far had together.
        iteration: its last one.
        stop_reason: why it was not grown further: saturated, closed (more iterations of multi-pattern
            rules would add nothing either), nodes or iterations; extracted, for all subgraphs together.
        seconds: wall seconds since the search began.
    """

    subgraph: int
    kind: str
    node_limit: int
    seed_us: float
    best_us: float
    e_nodes: int
    universe: int
    iteration: int
    stop_reason: str
    seconds: float

    @property
    def row(self) -> tuple[int | str | float, ...]:
        """The row of the table ``subgraph``."""
        return astuple(self)


@record
class DecisionReport:
    """A decision of a tree search, perhaps one within focus.

    Attributes:
        decision: its iteration, from 1 on; within focus, from that after the last of focus on.
        rule_id, rule: the rule that was applied to the real subgraph, and its name.
        rollouts: of the tree.
        mean_ms: mean return of the rollouts through the rule.
        cost_us: of the real subgraph's cheapest graph, by moves.
        best_us: of the cheapest subgraph of any rollout so far, by moves.
        e_nodes, universe: e-nodes of the real subgraph, and of all subgraphs so far together.
        seconds: wall seconds since the search began.
    """

    decision: int
    rule_id: int
    rule: str
    rollouts: int
    mean_ms: float
    cost_us: float
    best_us: float
    e_nodes: int
    universe: int
    seconds: float

    @classmethod
    def read(cls, database: Database) -> list[DecisionReport]:
        """Return the decisions that the tables have; none where there was no tree search."""
        ((has_tree,),) = database.run("tree/has_tree")
        return [cls(*row) for row in database.run("tree/decisions")] if has_tree else []


@dataclass(frozen=True, slots=True, repr=False)
class Exploration:
    """How an exploration ended.

    Attributes:
        stop_reason: saturated, goal, iterations, nodes, time, memory, interrupted, or the answer of
            ``after``; of ``focus`` also focus (no subgraph had a cheaper graph) and universe (its limit is
            reached); of ``mcts`` also threshold (a graph costs less than it).
        iterations: iterations begun and not undone, those of explorations before this one included.
        rules: by name, all the rules.
        log: the iterations of this exploration.
        statements: SQL statements run in the iterations.
        seconds: wall seconds.
        subgraphs: of a search, those that it has grown; of a tree search, those that it has kept.
        decisions: of a tree search, also of one within focus.
        is_exhaustive: whether the e-graph has every graph that the rules can reach: it is saturated, more
            iterations of multi-pattern rules would add nothing either, and no application was left out
            and no e-node filtered because of a cycle. False where that is not known.
    """

    stop_reason: str
    iterations: int
    rules: dict[str, RuleStats]
    log: tuple[IterationReport, ...]
    statements: int
    seconds: float
    subgraphs: tuple[SubgraphReport, ...] = ()
    is_exhaustive: bool = False
    decisions: tuple[DecisionReport, ...] = ()

    def __repr__(self) -> str:
        last = self.log[-1] if self.log else None
        sizes = f", {last.e_nodes:,} e-nodes in {last.e_classes:,} e-classes" if last else ""
        return f"Exploration({self.stop_reason} after {self.iterations} iterations{sizes})"

    def _repr_html_(self) -> str:
        columns = ("iteration", "e-nodes", "e-classes", "matches", "unions", "filtered", "s")
        rows = [
            (
                r.iteration,
                r.e_nodes,
                r.e_classes,
                r.matches,
                r.unions,
                r.filtered,
                f"{r.seconds:.2f}",
            )
            for r in self.log
        ]
        return html_table(columns, rows, self.stop_reason)


def rule_stats(database: Database, first_rule: int) -> dict[str, RuleStats]:
    """Return what each rule did, of those from an id on, by name."""
    return {
        str(name): RuleStats(int(matches), int(applied), float(seconds))
        for name, matches, applied, seconds in database.run("explore/rule_stats", first=first_rule)
    }


@record
class Mark:
    """The lengths of a journal at a moment; see ``Journal.undo``."""

    matches: tuple[tuple[int, int, int], ...]
    entries: int
    written: int


class Journal:
    """Rows of ``match_log`` and ``iteration_log``.

    Attributes:
        log: the iterations of this exploration that have ended.
    """

    def __init__(self) -> None:
        self.log: list[IterationReport] = []
        self._written = 0
        self._matches: list[tuple[int, int, int]] = []  # iteration, rule, matches

    def note_matches(self, iteration: int, matches: Mapping[int, int]) -> None:
        """Note how many matches of each rule are worked on."""
        self._matches += [(iteration, rule, count) for rule, count in matches.items()]

    def note_iteration(self, entry: IterationReport) -> None:
        """Note that an iteration has ended."""
        self.log.append(entry)

    def write(self, database: Database) -> None:
        """Write what was noted since this was last done."""
        database.append("match_log", self._matches)
        database.append("iteration_log", [astuple(entry) for entry in self.log[self._written :]])
        self._matches, self._written = [], len(self.log)

    def mark(self) -> Mark:
        """Return what ``undo`` goes back to."""
        return Mark(tuple(self._matches), len(self.log), self._written)

    def undo(self, mark: Mark) -> None:
        """Forget what was noted, and written, since a mark."""
        self._matches = list(mark.matches)
        del self.log[mark.entries :]
        self._written = mark.written


@record
class Observer:
    """A function that is called between iterations, and the watch that may end them.

    Attributes:
        progress: called after every iteration.
        until: asked after every iteration whether the e-graph has what is looked for (the stop reason
            ``goal``).
        after: called with its index after every iteration that another one follows; a text that it returns
            is a reason to stop there. Its time counts as exploration's.
        watch: the run's. Ctrl-C ends the exploration, and nothing else of the run.
    """

    progress: Callable[[IterationReport], None] | None = None
    until: Callable[[EGraph], bool] | None = None
    after: Callable[[int], str | None] | None = None
    watch: Watch = field(default_factory=Watch)
