"""Why a rule did not change a graph: how far its pattern got, and what rejected it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import unknown
from relational_tensat.base.resources import sql
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explain.swaps import Swaps
from relational_tensat.explain.why_not.checks import judge
from relational_tensat.explain.why_not.outcome import STATUSES, Outcome, Outcomes
from relational_tensat.explain.why_not.source import Step
from relational_tensat.explain.why_not.steps import Search
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.text import written_rule


@dataclass(frozen=True, slots=True)
class Trace:
    """One search for a rule's pattern.

    Attributes:
        at: which source was looked for at the tensor in question, from 1; 0 where none was named.
        steps: in order, up to the first that left nothing.
        matches: of all sources, before any was checked.
        is_cut: whether only a part of them was checked, as many as exploration looks at.
        outcomes: of the matches that passed every check, best first.
    """

    at: int
    steps: tuple[Step, ...]
    matches: int
    is_cut: bool
    outcomes: tuple[Outcome, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many matches that passed have which status; see ``Outcome``."""
        counts = Counter(outcome.status for outcome in self.outcomes)
        return {status: counts[status] for status in STATUSES if counts[status]}


@dataclass(frozen=True, slots=True)
class Work:
    """What a run did with a rule in one iteration: matches worked on, e-nodes made."""

    iteration: int
    matches: int
    e_nodes: int


@dataclass(frozen=True, slots=True)
class WhyNot:
    """All that is known of a rule in a finished run.

    Attributes:
        in_run: whether the run had just this rule; if not, it is checked on what the run left.
        tensor: where it was looked for; "" for everywhere.
        work: what the run did with it, by iteration.
        traces: the search; one per source that may stand at ``tensor``.
        result_us: modelled cost of the extracted graph; what ``Outcome.cost_us`` is compared with.
    """

    rule: Rule
    in_run: bool
    tensor: str
    work: tuple[Work, ...]
    traces: tuple[Trace, ...]
    result_us: float

    def to_json(self) -> dict[str, Any]:
        """Return all of it as one object."""
        rule = self.rule
        return {
            "rule": rule.name,
            "law": rule.law,
            "place": f"{rule.file}:{rule.line}" if rule.file else "",
            "in_run": self.in_run,
            "tensor": self.tensor or None,
            "work": [asdict(work) for work in self.work],
            "traces": [{**asdict(trace), "counts": trace.counts} for trace in self.traces],
            "result_us": self.result_us,
        }


def why_not(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    tensor: str = "",
    rules: Sequence[Rule] | None = None,
) -> list[WhyNot]:
    """Report how far a rule got in a finished run.

    Args:
        connection: to the database of the run.
        name: of a rule; ``NAME`` also means every ``NAME[…]``.
        tensor: a value of the original graph: only matches that would replace it.
        rules: the rules that ``name`` may mean; if None, the run's own and then those that ship.

    Returns:
        One answer per rule that is meant.

    Raises:
        InputError: the database was not written by a run.
        UsageError: there is no such rule, or no such tensor.
    """
    return Funnels(StoredEGraph(connection)).why_not(name, tensor, rules)


class Funnels:
    """Reports how far rules got in one run; what all of them need is read once.

    Attributes:
        swaps: what the result would cost if other e-nodes were chosen.
    """

    def __init__(self, stored: StoredEGraph) -> None:
        self._stored = stored
        self.swaps = Swaps(stored)
        rows = stored.connection.execute("SELECT text, name, file, line FROM rule").fetchall()
        self._run_rules = {str(row[1]): written_rule(*row) for row in rows}

    def why_not(
        self, name: str, tensor: str = "", rules: Sequence[Rule] | None = None
    ) -> list[WhyNot]:
        """As the function ``why_not``."""
        at = self._stored.class_of(tensor) if tensor else 0
        known_rules = list(self._run_rules.values()) if rules is None else list(rules)
        candidates = _rules_of_name(name, known_rules)
        if not candidates and rules is None:
            known_rules += load_rules()
            candidates = _rules_of_name(name, known_rules)
        if not candidates:
            raise unknown("rule", name, [rule.name for rule in known_rules])
        return [self._explain(rule, tensor, at) for rule in candidates]

    def _explain(self, rule: Rule, tensor: str, at: int) -> WhyNot:
        stored, run_rule = self._stored, self._run_rules.get(rule.name)
        outcomes = Outcomes(stored, rule, self.swaps)
        rows = stored.connection.execute(sql("explain/run_of_rule"), {"rule": rule.name}).fetchall()
        return WhyNot(
            rule=rule,
            in_run=run_rule is not None
            and replace(run_rule, file=rule.file, line=rule.line) == rule,
            tensor=tensor,
            work=tuple(Work(*row) for row in rows),
            traces=tuple(_traces(stored, rule, at, outcomes)),
            result_us=outcomes.chosen_us,
        )


def _rules_of_name(name: str, rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if name in (rule.name, rule.name.partition("[")[0])]


def _traces(stored: StoredEGraph, rule: Rule, at: int, outcomes: Outcomes) -> Iterator[Trace]:
    places = [1] if rule.symmetric else list(range(1, 1 + len(rule.sources)))
    for place in places if at else [0]:
        search = Search(stored, rule, at, place)
        search.run()
        steps, results = list(search.steps), []
        if search.matches:
            judgement = judge(stored, rule, search.configurations())
            steps += judgement.steps
            if judgement.valid:
                matches = search.full_matches(set(judgement.valid))
                results = outcomes.all(matches, judgement.valid)
        yield Trace(place, tuple(steps), search.matches, search.is_cut, tuple(results))
