"""The gate that rules pass before a run uses them: none that was not found to be sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import RuleError
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import (
    cached_verdicts,
    content_hash,
    keep_verdicts,
    shipped_verdicts,
)
from relational_tensat.rules.soundness.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Trust:
    """The rules of a run, and their verdicts.

    Attributes:
        untrusted: per rule that was let in although it is not known to be sound, why not.
    """

    untrusted: Mapping[str, str]


def check_trust(
    rules: Sequence[Rule],
    *,
    allow_unsound: bool = False,
    verify: Callable[[Sequence[Rule]], Sequence[Verdict]] | None = None,
) -> Trust:
    """Refuse rules that are not sound; rules not met before are verified now, and remembered.

    Args:
        allow_unsound: refuse none and verify none: only say which are not known to be sound.
        verify: judges rules; the verifier, unless a test says otherwise.

    Raises:
        RuleError: a rule is marked as unsound, was found to be, or could not be tested.
    """
    untrusted = {rule.name: "its file marks it as unsound" for rule in rules if rule.unsound}
    hashes = [content_hash(rule) for rule in rules]
    verdicts = _known_verdicts(hashes)
    if not allow_unsound:
        _refuse(rules, untrusted)
        unjudged_rules = [r for r, key in zip(rules, hashes, strict=True) if key not in verdicts]
        verdicts |= _judge(unjudged_rules, verify)
    for rule, key in zip(rules, hashes, strict=True):
        if (reason := _distrust(verdicts.get(key))) is not None:
            untrusted.setdefault(rule.name, reason)
    if not allow_unsound:
        _refuse(rules, untrusted)
    return Trust(untrusted)


def _known_verdicts(hashes: Sequence[str]) -> dict[str, Verdict]:
    """Return the verdicts at hand; the user's cache is only opened for what does not ship."""
    shipped = shipped_verdicts()
    if all(key in shipped for key in hashes):
        return dict(shipped)
    return {**cached_verdicts(), **shipped}


def _judge(
    rules: Sequence[Rule], verify: Callable[[Sequence[Rule]], Sequence[Verdict]] | None
) -> dict[str, Verdict]:
    if not rules:
        return {}
    if verify is None:
        from relational_tensat.rules.soundness import verify_rules

        verify = verify_rules
    verdicts = verify(rules)
    by_hash = {
        content_hash(rule): replace(verdict, counterexample=None)
        for rule, verdict in zip(rules, verdicts, strict=True)
    }
    keep_verdicts(by_hash)
    return by_hash


def _distrust(verdict: Verdict | None) -> str | None:
    """Return why a rule cannot be trusted; None where it can."""
    if verdict is None:
        return "it was not verified"
    return None if verdict.status == "sound" else f"it is {verdict.status}: {verdict.reason}"


def _refuse(rules: Sequence[Rule], untrusted: Mapping[str, str]) -> None:
    for rule in rules:
        if rule.name in untrusted:
            raise RuleError(
                f"{rule.file}:{rule.line}: the rule {rule.name!r} is refused: "
                f"{untrusted[rule.name]} (see rules verify {rule.name} --file {rule.file})"
            )
