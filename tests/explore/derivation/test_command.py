"""``rules derive`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relational_tensat.cli.main import main

LAWS = """
(rule turned-round (law "x + y = y + x") (from (add ?x ?y)) (to (add ?y ?x)))
(rule regrouped (law "(x + y) + z = x + (y + z)") (from (add (add ?x ?y) ?z)) (to (add ?x (add ?y ?z))))
"""
RULES = """
(rule rotated (law "(a + b) + c = (c + a) + b") (from (add (add ?a ?b) ?c)) (to (add (add ?c ?a) ?b)))
(rule factored (law "a·x + a·y = a·(x + y)")
  (from (add (mul ?a ?x) (mul ?a ?y))) (to (mul ?a (add ?x ?y))))
"""


@pytest.fixture
def laws(tmp_path: Path) -> str:
    path = tmp_path / "laws.rules"
    path.write_text(LAWS)
    return str(path)


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "mine.rules"
    path.write_text(RULES)
    return str(path)


def test_what_is_derived_is_exit_code_0(
    rules: str, laws: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", "derive", rules, "rotated", "--rules", laws]) == 0
    out = capsys.readouterr().out
    assert "rotated   yes" in out
    assert "1 of 1 rule derived from 2 rules" in out
    assert "not derived" not in out
    assert "factored" not in out


def test_what_is_not_derived_is_listed_and_exit_code_4(
    rules: str, laws: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", "derive", rules, "--rules", laws, "--node-limit", "300"]) == 4
    text = capsys.readouterr().out
    assert "1 of 2 rules derived from 2 rules" in text
    listed = text.partition("not derived:\n")[2].splitlines()
    assert len(listed) == 1
    assert listed[0].startswith("  factored: the laws have nothing left to add, on a float")


def test_the_rules_that_ship_are_the_laws_by_default(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", "derive", rules]) == 0
    assert "2 of 2 rules derived" in capsys.readouterr().out


def test_json(rules: str, laws: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "derive", rules, "--rules", laws, "--json"]) == 4
    content = json.loads(capsys.readouterr().out)
    assert (content["derived"], content["not_derived"]) == (1, ["factored"])
    rotated, factored = content["rules"]
    assert rotated["rule"] == "rotated"
    assert rotated["derived"]
    assert rotated["e_nodes"] > 0
    assert not factored["derived"]
    assert factored["reason"]


def test_what_a_file_marks_as_unsound_is_not_derived(
    tmp_path: Path, laws: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "marked.rules"
    path.write_text(
        '(rule marked (law "x + y = y + x") (unsound) (from (add ?x ?y)) (to (add ?y ?x)))'
    )
    assert main(["rules", "derive", str(path), "--rules", laws]) == 4
    assert "marked: its file marks it as unsound" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["absent.rules"], 3, "absent.rules"),
        (["absent.pb"], 3, "absent.pb"),
        ([__file__], 3, __file__),
        (["{rules}", "rotate"], 2, "did you mean 'rotated'"),
        (["{rules}", "--time-limit", "-1"], 2, "seconds"),
        (["{rules}", "--node-limits", "9"], 2, "did you mean '--node-limit'"),
        ([], 2, "FILE"),
    ],
)
def test_errors(
    rules: str, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, message: str
) -> None:
    assert main(["rules", "derive", *(argument.format(rules=rules) for argument in argv)]) == code
    assert message in capsys.readouterr().err


def test_laws_that_are_not_sound_are_refused(
    tmp_path: Path, rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.rules"
    wrong.write_text('(rule wrong (law "x - y = y - x") (from (sub ?x ?y)) (to (sub ?y ?x)))')
    assert main(["rules", "derive", rules, "--rules", str(wrong)]) == 3
    assert "'wrong'" in capsys.readouterr().err


def test_flags_before_both_words_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--rules", "x.rules", "derive"]) == 2
    assert "rules derive" in capsys.readouterr().err
