"""``python -m bench mirage`` on one benchmark."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.emulation.fewer_blocks import single_kernels, with_fewer_blocks, with_outputs
from bench.mirage import command
from bench.mirage.cases import TABLE_5, Case, cases
from bench.mirage.figures import FIGURES, drawn
from bench.mirage.folder import write_figures, write_runs, write_searches
from bench.mirage.machine_code import is_fit, kept_runs
from bench.mirage.measure import MirageRun, SearchRun
from bench.mirage.values import is_right, value_rows
from relational_tensat.mugraph.graph.mugraph_json import content_hash, decoded, encoded
from relational_tensat.mugraph.graph.validity import block_tensors, kernel_tensors
from relational_tensat.mugraph.search.search_options import SearchOptions
from tests.gpu.test_nvrtc import needs_nvrtc
from tests.mugraph.kernels.mugraphs import ntrans, rmsnorm_linear, split_attention
from tests.with_compilers import skip_without_compiler


def search_run(case: str = "LoRA 1", disabled: tuple[str, ...] = ()) -> SearchRun:
    """Return a search with figures that differ."""
    return SearchRun(case, 2, 7, disabled, 10, 3, 233, 1376, 1145, 20, 5, True, 1.5)


def test_a_benchmark_is_searched_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mirage", "MLP 1", "--max-kernels", "1"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    cells = row.removeprefix("MLP 1").split()
    assert cells[:6] == ["1", "1", "45", "147", "139", "12"]
    assert cells[-5:] == ["3x", "up", "to", "6", "h"]


def test_candidates_for_a_gpu_are_kept_as_benchmarks_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    assert main(["mirage", "nTrans", "--max-kernels", "1", "--tune", "3", "--save"]) == 0
    name, times = capsys.readouterr().out.splitlines()[0].split(": ")
    assert name == "nTrans, 1"
    (path,) = tmp_path.glob("mirage-*/tunings.json")
    (run,) = kept_runs(path)
    costs_us = [run["best_us"], *(other["us"] for other in run["others"])]
    assert times.split() == [f"{us:.2f}" for us in costs_us]
    assert costs_us == sorted(costs_us) and len(costs_us) == 3
    graphs = [decoded(each["mugraph"], name) for each in (run, *run["others"])]
    assert len({content_hash(graph) for graph in graphs}) == 3


def test_an_unknown_benchmark_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mirage", "LoRa 1"]) == 2
    assert "did you mean 'LoRA 1'" in capsys.readouterr().err
    assert main(["mirage", "LoRA 1", "--max-kernels", "1,none"]) == 2
    assert "expected numbers such as 1,5" in capsys.readouterr().err


def test_the_benchmarks_are_those_of_the_paper_at_two_batches() -> None:
    known = {case.name: case for case in cases()}
    assert len(known) == 2 * (12 + 4) + 5
    for case in known.values():
        assert case.build().inputs
    assert known["GQA speculative 8"].sizes == {"h": 16, "q": 256, "d": 128, "k": 4096, "e": 128}
    assert set(TABLE_5) == {4, 5, 6, 7}
    assert {figure.case for figure in FIGURES} <= set(known)


def test_results_are_kept_with_their_circumstances(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    nan = float("nan")
    runs = [
        MirageRun(search_run(), "2.3x", "up to 6 h", 1, 28, 2, 2.5, 17.4, 5.2, {"name": "lora"}),
        MirageRun(search_run("nTrans"), "", "", 0, 0, 0, 2.5, 17.4, nan, None),
    ]
    path = write_runs(runs, {"max_kernels": "2"}, tmp_path)
    assert "| LoRA 1 | 2 | 1 | 233 | 1,376 | 1,145 | 20 | 28 | 2 | - | 2.5 |" in path.read_text(
        "utf-8"
    )
    content = json.loads((tmp_path / "benchmarks.json").read_text("utf-8"))
    assert content["settings"] == {"max_kernels": "2"} and "load_average" in content
    assert content["runs"][0]["mugraph"] == {"name": "lora"}
    assert content["runs"][1]["best_us"] is None
    with (tmp_path / "benchmarks.csv").open(encoding="utf-8", newline="") as file:
        assert [row["ratio"] for row in csv.DictReader(file)] == ["3.3x", "-"]
    assert (tmp_path / "benchmarks.png").stat().st_size > 10_000
    searches = [(search_run(disabled=means), "9 s") for means in ((), ("pruning",))]
    write_searches([*searches, (search_run("nTrans"), "")], {}, tmp_path)
    assert "| 7 | pruning | 1 | 233 |" in (tmp_path / "searches.md").read_text("utf-8")
    assert {"table5.csv", "table5.png", "ntrans.png"} <= {p.name for p in tmp_path.iterdir()}


def test_where_few_operators_meet_the_limit_more_are_not_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure_search(case: Case, options: SearchOptions) -> SearchRun:
        is_complete = "pruning" not in options.disable or options.max_operators < 5
        processes = 1 if options.on == "here" else 2
        run = replace(search_run(case.name, options.disable), processes=processes)
        return replace(run, max_operators=options.max_operators, is_complete=is_complete)

    monkeypatch.setattr(command, "measure_search", measure_search)
    assert main(["mirage", "--ablation"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    limits = [row for row in rows if "1.5+" in row or "over limit" in row]
    assert [row.split()[3:5] for row in limits] == [[str(n), "pruning"] for n in (5, 6, 7)]
    assert ["over limit" in row for row in limits] == [False, True, True]
    assert all(row.endswith("> 12 h") for row in limits[1:])


@pytest.mark.nightly
def test_figure_10_is_drawn(tmp_path: Path) -> None:
    text = drawn(FIGURES[-1])
    assert "store t1 → part1[k'=16" in text and "| k2 | part1 |" in text
    path = write_figures([text], tmp_path)
    assert "## Figure 10" in path.read_text("utf-8")


def test_fewer_blocks_have_the_same_tiles() -> None:
    """Keys are split among blocks and iterations; what the second kernel adds up is an input of its own."""
    whole = split_attention(k=96 * 4, loop=12)
    first, second = map(with_fewer_blocks, single_kernels(whole))
    (kernel,) = first.kernels
    assert (kernel.block.grid, kernel.block.loop) == ((2,), 2)
    tiles = block_tensors(whole.kernels[0], kernel_tensors(whole)).dims
    assert block_tensors(kernel, kernel_tensors(first)).dims == tiles
    assert list(second.inputs) == ["A", "L", "M"] and not second.outputs
    assert with_outputs(first).outputs == kernel.outputs


@pytest.mark.nightly
def test_kept_kernels_run_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skip_without_compiler("c")
    skip_without_compiler("cuda")
    right = replace(rmsnorm_linear(2, 64, 64, 16, 16), name="RMSNorm + Linear")
    chain = ntrans(8, 4096, 8)
    kept = [
        {"search": {"case": name, "max_kernels": 1}, "mugraph": encoded(graph)}
        for name, graph in (("RMSNorm + Linear", right), ("nTrans", chain))
    ]
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps({"runs": kept}), encoding="utf-8")
    assert (
        main(["mirage", "--code", str(path), "--values", "--target", "c"]) == 4
    )  # epsilon is not 0
    path.write_text(json.dumps({"runs": kept}).replace("1e-06", "0.0"), encoding="utf-8")
    capsys.readouterr()
    assert main(["mirage", "--code", str(path), "--values", "--target", "c"]) == 0
    _, product, norm, together = capsys.readouterr().out.splitlines()
    assert "left out: rmsnorm_linear: " in product
    assert "n=4096" in norm and "beside the program" in together
    (row,) = value_rows(kept[0], "cuda")
    assert row[:4] == ("RMSNorm + Linear", "rmsnorm_linear", "m=2 k=8 n=8", "2 loop 2")
    assert is_right(row) and 0 < float(row[4]) < 1e-3
    assert not is_right((*row[:4], "2.0e-03", "1e-03", ""))
    assert not is_right((*row[:4], "-", "-", "k1: 3 races in shared memory"))


@needs_nvrtc
def test_kept_kernels_compile_without_spills(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    graph = encoded(rmsnorm_linear())
    runs = [
        MirageRun(search_run("RMSNorm"), "", "", 1, 28, 2, 2.5, 17.4, 5.2, graph),
        MirageRun(search_run("nTrans"), "", "", 0, 0, 0, 2.5, 17.4, float("nan"), None),
    ]
    write_runs(runs, {}, tmp_path)
    kept = str(tmp_path / "benchmarks.json")
    assert main(["mirage", "--code", kept, "--save"]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:3] for row in rows] == [
        ["RMSNorm", "rmsnorm_linear", arch] for arch in ("sm_80", "sm_90", "sm_100")
    ]
    assert (tmp_path / "code-cuda.csv").read_text("utf-8").count("rmsnorm_linear") == 3
    assert not is_fit(("nTrans", "-", "-", "-", "-", "-", "no such operator"))
    assert is_fit(("nTrans", "k1", "sm_80", "255", "99", "64", ""))
    assert not is_fit(("nTrans", "k1", "sm_80", "255", "99", "4096", ""))
    assert not is_fit(("nTrans", "k1", "sm_80", "255", "180304", "0", ""))
    assert main(["mirage", "--code", str(tmp_path / "benchmarks.csv")]) == 3
    assert "no kept benchmarks" in capsys.readouterr().err
