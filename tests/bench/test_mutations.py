"""Damaged files through the command line: one line for each, and never an internal error."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.mutations import verdicts
from bench.mutations.runs import INTERNAL_ERROR, run_mutations
from bench.mutations.seeds import seed_rules, write_seeds
from relational_tensat.rules.language import parse_rules


@pytest.mark.nightly
def test_no_damage_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = write_seeds(tmp_path, seed_rules())
    outcomes = run_mutations(seeds, tmp_path, count=2000, seed=0)
    assert outcomes.failures == []
    assert outcomes.codes[INTERNAL_ERROR] == 0
    assert outcomes.codes[0] > 100  # not all damage matters: the files do reach the program
    assert outcomes.codes[3] > 1000


def test_rules_that_are_judged_wrongly_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    true = '(rule true (law "l") (from (neg (neg ?x))) (to ?x))'
    false = '(rule false (law "l") (from (sub ?x ?y)) (to (sub ?y ?x)))'
    monkeypatch.setattr(verdicts, "rules_that_are", lambda word: parse_rules(true + false, "f"))
    lines, mistakes = verdicts.judged(seed=0, jobs=1)
    assert [line.partition(":")[2] for line in lines] == [" 1 sound, 1 unsound"] * 2
    assert [mistake.partition(":")[0] for mistake in mistakes] == [
        "true (wrong) is sound",
        "false (right) is unsound",
    ]


def test_the_rules_of_the_bench_are_well_formed_and_many() -> None:
    assert len(verdicts.rules_that_are("wrong")) >= 150
    assert len(verdicts.rules_that_are("right")) >= 35
