"""By default, the report has at most twelve lines, and counts operators in the files as they are."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from rich.console import Console

from relational_tensat.cli.main import main
from relational_tensat.cli.run_text import print_report
from relational_tensat.cli.short_report import MOST_LINES, MOST_NOTES, MOST_WORDS
from relational_tensat.formats.onnx_frame import FileFigures
from relational_tensat.run.gain import Gain
from relational_tensat.run.reports import FileChange, FusionReport
from relational_tensat.run.result import Result
from relational_tensat.run.result_groups import Rejection
from relational_tensat.verify.verification import UNCHANGED
from tests.cli.results import changed, example_result

NO_DATA = (
    "note: 2 of 2 weights have no data in the model: verified with random ones only; "
    "add them to the model"
)
BLOCK = Path(__file__).resolve().parents[2] / "bench/inputs/encoder_block.onnx"
LONG = (
    "this note is long and says many things one after the other, some of them in brackets (such as "
)


def lines(result: Result, next_step: str = "") -> list[str]:
    console = Console(file=io.StringIO(), width=100_000)
    print_report(result, console, next_step=next_step)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def of_files() -> Result:
    before = FileFigures({"Add": 30, "Mul": 4, **{f"Op{n}": 9 for n in range(9)}}, 2_500_000, 14, 7)
    after = FileFigures({"Add": 2, "Gelu": 1, **{f"Op{n}": n for n in range(9)}}, 12_345, 20, 9)
    rules = {f"a-rule-with-quite-a-long-name-{n}": n for n in range(1, 12)}
    return changed(example_result(), change=FileChange(before, after), rules_used=rules)


def test_the_lines_are_file_gain_change_search_verification_and_place() -> None:
    assert lines(of_files(), "to see each step: --view run.html") == [
        "models/pair.json, for t4",
        "modelled for t4, not timed here: 40.00 → 30.00 µs (25.00% less)",
        "nodes: 115 → 39; bytes: 2.50 MB → 12,345; opset: 14 → 20",
        "changed: Add 30 → 2, Op0 9 → 0, Op1 9 → 1, Op2 9 → 2, Op3 9 → 3 and 7 more",
        "rules: a-rule-with-quite-a-long-name-11, a-rule-with-quite-a-long-name-10 and 9 more",
        "search: the last iteration added nothing; gap 10.00% (no graph in it costs less than 27.00 µs)",
        "verified: 2 comparisons in float64 only; worst relative error 1.5e-15",
        "written to models/pair.opt.json",
        NO_DATA,
        "note: a note",
        "to see each step: --view run.html",
    ]


def test_a_model_without_files_of_onnx_is_counted_by_its_graph() -> None:
    text = "\n".join(lines(example_result()))
    assert "operators: 5 → 4" in text and "changed: matmul 2 → 1, relu 2 → 1, split 0 → 1" in text
    assert "nodes" not in text


@pytest.mark.parametrize("count", [0, 1, 40])
def test_there_are_twelve_lines_and_two_notes_at_most(count: int) -> None:
    rejections = tuple(Rejection(f"{LONG * 6}{n}") for n in range(min(count, 3)))
    result = changed(
        of_files(),
        notes=tuple(f"{LONG}{n})" for n in range(count)),
        rejections=rejections,
        untrusted_rules=dict.fromkeys([f"rule-{n}" for n in range(count)], "no proof"),
        fusion=FusionReport(3, 2, ()),
        verification=replace(
            example_result().verification, warnings=tuple(f"{LONG}{n}" for n in range(count))
        ),
    )
    printed = lines(result, "to see each step: --view run.html")
    assert sum(-(-len(line) // 100) for line in printed) <= MOST_LINES
    notes = [line.removeprefix("note: ") for line in printed if line.startswith("note: ")]
    assert len(notes) <= MOST_NOTES
    assert all(len(note.split()) <= MOST_WORDS for note in notes)
    left = 2 * count - len(notes)
    assert any(line.startswith(f"{left} more note") for line in printed) == (left > 0)


def test_what_is_uncompared_is_noted_before_lost_gains_and_these_before_the_rest() -> None:
    result = changed(
        example_result(),
        notes=("no --dim given: sizes chosen are n=3", "not raced: a reason", "HiGHS: optimal"),
    )
    assert lines(result)[-3:] == [
        NO_DATA,
        "note: not raced: a reason; --budget SECONDS races again",
        "1 more note: -v",
    ]


def test_a_kept_original_names_no_next_step_and_no_rules() -> None:
    result = changed(
        example_result(), after_us=40.0, unchanged=True, verification=UNCHANGED, rules_used={}
    )
    text = "\n".join(lines(result, "to see each step: --view run.html"))
    assert "modelled for t4, not timed here: the original is kept, 40.00 µs" in text
    assert "the original is written to" in text
    assert "nothing compared: the original, unchanged" in text
    assert "--view" not in text and "rules:" not in text and "verified" not in text


@pytest.mark.parametrize("is_exhaustive", [False, True])
def test_nothing_left_to_add_is_said_only_where_that_is_known(is_exhaustive: bool) -> None:
    exploration = replace(example_result().search.exploration, is_exhaustive=is_exhaustive)
    for details in (False, True):
        console = Console(file=io.StringIO(), width=200)
        print_report(changed(example_result(), exploration=exploration), console, details=details)
        assert isinstance(console.file, io.StringIO)
        said = "no rule has anything left to add" in console.file.getvalue()
        assert said == is_exhaustive


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_gain_fits_into_a_line(is_kept: bool) -> None:
    gain = Gain("onnxruntime on this CPU, 2 threads", 623.45, 511.11, is_kept=is_kept)
    assert len(gain.text) <= 100
    assert len(replace(gain, before_us=123_456.7, after_us=101_234.5).text) <= 100


def _counted(file: Path) -> dict[str, int]:
    """Count by reading the file, which has no subgraphs."""
    model = onnx.load(str(file), load_external_data=False)
    return dict(Counter(node.op_type for node in model.graph.node))


@pytest.mark.parametrize("keeps", [False, True])
def test_operators_are_those_of_the_files_in_the_terminal_in_json_and_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], keeps: bool
) -> None:
    output, page = tmp_path / "out.onnx", tmp_path / "page.html"
    argv = ["run", str(BLOCK), "-o", str(output), "--effort", "low", "--iterations", "1"]
    argv += ["--set", "verify-runs=1", *(["--min-speedup", "100"] if keeps else [])]
    assert main([*argv, "--view", str(page)]) == 0
    printed = capsys.readouterr().out
    before, after = _counted(BLOCK), _counted(output)
    assert (before == after) == keeps
    sizes = [sum(counts.values()) for counts in (before, after)]
    size = f"nodes: {sizes[0]}" if keeps else f"nodes: {sizes[0]} → {sizes[1]}"
    assert size in printed.splitlines()[2]
    for op in ("ReduceMean",):
        change = f"{op} {before[op]} → {after.get(op, 0)}"
        assert (change in printed) != keeps
    text = page.read_text(encoding="utf-8")
    data = text.partition('id="data" data-server="">')[2].partition("</script>")[0]
    summary = json.loads(data)["summary"]
    assert summary["model"] == BLOCK.name and summary["terms"] == "ONNX"
    assert {op: (old, new) for op, old, new in summary["operators"]} == {
        op: (before.get(op, 0), after.get(op, 0)) for op in {*before, *after}
    }
    shown = [summary["gain"], summary["size"], summary["verified"]]
    assert all(line in printed.splitlines() for line in shown)
    assert f"search: {summary['search']}" in printed.splitlines()
    assert bool(summary["kept_original"]) == keeps
    assert main([*argv, "--force", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["operators"] == {"terms": "ONNX", "before": before, "after": after}
    assert report["file"]["after"]["bytes"] == output.stat().st_size
