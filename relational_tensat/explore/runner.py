"""Exploration: equality saturation in iterations of match, apply, rebuild, filter cycles.

An iteration has two phases, as TENSAT's (section 4): multi-pattern rules, in ``k_multi`` of the
iterations, then single-pattern rules. Each phase is one transaction, so that whatever ends the run
leaves the e-graph as the last complete phase left it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relational_tensat.egraph.cycles import filter_cycles, reject_cyclic_applications
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import Counters, EGraph
from relational_tensat.errors import UnsoundRuleError, UsageError, nearest
from relational_tensat.explore.applying import apply_all
from relational_tensat.explore.compile import CompiledRules
from relational_tensat.explore.limits import MULTI_SCHEDULES, Guard, Limits
from relational_tensat.explore.matching import Matcher
from relational_tensat.explore.vanilla import apply_one_by_one
from relational_tensat.rules.model import Rule

CYCLE_FILTERS = ("efficient", "vanilla", "none")


@dataclass(frozen=True, slots=True)
class RuleStats:
    """What a rule did: matches worked on, unions asked for, wall seconds of matching (shared)."""

    matches: int
    applied: int
    seconds: float


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Exploration:
    """How an exploration ended.

    Attributes:
        stop_reason: saturated, goal, iterations, nodes, time, memory or interrupted.
        iterations: iterations begun and not undone.
        rules: by name, every rule given.
        statements: SQL statements run in the iterations.
        seconds: wall seconds.
    """

    stop_reason: str
    iterations: int
    rules: dict[str, RuleStats]
    log: tuple[IterationReport, ...]
    statements: int
    seconds: float


def explore(
    egraph: EGraph,
    rules: Sequence[Rule],
    limits: Limits | None = None,
    *,
    cycle_filter: str = "efficient",
    semi_naive: bool = True,
    progress: Callable[[IterationReport], None] | None = None,
    until: Callable[[EGraph], bool] | None = None,
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
    runner = _Runner(egraph, rules, limits, cycle_filter, semi_naive)
    return runner.run(progress, until)


@dataclass
class _Tally:
    """What the phases of one iteration have done so far."""

    matches: int = 0
    unions: int = 0
    filtered: int = 0
    complete: bool = True


class _Runner:
    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        limits: Limits,
        cycle_filter: str,
        semi_naive: bool,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._limits = limits
        self._filter = cycle_filter
        self._semi_naive = semi_naive
        self._started = time.perf_counter()
        self._log: list[IterationReport] = []
        self._matches: list[tuple[int, int, int]] = []  # iteration, rule, matches
        self._since = {"single": 0, "multi": 0}
        self._multi_done = 0  # iterations with multi-pattern rules
        self._completed = 0  # the last iteration of which a phase was not undone
        self._quiet = False  # whether the last iteration added nothing
        self._cycles_possible = False  # whether there were unions since cycles were filtered
        self._left_out = False  # whether a limit kept multi-pattern matches from being applied
        self._database.begin()
        first_rule, first_instance = self._database.run("next_numbers")[0]
        self._first_rule = int(first_rule)
        compiled = CompiledRules(rules, self._first_rule)
        egraph.set_heads(compiled.heads)
        self._matcher = Matcher(egraph, compiled, int(first_instance))
        self._database.commit()

    def run(
        self,
        progress: Callable[[IterationReport], None] | None,
        until: Callable[[EGraph], bool] | None,
    ) -> Exploration:
        guard = Guard(self._database, self._limits.seconds)
        reason = None
        with guard.watching():
            for iteration in range(1, self._limits.iterations + 1):
                reason = self._iterate(iteration, guard)
                if progress is not None:
                    progress(self._log[-1])
                if reason in (None, "saturated") and self._is_reached(until):
                    reason = "goal"
                if reason is not None:
                    break
        self._database.resume()
        return self._finish(reason or "iterations")

    def _is_reached(self, until: Callable[[EGraph], bool] | None) -> bool:
        try:
            return until is not None and until(self._egraph)
        except Interrupted:
            return False  # the next iteration says why

    def _iterate(self, iteration: int, guard: Guard) -> str | None:
        """Run one iteration and log it; return the reason to stop, or None to go on."""
        started = time.perf_counter()
        statements = self._database.statements
        next_id = self._egraph.next_id
        tally = _Tally()
        stopped = None
        if self._wants_multi(iteration):
            self._multi_done += 1
            stopped = self._transaction("multi", iteration, tally, guard)
        if stopped is None:
            stopped = self._transaction("single", iteration, tally, guard)
        self._log.append(
            IterationReport(
                iteration,
                self._egraph.e_nodes,
                self._egraph.e_classes,
                tally.matches,
                tally.unions,
                tally.filtered,
                self._database.statements - statements,
                time.perf_counter() - started,
            )
        )
        if stopped is None and not tally.complete:
            stopped = "nodes"
        self._quiet = tally.unions == 0 and self._egraph.next_id == next_id
        if stopped is None and self._quiet and not self._wants_multi(iteration + 1):
            stopped = "nodes" if self._left_out else "saturated"
        return stopped

    def _wants_multi(self, iteration: int) -> bool:
        """Whether multi-pattern rules take part in an iteration."""
        if self._limits.multi_schedule == "first":
            return iteration <= self._limits.multi_iterations
        left = self._multi_done < self._limits.multi_iterations
        return left and (iteration == 1 or self._quiet)

    def _transaction(self, phase: str, iteration: int, tally: _Tally, guard: Guard) -> str | None:
        """Run a phase as one transaction; undone, return why it could not end."""
        counters, before, logged = self._egraph.counters(), replace(tally), len(self._matches)
        cycles_possible = self._cycles_possible
        try:
            self._database.begin()
            self._phase(phase, iteration, tally)
            self._database.commit()
        except Interrupted:
            reason = guard.reason or "interrupted"
        except OutOfMemory:
            reason = "memory"
        except UnsoundRuleError:
            self._undo(counters)
            raise
        else:
            self._completed = iteration
            return None
        self._undo(counters)
        self._cycles_possible = cycles_possible
        del self._matches[logged:]
        vars(tally).update(vars(before))
        return reason

    def _undo(self, counters: Counters) -> None:
        self._database.resume()
        self._database.rollback()
        self._egraph.restore(counters)

    def _phase(self, phase: str, iteration: int, tally: _Tally) -> None:
        since = self._since[phase] if self._semi_naive else 0
        find = self._matcher.multi if phase == "multi" else self._matcher.single
        applications = find(since)
        self._egraph.clock += 1
        self._since[phase] = self._egraph.clock
        self._left_out |= phase == "multi" and self._matcher.truncated
        if applications:
            self._apply(phase, applications, iteration, tally)
        if phase == "single" and self._cycles_possible:
            tally.filtered += filter_cycles(self._database)
            self._cycles_possible = False

    def _apply(self, phase: str, applications: int, iteration: int, tally: _Tally) -> None:
        matches = {int(r): int(n) for r, n in self._database.run("matches_by_rule")}
        tally.matches += applications
        self._matches += [(iteration, rule, count) for rule, count in matches.items()]
        if phase == "multi" and self._filter == "efficient":
            reject_cyclic_applications(self._database)
        bounds = self._matcher.instances.bounds(matches, self._room(phase))
        if phase == "multi" and self._filter == "vanilla":
            applied = apply_one_by_one(self._egraph, applications, iteration, bounds)
        else:
            applied = apply_all(self._egraph, applications, iteration, bounds)
        tally.unions += applied.unions
        if phase == "multi":
            self._left_out |= not applied.complete
        else:
            tally.complete &= applied.complete
        self._cycles_possible |= applied.unions > 0 and self._filter != "none"

    def _room(self, phase: str) -> int:
        """Return the most e-nodes after a phase: multi-pattern rules leave room for the others."""
        limit = self._limits.e_nodes
        return (self._egraph.e_nodes + 3 * limit) // 4 if phase == "multi" else limit

    def _filter_at_last(self) -> None:
        """Filter the cycles of an iteration that ended between its phases."""
        if not self._cycles_possible:
            return
        self._database.begin()
        try:
            filter_cycles(self._database)
            self._database.commit()
        except OutOfMemory:
            self._database.rollback()  # the ILP keeps its answer acyclic in any case

    def _finish(self, reason: str) -> Exploration:
        self._filter_at_last()
        self._egraph.catalogue.flush(self._database)
        self._matcher.log_instances()
        self._database.append("match_log", self._matches)
        seconds = self._matcher.rule_seconds
        rules = {
            str(name): RuleStats(int(matches), int(applied), seconds.get(int(number), 0.0))
            for number, name, matches, applied in self._database.run(
                "rule_stats", first=self._first_rule
            )
        }
        self._database.insert(
            "rule_time", {"rule": list(seconds), "seconds": list(seconds.values())}
        )
        log = self._log
        self._database.insert(
            "iteration_log",
            {name: [getattr(entry, name) for entry in log] for name in _LOG_COLUMNS},
        )
        return Exploration(
            reason,
            self._completed,
            rules,
            tuple(log),
            sum(entry.statements for entry in log),
            time.perf_counter() - self._started,
        )


_LOG_COLUMNS = tuple(IterationReport.__dataclass_fields__)
