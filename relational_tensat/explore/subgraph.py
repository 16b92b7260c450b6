"""A subgraph: an e-graph or a part of it, the state for its steps by rules, and the records at its end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from relational_tensat.base.errors import UsageError
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.match.matcher import Matcher
from relational_tensat.explore.members import Members
from relational_tensat.explore.outcome import Exploration, Journal, rule_stats
from relational_tensat.rules.model import Rule


class Subgraph:
    """An e-graph, or some e-nodes of one, that rules are applied to, and how far each of them has been.

    Attributes:
        egraph: its tables; temporary tables that a step works with are its database connection's.
        rules: by id; a step takes any of these ids.
        matcher: finds applications.
        options: how they are applied: by which cycle filter, and whether what is old is matched again.
        steps: how many there were, in all explorations that are logged; e-nodes and unions are stored with
            the index of their step.
        members: the e-nodes that it has, where the e-graph is a universe of several subgraphs; None: all.
    """

    def __init__(
        self,
        egraph: EGraph,
        rules: CompiledRules,
        matcher: Matcher,
        options: ExplorationOptions,
    ) -> None:
        self.egraph = egraph
        self.rules = rules
        self.matcher = matcher
        self.options = options
        self.steps = 0
        self.members: Members | None = None
        #: By rule: the clock when it was last matched.
        self._matched: dict[int, int] = {}

    @property
    def e_nodes(self) -> int:
        """How many e-nodes it has."""
        return self.egraph.e_nodes if self.members is None else self.members.size

    def begin_members(self, members: Members) -> None:
        """Let the subgraph have some e-nodes of its universe; no rule has been matched on them."""
        self.matcher.forget_edges()
        self.members = members
        self._matched.clear()

    def end_members(self) -> None:
        """Let the subgraph be its whole universe from now on; no rule has been matched on that."""
        self.members = None
        self.matcher.forget_edges()
        self.matcher.order = None
        self._matched.clear()

    def since(self, rules: Iterable[int]) -> int:
        """Return the clock up to which all of some rules have been matched; 0 where one never was."""
        return min((self._matched.get(rule, 0) for rule in rules), default=0)

    def note_matched(self, rules: Iterable[int]) -> None:
        """Note that rules have been matched on all rows so far: others have a later stamp."""
        self.egraph.clock += 1
        self._matched.update(dict.fromkeys(rules, self.egraph.clock))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do what is inside all or not at all; see ``EGraph.transaction``."""
        matched, steps, members = dict(self._matched), self.steps, self.members
        size = None if members is None else members.state()
        is_done = False
        try:
            with self.egraph.transaction():
                yield
            is_done = True
        finally:
            if not is_done:
                self._matched, self.steps, self.members = matched, steps, members
                if members is not None and size is not None:
                    members.restore(size)

    def flush(self) -> None:
        """Write the signatures that steps have made into the tables, where people and views look for them.

        A strategy does so when it ends; steps know them without.
        """
        self.egraph.catalogue.flush(self.egraph.database)

    def check_rules(self) -> None:
        """Check that the heads of this subgraph's rules are those that the catalogue gives to e-nodes.

        Raises:
            UsageError: a subgraph with other rules has been begun in this e-graph since.
        """
        if self.egraph.catalogue.head_of is not self.rules.heads:
            raise UsageError(
                "a subgraph was begun with other rules in this e-graph, expected steps of the last one"
            )


def begin_subgraph(
    egraph: EGraph, rules: Sequence[Rule], options: ExplorationOptions | None = None
) -> Subgraph:
    """Return a subgraph whose rules have not been matched yet.

    Args:
        options: how they are applied; their limits are for the code that steps the subgraph.
    """
    with egraph.transaction():
        first_rule, first_instance, last_step = egraph.database.run("egraph/next_ids")[0]
        compiled = CompiledRules(rules, int(first_rule))
        egraph.set_heads(compiled.heads)
        matcher = Matcher(egraph, compiled, int(first_instance))
        matcher.create_tables()
    subgraph = Subgraph(egraph, compiled, matcher, options or ExplorationOptions())
    subgraph.steps = int(last_step)
    return subgraph


def end_exploration(
    subgraph: Subgraph, journal: Journal, reason: str, iterations: int, started_s: float
) -> Exploration:
    """Write what is not written yet, and why exploration ended; return how it went.

    Args:
        started_s: when it began, by ``time.perf_counter``.
    """
    egraph = subgraph.egraph
    with egraph.transaction():
        write_down(subgraph, journal, has_ended=True)
        egraph.set_stop_reason(reason)
    return Exploration(
        reason,
        iterations,
        rule_stats(egraph.database, subgraph.rules.first),
        tuple(journal.log),
        sum(entry.statements for entry in journal.log),
        time.perf_counter() - started_s,
    )


def write_down(subgraph: Subgraph, journal: Journal, *, has_ended: bool = False) -> None:
    """Write what steps know without, in the caller's transaction: signatures, instances that unions name,
    iterations. A file has it after every transaction, so that a killed process leaves whole tables; tables
    in memory have it at the end.

    Args:
        has_ended: the seconds of rules are written, too.
    """
    database, matcher = subgraph.egraph.database, subgraph.matcher
    if not (has_ended or database.is_file):
        return
    subgraph.egraph.catalogue.flush(database)
    matcher.log_instances()
    journal.write(database)
    if has_ended:
        seconds = matcher.rule_seconds
        database.insert("rule_time", {"rule": list(seconds), "seconds": list(seconds.values())})
