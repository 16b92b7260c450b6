"""Verdicts: sound, sound under a condition that is found, unsound, untested."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from bench.taso.repair import Judgement, judge
from bench.taso.rule_files import finding, read_rules
from bench.taso.samples import configured
from relational_tensat.base.errors import UsageError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule, expr_text
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.types import TensorType
from tests.tiers import nightly

TRIALS = 60
SUM_OF_CONVOLUTIONS = (
    "(ewadd (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?y ?w))"
    "=>(conv2d 1 1 0 0 (concat 1 4 ?x ?y) (concat 1 4 ?v ?w))"
)


#: Reads the one rule of a text.
Reader: TypeAlias = Callable[[str], Rule]


@pytest.fixture
def rule_of(tmp_path: Path) -> Reader:
    def read(text: str) -> Rule:
        path = tmp_path / "rules.txt"
        path.write_text(text)
        (rule,) = read_rules(path)
        return rule

    return read


def holds(rule: Rule, *shapes: tuple[int, ...]) -> bool | None:
    """Return whether a rule's law holds for operands of given shapes; None if it does not apply."""
    configuration = configured(rule, tuple(TensorType("float32", shape) for shape in shapes))
    assert configuration is not None
    judging = Judge(DrawPlan(rule), 0)
    both = judging.sides(configuration)
    return None if both is None else judging.holds(configuration, both) is LawOutcome.HOLDS


def conditions(judgement: Judgement) -> list[str]:
    return [expr_text(expr) for expr in judgement.condition]


def test_a_sound_rule_stays_as_it_is(rule_of: Reader) -> None:
    rule = rule_of("(ewmul ?x (ewadd ?y ?z))=>(ewadd (ewmul ?x ?y) (ewmul ?x ?z))")
    judged = judge(rule, trials=TRIALS)
    assert (judged.status, judged.rule, judged.condition) == ("sound", rule, ())
    assert judged.verdict.evidence == "exact"
    assert finding(judged) == ""


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        (
            "(concat 1 2 (ewadd ?x ?y) (ewadd ?y ?z))"
            "=>(ewadd (concat 1 2 ?x ?y) (concat 1 2 ?y ?z))",
            ["(= (dim ?a 1) (dim ?b 1))"],
        ),
        (
            "(concat 1 4 (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?x ?w))"
            "=>(conv2d 1 1 0 0 ?x (concat 0 4 ?v ?w))",
            ["(= (groups ?a ?b) 1)"],
        ),
        nightly(
            "(concat 1 4 (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?y ?w))"
            "=>(conv2d 1 1 0 0 (concat 1 4 ?x ?y) (concat 0 4 ?v ?w))",
            ["(= (// (dim ?b 0) (groups ?a ?b)) (// (dim ?d 0) (groups ?c ?d)))"],
        ),
        (
            "(conv2d 1 1 0 0 ?x (ewadd ?v ?w))"
            "=>(ewadd (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?x ?w))",
            ["(same-except ?b ?c 0)"],
        ),
    ],
)
def test_a_condition_is_found_and_written_into_the_rule(
    rule_of: Reader, text: str, condition: list[str]
) -> None:
    rule = rule_of(text)
    judged = judge(rule, trials=TRIALS)
    assert judged.status == "sound if"
    assert conditions(judged) == condition
    assert judged.rule == replace(rule, conditions=(*rule.conditions, *judged.condition))
    assert judged.verdict.status == "sound"
    assert finding(judged) == " ".join(condition)


@pytest.mark.nightly
def test_every_part_of_a_condition_is_needed(rule_of: Reader) -> None:
    judged = judge(rule_of(SUM_OF_CONVOLUTIONS), trials=TRIALS)
    assert conditions(judged) == ["(= (groups ?a ?b) 1)", "(= (groups ?c ?d) 1)"]
    # What only one of the two rejects is rare: two groups in all, four or one in the parts.
    plain, grouped = ((1, 2, 1, 1), (4, 2, 1, 1)), ((1, 4, 1, 1), (4, 1, 1, 1))
    first, second = judged.condition
    for kept, shapes in ((first, (*plain, *grouped)), (second, (*grouped, *plain))):
        others = judged.rule.conditions[:-2]
        assert holds(replace(judged.rule, conditions=(*others, kept)), *shapes) is False
        assert holds(judged.rule, *shapes) is None


def test_an_unsound_rule_has_a_counterexample_that_runs(rule_of: Reader) -> None:
    judged = judge(rule_of("(ewadd ?x ?y)=>(ewmul ?y ?x)"), trials=TRIALS)
    assert judged.status == "unsound"
    assert judged.rule.unsound
    assert judged.condition == ()
    example = judged.verdict.counterexample
    assert example is not None
    assert finding(judged) == example.summary()
    assert "\n" not in finding(judged)
    argv = [sys.executable, "-c", example.text()]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True)
    left, right = shown.stdout.splitlines()
    assert left.removeprefix("left: ") != right.removeprefix("right: ")


def test_what_changes_a_shape_is_unsound(rule_of: Reader) -> None:
    judged = judge(rule_of("(relu (concat 0 2 ?x ?y))=>(relu (concat 1 2 ?x ?y))"), trials=TRIALS)
    assert judged.status == "unsound"
    example = judged.verdict.counterexample
    assert example is not None
    assert example.difference.index is None


def test_a_rule_that_nothing_fits_is_untested(rule_of: Reader) -> None:
    text = "(ewadd (concat 0 2 ?x ?y) (concat 0 4 ?x ?z))=>(ewadd ?x ?x)"
    judged = judge(rule_of(text), trials=TRIALS)
    assert judged.status == "untested"
    assert judged.rule.unsound
    assert "random operands" in finding(judged)


def test_attributes_have_to_be_constants() -> None:
    text = '(rule r (law "l") (from (transpose ?x :perm ?p)) (to (transpose ?x :perm ?p)))'
    (rule,) = parse_rules(text, "r.rules")
    with pytest.raises(UsageError, match="transpose: the attribute perm is no constant"):
        judge(rule, trials=TRIALS)


def test_a_mark_of_unsoundness_goes_where_it_is_wrong(rule_of: Reader) -> None:
    marked = replace(rule_of("(ewadd ?x ?y)=>(ewadd ?y ?x)"), unsound=True)
    assert not judge(marked, trials=TRIALS).rule.unsound
