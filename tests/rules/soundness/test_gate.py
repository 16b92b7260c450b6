"""Rules are let in when they are known to be sound, and only then."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError, RuleError
from relational_tensat.base.folders import CACHE_VARIABLE
from relational_tensat.rules.backends.backend import all_rule_files
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import Verdict
from relational_tensat.rules.soundness.store import (
    cache_file,
    cached_verdicts,
    check_trust,
    content_hash,
    keep_verdicts,
    meaning_hash,
    read_verdicts,
    shipped_file,
    shipped_verdicts,
)
from relational_tensat.rules.soundness.verdict import Shown

GOOD = '(rule good (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))'
BAD = '(rule bad (law "a - b = b - a") (from (sub ?a ?b)) (to (sub ?b ?a)))'


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def rule_of(text: str) -> Rule:
    return parse_rules(text, "f.rules")[0]


def never(rules: Sequence[Rule]) -> list[Verdict]:
    raise AssertionError(f"{[rule.name for rule in rules]} were verified again")


def test_the_rules_that_ship_were_all_found_sound_by_the_code_that_is_here() -> None:
    """If this fails, the rules or their meaning changed: ``rules verify --record``."""
    stored = read_verdicts(shipped_file())
    assert stored.meaning == meaning_hash()
    verdicts = shipped_verdicts()
    names = {content_hash(rule): rule.name for rule in load_rules()}
    assert [name for key, name in names.items() if key not in verdicts] == []
    assert {verdicts[key].status for key in names} == {"sound"}
    known = {content_hash(rule) for rule in load_rules(all_rule_files())}
    assert set(verdicts) <= known


def test_the_rules_that_ship_are_let_in_without_verifying() -> None:
    assert check_trust(load_rules(), verify=never).untrusted == {}


def test_a_rule_is_verified_once_and_remembered() -> None:
    assert check_trust([rule_of(GOOD)]).untrusted == {}
    assert cached_verdicts()[content_hash(rule_of(GOOD))].status == "sound"
    assert check_trust([rule_of(GOOD)], verify=never).untrusted == {}


def test_a_changed_rule_is_verified_again_a_renamed_one_is_not() -> None:
    rule = rule_of(GOOD)
    check_trust([rule])
    check_trust([replace(rule, name="other", law="another", line=7)], verify=never)
    restricted = '(rule good (law "l") (from (add ?a ?b)) (to (add ?b ?a)) (where (= (rank ?a) 1)))'
    with pytest.raises(AssertionError, match="verified again"):
        check_trust([rule_of(restricted)], verify=never)


def test_an_unsound_rule_is_refused_and_that_is_remembered() -> None:
    for verify in (None, never):
        with pytest.raises(
            RuleError, match=r"f\.rules:1: the rule 'bad' is refused: it is unsound"
        ):
            check_trust([rule_of(GOOD), rule_of(BAD)], verify=verify)


def test_a_rule_that_could_not_be_tested_is_refused() -> None:
    def untested(rules: Sequence[Rule]) -> list[Verdict]:
        return [Verdict(rule.name, "untested", "exact", 2, "only 2 fit") for rule in rules]

    with pytest.raises(RuleError, match="'good' is refused: it is untested: only 2 fit"):
        check_trust([rule_of(GOOD)], verify=untested)


def test_a_marked_rule_is_refused_before_anything_is_verified() -> None:
    marked = replace(rule_of(GOOD), unsound=True)
    with pytest.raises(RuleError, match="'good' is refused: its file marks it as unsound"):
        check_trust([rule_of(BAD), marked], verify=never)


def test_allowed_rules_are_not_verified_but_named() -> None:
    check_trust([rule_of(GOOD)])
    marked = replace(rule_of(GOOD), name="marked", unsound=True)
    trust = check_trust([rule_of(GOOD), rule_of(BAD), marked], allow_unsound=True, verify=never)
    assert trust.untrusted == {
        "bad": "it was not verified",
        "marked": "its file marks it as unsound",
    }


def test_a_damaged_or_foreign_cache_is_as_good_as_empty(tmp_path: Path) -> None:
    check_trust([rule_of(GOOD)])
    path = cache_file()
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "meaning": "of other code"}))
    assert cached_verdicts() == {}
    for damage in ("", "{", "[]", '{"meaning": "x"}', '{"meaning": "x", "verdicts": {"k": {}}}'):
        path.write_text(damage)
        with pytest.raises(InputError, match=r"verdicts\.json"):
            read_verdicts(path)
        assert cached_verdicts() == {}
    check_trust([rule_of(GOOD)])
    assert len(cached_verdicts()) == 1
    assert [file.name for file in path.parent.iterdir()] == ["verdicts.json"]


def test_what_could_not_be_tested_is_looked_at_again() -> None:
    keep_verdicts({
        "a": Verdict("r", "untested", "exact", 9, "z3 is missing"),
        "b": Verdict("s", "sound", "exact", 9, "held", shown=Shown(3, ("x",), ones=2)),
    })  # fmt: skip
    (kept,) = cached_verdicts().values()
    assert (kept.rule, kept.shown) == ("s", Shown(3, ("x",), ones=2))


def test_verdicts_are_added(tmp_path: Path) -> None:
    keep_verdicts({"a": Verdict("r", "sound", "exact", 9, "held")})
    keep_verdicts({"b": Verdict("s", "unsound", "float64", 3, "differs")})
    assert {key: verdict.rule for key, verdict in cached_verdicts().items()} == {"a": "r", "b": "s"}
