"""``python -m bench taso``: the rules of a file judged, and the rule file that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import main
from relational_tensat.cli.main import main as product
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.soundness import verify_rule

TEXT = """\
(ewadd ?x (ewadd ?y ?z))=>(ewadd (ewadd ?x ?y) ?z)
(conv2d 1 1 0 0 ?x (ewadd ?v ?w))=>(ewadd (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?x ?w))
(ewadd ?x ?y)=>(ewmul ?x ?y)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text(TEXT)
    return path


def test_the_table_and_the_rule_file(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = source.with_name("mine.rules")
    assert main(["taso", str(source), "-o", str(output), "--trials", "40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines if line.startswith("mine-")}
    assert "sound" in rows["mine-000"]
    assert "(= " not in rows["mine-000"]
    assert "sound if" in rows["mine-001"]
    assert "(same-except ?b ?c 0)" in rows["mine-001"]
    assert "unsound" in rows["mine-002"]
    assert "on the left" in rows["mine-002"]
    assert "3 rules: 1 sound, 1 sound if, 1 unsound" in lines
    assert lines[-1] == f"written to {output}"
    assert product(["rules", "check", str(output)]) == 0
    assert "3 rules, well-formed, 1 of them marked unsound" in capsys.readouterr().out
    text = output.read_text()
    assert "; mine.txt:3: unsound a " in text
    assert "; mine.txt:2: sound if (same-except ?b ?c 0)" in text
    for rule in load_rules([output]):
        expected = "unsound" if rule.unsound else "sound"
        assert verify_rule(rule, trials=40, shrink=False).status == expected
    assert sorted(path.name for path in source.parent.iterdir()) == ["mine.rules", "mine.txt"]


@pytest.mark.parametrize("text", [TEXT + "(relu ?x)=>\n", TEXT.replace("ewmul", "ewpow")])
def test_nothing_is_written_of_a_malformed_file(
    source: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source.write_text(text)
    output = source.with_name("mine.rules")
    output.write_text("; was there")
    assert main(["taso", str(source), "-o", str(output)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"{source}:" in err
    assert output.read_text() == "; was there"


def test_the_file_itself_is_not_written_over(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["taso", str(source), "-o", str(source)]) == 2
    assert "is the file that is imported" in capsys.readouterr().err
    assert source.read_text() == TEXT
