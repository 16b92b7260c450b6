"""A step: match some rules, apply them, rebuild, filter cycles. All of it or nothing.

A step has no policy. The strategies above a step (``strategies``) decide which rules take part, how much
they may build, and whether another step follows.

Further rules for an explored e-graph are applied once each, in one more iteration. They lead nowhere but to
e-nodes that no rule reads: it makes no difference when they are applied,
and applied last, they keep nothing else from being found.

TENSAT's first cycle filter is kept for comparison (its section 5.2, "vanilla"). Before each application of
a multi-pattern rule the descendants of every class are recomputed, and the application is skipped if a
root is among the descendants of a variable's class. Quadratic, by design.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from relational_tensat.base.records import record
from relational_tensat.egraph.cycles import filter_cycles, reject_cyclic_applications
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.apply.application import FEWEST, ApplyReport, apply_all
from relational_tensat.explore.apply.direct import next_waiting_text, rooted_sql
from relational_tensat.explore.apply.targets import Candidates
from relational_tensat.explore.compile.compiled_rules import phase_rules
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.outcome import IterationReport, Journal, RuleStats, rule_stats
from relational_tensat.explore.subgraph import Subgraph, begin_subgraph, write_down
from relational_tensat.rules.model import Rule


def _apply_one_by_one(
    subgraph: Subgraph, candidates: Iterator[Candidates], iteration: int
) -> ApplyReport:
    """Carry out applications one at a time, each checked against all descendants.

    Args:
        candidates: of one search at most.
    """
    group = next(candidates, None)
    if group is None:
        return ApplyReport(unions=0, complete=True)
    database = subgraph.egraph.database
    roots = subgraph.rules.root_columns
    next_waiting = next_waiting_text(roots)
    is_descendant = rooted_sql("cycles/is_descendant", roots)
    database.run("apply/waiting")
    unions, rejected, complete = 0, 0, True
    for index in range(1, group.applications + 1):
        ((waiting,),) = database.execute(next_waiting, {"position": index}, "apply/next_waiting")
        if not waiting:
            continue  # two of its roots became one class in the meantime
        database.run("cycles/descendants")
        if database.execute(is_descendant, name="cycles/is_descendant")[0][0]:
            rejected += 1
            continue
        applied = apply_all(subgraph, [replace(group, applications=1)], iteration)
        unions += applied.unions
        complete &= applied.complete
    return ApplyReport(unions, complete, rejected)


#: After so many matches, the rows of a step are dropped: about 100 bytes for each.
_MANY_MATCHES = 100_000

#: E-nodes that an application of a multi-pattern rule builds, if others do not share them: at least so many
#: that few searches have to be resumed.
_LEAST_BUILT = 2


@record
class StepBudget:
    """The limits of a step.

    Attributes:
        e_nodes: the most e-nodes of the subgraph, at any moment.
        multi_e_nodes: the most that multi-pattern rules may leave; None for ``e_nodes``.
        whole_above: where they leave more than this, single-pattern rules must be applied whole: if the
            node budget does not suffice for that, the step is undone (``Starved``). None: never.
    """

    e_nodes: int
    multi_e_nodes: int | None = None
    whole_above: int | None = None


@record
class Delta:
    """The counts of a step.

    Attributes:
        matches: by rule, those that it worked on: new ones, and where rules of a step were last matched
            at different times, some of the others.
        rejected: applications that were not carried out, because they would have closed a cycle.
        built: e-nodes that were not there before. Some may have become equal to others since.
        entered: e-nodes of the universe, built ones included, that came into the subgraph; 0 where the
            subgraph has all e-nodes.
        unions: pairs of classes that were asked to be one, congruence included.
        filtered: e-nodes that the cycle filter took.
        multi_complete, single_complete: whether all matches of multi-pattern rules, and of single-pattern
            rules, were carried out (or rejected); else they are not found again until something in them
            is rewritten.
    """

    matches: Mapping[int, int]
    rejected: int
    built: int
    unions: int
    filtered: int
    multi_complete: bool
    single_complete: bool
    entered: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing was left out."""
        return self.multi_complete and self.single_complete

    @property
    def is_empty(self) -> bool:
        """Whether the subgraph is as it was before."""
        return not self.built and not self.unions and not self.entered

    @property
    def total_matches(self) -> int:
        """Matches of all rules."""
        return sum(self.matches.values())


class Starved(Exception):  # noqa: N818  # a control signal, not an error
    """Multi-pattern rules left the others too small a node budget: see ``StepBudget.whole_above``."""


