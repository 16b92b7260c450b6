"""``python -m bench blocks`` on small graphs."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.blocks import command as blocks_command
from bench.blocks.command import differences, fastest, parse_case
from bench.blocks.measure import BlocksRun, Case
from relational_tensat.base.errors import UsageError
from relational_tensat.explore.strategies.blocks import BlocksReport

RUN = BlocksRun("m", 1, 9, "never", 8, 7, 6, "saturated", 0.1, 0.2, 0.3, 0.4, 5.0, 0.0, None)


def test_both_ways_end_with_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blocks", "transformer_5:1:5000"]) == 0
    _, plain, reused, sentence = capsys.readouterr().out.splitlines()
    plain_cells, reused_cells = plain.split(), reused.split()
    assert plain_cells[2] == "never"
    assert reused_cells[2] == "always"
    assert plain_cells[3:6] == reused_cells[3:6]
    assert plain_cells[-2:] == reused_cells[-2:]
    assert sentence.strip().startswith("blocks: explored 1 distinct of ")


def test_cases_are_read() -> None:
    assert parse_case("vit_huge:2") == Case("vit_huge", 2)
    assert parse_case("transformer_7:1:99") == Case("transformer_7", 1, 99)
    assert "layer2.expand.weight" in Case("transformer_2", 1).build().weights
    for wrong in ("bert", "bert:x", "bert:1:2:3"):
        with pytest.raises(UsageError, match="expected MODEL:K"):
            parse_case(wrong)
    with pytest.raises(UsageError, match="unknown model 'transformer_x'"):
        Case("transformer_x", 1).build()


def test_the_fastest_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    slow = replace(RUN, explore_cpu_s=9.0, explore_s=8.0)
    assert fastest([slow, RUN]) == fastest([RUN, RUN]) == RUN
    assert main(["blocks", "--repeat", "0"]) == 2
    assert "--repeat 0, expected at least 1" in capsys.readouterr().err


def test_saturated_e_graphs_that_differ_are_named() -> None:
    other = replace(RUN, blocks="always")
    assert differences([RUN, other]) == []
    assert differences([RUN, replace(other, e_nodes=9)]) == [
        "m, k_multi=1: e-graphs of (8, 7) and (9, 7)"
    ]
    assert differences([RUN, replace(other, e_nodes=9, stop_reason="time")]) == []


def test_results_are_kept_with_their_circumstances(tmp_path: Path) -> None:
    options = argparse.Namespace(cost="t4", time_limit=60.0, extract_time_limit=20.0, repeat=1)
    report = BlocksReport(5, 1, 4, 2, 100, 0.5, 0.25)
    path = blocks_command.save([RUN, replace(RUN, reused=report)], options, tmp_path)
    stored = json.loads(path.read_text())
    assert stored["runs"][1]["reused"]["copied"] == 100
    assert stored["runs"][0]["reused"] is None
    assert stored["machine"]["cores"]
