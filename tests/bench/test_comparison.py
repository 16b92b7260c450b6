from __future__ import annotations

import dataclasses

from bench.tensat.comparison import compare
from bench.tensat.measure import Run
from bench.tensat.peer import PeerRun

RUN = Run(
    model="bert", k_multi=1, e_nodes=1530, e_classes=586, iterations=8, statements=400,
    stop_reason="saturated", explore_cpu_s=1.22, explore_wall_s=1.3, extract_s=0.5,
    cost_before_us=816.2, cost_after_us=620.24, gap=0.0,
    extract_cpu_s=0.45, join_ms=2.0,
)  # fmt: skip
PEER = {
    ("bert", 1): PeerRun("bert", 1, 0.122, 1530, 586, 8, "saturated", 816.2, 620.2),
    ("nasnet_a", 1): PeerRun("nasnet_a", 1, 0.286),
}


def rows(text: str, model: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.startswith(model + " ")]


def test_equal_figures_stand_beside_each_other_unmarked() -> None:
    exploration, extraction = rows(compare([RUN], PEER), "bert")
    assert exploration == [
        "bert", "1", "1,530", "1,530", "586", "586", "8", "8", "400", "1.220", "0.122", "10.0x",
        "1.300", "saturated",
    ]  # fmt: skip
    assert extraction == [
        "bert", "1", "0.450", "0.500", "816.2", "816.2", "620.2", "620.2", "24.0%", "0.00%",
    ]  # fmt: skip


def test_differences_are_marked() -> None:
    run = dataclasses.replace(
        RUN, e_nodes=1531, cost_before_us=800.0, cost_after_us=630.0, gap=0.038
    )
    exploration, extraction = rows(compare([run], PEER), "bert")
    assert exploration[2:7] == ["1,531", "1,530", "!", "586", "586"]
    assert extraction[4:7] == ["800.0", "816.2", "!"]
    assert extraction[7:10] == ["630.0", "620.2", ">"]
    assert extraction[-1] == "3.80%"
    cheaper = dataclasses.replace(RUN, cost_after_us=600.0)
    assert rows(compare([cheaper], PEER), "bert")[1][6:9] == ["600.0", "620.2", "<"]


def test_what_the_peer_lacks_is_left_open() -> None:
    run = dataclasses.replace(RUN, model="nasnet_a")
    exploration, extraction = rows(compare([run], PEER), "nasnet_a")
    assert exploration[2:8] == ["1,530", "-", "586", "-", "8", "-"]
    assert extraction[4:8] == ["816.2", "-", "620.2", "-"]
    unknown = dataclasses.replace(RUN, model="own", k_multi=7)
    assert rows(compare([unknown], PEER), "own")[0][9:12] == ["1.220", "-", "-"]


def test_totals_cover_the_runs_that_the_peer_has() -> None:
    second = dataclasses.replace(RUN, model="nasnet_a", iterations=2, statements=120)
    unknown = dataclasses.replace(RUN, model="own")
    text = compare([RUN, second, unknown], PEER)
    assert "exploration of 2 runs: 2.44 CPU s, peer 0.41, 6.0x" in text
    assert "as long as 1,220 joins of three times 1,000 rows (2.00 ms then)" in text
    assert "at most 60 statements an iteration" in text
