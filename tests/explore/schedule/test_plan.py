"""Schedules: as text, as values, and step by step."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.base.errors import UsageError
from relational_tensat.explore.schedule import (
    Plan,
    RepeatRules,
    RunRules,
    Saturate,
    Sequence,
    parse_schedule,
    rules_by_ruleset,
)
from relational_tensat.explore.schedule.plan import Schedule, rulesets_of
from relational_tensat.explore.schedule.rulesets import check_rulesets
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules


def test_a_schedule_is_read() -> None:
    text = "saturate(cheap); repeat 2 (multi; saturate(cheap + merge))"
    cheap = RunRules(("cheap",))
    assert parse_schedule(text) == Sequence(
        (
            Saturate(cheap),
            RepeatRules(
                2, Sequence((RunRules(("multi",)), Saturate(RunRules(("cheap", "merge")))))
            ),
        )
    )
    assert str(parse_schedule(text)) == text
    assert parse_schedule(" all ; ") == RunRules(("all",))
    assert parse_schedule("(all)") == RunRules(("all",))
    assert parse_schedule("r[relu,with]") == RunRules(("r[relu,with]",))
    assert rulesets_of(parse_schedule(text)) == ("cheap", "multi", "merge")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "character 1: the end, expected a ruleset, saturate(…) or repeat N (…)"),
        ("all; ;", "character 6: ';', expected a ruleset"),
        ("saturate all", "character 10: 'all', expected ("),
        ("saturate(all", "character 9: ( without )"),
        ("saturate()", "character 10: ')', expected a ruleset"),
        ("all)", "character 4: ')', expected ; or the end"),
        ("all multi", "character 5: 'multi', expected ; or the end"),
        (
            "saturte(all)",
            "'saturte' before (, expected saturate or repeat; did you mean 'saturate'?",
        ),
        ("repeat (all)", "'(' after repeat, expected how many times"),
        ("repeat 0 (all)", "'0' after repeat, expected how many times"),
        ("repeat", "'the end' after repeat"),
        ("all + ; multi", "';' after +, expected a ruleset"),
        ("all, multi", "character 4: ',', expected a ruleset"),
        ("all\n?", "schedule 'all ?', character 5: '?'"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_schedule(text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


names = st.sampled_from(["all", "single", "multi", "r[add]", "a.b-c"])
plans: st.SearchStrategy[Plan] = st.recursive(
    st.lists(names, min_size=1, max_size=2).map(lambda some: RunRules(tuple(some))),
    lambda inner: (
        inner.map(Saturate)
        | st.builds(RepeatRules, st.integers(1, 3), inner)
        | st.lists(inner.filter(lambda plan: not isinstance(plan, Sequence)), min_size=2, max_size=3)
        .map(lambda parts: Sequence(tuple(parts)))
    ),
    max_leaves=6,
)  # fmt: skip


@given(plans)
def test_what_is_printed_is_read(plan: Plan) -> None:
    assert parse_schedule(str(plan)) == plan


@given(st.text(alphabet="all();+ 2repatsu", max_size=20))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse_schedule(text)
    except UsageError as error:
        assert "\n" not in str(error)


def carried_out(text: str, additions: Mapping[str, int]) -> str:
    """Return the steps of a schedule as letters; each ruleset adds something so often."""
    remainder, steps = dict(additions), ""
    names = sorted(remainder)
    schedule = Schedule(parse_schedule(text), lambda name: frozenset({names.index(name)}))
    while (rules := schedule.rules) is not None:
        step = "".join(names[rule] for rule in sorted(rules))
        steps += f"{step} "
        has_added = any(remainder[name] > 0 for name in step)
        for name in step:
            remainder[name] -= 1
        schedule.note(has_added)
    return steps.strip()


def test_a_schedule_goes_by_what_its_steps_add() -> None:
    assert carried_out("a; b", {"a": 9, "b": 9}) == "a b"
    assert carried_out("saturate(a)", {"a": 2}) == "a a a"
    assert carried_out("repeat 3 (a; b)", {"a": 9, "b": 9}) == "a b a b a b"
    assert carried_out("repeat 3 (a; b)", {"a": 1, "b": 0}) == "a b a b"
    assert carried_out("saturate(a); repeat 2 (b; saturate(a))", {"a": 1, "b": 9}) == "a a b a b a"
    assert carried_out("saturate(a; b + a)", {"a": 1, "b": 2}) == "a ab a ab a ab"


def test_rulesets_without_rules_are_no_steps() -> None:
    schedule = Schedule(parse_schedule("saturate(a); repeat 2 (a); a"), lambda name: frozenset())
    assert schedule.rules is None


RULES = """
(rule one (law "l") (ruleset cheap quick) (each ?f relu tanh) (from (?f (?f ?a))) (to (?f ?a)))
(rule two (law "l") (ruleset cheap) (from (add ?a ?b) (add ?b ?a)) (to (add ?b ?a) (add ?b ?a)))
(rule three (law "l") (from (neg (neg ?a))) (to ?a))
"""


def test_rules_are_in_the_rulesets_of_their_kind_their_file_and_their_own() -> None:
    rules = parse_rules(RULES, "folder/mine.rules")
    assert rules_by_ruleset(rules) == {
        "all": ("one[relu]", "one[tanh]", "two", "three"),
        "single": ("one[relu]", "one[tanh]", "three"),
        "multi": ("two",),
        "mine": ("one[relu]", "one[tanh]", "two", "three"),
        "cheap": ("one[relu]", "one[tanh]", "two"),
        "quick": ("one[relu]", "one[tanh]"),
        "one[relu]": ("one[relu]",), "one[tanh]": ("one[tanh]",), "one": ("one[relu]", "one[tanh]"),
        "two": ("two",), "three": ("three",),
    }  # fmt: skip


def test_a_ruleset_that_does_not_exist_names_the_nearest() -> None:
    rules = parse_rules(RULES, "mine.rules")
    check_rulesets(parse_schedule("saturate(cheap); two"), rules)
    with pytest.raises(UsageError, match=r"no ruleset or rule 'chaep'; did you mean 'cheap'\?"):
        check_rulesets(parse_schedule("saturate(chaep)"), rules)


def test_each_file_that_ships_is_a_ruleset() -> None:
    rules = load_rules()
    rulesets = rules_by_ruleset(rules)
    assert {rule.family for rule in rules} <= rulesets.keys()
    assert len(rulesets["all"]) == len(rules) == len(rulesets["single"]) + len(rulesets["multi"])
