"""Shipped rules left out one at a time: is each, or what proves it, found again?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.synthesis.funnel import RuleFunnel, SynthesisRequest
from bench.synthesis.store import SynthesisStore
from bench.synthesis.tools import SynthesisTools
from relational_tensat.explore.derivation import DerivationEffort, derive_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule, nodes_of

#: Rules that no other rules prove, with the operators of their laws.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "drop-sign-before-abs": ("abs", "neg"),
    "root-of-square": ("sqrt", "mul", "abs"),
    "square-of-abs": ("abs", "mul"),
    "drop-relu-of-root": ("relu", "sqrt"),
    "sum-of-relus-of-both-signs": ("relu", "neg", "add", "abs"),
    "difference-of-relus-of-both-signs": ("relu", "neg", "sub"),
    "reciprocal-of-exponential": ("reciprocal", "exp", "neg"),
    "reciprocal-twice": ("reciprocal",),
    "tanh-of-negative": ("tanh", "neg"),
    "quotient-by-reciprocal": ("div", "reciprocal", "mul"),
    "reciprocal-of-quotient": ("reciprocal", "div"),
    "negative-difference": ("neg", "sub"),
    "add-after-subtraction-of-same": ("add", "sub"),
}
_EFFORT = DerivationEffort(configurations=2, iterations=6, e_nodes=5_000, seconds=30.0)


@dataclass(frozen=True)
class LeftOut:
    """A rule that was left out.

    Attributes:
        was_derived: the other rules prove it: that it is found says nothing.
        is_found: what was found proves it, beside the others.
    """

    rule: str
    was_derived: bool
    is_found: bool
    found: int
    cpu_s: float


def left_out(seed: int = 0) -> Iterator[LeftOut]:
    """Yield what became of each."""
    shipped = load_rules(None)
    for name, operators in LEFT_OUT.items():
        start_s = time.process_time()
        family = [rule for rule in shipped if rule.name.partition("[")[0] == name]
        laws = [rule for rule in shipped if rule not in family]
        subject = [rule for rule in family if operators[0] in rule.name or len(family) == 1][:1]
        was_derived = _all_derived(subject, laws)
        (rule,) = subject
        size = max(len(list(nodes_of(term))) for term in (*rule.sources, *rule.targets))
        request = SynthesisRequest(
            operators=operators, size=size, cheaper=False, time_limit_s=60.0, trials=120, seed=seed
        )
        with SynthesisStore(None) as store:
            tools = SynthesisTools("t4", laws=laws)
            found = RuleFunnel(store, request, tools, lambda text: None).run()
        own = [replace(rule, name=f"own-{rule.name}") for rule in found]
        is_found = _all_derived(subject, [*laws, *own])
        yield LeftOut(name, was_derived, is_found, len(found), time.process_time() - start_s)


def _all_derived(subjects: Sequence[Rule], laws: Sequence[Rule]) -> bool:
    return all(derivation.derived for derivation in derive_rules(subjects, laws, _EFFORT))
