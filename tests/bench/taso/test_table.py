"""The verdicts on all 139 rules, beside what the reference facts say of them.

The search for conditions is run for a few rules here; for all of them, which takes minutes, with
RELATIONAL_TENSAT_FULL=1.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import pytest

from bench.taso.repair import Judgement, first_samples, judge, vocabulary
from bench.taso.rule_files import read_rules
from bench.taso.samples import Samples, configured
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Expr, Rule, expr_text, rule_text
from relational_tensat.rules.soundness import verify_rule
from relational_tensat.tensor.types import TensorType
from tests.bench.taso.taso_files import MULTI, SINGLE, content, needs_published, reference
from tests.explore.derivation.taso import conditional_taso_rules

pytestmark = needs_published

TRIALS = 24
ONE_GROUP = "(= (groups ?a ?b) 1)"
OUTPUTS_PER_GROUP = "(= (// (dim ?b 0) (groups ?a ?b)) (// (dim ?d 0) (groups ?c ?d)))"
IN_PLACE = "(enlargeable (spatial ?a) (spatial ?b) (spatial ?c) [1 1] same same [])"
#: The conditions that are found, and the rules that they repair.
FOUND: dict[tuple[str, ...], tuple[int, ...]] = {
    ("(same-except ?b ?c 0)",): (58, 60),
    ("(= (spatial ?a) (spatial ?b))",): (59, 61),
    ("(= (dim ?a 1) (dim ?b 1))",): (67, 68, 70, 71, 88, 89, 93, 94),
    ("(= (dim ?a 0) (dim ?b 0))",): (75, 76, *range(78, 84), *range(110, 114)),
    (ONE_GROUP,): (114, 115, 116, 135, 136),
    (ONE_GROUP, "(= (groups ?c ?d) 1)"): (90, 97),
    (OUTPUTS_PER_GROUP,): (91, 92, 117, 118),
    (ONE_GROUP, IN_PLACE): (137, 138),
}
CONDITIONAL = {number: words for words, numbers in FOUND.items() for number in numbers}
#: One rule of each family that ``test_judging`` does not have, and some that are sound.
SEARCHED = (59, 75, 137, 0, 22, 62, 66, 127)
#: Where the reference asks for more than is needed: operands may also be broadcast over filters
#: (58, 60), or over channels (59, 61).
WEAKER_THAN_THE_REFERENCE = {58, 59, 60, 61}


@cache
def rules() -> tuple[Rule, ...]:
    """Return the 139 in TENSAT's order; the six that no file has as they ship."""
    single, multi, shipped = read_rules(SINGLE), read_rules(MULTI), taso_rules()
    others = [replace(rule, unsound=False) for rule in (*shipped[120:124], *shipped[137:])]
    return (*single, *others[:4], *multi, *others[4:])


IS_FULL = os.environ.get("RELATIONAL_TENSAT_FULL") == "1"
#: The rules with a condition that are looked at: each takes a second.
TRIED = sorted(CONDITIONAL)[:: 1 if IS_FULL else 5]


@cache
def conditions(number: int) -> tuple[Expr, ...]:
    """Return the conditions that are found for a rule."""
    where = " ".join(CONDITIONAL[number])
    free = replace(rules()[number], conditions=(), name="r", file="")
    text = rule_text(free).removesuffix(")") + f"(where {where}))"
    return parse_rules(text, "found")[0].conditions


@cache
def examples(number: int) -> Samples:
    """Return random examples of a rule as it stands."""
    samples = first_samples(rules()[number], 0)
    if not samples.refuting:
        samples.challenge(vocabulary(samples.rule), 30_000)
    return samples


def repaired(number: int) -> Rule:
    rule = rules()[number]
    return replace(rule, conditions=(*rule.conditions, *conditions(number)))


def expected(number: int) -> tuple[str, tuple[str, ...]]:
    return ("sound if", CONDITIONAL[number]) if number in CONDITIONAL else ("sound", ())


def described(judged: Judgement) -> tuple[str, tuple[str, ...]]:
    return judged.status, tuple(expr_text(expr) for expr in judged.condition)


