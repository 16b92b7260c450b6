"""Files of rules: known by what is in them, refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.taso.rule_files import read_rules
from relational_tensat.base.errors import RuleError
from tests.bench.taso.encoder import reassociation

TEXT = b"(matmul 0 (matmul 0 ?x ?y) ?z)=>(matmul 0 ?x (matmul 0 ?y ?z))\r\n"


def test_the_kind_is_seen_by_the_content(tmp_path: Path) -> None:
    rules = []
    for name, data in (("a.pb", TEXT), ("a.txt", reassociation())):
        path = tmp_path / name
        path.write_bytes(data)
        (rule,) = read_rules(str(path))
        rules.append((rule.name, rule.law, rule.sources, rule.targets, rule.conditions))
    assert rules[0] == rules[1]


def test_names_have_no_character_that_names_cannot_have(tmp_path: Path) -> None:
    path = tmp_path / "my rules (2).txt"
    path.write_bytes(TEXT)
    assert read_rules(path)[0].name == "my-rules-2-000"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "has no rules, expected TASO's protocol buffers or TENSAT's text"),
        (b"; only a comment\n", "has no rules"),
        (b"\xff\xfe(\x00", "byte 0"),
        (b"not rules at all\n", ":1: expected (source)=>(target)"),
    ],
)
def test_what_has_no_rules(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "rules"
    path.write_bytes(data)
    with pytest.raises(RuleError) as caught:
        read_rules(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="none: no such file"):
        read_rules(tmp_path / "none")
    with pytest.raises(RuleError, match="is a folder, expected a file of rules"):
        read_rules(tmp_path)
