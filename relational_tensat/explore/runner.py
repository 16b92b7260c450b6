"""Exploration: equality saturation in iterations of match, apply, rebuild, filter cycles.

An iteration has two phases, as TENSAT's (section 4): multi-pattern rules, in ``k_multi`` of the
iterations, then single-pattern rules. An iteration is one transaction, so that whatever ends the run
leaves the e-graph as the last complete iteration left it. In a file, the transaction also writes down
where the exploration is (``checkpoint``), so that another process can go on from there.

Multi-pattern rules pay only with what single-pattern rules then make of it. Where the node limit keeps
these from it, the iteration is undone, and done again with less room for multi-pattern rules.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from relational_tensat.base.errors import UnsoundRuleError
from relational_tensat.base.watch import Guard, Watch
from relational_tensat.egraph.cycles import filter_cycles, reject_cyclic_applications
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.apply.applying import FEWEST, Batch, apply_all
from relational_tensat.explore.apply.vanilla import apply_one_by_one
from relational_tensat.explore.checkpoint import Checkpoint, Tally, write_checkpoint
from relational_tensat.explore.compile.compiled import CompiledRules
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.limits import multi_room, scarce_room
from relational_tensat.explore.match.matching import Matcher
from relational_tensat.explore.outcome import Exploration, IterationReport, read_log, rule_stats
from relational_tensat.rules.model import Rule

#: How many e-nodes an application of a multi-pattern rule builds, as far as others do not share them: at
#: least, so that few searches have to be taken up again.
_LEAST_BUILT = 2


def explore(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions | None = None,
    *,
    progress: Callable[[IterationReport], None] | None = None,
    until: Callable[[EGraph], bool] | None = None,
    after: Callable[[int], str | None] | None = None,
    start: Checkpoint | None = None,
    watch: Watch | None = None,
) -> Exploration:
    """Grow an e-graph by rules until it is saturated, has what is looked for, or a limit is reached.

    Args:
        options: the limits, and how it goes on until then; ``blocks`` is for ``explore_blocks``.
        progress: called after every iteration.
        until: asked after every iteration whether the e-graph has what is looked for (the stop reason
            ``goal``).
        after: called with its number after every iteration that another one follows; what it returns
            is a reason to stop there. Its time counts as exploration's.
        start: where another process left an exploration of this e-graph by these rules; it goes on
            from there, all but the time limit as if nothing had happened. ``after`` is then called
            for the last complete iteration, too.
        watch: the run's. Ctrl-C ends the exploration, and nothing else of the run.

    Raises:
        UnsoundRuleError: a rule would unite classes of different types.
    """
    runner = _Runner(egraph, rules, options or ExplorationOptions(), start, watch or Watch())
    return runner.run(progress, until, after)


class _Starved(Exception):  # noqa: N818  # a control signal, not an error
    """Multi-pattern rules left the others too little room, and need not have."""


class _Runner:
    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        options: ExplorationOptions,
        start: Checkpoint | None,
        watch: Watch,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._options = options
        self._watch = watch
        self._started = time.perf_counter()
        self._iteration_started, self._statements_before = self._started, 0
        self._tally = Tally()
        self._journal = Journal([])
        if start is None:
            self._begin(rules)
        else:
            self._go_on(rules, start)

    def _begin(self, rules: Sequence[Rule]) -> None:
        """Put the rules into the tables."""
        self._database.begin()
        if self._database.is_file:  # of an exploration before this one
            self._database.script("explore/forget_exploration")
        first_rule, first_instance = self._database.run("egraph/next_ids")[0]
        self._state = Checkpoint(int(first_rule), original=self._egraph.e_nodes)
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
        self._egraph.resume_heads(compiled.heads)
        _, first_instance = self._database.run("egraph/next_ids")[0]
        self._matcher = Matcher(self._egraph, compiled, int(first_instance), restored=True)
        numbered = enumerate(start.rule_seconds, start=start.first_rule)
        self._matcher.rule_seconds = {rule: seconds for rule, seconds in numbered if seconds}

    def run(
        self,
        progress: Callable[[IterationReport], None] | None,
        until: Callable[[EGraph], bool] | None,
        after: Callable[[int], str | None] | None,
    ) -> Exploration:
        guard = self._watch.guard(self._database.interrupt, self._options.time_limit_s)
        done = self._state.iteration
        reason = None
        with guard.watching():
            if done:
                reason = self._follow(done, self._state.stopped or None, guard, until, after)
            while reason is None and done < self._options.iterations:
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
        if reason is not None or iteration >= self._options.iterations:
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
        self._iteration_started = time.perf_counter()
        self._statements_before = self._database.statements
        while True:
            try:
                with self._transaction():
                    self._work(iteration)
            except _Starved:
                self._state.scarce = self._state.left_out = True
            except (Interrupted, OutOfMemory) as error:
                self._tally = Tally()
                self._journal.note_iteration(self._report(iteration))
                memory = isinstance(error, OutOfMemory)
                return "memory" if memory else guard.reason or "interrupted"
            else:
                return self._state.stopped or None

    def _wants_multi(self, iteration: int) -> bool:
        """Whether multi-pattern rules take part in an iteration."""
        if self._state.scarce and self._room("multi") <= self._egraph.e_nodes:
            return False
        if self._options.multi_schedule == "first":
            return iteration <= self._options.multi_iterations
        left = self._state.multi_done < self._options.multi_iterations
        return left and (iteration == 1 or self._state.quiet)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Do an iteration's work whole, or leave all as it was."""
        state, mark = replace(self._state), self._journal.mark()
        try:
            with self._egraph.transaction():
                yield
        except (Interrupted, OutOfMemory, UnsoundRuleError, _Starved) as error:
            if not isinstance(error, _Starved):  # its iteration goes on: an interrupt still holds
                self._database.resume()
            self._state = state
            self._journal.undo(mark)
            raise

    def _work(self, iteration: int) -> None:
        """Do the phases of an iteration, and note where the exploration is then.

        Raises:
            _Starved: the node limit kept single-pattern rules from what multi-pattern rules had made,
                and these had more than their room where it is scarce.
        """
        state, begun_at = self._state, self._egraph.next_id
        enough = max(scarce_room(state.original, self._options.node_limit), self._egraph.e_nodes)
        self._tally = tally = Tally()
        if self._wants_multi(iteration):
            state.multi_done += 1
            self._phase("multi", iteration)
            tally.crowded = self._egraph.e_nodes > enough and not state.scarce
        self._phase("single", iteration)
        state.iteration = iteration
        state.quiet = tally.unions == 0 and self._egraph.next_id == begun_at
        state.stopped = self._reason_to_stop()
        self._journal.note_iteration(self._report(iteration))
        self._write_down()

    def _phase(self, phase: str, iteration: int) -> None:
        state, tally = self._state, self._tally
        since = state.since(phase) if self._options.semi_naive else 0
        with self._database.stopwatch.phase("match"):
            if phase == "multi":
                applications = self._matcher.multi(since, self._most_at_first())
            else:
                applications = self._matcher.single(since)
        self._egraph.clock += 1
        state.matched(phase, self._egraph.clock)
        state.left_out |= phase == "multi" and self._matcher.truncated
        if applications:
            with self._database.stopwatch.phase("apply"):
                self._apply(phase, self._batches(phase, applications, iteration), iteration)
        if phase == "single" and tally.cycles_possible:
            tally.filtered = filter_cycles(self._database)

    def _most_at_first(self) -> int:
        """Return how many applications of one multi-pattern rule may be wanted at first."""
        if self._options.cycle_filter == "vanilla":  # goes through all of them
            return sys.maxsize
        room = self._room("multi") - self._egraph.e_nodes
        return max(room // _LEAST_BUILT, FEWEST)

    def _batches(self, phase: str, applications: int, iteration: int) -> Iterator[Batch]:
        """Yield the applications that were found, then those that ``Matcher.multi`` left to ask for."""
        tally, room = self._tally, self._room(phase)
        while applications:
            matches = {int(r): int(n) for r, n in self._database.run("match/matches_by_rule")}
            tally.matches += applications
            self._journal.note_matches(iteration, matches)
            may_starve = phase == "single" and tally.crowded
            bounds = self._matcher.instances.bounds(matches, room, is_whole=may_starve)
            yield Batch(applications, bounds)
            with self._database.stopwatch.phase("match"):
                applications = self._matcher.rest() if phase == "multi" else 0

    def _apply(self, phase: str, batches: Iterator[Batch], iteration: int) -> None:
        tally = self._tally
        if phase == "multi" and self._options.cycle_filter == "vanilla":
            applied = apply_one_by_one(self._egraph, next(batches), iteration)
        elif phase == "multi" and self._options.cycle_filter == "efficient":
            leaves = self._matcher.compiled.leaf_columns
            reject = partial(reject_cyclic_applications, leaves=leaves)
            applied = apply_all(self._egraph, batches, iteration, reject)
        else:
            applied = apply_all(self._egraph, batches, iteration)
        if phase == "single" and tally.crowded and not applied.complete:
            raise _Starved
        tally.unions += applied.unions
        if phase == "multi":
            self._state.left_out |= not applied.complete
        else:
            tally.carried_out = applied.complete
        tally.cycles_possible |= applied.unions > 0 and self._options.cycle_filter != "none"

    def _room(self, phase: str) -> int:
        """Return the most e-nodes after a phase: multi-pattern rules leave room for the others."""
        limit = self._options.node_limit
        if phase == "single":
            return limit
        if self._state.scarce:
            return scarce_room(self._state.original, limit)
        return multi_room(self._egraph.e_nodes, limit)

    def _reason_to_stop(self) -> str:
        """Return why exploration ends after a complete iteration; nothing if it goes on."""
        state = self._state
        if not self._tally.carried_out:
            return "nodes"
        if not state.quiet or self._wants_multi(state.iteration + 1):
            return ""
        return "nodes" if state.left_out else "saturated"

    def _report(self, iteration: int) -> IterationReport:
        """Return what the running iteration has done so far."""
        tally = self._tally
        return IterationReport(
            iteration,
            self._egraph.e_nodes,
            self._egraph.e_classes,
            tally.matches,
            tally.unions,
            tally.filtered,
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
        self._egraph.catalogue.flush(self._database)
        self._journal.write(self._database)
        write_checkpoint(self._egraph, state)

    def _finish(self, reason: str) -> Exploration:
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
