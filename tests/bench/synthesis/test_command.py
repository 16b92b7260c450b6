"""``bench synthesis`` on its smallest parts."""

from __future__ import annotations

import pytest

from bench.__main__ import main
from bench.synthesis import planted, taso


def test_tasos_rules_of_groups_are_found_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (*_, groups) = taso.worlds()
    monkeypatch.setattr(taso, "worlds", lambda: [groups])
    assert main(["synthesis", "taso"]) == 1  # others are in other worlds
    assert "groups: 4 rules that no world before has" in capsys.readouterr().out


def test_terms_by_the_million_are_not_those_of_two_matrices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(taso, "_FIVE", "ab")
    assert main(["synthesis", "terms"]) == 1
    terms = capsys.readouterr().out.partition(" terms, ")[0]
    assert 10_000 < int(terms.replace(",", "")) < 1_000_000


def test_planted_laws_are_refuted_or_repaired(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    laws = {name: planted.FALSE_LAWS[name] for name in ("truths by order", "clip in order")}
    monkeypatch.setattr(planted, "FALSE_LAWS", laws)
    monkeypatch.setattr(planted, "load_rules", lambda paths: [])
    monkeypatch.setattr(planted, "_MANY", 60)
    assert main(["synthesis", "planted"]) == 0
    printed = capsys.readouterr().out
    assert "truths by order: refuted" in printed
    assert "clip in order: sound (<= 0 ?m)" in printed
