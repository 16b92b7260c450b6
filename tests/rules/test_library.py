"""Rule files: those that ship, a user's own, and what is refused."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from relational_tensat.base.errors import RuleError, UsageError
from relational_tensat.rules.library import load_rules, shipped_files, taso_rules

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
