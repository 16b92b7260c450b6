"""Why a rule did not change a graph: how far its pattern got, and what rejected it.

Full matches are judged: each check of the rule has its count, and the values that it rejected.
``conclusion`` says it in a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import UsageError, unknown
from relational_tensat.base.files import sql
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.swaps import Swaps
from relational_tensat.explain.why_not.outcome import STATUSES, MatchOutcome, Outcomes
from relational_tensat.explain.why_not.source import JoinStep, most_frequent
from relational_tensat.explain.why_not.steps import PatternSearch
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.rules.diagnosis import OPERATORS, Check, Refusal, checks, diagnose
from relational_tensat.rules.instance import Instance, source_nodes, tensor_vars
from relational_tensat.rules.language import written_rule
from relational_tensat.rules.library import load_rules, read_rule_file
from relational_tensat.rules.model import Apply, Rule, Var
from relational_tensat.tensor.types import Attrs, ValueType

#: Stages that are always reported, whether or not they rejected anything.
_ALWAYS = frozenset({"attribute", "where", "worth"})


@dataclass(frozen=True, slots=True)
class CheckCount:
    """The outcomes of the configurations of a rule's matches.

    Attributes:
        steps: one per check, with the matches that are left after it.
        valid: the built nodes, per configuration that passed all checks.
    """

    steps: tuple[JoinStep, ...]
    valid: Mapping[tuple[int, ...], Instance]


def judge(
    stored: StoredEGraph, rule: Rule, configurations: Mapping[tuple[int, ...], int]
) -> CheckCount:
    """Check configurations of signatures.

    Args:
        configurations: how many matches each has.
    """
    rejected: dict[Check, Counter[str]] = {}
    valid: dict[tuple[int, ...], Instance] = {}
    judge_one = _Configurations(stored, rule)
    for configuration, count in sorted(configurations.items()):
        outcome = judge_one(configuration)
        if isinstance(outcome, Refusal):
            rejected.setdefault(outcome.check, Counter())[outcome.actual] += count
        else:
            valid[configuration] = outcome
    steps = []
    remaining = sum(configurations.values())
    for check in checks(rule):
        counts = rejected.get(check, Counter())
        remaining -= counts.total()
        if counts or (check.stage in _ALWAYS and check != OPERATORS):
            steps.append(
                JoinStep(check.stage, check.requirement, remaining, 0, tuple(most_frequent(counts)))
            )
        if not remaining:
            break
    return CheckCount(tuple(steps), valid)


class _Configurations:
    """Turns signatures into what a rule is checked on."""

    def __init__(self, stored: StoredEGraph, rule: Rule) -> None:
        self._stored = stored
        self._rule = rule
        self._sites = _variable_sites(rule)
        sizes = [_size(source) for source in rule.sources]
        self._roots = [sum(sizes[:index]) for index in range(len(sizes))]

    def __call__(self, configuration: tuple[int, ...]) -> Instance | Refusal:
        signatures = [self._stored.signatures[index] for index in configuration]
        symbols: list[tuple[str, Attrs]] = [(s.symbol.op, dict(s.symbol.attrs)) for s in signatures]
        types: list[ValueType] = [signatures[n].operands[at] for n, at in self._sites]
        roots = [signatures[index].type for index in self._roots]
        return diagnose(self._rule, symbols, tuple(types), tuple(roots))


def _variable_sites(rule: Rule) -> list[tuple[int, int]]:
    """Return, per tensor variable, a node of the sources and which operand of it the variable is."""
    sites: dict[str, tuple[int, int]] = {}
    for index, node in enumerate(source_nodes(rule)):
        for position, child in enumerate(node.children):
            if isinstance(child, Var):
                sites.setdefault(child.name, (index, position))
    return [sites[name] for name in tensor_vars(rule)]


def _size(term: Apply) -> int:
    return 1 + sum(_size(child) for child in term.children if isinstance(child, Apply))


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
    steps: tuple[JoinStep, ...]
    matches: int
    is_cut: bool
    outcomes: tuple[MatchOutcome, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many matches that passed have which status; see ``MatchOutcome``."""
        counts = Counter(outcome.status for outcome in self.outcomes)
        return {status: counts[status] for status in STATUSES if counts[status]}


