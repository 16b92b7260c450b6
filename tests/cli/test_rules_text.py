"""What rules may say is listed in full, from the registries that rules are read with."""

from __future__ import annotations

import json
import re

import pytest

from relational_tensat.base.errors import RuleError
from relational_tensat.cli.main import main
from relational_tensat.rules.functions import functions
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor.operators import get_operator, operators


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["rules", *arguments]) == 0
    return capsys.readouterr().out


def test_every_function_is_listed_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "functions")
    for function in functions().values():
        (line,) = (line for line in text.splitlines() if line.startswith(f"{function.signature} "))
        assert function.meaning
        assert line.rstrip().endswith(function.meaning)
    assert text.splitlines()[-1] == f"{len(functions())} functions"


def block(text: str, name: str) -> str:
    """Return the lines of an operator, as one."""
    match = re.search(rf"^{name} .*\n(?: .*\n)*", text, re.MULTILINE)
    assert match is not None
    return re.sub(r"\s+", " ", match[0])


def test_the_operators_listed_are_those_that_rules_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = {entry["name"]: entry for entry in json.loads(printed(capsys, "operators", "--json"))}
    text = printed(capsys, "operators")
    for name in operators():
        with pytest.raises(RuleError) as refused:
            parse_rules(f'(rule r (law "l") (from ({name} nonsense)) (to ?x))', "r.rules")
        assert (name in listed) != ("cannot be used in rules" in str(refused.value))
    for name, entry in listed.items():
        operator = get_operator(name)
        assert [a["name"] for a in entry["attributes"]] == [a.name for a in operator.attrs]
        assert entry["operands"] == list(operator.arity)
        assert entry["meaning"]
        assert entry["kernel"] == operator.kernel
        assert all(f":{attr.name} " in block(text, name) for attr in operator.attrs)
    assert max(map(len, text.splitlines())) <= 100


def test_defaults_and_choices_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "operators")
    conv = block(text, "conv")
    assert ":dilation ints=[]" in conv
    assert ":act none|relu|sigmoid|tanh=none" in conv
    assert ":stride ints " in conv
    entries = {entry["name"]: entry for entry in json.loads(printed(capsys, "operators", "--json"))}
    stride, _, dilation, _ = entries["conv"]["attributes"]
    assert (stride["required"], dilation["required"], dilation["default"]) == (True, False, [])


def test_functions_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(printed(capsys, "functions", "--json"))
    assert [entry["name"] for entry in listed] == list(functions())
    assert next(e for e in listed if e["name"] == "dim")["params"] == ["tensor", "int"]
