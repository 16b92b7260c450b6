"""Exploration: equality saturation in iterations of match, apply, rebuild, filter cycles.

An iteration has two phases, as TENSAT's (section 4): multi-pattern rules, in ``k_multi`` of the
iterations, then single-pattern rules. Each phase is one transaction, so that whatever ends the run
leaves the e-graph as the last complete phase left it. In a file, the transaction also writes down where
the exploration is (``checkpoint``), so that another process can go on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from relational_tensat.egraph.cycles import filter_cycles, reject_cyclic_applications
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.errors import UnsoundRuleError, UsageError, nearest
from relational_tensat.explore.applying import apply_all
from relational_tensat.explore.checkpoint import Checkpoint, write_checkpoint
from relational_tensat.explore.compile import CompiledRules
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.limits import MULTI_SCHEDULES, Guard, Limits
from relational_tensat.explore.matching import Matcher
from relational_tensat.explore.outcome import (
    Exploration,
    IterationReport,
    read_log,
    rule_stats,
)
from relational_tensat.explore.vanilla import apply_one_by_one
from relational_tensat.rules.model import Rule

CYCLE_FILTERS = ("efficient", "vanilla", "none")


def explore(
    egraph: EGraph,
    rules: Sequence[Rule],
    limits: Limits | None = None,
    *,
    cycle_filter: str = "efficient",
    semi_naive: bool = True,
    progress: Callable[[IterationReport], None] | None = None,
    until: Callable[[EGraph], bool] | None = None,
    after: Callable[[int], str | None] | None = None,
    start: Checkpoint | None = None,
) -> Exploration:
    """Grow an e-graph by rules until it is saturated, has what is looked for, or a limit is reached.

    Args:
        cycle_filter: ``efficient`` (height labels, then a search where they are violated), ``vanilla``
            (TENSAT's first method: all descendants anew before each multi-pattern application) or
            ``none``.
        semi_naive: work only on matches that involve a row written since the last search; False
            repeats the others, for comparison. The e-graph is the same.
        progress: called after every iteration.
        until: asked after every iteration whether the e-graph has what is looked for (the stop reason
            ``goal``).
        after: called with its number after every iteration that another one follows; what it returns
            is a reason to stop there. Its time counts as exploration's.
        start: where another process left an exploration of this e-graph by these rules; it goes on
            from there, all but the time limit as if nothing had happened. ``after`` is then called
            for the last complete iteration, too.

    Raises:
        UsageError: there is no such cycle filter or schedule.
        UnsoundRuleError: a rule would unite classes of different types.
    """
    if cycle_filter not in CYCLE_FILTERS:
        known = ", ".join(CYCLE_FILTERS)
        hint = nearest(cycle_filter, CYCLE_FILTERS)
        raise UsageError(f"cycle filter {cycle_filter!r}, expected one of {known}{hint}")
    limits = limits or Limits()
    if limits.multi_schedule not in MULTI_SCHEDULES:
        hint = nearest(limits.multi_schedule, MULTI_SCHEDULES)
        raise UsageError(
            f"multi schedule {limits.multi_schedule!r}, expected {' or '.join(MULTI_SCHEDULES)}{hint}"
        )
    runner = _Runner(egraph, rules, limits, cycle_filter, semi_naive, start)
    return runner.run(progress, until, after)


class _Runner:
    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        limits: Limits,
        cycle_filter: str,
        semi_naive: bool,
        start: Checkpoint | None,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._limits = limits
        self._filter = cycle_filter
        self._semi_naive = semi_naive
        self._started = time.perf_counter()
        self._iteration_started, self._statements_before = self._started, 0
        self._journal = Journal([])
        if start is None:
            self._begin(rules)
        else:
            self._go_on(rules, start)

    def _begin(self, rules: Sequence[Rule]) -> None:
        """Put the rules into the tables."""
        self._database.begin()
        if self._database.is_file:  # of an exploration before this one
            self._database.script("forget_exploration")
        first_rule, first_instance = self._database.run("next_numbers")[0]
        self._state = Checkpoint(int(first_rule))
        compiled = CompiledRules(rules, self._state.first_rule)
        self._egraph.set_heads(compiled.heads)
        self._matcher = Matcher(self._egraph, compiled, int(first_instance))
        self._write_down()
        self._database.commit()

    def _go_on(self, rules: Sequence[Rule], start: Checkpoint) -> None:
        """Take up what another process left in the tables."""
        self._state = replace(start)
        self._journal = Journal(read_log(self._database))
        compiled = CompiledRules(rules, start.first_rule)
        self._egraph.catalogue.rehead(compiled.heads)
        _, first_instance = self._database.run("next_numbers")[0]
        self._matcher = Matcher(self._egraph, compiled, int(first_instance), restored=True)
        numbered = enumerate(start.rule_seconds, start=start.first_rule)
        self._matcher.rule_seconds = {rule: seconds for rule, seconds in numbered if seconds}
        self._iteration_started -= start.seconds
        self._statements_before = self._database.statements - start.statements

    def run(
        self,
        progress: Callable[[IterationReport], None] | None,
        until: Callable[[EGraph], bool] | None,
        after: Callable[[int], str | None] | None,
    ) -> Exploration:
        guard = Guard(self._database, self._limits.seconds)
        done = self._state.iteration - (not self._state.complete)
        reason = None
        with guard.watching():
            if done and self._state.complete:
                reason = self._follow(done, self._state.stopped or None, guard, until, after)
            while reason is None and done < self._limits.iterations:
                done += 1
                reason = self._iterate(done, guard)
                if progress is not None:
                    progress(self._journal.log[-1])
                reason = self._follow(done, reason, guard, until, after)
        self._database.resume()
        return self._finish(reason or "iterations")

    def _follow(
        self,
        iteration: int,
        reason: str | None,
        guard: Guard,
        until: Callable[[EGraph], bool] | None,
        after: Callable[[int], str | None] | None,
    ) -> str | None:
        """Do what follows an iteration; return the reason to stop, or None to go on."""
        if reason in (None, "saturated") and self._is_reached(until):
            return "goal"
        if reason is not None or iteration >= self._limits.iterations:
            return reason
        try:
            reason = None if after is None else after(iteration)
        except Interrupted:
            reason = None
        except OutOfMemory:
            reason = "memory"
        return reason or guard.reason

    def _is_reached(self, until: Callable[[EGraph], bool] | None) -> bool:
        try:
            return until is not None and until(self._egraph)
        except Interrupted:
            return False  # the next iteration says why

    def _iterate(self, iteration: int, guard: Guard) -> str | None:
        """Run one iteration and log it; return the reason to stop, or None to go on."""
        stopped = None
        if self._state.complete:  # else its first phase was done before the process was killed
            self._iteration_started = time.perf_counter()
            self._statements_before = self._database.statements
            self._state.begin_iteration(self._egraph.next_id)
            if self._wants_multi(iteration):
                self._state.multi_done += 1
                stopped = self._transaction("multi", iteration, guard)
        if stopped is None:
            stopped = self._transaction("single", iteration, guard)
        if stopped is None:
            return self._state.stopped or None
        self._journal.note_iteration(self._report(iteration))
        return stopped

    def _wants_multi(self, iteration: int) -> bool:
        """Whether multi-pattern rules take part in an iteration."""
        if self._limits.multi_schedule == "first":
            return iteration <= self._limits.multi_iterations
        left = self._state.multi_done < self._limits.multi_iterations
        return left and (iteration == 1 or self._state.quiet)

    def _transaction(self, phase: str, iteration: int, guard: Guard) -> str | None:
        """Run a phase as one transaction; undone, return why it could not end."""
        counters, written = self._egraph.counters(), self._egraph.catalogue.written
        state, mark = replace(self._state), self._journal.mark()
        try:
            self._database.begin()
            self._phase(phase, iteration)
            self._end_phase(phase, iteration)
            self._database.commit()
        except (Interrupted, OutOfMemory, UnsoundRuleError) as error:
            self._database.resume()
            self._database.rollback()
            self._egraph.restore(counters)
            self._egraph.catalogue.written = written
            self._state = state
            self._journal.undo(mark)
            if isinstance(error, UnsoundRuleError):
                raise
            return "memory" if isinstance(error, OutOfMemory) else guard.reason or "interrupted"
        return None

    def _phase(self, phase: str, iteration: int) -> None:
        state = self._state
        since = state.since(phase) if self._semi_naive else 0
        find = self._matcher.multi if phase == "multi" else self._matcher.single
        with self._database.stopwatch.phase("match"):
            applications = find(since)
        self._egraph.clock += 1
        state.matched(phase, self._egraph.clock)
        state.left_out |= phase == "multi" and self._matcher.truncated
        if applications:
            with self._database.stopwatch.phase("apply"):
                self._apply(phase, applications, iteration)
        if phase == "single" and state.cycles_possible:
            state.filtered += filter_cycles(self._database)
            state.cycles_possible = False

    def _apply(self, phase: str, applications: int, iteration: int) -> None:
        state = self._state
        matches = {int(r): int(n) for r, n in self._database.run("matches_by_rule")}
        state.matches += applications
        self._journal.note_matches(iteration, matches)
        if phase == "multi" and self._filter == "efficient":
            leaves = self._matcher.compiled.leaf_columns
            reject_cyclic_applications(self._database, leaves)
        bounds = self._matcher.instances.bounds(matches, self._room(phase))
        if phase == "multi" and self._filter == "vanilla":
            applied = apply_one_by_one(self._egraph, applications, iteration, bounds)
        else:
            applied = apply_all(self._egraph, applications, iteration, bounds)
        state.unions += applied.unions
        if phase == "multi":
            state.left_out |= not applied.complete
        else:
            state.carried_out &= applied.complete
        state.cycles_possible |= applied.unions > 0 and self._filter != "none"

    def _room(self, phase: str) -> int:
        """Return the most e-nodes after a phase: multi-pattern rules leave room for the others."""
        limit = self._limits.e_nodes
        return (self._egraph.e_nodes + 3 * limit) // 4 if phase == "multi" else limit

    def _end_phase(self, phase: str, iteration: int) -> None:
        """Note where the exploration is."""
        state = self._state
        state.iteration, state.complete = iteration, phase == "single"
        if state.complete:
            state.quiet = state.unions == 0 and self._egraph.next_id == state.begun_at
            state.stopped = self._reason_to_stop()
            self._journal.note_iteration(self._report(iteration))
        self._write_down()

    def _reason_to_stop(self) -> str:
        """Return why exploration ends after a complete iteration; nothing if it goes on."""
        state = self._state
        if not state.carried_out:
            return "nodes"
        if not state.quiet or self._wants_multi(state.iteration + 1):
            return ""
        return "nodes" if state.left_out else "saturated"

    def _report(self, iteration: int) -> IterationReport:
        """Return what the running iteration has done so far."""
        return IterationReport(
            iteration,
            self._egraph.e_nodes,
            self._egraph.e_classes,
            self._state.matches,
            self._state.unions,
            self._state.filtered,
            self._database.statements - self._statements_before,
            time.perf_counter() - self._iteration_started,
        )

    def _write_down(self) -> None:
        """Write what another process would need to go on; in memory, no other process could."""
        if not self._database.is_file:
            return
        state, seconds = self._state, self._matcher.rule_seconds
        rules = self._matcher.compiled.rules
        state.rule_seconds = [seconds.get(rule.number, 0.0) for rule in rules]
        state.statements = self._database.statements - self._statements_before
        state.seconds = time.perf_counter() - self._iteration_started
        self._egraph.catalogue.flush(self._database)
        self._journal.write(self._database)
        write_checkpoint(self._egraph, state)

    def _filter_at_last(self) -> None:
        """Filter the cycles of an iteration that ended between its phases."""
        if not self._state.cycles_possible:
            return
        self._database.begin()
        try:
            filter_cycles(self._database)
            self._database.commit()
        except OutOfMemory:
            self._database.rollback()  # the ILP keeps its answer acyclic in any case

    def _finish(self, reason: str) -> Exploration:
        self._filter_at_last()
        database, journal = self._database, self._journal
        seconds = self._matcher.rule_seconds
        database.begin()
        self._egraph.catalogue.flush(database)
        self._matcher.log_instances()
        journal.write(database)
        database.insert("rule_time", {"rule": list(seconds), "seconds": list(seconds.values())})
        self._egraph.set_stop_reason(reason)
        if database.is_file:
            self._matcher.instances.drop_tables()
        database.commit()
        return Exploration(
            reason,
            self._state.iteration,
            rule_stats(database, self._state.first_rule),
            tuple(journal.log),
            sum(entry.statements for entry in journal.log),
            time.perf_counter() - self._started,
        )
