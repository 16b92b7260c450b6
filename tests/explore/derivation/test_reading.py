"""What is derived of a file: its rules, under the conditions that make them true."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.explore.derivation.reading import read_subjects
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.text import expr_text

MARKED = """
(rule right (law "x + y = y + x") (from (add ?x ?y)) (to (add ?y ?x)))
(rule joined-sums (law "[a + b, b + c] = [a, b] + [b, c]")
  (from (concat (add ?a ?b) (add ?b ?c) :axis 1))
  (to (add (concat ?a ?b :axis 1) (concat ?b ?c :axis 1)))
  (where (= (rank ?a) 2) (= (rank ?b) 2) (= (rank ?c) 2))
  (unsound))
(rule hopeless (law "x - y = y - x") (from (sub ?x ?y)) (to (sub ?y ?x)) (unsound))
(rule with-attribute (law "x, split, is x") (unsound)
  (from (part (split ?x :axis ?i :sizes ?z) :index 0)) (to ?x))
"""


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    path = tmp_path / "marked.rules"
    path.write_text(MARKED)
    return path


def test_a_rule_that_is_marked_is_repaired_where_a_condition_suffices(marked: Path) -> None:
    right, joined, hopeless, with_attribute = read_subjects(marked)
    stand = {rule.name: rule for rule in load_rules([marked])}
    for subject in (right, hopeless, with_attribute):
        assert subject.condition == ""
        assert subject.rule.conditions == stand[subject.rule.name].conditions
    assert joined.condition == "(= (dim ?a 1) (dim ?b 1))"
    added = joined.rule.conditions[len(stand["joined-sums"].conditions) :]
    assert [expr_text(subject) for subject in added] == [joined.condition]


def test_names_choose(marked: Path) -> None:
    assert [subject.rule.name for subject in read_subjects(marked, ["right"])] == ["right"]
    with pytest.raises(UsageError, match="did you mean 'hopeless'"):
        read_subjects(marked, ["hopless"])


def test_tensats_text_is_read_and_judged(tmp_path: Path) -> None:
    path = tmp_path / "converted.txt"
    path.write_text(
        "(ewadd ?a ?b)=>(ewadd ?b ?a)\n"
        "(conv2d 1 1 0 0 ?a (ewadd ?b ?c))"
        "=>(ewadd (conv2d 1 1 0 0 ?a ?b) (conv2d 1 1 0 0 ?a ?c))\n"
    )
    first, second = read_subjects(path)
    assert first.condition == ""
    assert second.condition != ""
    assert read_subjects(path, [second.rule.name]) == [second]