def step(subgraph: Subgraph, rules: Collection[int], budget: StepBudget) -> Delta:
    """Match, apply, rebuild, filter cycles: one transaction, or a part of the caller's.

    Multi-pattern rules are matched and applied first, single-pattern rules then, on what is there by then.

    Args:
        rules: the ids of those that take part, of the subgraph's rules.

    Raises:
        Starved: the budget's ``whole_above``; nothing was done.
        Interrupted: someone interrupted the database (a limit, Ctrl-C); nothing was done.
        OutOfMemory: the database's memory limit is reached; nothing was done.
        UnsoundRuleError: a rule would unite classes of different types; nothing was done.
        UsageError: the rules of another subgraph are in force.
    """
    subgraph.check_rules()
    egraph, matcher, options = subgraph.egraph, subgraph.matcher, subgraph.options
    database, members, first_id = egraph.database, subgraph.members, egraph.next_id
    multi = subgraph.rules.multi_rules.intersection(rules)
    single = subgraph.rules.single_rules.intersection(rules)
    multi_complete = single_complete = True
    with subgraph.transaction():
        subgraph.steps += 1
        running = _Step(subgraph)
        if multi:
            limit = budget.e_nodes if budget.multi_e_nodes is None else budget.multi_e_nodes
            most = max((limit - subgraph.e_nodes) // _LEAST_BUILT, FEWEST)
            is_vanilla = options.cycle_filter == "vanilla"  # goes through all of them
            with database.stopwatch.phase("match"):
                found = matcher.multi(
                    subgraph.since(multi), sys.maxsize if is_vanilla else most, multi
                )
            subgraph.note_matched(multi)
            is_cut = matcher.truncated
            candidates = running.candidates(found, limit, has_rest=True)
            with database.stopwatch.phase("apply"):
                if is_vanilla:
                    applied = _apply_one_by_one(subgraph, candidates, subgraph.steps)
                else:
                    applied = apply_all(subgraph, candidates, subgraph.steps, _rejecting(subgraph))
            running.note_applied(applied)
            multi_complete = applied.complete and not is_cut
        if single:
            above = budget.whole_above
            running.must_be_whole = bool(multi) and above is not None and subgraph.e_nodes > above
            with database.stopwatch.phase("match"):
                found = matcher.single(subgraph.since(single), single)
            subgraph.note_matched(single)
            candidates = running.candidates(found, budget.e_nodes, has_rest=False)
            with database.stopwatch.phase("apply"):
                applied = apply_all(subgraph, candidates, subgraph.steps)
            running.note_applied(applied)
            single_complete = applied.complete
        filtered = 0
        if (running.unions or running.entered) and options.cycle_filter != "none":
            filtered = filter_cycles(database, 0 if members is None else members.subgraph)
        if sum(running.matches.values()) >= _MANY_MATCHES:
            database.script("explore/free")
        return Delta(
            matches=running.matches,
            rejected=running.rejected,
            built=egraph.next_id - first_id,
            unions=running.unions,
            filtered=filtered,
            multi_complete=multi_complete,
            single_complete=single_complete,
            entered=running.entered,
        )


class _Step:
    """The counts of a step so far.

    Attributes:
        must_be_whole: nothing may be left out: see ``StepBudget.whole_above``.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self._matcher = subgraph.matcher
        self._database = subgraph.egraph.database
        self.must_be_whole = False
        self.matches: dict[int, int] = {}
        self.unions = self.rejected = self.entered = 0

    def note_applied(self, applied: ApplyReport) -> None:
        """Add what applying did.

        Raises:
            Starved: something was left out, and must not be.
        """
        if self.must_be_whole and not applied.complete:
            raise Starved
        self.unions += applied.unions
        self.entered += applied.entered
        self.rejected += applied.rejected

    def candidates(
        self, applications: int, node_limit: int, *, has_rest: bool
    ) -> Iterator[Candidates]:
        """Yield the applications that were found, then those that ``Matcher.multi`` left to ask for."""
        while applications:
            rows = self._database.run("match/matches_by_rule")
            matches = {int(rule): int(count) for rule, count in rows}
            for rule, count in matches.items():
                self.matches[rule] = self.matches.get(rule, 0) + count
            bounds = self._matcher.instances.bounds(
                matches, node_limit, is_whole=self.must_be_whole
            )
            yield Candidates(applications, bounds, has_rest and self._matcher.has_rest)
            with self._database.stopwatch.phase("match"):
                applications = self._matcher.rest() if has_rest else 0


def _rejecting(subgraph: Subgraph) -> Callable[[Database], int]:
    """Return what keeps applications of multi-pattern rules out that would close cycles."""
    if subgraph.options.cycle_filter != "efficient":
        return lambda _: 0
    return partial(
        reject_cyclic_applications,
        leaves=subgraph.rules.leaf_columns,
        rules=phase_rules(subgraph.rules, multi=True),
        roots=subgraph.rules.root_columns,
    )


_NONE: Mapping[str, Collection[str]] = MappingProxyType({})


@record
class Further:
    """The work of further rules: the iteration, and each of them by name."""

    report: IterationReport
    rules: Mapping[str, RuleStats]


def apply_further(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    masks: Mapping[str, Collection[str]] = _NONE,
) -> Further:
    """Apply rules once, to all of an e-graph, and log it as an iteration.

    Args:
        egraph: explored by other rules.
        rules: whose targets no rule reads.
        options: the cycle filter; no limit holds.
        masks: by rule, the variables for which constants may be extreme.

    Raises:
        UnsoundRuleError: a rule would unite classes of different types; nothing was done.
        Interrupted, OutOfMemory: nothing was done.
    """
    database, started = egraph.database, time.perf_counter()
    statements = database.statements
    subgraph = begin_subgraph(egraph, rules, options)
    subgraph.matcher.allow_extremes(masks)
    journal = Journal()
    with subgraph.transaction():
        delta = step(subgraph, subgraph.rules.all_rules, StepBudget(sys.maxsize))
        report = IterationReport(
            subgraph.steps,
            egraph.e_nodes,
            egraph.e_classes,
            delta.total_matches,
            delta.unions,
            delta.filtered,
            database.statements - statements,
            time.perf_counter() - started,
        )
        journal.note_matches(subgraph.steps, delta.matches)
        journal.note_iteration(report)
        write_down(subgraph, journal, has_ended=True)
    return Further(report, rule_stats(database, min(rule.id for rule in subgraph.rules.rules)))
