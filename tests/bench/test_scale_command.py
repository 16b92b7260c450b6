"""The bench of growth, on e-graphs of a few hundred e-nodes; its sums have an exact size."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.scale import command as scale_command
from bench.scale import families, processes
from bench.scale.growth import exponent, exponents, growth_table
from bench.scale.limits import limits_table, look_at_limits
from bench.scale.measure import EXPLORE_PHASES, Row, Task, measure_here


@pytest.fixture(scope="module")
def links() -> Row:
    """Two sums of six terms, measured in this process."""
    return measure_here(Task("chain", 2 * families.LINK_E_NODES, 60.0, "2GB"))


def test_a_chain_of_sums_has_the_size_that_counting_gives(links: Row) -> None:
    assert links.ended == "saturated"
    assert links.e_nodes == 2 * (3**6 - 2**7 + 1) + 2 + 1 + 2 * 5  # sums, relus, input, weights
    assert links.e_classes == 2 * (2**6 - 1 - 6) + 2 + 1 + 2 * 5
    assert links.matches > links.e_nodes


def test_the_transformer_has_the_operators_of_the_exported_block() -> None:
    counts = families.transformer(2).count_ops()
    del counts["fill"]
    assert counts == {
        "add": 16, "matmul": 16, "reshape": 8, "transpose": 8, "layer_norm": 4, "div": 2, "gelu": 2,
        "softmax": 2,
    }  # fmt: skip


def test_the_phases_sum_up_to_the_exploration(links: Row) -> None:
    """Else a phase of the stopwatch has another name now."""
    assert sum(links.seconds.values()) == pytest.approx(links.explore_cpu_s, rel=0.1, abs=0.05)
    assert min(links.seconds.values()) > 0


def test_exponents() -> None:
    assert exponent([(10, 1.0), (100, 10.0), (1000, 100.0)]) == pytest.approx(1.0)
    assert exponent([(10, 0.1), (100, 10.0)]) == pytest.approx(2.0)
    assert exponent([(10, 0.001), (100, 10.0)]) is None  # too short to say anything
    assert exponent([(10, 1.0), (10, 2.0)]) is None


def test_growth_is_fitted_to_complete_runs_alone(links: Row) -> None:
    def timed(e_nodes: int, seconds: float, ended: str = "nodes") -> Row:
        phases = {"match": seconds}
        return replace(links, e_nodes=e_nodes, explore_cpu_s=seconds, ended=ended, seconds=phases)

    rows = [timed(100, 1.0), timed(1000, 10.0), timed(5000, 900.0, "time")]
    assert exponents(rows)["explore"] == pytest.approx(1.0)
    assert exponents(rows)["match"] == pytest.approx(1.0)
    killed = Row("chain", 10**7, "killed", note="no answer after 360 s")
    text = growth_table([*rows, killed])
    assert "no answer after 360 s" in text
    assert text.splitlines()[-1].split()[:6] == ["chain", "grows", "with", "e-nodes", "as", "^1.00"]


def test_limits_are_held_against_what_they_promise(links: Row) -> None:
    """Of a run of ten seconds that is two seconds and a half late at 90 %, and 6 % too large."""
    whole = replace(links, ended="nodes", node_limit=100, most_e_nodes=106, explore_wall_s=10.0)

    def measure(task: Task) -> Row:
        if task.interrupt_s is not None:
            return replace(whole, ended="interrupted", late_s=0.5)
        if task.time_limit_s < 60:
            return replace(whole, ended="time", late_s=2.5 if task.time_limit_s > 8 else 1.5)
        return replace(whole, ended="memory") if task.memory_limit != "2GB" else whole

    seen = list(look_at_limits(Task("chain", 100, 60.0, "2GB"), measure))
    assert [limit.holds for limit in seen] == [False, True, True, True, True, False, True, True]
    assert "ended 2.50 s later" in limits_table(seen)
    assert "106 e-nodes (+6.0%)" in limits_table(seen)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--families", "chains"], "unknown family 'chains'.*'chain'"),
        (["--sizes", "10,x"], "--sizes '10,x', expected whole numbers"),
        (["--layers", "0"], "--layers '0', expected whole numbers"),
        (["--time-limit", "0"], "--time-limit 0.0, expected a number above 0"),
        (["--memory-limit", "much"], "'much', expected a number and a unit"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scale", *arguments]) == 2
    assert re.match(f"error: .*{message}", capsys.readouterr().err)


@pytest.mark.nightly
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a process for each run, as it is used."""
    monkeypatch.setattr(scale_command, "RESULTS", tmp_path)
    arguments = ["scale", "--families", "chain,transformer", "--sizes", "600", "--layers", "1"]
    assert main([*arguments, "--save"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["family", *["chain"] * 2, *["transformer"] * 2]
    (file,) = tmp_path.iterdir()
    saved = json.loads(file.read_text(encoding="utf-8"))
    assert {"commit", "machine", "versions", "settings", "rows", "exponents"} <= set(saved)
    assert [row["ended"] for row in saved["rows"]] == ["saturated"] * 2
    assert set(EXPLORE_PHASES) <= set(saved["rows"][0]["seconds"])
    assert saved["rows"][1]["verified"].startswith("optimal, error ")


def test_what_was_measured_is_kept_when_the_bench_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: Row
) -> None:
    monkeypatch.setattr(scale_command, "RESULTS", tmp_path)
    parser = argparse.ArgumentParser()
    scale_command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["scale", "--families", "chain", "--sizes", "600,1800", "--save"])
    answers = iter([links])

    def measure(task: Task) -> Row:
        try:
            return next(answers)
        except StopIteration:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        scale_command.run(options, measure)
    (file,) = tmp_path.iterdir()
    assert len(json.loads(file.read_text(encoding="utf-8"))["rows"]) == 1


def test_a_run_that_does_not_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_MORE_S", 0.0)
    row = processes.run_task(Task("chain", 600, 0.001, "2GB"))
    assert (row.ended, row.is_complete) == ("killed", False)
    assert row.note == "no answer after 0 s"


def test_a_run_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    row = processes.run_task(Task("chain", 600, 60.0, "much"))
    assert (row.ended, row.note) == ("failed", "exit code 1")
