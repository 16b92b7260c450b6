"""TENSAT's text files: what they say, and what is wrong in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.taso.rule_files import read_rules
from relational_tensat.base.errors import RuleError
from relational_tensat.rules.model import term_text

SUM = "(ewadd ?input_1 ?input_2)=>(ewadd ?input_2 ?input_1)\n"
PAIR = (
    "(relu ?x)=>(split_0 (split 1 (relu (concat 1 2 ?x ?y))))\n"
    "(relu ?y)=>(split_1 (split 1 (relu (concat 1 2 ?x ?y))))\n"
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(text, "utf-8")
    return path


def refused(tmp_path: Path, text: str) -> str:
    path = written(tmp_path, text)
    with pytest.raises(RuleError) as caught:
        read_rules(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    return message.removeprefix(f"{path}:").strip()


def test_a_line_is_a_rule(tmp_path: Path) -> None:
    first, second = read_rules(written(tmp_path, SUM + "\n" + SUM))
    assert [(rule.name, rule.line) for rule in (first, second)] == [
        ("rules-000", 1), ("rules-001", 3),
    ]  # fmt: skip
    assert first.law == "a + b = b + a"
    assert (first.sources, first.targets) == (second.sources, second.targets)


def test_two_lines_are_a_rule_where_targets_are_the_halves_of_a_split(tmp_path: Path) -> None:
    first, second = read_rules(written(tmp_path, SUM + SUM + PAIR))
    assert [len(rule.sources) for rule in (first, second)] == [2, 2]
    assert [rule.line for rule in (first, second)] == [1, 3]
    assert [term_text(source) for source in second.sources] == ["(relu ?a)", "(relu ?b)"]


def test_an_odd_number_of_lines_of_such_a_file_is_refused(tmp_path: Path) -> None:
    for text in (PAIR + SUM, SUM + PAIR):
        assert re.match(r"3: the last of 3 lines, an odd number", refused(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(relu ?x)", r"expected \(source\)=>\(target\) on a line of its own"),
        ("(relu ?x)=>", r"expected \(source\)=>\(target\) on a line of its own"),
        ("(relu ?x)==(relu ?x)", r"expected \(source\)=>\(target\) on a line of its own"),
        ("(relu ?x)=>\n(relu ?x)", r"expected \(source\)=>\(target\) on a line of its own"),
        ("(relu ?x)=>(relu (tanh ?x)", r"'\(' is never closed"),
        ("(relu ?x))=>(relu ?x)", r"'\)' closes nothing"),
        ("(relu ?x]=>(relu ?x)", r"'\]' closes the '\(' of line 2"),
        ("?x=>(relu ?x)", r"the source is the variable \?x, expected an operator"),
        ("(rleu ?x)=>(relu ?x)", r"unknown operator 'rleu', .*; did you mean 'relu'\?"),
        ("()=>(relu ?x)", r"unknown operator '', expected one of conv2d, .*"),
        ("(relu ?x ?y)=>(relu ?x)", r"relu has 2 children, expected 1: tensor"),
        ("(matmul ?x ?y)=>?x", r"matmul has 2 children, expected 3: act tensor tensor"),
        ("(matmul ?x ?y ?z)=>?y", r"matmul's act is '\?x', expected an integer"),
        ("(matmul 1_0 ?y ?z)=>?y", r"matmul's act is '1_0', expected an integer"),
        ("(matmul (relu ?x) ?y ?z)=>?y", r"matmul's act is a list, expected an integer"),
        ("(relu 7)=>?y", r"'7' where a tensor is expected: \?name or \(…\)"),
        ("(relu ?)=>(relu ?)", r"'\?' where a tensor is expected: \?name or \(…\)"),
        (
            "(relu ?x)=>(relu ?y)",
            r"a target uses the input 'y', expected only inputs that a source has: x",
        ),
        ("(matmul 9 ?x ?y)=>?x", r"matmul with act 9, expected one of 0 \(none\), .*"),
        ("(conv2d 1 1 2 0 ?x ?y)=>?x", r"conv2d with pad 2, expected one of 0 \(same\), 1 .*"),
        ("(concat 2 2 ?x ?y)=>?x", r"concat along axis 2 of tensors of rank 2, expected .*"),
        ("(concat 0 2 ?x (conv2d 1 1 0 0 ?x ?x))=>?x", r"concat of tensors of rank 2 has one .*"),
        ("(relu ?x)=>(split 0 (concat 0 2 ?x ?x))", r"a split by itself, expected split_0 .*"),
        ("(relu ?x)=>(split_0 (relu ?x))", r"split_0 of something else, expected split_0 of .*"),
        ("(relu ?x)=>(split_0 (split 0 ?x))", r"split along axis 0, where no concat of that .*"),
        ("(relu ?x)=>(merge ?x 2)", r"merge by itself, expected a conv2d's weight: .*"),
        (
            "(split_0 (split 0 (concat 0 2 ?x ?y)))=>?x",
            r"split or merge in a source, where the file does not say the sizes or groups; .*",
        ),
        (
            "(relu " * 101 + "?x" + ")" * 101 + "=>?x",
            r"more than 100 brackets are open",
        ),
        (
            "(matmul 0 (poolmax ?x 1 1 1 1 0 0) ?y)=>?x",
            r"a matmul of a tensor whose leading dimensions are unknown, expected .*",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    assert re.fullmatch(rf"2: {message}", refused(tmp_path, f"{SUM}{line}\n"))