@dataclass(frozen=True, slots=True)
class CheckWork:
    """The work of a run on a rule in one iteration: matches worked on, e-nodes made."""

    iteration: int
    matches: int
    e_nodes: int


@dataclass(frozen=True, slots=True)
class WhyNot:
    """All that is known of a rule in a finished run.

    Attributes:
        in_run: whether the run had just this rule; if not, it is checked on what the run left.
        tensor: where it was looked for; "" for everywhere.
        work: the run's work on it, by iteration.
        traces: the search; one per source that may stand at ``tensor``.
        result_us: modelled cost of the extracted graph; what ``MatchOutcome.cost_us`` is compared with.
    """

    rule: Rule
    in_run: bool
    tensor: str
    work: tuple[CheckWork, ...]
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
    """Reports how far rules got in one run; tables that all of them need are read once.

    Attributes:
        swaps: the result's cost with other e-nodes.
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
            raise _not_there(name, known_rules)
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
            work=tuple(CheckWork(*row) for row in rows),
            traces=tuple(_traces(stored, rule, at, outcomes)),
            result_us=outcomes.chosen_us,
        )


def _not_there(name: str, rules: Sequence[Rule]) -> UsageError:
    """Return the error that the rule does not exist, or is of a backend that the run was not for."""
    from relational_tensat.rules.backends.backend import load_backend  # answers do without

    for place in BACKENDS:
        if _rules_of_name(name, read_rule_file(load_backend(place).rule_file)):
            return UsageError(
                f"the rule {name!r} is used with --for {place} only: this run was for another place"
            )
    return unknown("rule", name, [rule.name for rule in rules])


def _rules_of_name(name: str, rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if name in (rule.name, rule.name.partition("[")[0])]


def _traces(stored: StoredEGraph, rule: Rule, at: int, outcomes: Outcomes) -> Iterator[Trace]:
    places = [1] if rule.symmetric else list(range(1, 1 + len(rule.sources)))
    for place in places if at else [0]:
        search = PatternSearch(stored, rule, at, place)
        search.run()
        steps, results = list(search.steps), []
        if search.matches:
            judgement = judge(stored, rule, search.configurations())
            steps += judgement.steps
            if judgement.valid:
                matches = search.full_matches(set(judgement.valid))
                results = outcomes.all(matches, judgement.valid)
        yield Trace(place, tuple(steps), search.matches, search.is_cut, tuple(results))


#: The meaning of a status, for so many matches.
_MEANING = {
    "chosen": "the result computes what the rule built",
    "not chosen": "applied, but extraction chose something else",
    "not needed": "applied, but the result does without",
    "filtered": "applied, but dropped by the cycle filter",
    "cyclic": "not applied: it would close a cycle",
    "not united": "not applied",
}


def conclusion(answer: WhyNot, trace: Trace) -> str:
    """Return what came of a search, in one line."""
    text = _conclusion(trace)
    matched = sum(work.matches for work in answer.work)
    if trace.outcomes or not matched or answer.tensor:
        return text
    suffix = "what it matched in the run is not there any more: united with it, or a cycle"
    return f"{text} ({suffix})"


def _conclusion(trace: Trace) -> str:
    if trace.outcomes:
        parts = [f"{count:,} {_MEANING[status]}" for status, count in trace.counts.items()]
        return f"{len(trace.outcomes):,} passed: {'; '.join(parts)}"
    last = trace.steps[-1] if trace.steps[-1].stage != "find" else _failed(trace)
    instead = ", ".join(last.instead)
    match last.stage:
        case "find":
            return f"no match: no place where {last.requirement}; there: {instead or 'nothing'}"
        case "pair":
            return f"no match: no pair where {last.requirement}"
        case "attribute":
            return f"the last were rejected: {last.requirement} stands for two values: {instead}"
        case "target":
            return (
                f"the last were rejected by shapes, at {last.requirement} in the target: {instead}"
            )
        case "type":
            return f"the last were rejected: the result would be another type: {instead}"
        case stage:
            return f"the last were rejected by ({stage} {last.requirement}): {instead}"


def _failed(trace: Trace) -> JoinStep:
    """Return the first step that left nothing."""
    return next(step for step in trace.steps if not step.left)
