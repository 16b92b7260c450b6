"""The report for people and the one for programs."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from relational_tensat.cli.run_progress import ConsoleProgress, shown_progress
from relational_tensat.cli.run_text import json_report, print_report, summary_line
from relational_tensat.explore import IterationReport
from relational_tensat.extract.kept_choice import ExtractionEntry
from relational_tensat.run.result import Result
from relational_tensat.run.result_groups import ExtractionSummary, Rejection
from relational_tensat.tensor import Node
from relational_tensat.verify.comparison import Compared, OutputCheck, Setting
from relational_tensat.verify.verification import UNCHANGED, Verification
from tests.cli.results import changed, example_result
from tests.cli.schema import check_schema
from tests.graphs import f32


def printed(result: Result, *, terminal: bool | None = None, details: bool = True) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, highlight=False, force_terminal=terminal)
    print_report(result, console, details=details)
    return file.getvalue()


def test_the_json_object_has_the_documented_schema() -> None:
    report = json.loads(json_report(example_result()))
    check_schema(report)
    assert report["rules"]["merge-matmuls"] == {"matches": 3, "applied": 1, "seconds": 0.25}
    assert report["verified"] == {
        "ok": True,
        "unproven": "",
        "max_relative_error": 1.5e-15,
        "runs": 2,
        "stand_ins": [],
        "comparisons": [
            {
                "what": "float64, random weights",
                "rows": "",
                "sizes": "",
                "runs": 2,
                "demand": "tolerance 1e-06",
                "max_relative_error": 1.5e-15,
            }
        ],
    }
    assert report["output"] == "models/pair.opt.json"
    check_schema(json.loads(json_report(changed(example_result(), output=None))))


def test_json_never_holds_infinity() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_report(changed(example_result(), gap=math.inf))


def test_the_report_says_what_was_gained_and_how() -> None:
    text = printed(example_result())
    assert "modelled for t4, not timed here: 40.00 → 30.00 µs (25.00% less)" in text
    assert "1,530 e-nodes in 586 e-classes, 8 iterations; the last iteration added nothing" in text
    assert "merge-matmuls" in text
    assert "relu-relu" not in text  # it matched, but made nothing of the result
    assert "load 0.50 s (25%), price 0.06 s (3%), explore 1.00 s (50%)" in text
    assert "written to models/pair.opt.json" in text
    assert "note: a note" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["matmul", "2", "1", "-1"] in rows
    assert ["split", "0", "1", "+1"] in rows
    assert ["add", "1", "1"] in rows
    assert not any(row[:1] == ["concat"] for row in rows)  # on weights only: not at inference


def test_the_report_has_what_a_run_takes_beside_kernels() -> None:
    result = example_result()
    same, other, unchanged = (
        " ".join(printed(each).split())
        for each in (
            changed(result, run_us=10.0, run_after_us=10.0),
            changed(result, run_us=26.0, run_after_us=10.0),
            changed(result, run_us=10.0, run_after_us=10.0, after_us=40.0, unchanged=True),
        )
    )
    assert "(25.00% less) 20.00% less with the 10.0 µs that a run takes beside kernels" in same
    assert (
        "(25.00% less) 39.39% less with the 26.0 and 10.0 µs that a run takes beside kernels"
        in other
    )
    assert "beside kernels" not in unchanged


def test_verification_is_reported_with_what_was_checked() -> None:
    text = printed(example_result())
    assert "verified: 2 comparisons, worst relative error 1.50e-15" in text
    assert "float64, random weights: 2 runs" in text
    assert "worst 1.50e-15" in text
    assert "caution: 2 of 2 weights have no data" in text


def test_comparisons_of_one_kind_are_one_line() -> None:
    what = "float64, random weights"
    settings = [
        Setting(what),
        Setting(what, "rows of 'mask'"),
        Setting(what, sizes="batch=3"),
        Setting("onnxruntime, the two files"),
    ]
    errors = [1e-9, 3e-9, 2e-9, 1e-7]
    outputs = [
        OutputCheck(setting, "y", f32(4), error, 1e-6)
        for setting, error in zip(settings, errors, strict=True)
    ]
    compared = [Compared(setting, 2, "random inputs", "tolerance 1e-06") for setting in settings]
    verification = Verification(8, tuple(outputs), tuple(compared))
    lines = printed(changed(example_result(), verification=verification)).splitlines()
    first = lines.index("verified: 8 comparisons, worst relative error 1.00e-07")
    assert lines[first + 1 : first + 5] == [
        f"  {what}: 6 runs on random inputs, 2 of them masked, at 2 sizes, tolerance 1e-06; worst 3.00e-09",
        "  onnxruntime, the two files: 2 runs on random inputs, tolerance 1e-06; worst 1.00e-07",
        "  masked: rows of 'mask'",
        "  sizes: batch=3",
    ]


def test_optimal_is_reported_only_when_proven() -> None:
    result = example_result()
    gap = "gap 10.00% (no graph in it costs less than 27.00 µs)"
    assert gap in printed(result)
    assert "optimal" not in printed(result)
    proven = changed(result, optimal=True, gap=0.0, bound_us=30.0)
    assert "optimal for this e-graph; beyond it, no bound is known" in printed(proven)
    closed = changed(proven, exhaustive=True)
    assert "optimal for every graph that the rules can reach" in printed(closed)
    assert "no bound" in printed(changed(result, bound_us=0.0, gap=1.0))


def test_the_summary_is_one_line() -> None:
    line = summary_line(example_result())
    assert "\n" not in line
    assert "40.00 → 30.00 µs" in line
    assert "gap 10.00%" in line


def test_verified_is_reported_only_where_something_was_compared() -> None:
    compared = example_result()
    assert "verified, worst relative error 1.5e-15" in summary_line(compared)
    same = changed(compared, unchanged=True, verification=UNCHANGED)
    assert "the original, unchanged" in summary_line(same)
    assert "nothing compared: the original, unchanged" in printed(same)
    for text in (summary_line(same), printed(same)):
        assert "verified" not in text
    assert not json.loads(json_report(same))["verified"]["ok"]


@pytest.mark.parametrize("is_excused", [True, False])
def test_what_no_comparison_proves_is_the_first_that_is_reported(is_excused: bool) -> None:
    """Another comparison that proves something does not make up for one that had to be excused."""
    settings = Setting("float64"), Setting("onnxruntime")
    checks = (
        OutputCheck(settings[0], "y", f32(4), 0.0, 1e-3, is_excused, "0: proves nothing"),
        OutputCheck(settings[1], "y", f32(4), 0.1, 0.2, False, "moved: proves nothing", "", is_excused),
    )  # fmt: skip
    compared = tuple(Compared(setting, 1, "random inputs", "tolerance") for setting in settings)
    result = changed(example_result(), verification=Verification(2, checks, compared))
    reason = (
        "output 'y' is moved: proves nothing (onnxruntime)"
        if is_excused
        else "output 'y' is 0: proves nothing (float64)"
    )
    text = printed(result)
    assert text.splitlines()[0] == f"NOT PROVEN: {reason}"
    assert "not proven: 2 comparisons" in text and "verified" not in text
    assert f"not proven: {reason}" in summary_line(result)
    assert json.loads(json_report(result))["verified"]["unproven"] == reason
    assert not json.loads(json_report(result))["verified"]["ok"]


def test_a_rejected_graph_is_the_first_that_is_reported() -> None:
    rejection = Rejection("step 3 is wrong: the original is kept", "some-rule", ("a = b",))
    result = changed(
        example_result(), unchanged=True, rejections=(rejection,), notes=(rejection.why, "more")
    )
    lines = printed(result).splitlines()
    assert lines[:2] == [rejection.why, "  a = b"]
    assert printed(result).count(rejection.why) == 1
    assert "note: more" in lines
    assert rejection.why in summary_line(result)
    report = json.loads(json_report(result))
    check_schema(report)
    assert report["rejections"] == [
        {"why": rejection.why, "rule": "some-rule", "reproduction": ["a = b"]}
    ]
    assert report["notes"] == [rejection.why, "more"]
    assert report["cautions"] == list(result.verification.warnings)


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[3" in printed(example_result(), terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(example_result(), terminal=True)


def test_progress() -> None:
    file = io.StringIO()
    progress = ConsoleProgress(Console(file=file, width=200))
    progress.phase("explore")
    progress.phase("explore")
    progress.iteration(IterationReport(2, 1530, 586, 44, 3, 0, 30, 0.5))
    progress.extraction(math.inf, 0.0)
    progress.extraction(50.0, 40.0)  # too soon after the last to be read
    assert file.getvalue().splitlines() == [
        "explore …",
        "  iteration 2: 1,530 e-nodes, 586 classes, 44 matches, 0.50 s",
        "  best graph none yet, bound none yet",
    ]


def with_extractions() -> Result:
    """Return a result with extractions between iterations, the last one interrupted."""
    log = tuple(IterationReport(i, 20 * i, 15, 4, 2, 0, 30, 0.5) for i in (1, 2))
    result = example_result()
    return changed(
        result,
        exploration=replace(result.search.exploration, stop_reason="patience", log=log),
        extraction=ExtractionSummary(
            e_nodes=1500,
            e_classes=580,
            reduced_e_nodes=210,
            reduced_e_classes=90,
            components=7,
            distinct_components=2,
            reductions={"dominated": 700, "free-classes": 500, "unreachable": 80, "must": 10},
            interrupted=True,
        ),
        extractions=(
            ExtractionEntry(1, 34.5, 34.5, 27.0, False, 0.5, False),
            ExtractionEntry(2, 30.0, 30.0, 30.0, True, 0.25, False),
            ExtractionEntry(2, 30.0, 30.0, 30.0, True, 0.25, True),
        ),
    )


def test_the_report_shows_reductions_and_extractions_in_between() -> None:
    text = printed(with_extractions())
    assert "1,500 e-nodes in 580 e-classes → 210 in 90, 7 components (5 as others) (" in text
    assert "dominated 700, free-classes 500, unreachable 80, 1 more" in text
    assert "interrupted" in text
    assert "gains became too small" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "20", "15", "0.50", "34.50", "27.00", "0.50"] in rows
    assert ["2", "40", "15", "0.50", "30.00", "optimal", "0.50"] in rows
    plain = printed(example_result())
    assert "best µs" not in plain
    assert "reduced:" not in plain


def test_the_json_object_has_reductions_and_extractions() -> None:
    report = json.loads(json_report(with_extractions()))
    check_schema(report)
    assert report["extraction"]["reduced_e_nodes"] == 210
    assert report["extraction"]["reductions"]["must"] == 10
    assert report["extraction"]["components"] == 7
    assert [extraction["best_us"] for extraction in report["extractions"]] == [34.5, 30.0, 30.0]


def test_progress_tells_of_extractions_in_between() -> None:
    file = io.StringIO()
    progress = ConsoleProgress(Console(file=file, width=100))
    progress.extracted(ExtractionEntry(1, 34.5, 34.5, 34.5, True, 0.5, False))
    assert "34.50 µs, optimal for this e-graph" in file.getvalue()


def test_a_profile_shows_phases_statements_and_pythons_share() -> None:
    file = io.StringIO()
    console = Console(file=file, width=200, highlight=False)
    print_report(example_result(), console, details=True)
    text = file.getvalue()
    rows = [line.split() for line in text.splitlines()]
    begin = next(i for i, row in enumerate(rows) if row[:2] == ["phase", "statement"])
    assert rows[begin + 2 : begin + 15] == [
        ["match", "0.750", "37.5%"],
        ["match", "3", "40", "0.500", "25.0%"],
        ["application", "3", "4", "0.125", "6.2%"],
        ["(Python)", "0.124", "6.2%"],
        ["(all", "others)", "7", "0.001", "0.1%"],
        ["load", "0.500", "25.0%"],
        ["extract", "0.250", "12.5%"],
        ["verify", "0.250", "12.5%"],
        ["apply", "0.125", "6.2%"],
        ["hash_cons", "1", "12", "0.062", "3.1%"],
        ["(Python)", "0.062", "3.1%"],
        ["price", "0.062", "3.1%"],
        ["other", "0.062", "3.1%"],
    ]
    assert "of 2.00 s, 0.69 s (34%) in 14 statements of DuckDB, 1.31 s in Python" in text
    assert "hash_cons" not in printed(example_result(), details=False)


def test_operators_that_no_rule_looks_into_go_by_their_names_in_the_file() -> None:
    """What an operator is called here says nothing to who has the file."""
    node = Node("opaque", ("x",), ("y",), {"op_type": "CumSum"})
    graph = replace(example_result().graph, nodes=(node,), outputs=("y",))
    text = printed(changed(example_result(), graph=graph, original=graph))
    (row,) = (line.split() for line in text.splitlines() if "opaque" in line)
    assert row == ["opaque:", "CumSum", "1", "1"]


def test_a_pipe_gets_few_lines_of_progress_and_a_terminal_one_that_goes_away() -> None:
    pipe = Console(file=io.StringIO(), width=100)
    terminal = Console(file=io.StringIO(), width=100, force_terminal=True)
    dumb = Console(file=io.StringIO(), width=100, force_terminal=True, _environ={"TERM": "dumb"})
    for console in (pipe, terminal, dumb):
        with shown_progress(console, details=False) as progress:
            progress.phase("load")
            progress.phase("explore")
            progress.iteration(IterationReport(2, 1530, 586, 44, 3, 0, 30, 0.5))
            progress.extraction(50.0, 40.0)
    few, live, plain = (console.file.getvalue() for console in (pipe, terminal, dumb))  # type: ignore[attr-defined]
    assert few.splitlines() == plain.splitlines() == ["explore …"]
    assert "explore (iteration 2)  best 50.00 µs" in live
    assert live.count("\n") <= 1


def test_details_have_all_lines_of_progress() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, highlight=False)
    with shown_progress(console, details=True) as progress:
        progress.iteration(IterationReport(2, 1530, 586, 44, 3, 0, 30, 0.5))
    assert "iteration 2: 1,530 e-nodes" in file.getvalue()
