"""Full matches checked: which check of a rule rejected how many, and for what values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explain.why_not.source import Step, most_frequent
from relational_tensat.rules.diagnosis import OPERATORS, Check, Refusal, checks, diagnose
from relational_tensat.rules.instance import Instance, source_nodes, tensor_vars
from relational_tensat.rules.model import Apply, Rule, Var
from relational_tensat.tensor.types import Attrs, ValueType

#: Stages that are always reported, whether or not they rejected anything.
_ALWAYS = frozenset({"attribute", "where", "worth"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of the configurations of a rule's matches.

    Attributes:
        steps: one per check, with the matches that are left after it.
        valid: what the rule builds, per configuration that passed all checks.
    """

    steps: tuple[Step, ...]
    valid: Mapping[tuple[int, ...], Instance]


def judge(
    stored: StoredEGraph, rule: Rule, configurations: Mapping[tuple[int, ...], int]
) -> Judgement:
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
                Step(check.stage, check.requirement, remaining, 0, tuple(most_frequent(counts)))
            )
        if not remaining:
            break
    return Judgement(tuple(steps), valid)


class _Configurations:
    """Turns signatures into what a rule is checked on."""

    def __init__(self, stored: StoredEGraph, rule: Rule) -> None:
        self._stored = stored
        self._rule = rule
        self._sites = _variable_sites(rule)
        sizes = [_size(source) for source in rule.sources]
        self._roots = [sum(sizes[:index]) for index in range(len(sizes))]

    def __call__(self, configuration: tuple[int, ...]) -> Instance | Refusal:
        """Check one configuration."""
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
    """Return the number of a term's nodes."""
    return 1 + sum(_size(child) for child in term.children if isinstance(child, Apply))
