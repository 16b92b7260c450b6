"""TASO's cost-based backtracking search, without an e-graph: the baseline of saturation.

Jia et al., "TASO: Optimizing Deep Learning Computation with Automatic Generation of Graph
Substitutions", SOSP 2019, section 5, and its ``Graph::optimize`` and ``GraphXfer::run``. A queue of
graphs, the cheapest first; the graph that is taken out is rewritten by every rule at every match,
one at a time; what costs less than alpha times the best so far goes into the queue, once; after n
graphs, or when none is left, the best is the answer.

As in TASO:

- a source's operators are distinct operators of the graph, and what is computed inside a match is
  used by nothing outside of it; pairs of a multi-pattern rule are tried in both orders;
- a rewritten graph that would depend on itself, or has twice as many operators as the original,
  is left out;
- the best is looked at when a graph is taken out of the queue.

Other than in TASO, each time to its favour: equal graphs are recognized by what they are and not by a hash
in which graphs may collide; what a rule adds and the graph computes already is not added again; what
depends on weights only is free from the start and not only in the answer; a graph is put together
when it is taken out of the queue, its cost being known before. A rule whose result has another type
than what it replaces is rejected.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence

from bench.taso.graphs import PS_PER_US, Loaded, State
from bench.taso.matcher import Matcher
from bench.taso.rewriter import Candidate, Rewriter
from relational_tensat.base.records import record
from relational_tensat.cost.source import CostModel
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

#: TASO: "2 * maxNumOps" in ``Graph::optimize``.
_GROWTH = 2


@record
class Moment:
    """How far the search was when it had rewritten so many graphs.

    Attributes:
        rewritten: graphs taken out of the queue and rewritten.
        cpu_s: CPU seconds since the search started.
        best_us: the cheapest graph taken out by then.
    """

    rewritten: int
    cpu_s: float
    best_us: float


@record
class Outcome:
    """What the search found.

    Attributes:
        graph: the cheapest.
        cost_us: what it costs, ``best_us`` of the last moment.
        moments: the first, each at which something cheaper was found, those that were requested, and
            the last.
        queued: graphs that were put into the queue, the original included.
        stop_reason: ``budget`` (n graphs were rewritten), ``exhausted`` (none was left) or ``time``.
    """

    graph: Graph
    cost_us: float
    moments: tuple[Moment, ...]
    queued: int
    stop_reason: str

    def after(self, rewritten: int) -> Moment | None:
        """Return how a search of so many graphs would have ended; None where it is not known.

        A search of n graphs is the first part of one of more. It is known where this one had no more
        graphs, or noted how far it was then: ``rewritten`` is its budget, or one of ``moments_at``.
        """
        exact = [moment for moment in self.moments if moment.rewritten == rewritten]
        if exact:
            return exact[-1]
        last_moment = self.moments[-1]
        return (
            last_moment
            if self.stop_reason == "exhausted" and last_moment.rewritten < rewritten
            else None
        )

    def found_at(self, rewritten: int | None = None) -> Moment:
        """Return the moment at which the best was found, of all or of a shorter search."""
        shorter = [m for m in self.moments if rewritten is None or m.rewritten <= rewritten]
        best_us = shorter[-1].best_us
        return next(moment for moment in shorter if moment.best_us == best_us)


def backtrack(
    graph: Graph,
    rules: Sequence[Rule],
    cost: CostModel,
    *,
    alpha: float = 1.0,
    budget: int = 100,
    time_limit_s: float | None = None,
    moments_at: Sequence[int] = (),
) -> Outcome:
    """Search as TASO does.

    Args:
        graph: the original.
        rules: single- and multi-pattern, applied in both orders of a pair.
        cost: what an operator costs, in µs.
        alpha: what costs alpha times the best so far, or more, is not looked at.
        budget: n, how many graphs are rewritten at most.
        time_limit_s: CPU seconds after which no further rule is tried; None for no limit.
        moments_at: after so many graphs it is noted how far it is.
    """
    return _Search(graph, rules, cost, alpha, budget, time_limit_s).run(frozenset(moments_at))


class _Search:
    def __init__(
        self,
        graph: Graph,
        rules: Sequence[Rule],
        cost: CostModel,
        alpha: float,
        budget: int,
        time_limit_s: float | None,
    ) -> None:
        self._began_s = time.process_time()
        self._deadline_s = None if time_limit_s is None else self._began_s + time_limit_s
        self._alpha, self._budget = alpha, budget
        self._loaded = Loaded(graph, cost)
        initial = self._loaded.state
        self._matcher = Matcher(initial.universe)
        self._rewriters = [Rewriter(initial.universe, self._matcher, rule) for rule in rules]
        self._most_operators = _GROWTH * initial.operators
        self._best = initial
        self._queue: list[tuple[int, int, Candidate | State]] = [(initial.cost_ps, 0, initial)]
        self._visited = {initial.mark}
        self._moments: list[Moment] = []

    def run(self, moments_at: frozenset[int]) -> Outcome:
        rewritten = 0
        reason = "exhausted"
        while self._queue:
            state = self._take()
            is_better = state.cost_ps < self._best.cost_ps
            if is_better:
                self._best = state
            if is_better or rewritten in moments_at or not self._moments:
                self._note(rewritten)
            if rewritten == self._budget:
                reason = "budget"
                break
            if not self._rewrite(state):
                reason = "time"
                break
            rewritten += 1
        self._note(rewritten)
        return Outcome(
            self._loaded.graph(self._best),
            self._best.cost_ps / PS_PER_US,
            tuple(self._moments),
            len(self._visited),
            reason,
        )

    def _take(self) -> State:
        cheapest = heapq.heappop(self._queue)[2]
        return cheapest if isinstance(cheapest, State) else cheapest.state()

    def _rewrite(self, state: State) -> bool:
        """Queue what the rules make of a graph; return False where time is over before the end."""
        self._matcher.forget()
        limit_ps = self._alpha * self._best.cost_ps
        for rewriter in self._rewriters:
            if self._deadline_s is not None and time.process_time() > self._deadline_s:
                return False
            for candidate in rewriter.candidates(state):
                if (
                    candidate.cost_ps < limit_ps
                    and candidate.operators < self._most_operators
                    and candidate.mark not in self._visited
                ):
                    self._visited.add(candidate.mark)
                    heapq.heappush(self._queue, (candidate.cost_ps, len(self._visited), candidate))
        return True

    def _note(self, rewritten: int) -> None:
        cpu_s = time.process_time() - self._began_s
        self._moments.append(Moment(rewritten, cpu_s, self._best.cost_ps / PS_PER_US))
