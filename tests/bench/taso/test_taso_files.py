"""The published files: what is read from them, and how it compares with the rules that ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bench.taso.rule_files import read_rules
from relational_tensat.rules.instance import PreparedRule
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Rule, rule_text
from relational_tensat.rules.soundness.draws import draw_configuration
from relational_tensat.tensor.operators.samples import SeededChoices
from tests.bench.taso.handwritten import ENLARGED, MERGED
from tests.bench.taso.taso_files import MULTI, PROTOBUF, SINGLE, content, needs_published

DRAWN = 12


@needs_published
def test_the_two_kinds_of_file_have_the_same_rules() -> None:
    from_protobuf = read_rules(PROTOBUF)
    single = [rule for rule in from_protobuf if not rule.is_multi]
    multi = [rule for rule in from_protobuf if rule.is_multi]
    assert (len(single), len(multi)) == (120, 13)
    for read, path in ((single, SINGLE), (multi, MULTI)):
        from_text = read_rules(path)
        assert [content(rule) for rule in read] == [content(rule) for rule in from_text]
        assert [rule.law for rule in read] == [rule.law for rule in from_text]


@needs_published
def test_names_are_unique_over_the_files_and_rules_are_well_formed() -> None:
    rules = [rule for path in (PROTOBUF, SINGLE, MULTI) for rule in read_rules(path)]
    assert len({rule.name for rule in rules}) == 266
    for rule in rules:
        (again,) = parse_rules(rule_text(rule), rule.file)
        assert replace(again, line=rule.line) == rule


@needs_published
def test_they_are_the_rules_that_ship_for_comparison(tmp_path: Path) -> None:
    ours = read_rules(SINGLE) + _texts(tmp_path, "merged.txt", MERGED)
    ours += read_rules(MULTI) + _texts(tmp_path, "enlarged.txt", ENLARGED)
    for read, shipped in zip(ours, taso_rules(), strict=True):
        assert (read.sources, read.targets) == (shipped.sources, shipped.targets), read.name
        assert read.symmetric == shipped.symmetric, read.name
        # The file that ships also names conditions that follow from the others.
        assert set(read.conditions) <= set(shipped.conditions), read.name
        assert_same_conditions(read, shipped)


def assert_same_conditions(first: Rule, second: Rule) -> None:
    """Draw operands, without regard to conditions: both rules apply, or none."""
    choices = SeededChoices(Random(first.name).getrandbits(32))
    free = replace(first, conditions=())
    compiled = PreparedRule(first), PreparedRule(second)
    drawn = [draw_configuration(free, choices) for _ in range(DRAWN)]
    for configuration in drawn:
        if configuration is not None:
            one, other = (
                rule.targets(configuration.symbols, configuration.var_types) for rule in compiled
            )
            assert (one is None) == (other is None), (first.name, configuration.var_types)


def _texts(tmp_path: Path, name: str, text: str) -> list[Rule]:
    path = tmp_path / name
    path.write_text(text)
    return read_rules(path)


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("(matmul 2 ?x ?y)=>(relu (matmul 0 ?x ?y))", "relu(a·b) = relu(a·b)"),
        ("(ewmul ?x (ewadd ?y ?x))=>?y", "a × (b + a) = b"),
        ("(poolmax ?x 2 2 2 2 1 2)=>(tanh ?x)", "relu poolmax2x2(a) = tanh(a)"),
        ("(conv2d 2 1 1 0 ?x ?y)=>(enlarge ?x ?y)", "conv/2x1(a, b) = enlarge(a, b)"),
        ("(concat3 0 2 ?x ?y ?z)=>?x", "[a, b, c]0 = a"),
    ],
)
def test_laws_are_equations(tmp_path: Path, text: str, law: str) -> None:
    (rule,) = _texts(tmp_path, "laws.txt", text)
    assert rule.law == law


def test_pools_and_larger_concats_are_translated(tmp_path: Path) -> None:
    text = "(poolavg ?x 2 3 1 2 1 3)=>(poolmax (concat4 1 4 ?x ?x ?x ?x) 2 3 1 2 0 0)"
    (rule,) = _texts(tmp_path, "pools.txt", text)
    assert rule_text(rule).splitlines()[3:5] == [
        "  (from (avg_pool ?a :kernel [2 3] :stride [1 2] :pad valid :act tanh))",
        "  (to (max_pool (concat ?a ?a ?a ?a :axis 1) :kernel [2 3] :stride [1 2] :pad same)))",
    ]


def test_splits_find_the_concat_that_they_undo(tmp_path: Path) -> None:
    product = "(matmul 0 (concat 0 2 ?x ?z) (concat 1 2 ?y (ewadd ?y ?y)))"
    text = f"(matmul 0 ?x ?y)=>(split_0 (split 1 (relu {product})))\n"
    text += f"(matmul 0 ?z ?y)=>(split_1 (split 1 (relu {product})))\n"
    (rule,) = _texts(tmp_path, "cuts.txt", text)
    assert ":sizes (list (dim ?b 1) (dim ?b 1))" in rule_text(rule)