def test_the_same_rules_need_a_condition_as_in_the_reference() -> None:
    merging = range(120, 124)  # which here say their groups; the reference asks for just that
    named = [r["id"] for r in reference() if r["sound_only_if"] and r["id"] not in merging]
    assert named == sorted(CONDITIONAL)
    assert len(named) == 37


def test_the_other_rules_are_sound(subtests: pytest.Subtests) -> None:
    """Those that ship as they are published are verified there: ``test_taso_rules``."""
    shipped = {content(rule) for rule in taso_rules() if not rule.unsound}
    others = set(range(139)) - set(CONDITIONAL)
    for number in sorted(n for n in others if content(rules()[n]) not in shipped):
        with subtests.test(number=number):
            assert verify_rule(rules()[number], trials=TRIALS).status == "sound"


def test_rules_are_sound_with_their_conditions_and_unsound_without(
    subtests: pytest.Subtests,
) -> None:
    for number in TRIED:
        with subtests.test(number=number):
            assert examples(number).refuting
            assert verify_rule(repaired(number), trials=TRIALS).status == "sound"


def test_conditions_follow_from_those_of_the_reference(subtests: pytest.Subtests) -> None:
    for number in TRIED:
        with subtests.test(number=number):
            check_condition(number)


def check_condition(number: int) -> None:
    """Wherever the reference's condition holds, so does the one that is found."""
    samples = examples(number)
    own, stated = conditions(number), conditional_taso_rules()[number].conditions
    keeps = {own: set(), stated: set()}  # type: ignore[var-annotated]
    for words, kept in keeps.items():
        kept.update(configuration.key for configuration in samples.fulfilling(words))
    assert keeps[stated], "no example to compare on"
    assert keeps[stated] <= keeps[own]
    if number not in WEAKER_THAN_THE_REFERENCE:
        assert keeps[own] == keeps[stated]


@pytest.mark.parametrize(
    ("number", "shapes"),
    [
        (58, ((1, 1, 3, 3), (2, 1, 3, 3), (1, 1, 3, 3))),  # one filter, added to two
        (59, ((1, 2, 3, 3), (1, 1, 3, 3), (2, 1, 3, 3))),  # one channel, added to two
    ],
)
def test_the_reference_asks_for_more_than_is_needed(
    number: int, shapes: tuple[tuple[int, ...], ...]
) -> None:
    stated = conditional_taso_rules()[number]
    assert refuted(stated, shapes) is None
    assert refuted(replace(stated, conditions=conditions(number)), shapes) is False


@pytest.mark.parametrize("number", [137, 138])
def test_one_group_is_not_enough_where_kernels_are_even(number: int) -> None:
    """The reference names no other condition: TASO stops at even kernels, which ONNX pads unevenly."""
    (one_group, _) = conditions(number)
    rule = replace(rules()[number], conditions=(one_group,))
    assert refuted(rule, ((1, 1, 3, 3), (1, 1, 2, 2), (1, 1, 3, 3))) is True
    assert refuted(rule, ((1, 1, 3, 3), (1, 1, 1, 1), (1, 1, 3, 3))) is False


def refuted(rule: Rule, shapes: tuple[tuple[int, ...], ...]) -> bool | None:
    """Return whether a law fails for operands of given shapes; None if the rule does not apply."""
    samples = Samples(rule, 0)
    configuration = configured(rule, tuple(TensorType("float32", shape) for shape in shapes))
    assert configuration is not None
    return bool(samples.refuting) if samples.add(configuration) else None


@pytest.mark.parametrize("number", SEARCHED)
def test_the_search_finds_the_condition(number: int) -> None:
    assert described(judge(rules()[number], trials=TRIALS)) == expected(number)


@pytest.mark.skipif(not IS_FULL, reason="takes minutes")
def test_the_search_finds_every_condition() -> None:
    judgements = {number: described(judge(rule)) for number, rule in enumerate(rules())}
    assert judgements == {number: expected(number) for number in judgements}
