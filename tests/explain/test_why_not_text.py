"""What ``explain --why-not`` prints, for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from tests.explain.why_not_runs import Ran, convolutions, printed, sums


@pytest.fixture(scope="module")
def ran() -> Ran:
    return Ran(sums(), "twice", "swap", "big-only")


# --- what is printed ---


def test_the_last_condition_is_named_in_one_line() -> None:
    text = printed(Ran(convolutions()).ask("one-group"))
    assert "the run did not have this rule" in text
    assert "the last were rejected by (where (= (groups ?x ?w) 1)): (groups ?x ?w) = 32 (2)" in text


def test_places_are_the_names_of_the_models_tensors(ran: Ran) -> None:
    text = printed(ran.ask("swap"))
    assert (
        "6 passed: 3 the result computes what the rule built; 3 applied, but extraction chose"
        in text
    )
    assert f"the extracted graph costs {ran.ask('swap').result_us:,.2f}" in text


def test_all_of_it_is_json(ran: Ran) -> None:
    answer = json.loads(json.dumps(ran.ask("swap", "s").to_json()))
    (trace,) = answer["traces"]
    assert (answer["rule"], answer["tensor"], answer["in_run"]) == ("swap", "s", True)
    assert trace["counts"] == {"chosen": 1, "not chosen": 1}
    assert trace["steps"][0] == {
        "stage": "find", "requirement": "an e-node is add", "left": 2, "source": 1, "instead": [],
    }  # fmt: skip


# --- the command ---


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("run") / "run.duckdb"
    ran = Ran(sums(), "twice", "swap", file=file)
    ran.egraph.close()
    return str(file)


def test_the_command_prints_text_or_json(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", database, "--why-not", "swap", "--at", "s"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("swap: a + b = b + a\nin the run: iteration 1: 3 matched")
    assert main(["explain", database, "--why-not", "swap", "--at", "s", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert (answer["rule"], answer["tensor"], answer["in_run"]) == ("swap", "s", True)


def test_a_rule_can_be_taken_from_a_file(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.rules"
    file.write_text('(rule m (law "l") (each ?f tanh neg) (from (?f ?x)) (to (?f ?x)))')
    assert main(["explain", database, "--why-not", "m", "--rules", str(file)]) == 0
    text = capsys.readouterr().out
    assert text.count("the run did not have this rule") == 2
    assert "no match: no place where an e-node is tanh" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--at", "s"], "--at needs --why-not RULE"),
        (["--rules", "mine.rules"], "--rules needs --why-not RULE"),
        (["--why-not", "swup"], "unknown rule 'swup'; did you mean 'swap'?"),
        (["--why-not", "swap", "--at", "rrr"], "unknown tensor 'rrr'; did you mean 'rr'?"),
    ],
)
def test_what_cannot_be_asked(
    database: str, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", database, *arguments]) == 2
    assert capsys.readouterr().err == f"relational-tensat: {reason}\n"
