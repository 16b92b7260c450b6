"""Equality saturation, as TENSAT has it (section 4): all rules in each step, until nothing is added.

Multi-pattern rules take part in ``k_multi`` of the steps (iterations). An iteration is one transaction, so
that whatever ends the run leaves the e-graph as the last complete iteration left it. An e-graph that was
explored before, perhaps by another process that was killed, is explored on from what is there: all of it
is matched once again, and iterations are numbered on.

Multi-pattern rules pay only with what single-pattern rules then make of it. Where the node limit keeps
these from it, the iteration is undone, and done again with a smaller node budget for multi-pattern rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from relational_tensat.base.errors import UnsoundRuleError, UsageError
from relational_tensat.base.watch import Guard
from relational_tensat.egraph.cycles import filter_cycles
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.members import Members, end_search
from relational_tensat.explore.outcome import (
    Exploration,
    IterationReport,
    Journal,
    Observer,
    SubgraphReport,
)
from relational_tensat.explore.step import Delta, Starved, step
from relational_tensat.explore.strategies.policy import PLAIN, Policy, SaturationState, Variation
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.explore.subgraph import Subgraph, begin_subgraph, end_exploration, write_down
from relational_tensat.rules.model import Rule

#: Exploration dies out if an iteration works on so few matches for each e-node, or on so few and fewer than
#: one of the three before; see ``Saturation.extend``.
_FEW_MATCHES, _FEWER_MATCHES = 0.01, 0.1


def explore(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions | None = None,
    *,
    observer: Observer | None = None,
) -> Exploration:
    """Grow an e-graph by rules until it is saturated, has what is looked for, or a limit is reached.

    Args:
        options: the limits, and how exploration proceeds until then.
        observer: called between iterations, and may end them.

    Raises:
        UnsoundRuleError: a rule would unite classes of different types.
        UsageError: the options ask for a search over subgraphs, which needs costs.
    """
    if options is not None and options.is_search:
        raise UsageError(
            f"search = {options.search} without costs, expected it in optimize(), which has some"
        )
    options = options or ExplorationOptions()
    join_subgraphs(egraph, options)
    saturation = Saturation(egraph, rules, options, observer or Observer())
    with saturation.watching() as guard:
        reason = saturation.grow(guard)
    return saturation.finish(reason)


def explore_whole(egraph: EGraph, rules: Sequence[Rule], search: SearchSettings) -> Exploration:
    """Explore by saturation alone: the strategy of that name."""
    join_subgraphs(egraph, search.options)
    saturation = Saturation(egraph, rules, search.options, search.observer)
    with saturation.watching() as guard:
        reason = saturation.grow(guard)
    return saturation.finish(reason)


def join_subgraphs(egraph: EGraph, options: ExplorationOptions) -> None:
    """Let an e-graph of subgraphs be one whose cycles are filtered, before saturation goes on with it."""
    is_universe = egraph.is_universe
    with egraph.transaction():
        end_search(egraph)
        if is_universe and options.cycle_filter != "none":
            filter_cycles(egraph.database)


class Saturation:
    """Saturation that can be carried on: in the e-graph, or in one subgraph of it after the other.

    Attributes:
        iteration: the last one that is complete.
    """

    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        options: ExplorationOptions,
        observer: Observer,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._options = options
        self._observer = observer
        self._started = time.perf_counter()
        self._iteration_started, self._statements_before = self._started, 0
        self._journal = Journal()
        is_new = egraph.clock == 0
        with egraph.transaction():  # the rules go into the tables
            self._subgraph = begin_subgraph(egraph, rules, options)
            write_down(self._subgraph, self._journal)
        self._state = SaturationState(self._subgraph.steps, egraph.e_nodes)
        self._policy = Policy(self._subgraph, options)
        #: Nothing was kept out because of cycles; unknown where others explored before.
        self._has_all = is_new

    @property
    def iteration(self) -> int:
        """The last iteration that is complete."""
        return self._state.iteration

    @property
    def subgraph(self) -> Subgraph:
        """The e-graph, or one subgraph of it, with the rules."""
        return self._subgraph

    @property
    def journal(self) -> Journal:
        """The iterations so far."""
        return self._journal

    def go_on_after(self, iteration: int) -> None:
        """Continue after an iteration that another search has made; a subgraph is begun next."""
        self._state = SaturationState(iteration, 0)
        self._subgraph.steps = iteration

    def begin_subgraph(
        self,
        members: Members,
        enodes: Sequence[int],
        node_limit: int,
        variation: Variation = PLAIN,
    ) -> None:
        """Continue in a subgraph of the e-graph: as if its e-nodes were the original graph's.

        Args:
            enodes: those that it is grown from, operands first.
            node_limit: the most e-nodes that it may have.

        Raises:
            Interrupted, OutOfMemory: the subgraph before is still there.
        """
        with self._subgraph.transaction():
            members.begin(enodes)
            self._subgraph.begin_members(members)
            write_down(self._subgraph, self._journal)
        iteration = self._state.iteration
        self._policy.offset, self._policy.more = iteration, 0
        self._state = SaturationState(iteration, len(enodes))
        self._subgraph.matcher.order = variation.order
        self._policy.vary(node_limit, variation)

    @contextmanager
    def watching(self, limit_s: float | None = None) -> Iterator[Guard]:
        """Watch the time and Ctrl-C meanwhile: they interrupt the database.

        Args:
            limit_s: seconds, if not the options'.
        """
        limit_s = self._options.time_limit_s if limit_s is None else limit_s
        guard = self._observer.watch.guard(self._database.interrupt, limit_s)
        with guard.watching():
            yield guard
        self._database.resume()

    def grow(self, guard: Guard) -> str:
        """Iterate until there is a reason to stop; return it."""
        progress = self._observer.progress
        iteration = self._state.iteration
        reason = None
        if iteration > self._policy.offset:
            reason = self._follow(iteration, self._state.stopped or reason, guard)
        self._begin_count()
        while reason is None and iteration < self._policy.last:
            try:
                with self._transaction():
                    rules = self._begin_iteration(iteration + 1)
                    delta = step(self._subgraph, rules, self._policy.budget(self._state))
                    self._note_iteration(iteration + 1, rules, delta)
            except Starved:
                # Done again with the smaller budget that multi-pattern rules have where it is scarce.
                self._state.scarce = self._state.left_out = True
                continue
            except (Interrupted, OutOfMemory) as error:
                self._journal.note_iteration(self._report(iteration + 1, None))
                memory = isinstance(error, OutOfMemory)
                reason = "memory" if memory else guard.reason or "interrupted"
            else:
                reason = self._state.stopped or None
            iteration += 1
            if progress is not None:
                progress(self._journal.log[-1])
            reason = self._follow(iteration, reason, guard)
            self._begin_count()
        return reason or "iterations"

    def extend(self) -> bool:
        """Allow an iteration beyond the limit where exploration dies out; return whether that is so.

        Up to a third as often again: images in blocks spread by one operator in an iteration, so deep
        networks need some more.
        """
        done = self.iteration - self._policy.offset
        if done >= 4 * self._options.iterations // 3 or len(self._journal.log) < 2:
            return False
        *before, last = self._journal.log[-4:]
        is_shrinking = last.matches < max(entry.matches for entry in before)
        if last.matches > last.e_nodes * (_FEWER_MATCHES if is_shrinking else _FEW_MATCHES):
            return False
        self._policy.more = done + 1 - self._options.iterations
        return True

    def _follow(self, iteration: int, reason: str | None, guard: Guard) -> str | None:
        """Do what follows an iteration; return the reason to stop, or None to continue."""
        if reason in (None, "saturated", "closed") and self._has_goal():
            return "goal"
        if reason is not None or iteration >= self._policy.last:
            return reason
        after = self._observer.after
        try:
            reason = None if after is None else after(iteration)
        except Interrupted:
            reason = None
        except OutOfMemory:
            reason = "memory"
        return reason or guard.reason

    def _has_goal(self) -> bool:
        until = self._observer.until
        try:
            return until is not None and until(self._egraph)
        except Interrupted:
            return False  # the next iteration reports why

    def _begin_count(self) -> None:
        """Count time and statements of the next iteration; it may be done twice."""
        self._iteration_started = time.perf_counter()
        self._statements_before = self._database.statements

    def _begin_iteration(self, iteration: int) -> frozenset[int]:
        """Return the rules that take part in an iteration."""
        state, policy = self._state, self._policy
        rules = policy.rules(iteration, state)
        # Counted where there are no multi-pattern rules, too: else they would be waited for without end.
        state.multi_done += policy.wants_multi(iteration, state)
        return rules

    def _note_iteration(self, iteration: int, rules: frozenset[int], delta: Delta) -> None:
        """Log what an iteration did, and whether it was the last."""
        state = self._state
        state.iteration = iteration
        state.quiet = delta.is_empty
        state.left_out |= not delta.multi_complete
        self._has_all &= not delta.rejected and not delta.filtered
        state.stopped = self._policy.reason_to_stop(delta, rules, state)
        self._journal.note_matches(iteration, delta.matches)
        self._journal.note_iteration(self._report(iteration, delta))
        write_down(self._subgraph, self._journal)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Do an iteration's work whole, or leave all as it was."""
        state, mark = replace(self._state), self._journal.mark()
        try:
            with self._subgraph.transaction():
                yield
        except (Interrupted, OutOfMemory, UnsoundRuleError, Starved) as error:
            if not isinstance(
                error, Starved
            ):  # its iteration is done again: an interrupt still holds
                self._database.resume()
            self._state = state
            self._journal.undo(mark)
            raise

    def _report(self, iteration: int, delta: Delta | None) -> IterationReport:
        """Return what an iteration did; None if it was undone."""
        return IterationReport(
            iteration,
            self._egraph.e_nodes,
            self._egraph.e_classes,
            delta.total_matches if delta else 0,
            delta.unions if delta else 0,
            delta.filtered if delta else 0,
            self._database.statements - self._statements_before,
            time.perf_counter() - self._iteration_started,
        )

    def finish(self, reason: str, subgraphs: tuple[SubgraphReport, ...] = ()) -> Exploration:
        """Write down what is not written yet, and why it ended; return how it went."""
        is_exhaustive = reason == "closed" and self._has_all
        reason = "saturated" if reason == "closed" else reason
        ended = end_exploration(
            self._subgraph, self._journal, reason, self._state.iteration, self._started
        )
        return replace(ended, subgraphs=subgraphs, is_exhaustive=is_exhaustive)
