"""Rule files: those that ship, a user's own, and what is refused."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from bench.models import GraphBuilder
from relational_tensat import Options, optimize
from relational_tensat.base.errors import RuleError, UsageError
from relational_tensat.cli.main import main
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules, shipped_files, taso_rules
from relational_tensat.rules.model import Rule

RULE = '(rule {name} (law "l") (from (relu ?a)) (to (relu ?a)) {flag})'


def write(path: Path, *names: str, flag: str = "") -> Path:
    path.write_text("\n".join(RULE.format(name=name, flag=flag) for name in names), "utf-8")
    return path


def test_shipped_rules_load_and_none_is_unsound() -> None:
    rules = load_rules()
    assert len(rules) > 100
    assert len({rule.name for rule in rules}) == len(rules)
    assert not any(rule.unsound for rule in rules)
    assert {Path(rule.file) for rule in rules} == set(shipped_files())


def test_terms_are_written_as_dataclasses_are() -> None:
    """Rules are hashed by it, and found to be sound by their hashes."""

    def written(value: object) -> str:
        if isinstance(value, tuple):
            return f"({', '.join(map(written, value))}{',' if len(value) == 1 else ''})"
        if not is_dataclass(value):
            return repr(value)
        values = (f"{field.name}={written(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({', '.join(values)})"

    for rule in (*load_rules(), *taso_rules()):
        for part in (rule.sources, rule.targets, rule.conditions, rule.worth):
            assert repr(part) == written(part)


def test_taso_rules_are_139_and_37_of_them_unsound() -> None:
    rules = taso_rules()
    assert [rule.name for rule in rules] == [f"taso-{i:03d}" for i in range(139)]
    assert sum(rule.unsound for rule in rules) == 37
    assert sum(rule.is_multi for rule in rules) == 15
    symmetric = [int(rule.name[-3:]) for rule in rules if rule.symmetric]
    assert symmetric == [127, 128, 129, 130, 131, 132, 134, 135]


def test_files_and_folders(tmp_path: Path) -> None:
    write(tmp_path / "b.rules", "two")
    write(tmp_path / "a.rules", "one")
    other = tmp_path / "deeper"
    other.mkdir()
    single = write(other / "c.txt", "three")
    assert [rule.name for rule in load_rules([tmp_path, single])] == ["one", "two", "three"]


def test_only_and_skip_take_names_and_families(tmp_path: Path) -> None:
    text = '(rule r (law "l") (each ?f relu tanh) (from (?f ?a)) (to (?f ?a)))'
    path = tmp_path / "a.rules"
    path.write_text(text + "\n" + RULE.format(name="s", flag=""), "utf-8")
    assert [r.name for r in load_rules([path], only=["r"])] == ["r[relu]", "r[tanh]"]
    assert [r.name for r in load_rules([path], skip=["r[relu]"])] == ["r[tanh]", "s"]
    assert [r.name for r in load_rules([path], only=["r"], skip=["r[tanh]"])] == ["r[relu]"]


def test_an_unknown_name_names_the_nearest() -> None:
    for only, skip in ((["reassociate-rihgt"], []), ([], ["reassociate-rihgt"])):
        with pytest.raises(UsageError, match="unknown rule 'reassociate-rihgt'; did you mean"):
            load_rules(only=only, skip=skip)


def test_a_name_in_two_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.rules", "same")
    write(tmp_path / "b.rules", "same")
    with pytest.raises(RuleError, match=r"b\.rules:1: .*'same' is already defined in .*a\.rules:1"):
        load_rules([tmp_path])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"none\.rules: No such file"):
        load_rules([tmp_path / "none.rules"])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(RuleError, match=r"empty: has no \*\.rules files"):
        load_rules([empty])
    binary = tmp_path / "x.rules"
    binary.write_bytes(b"; one\n; \xff\n")
    with pytest.raises(RuleError, match=r"x\.rules:2: not UTF-8"):
        load_rules([binary])


def test_rules_are_read_once_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def parse(text: str, file: str) -> list[Rule]:
        texts.append(text)
        return parse_rules(text, file)

    monkeypatch.setattr("relational_tensat.rules.library.parse_rules", parse)
    path = write(tmp_path / "a.rules", "one")
    first = load_rules([path])
    assert [load_rules([path]), load_rules([tmp_path])] == [first, first]
    assert len(texts) == 1
    write(path, "one", "two")
    assert [rule.name for rule in load_rules([path])] == ["one", "two"]
    assert len(texts) == 2
    first.clear()  # what a caller does with its list is its own matter
    assert len(load_rules([path])) == 2


def test_a_file_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zero.rules"
    path.symlink_to("/dev/zero")
    with pytest.raises(RuleError, match=r"zero.rules: has more than 16 MiB, the limit"):
        load_rules([path])


def test_a_new_rule_is_one_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its text is all: it is verified, explored, named as a ruleset, printed and shown as SQL."""
    path = tmp_path / "mine.rules"
    path.write_text(
        '(rule double-negative (law "-(-x) = x") (from (neg (neg ?x))) (to ?x))', encoding="utf-8"
    )
    builder = GraphBuilder("double")
    x = builder.input("x", 4, 4)
    graph = builder.build(builder.op("relu", builder.op("neg", builder.op("neg", x))))
    result = optimize(graph, Options.of(rules=(path,)))
    assert result.rules["double-negative"].applied == 1
    assert [node.op for node in result.graph.nodes] == ["relu"]
    assert result.untrusted_rules == {}
    (rule,) = load_rules([path])
    assert rule.family == "mine"
    for command in (["list"], ["show", "double-negative"], ["show", "double-negative", "--sql"]):
        assert main(["rules", *command, "--rules", str(path)]) == 0
        assert "double-negative" in capsys.readouterr().out
