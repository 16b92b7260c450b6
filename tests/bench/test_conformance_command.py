"""ONNX's conformance models: a sample is optimized, written and compared."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from bench.conformance.cases import all_cases, sampled_cases
from bench.conformance.report import save, summary
from bench.conformance.trial import Outcome, try_case
from relational_tensat.run.options import Options

#: A rule file instead of all: each is enough for some of the models, and loading all takes longer.
_RULES = ("identity.rules", "pointwise.rules")


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.nightly)])
def test_a_sample_is_accepted_and_computes_the_same(count: int) -> None:
    rules = tuple(Path("rules") / name for name in _RULES)
    options = Options.of(rules=rules, iterations=2, node_limit=200, effort="low")
    outcomes = [try_case(case, options, limit_s=30.0) for case in sampled_cases(count, seed=0)]
    counts = Counter(outcome.status for outcome in outcomes)
    not_run = [outcome for outcome in outcomes if outcome.status == "not run"]
    assert all("ImportError" in outcome.reason for outcome in not_run)  # decoders need Pillow
    accepted = {"equal", "random", "not run"}
    assert [outcome for outcome in outcomes if outcome.status not in accepted] == []
    assert counts["equal"] > 0.9 * count
    assert [o for o in outcomes if not o.unchanged and o.comparisons == 0] == []


#: Models that once were refused, ended in a traceback, or came out so that onnxruntime could not run them.
_ONCE_WRONG = (
    "test_affine_grid_2d_expanded", "test_affine_grid_3d_expanded", "test_split_to_sequence_nokeepdims",
    "test_size", "test_size_example", "test_shape_end_1", "test_shape_start_1_end_2",
    "test_shape_start_1_end_negative_1", "test_shape_start_negative_1",
    "test_constantofshape_int_shape_zero",
    "test_scan_sum", "test_scan9_sum", "test_scan9_multi_state", "test_mvn", "test_mvn_expanded",
    "test_adagrad", "test_momentum", "test_adam",
    "test_optional_get_element_sequence", "test_optional_has_element_empty_no_input_tensor_input",
    "test_sequence_insert_at_back", "test_sequence_map_add_1_sequence_1_tensor",
)  # fmt: skip


@pytest.mark.nightly
def test_models_that_once_were_refused_or_came_out_wrong() -> None:
    rules = tuple(Path("rules") / name for name in _RULES)
    options = Options.of(rules=rules, iterations=2, node_limit=200)
    cases = {case.name: case for case in all_cases()}
    outcomes = {name: try_case(cases[name], options, limit_s=30.0) for name in _ONCE_WRONG}
    assert {name: o.reason for name, o in outcomes.items() if o.status != "equal"} == {}


def test_what_is_kept_names_each_model_and_why(tmp_path: Path) -> None:
    outcomes = [
        Outcome("test_a", "equal", "onnxruntime", "", 3, 1, 2, bytes_before=80, bytes_after=70),
        Outcome("test_c", "equal", "onnxruntime", "", 0, 2, 2, True, "it was wrong"),
        Outcome("test_b", "refused", reason="no such thing"),
    ]
    assert "refused: test_b: no such thing" in summary(outcomes)
    assert summary(outcomes)[0] == "3 models, 2 accepted"
    assert "written as they were, byte for byte: 1" in summary(outcomes)
    assert "changed, and the run itself compared nothing: 0" in summary(outcomes)
    assert "rejected: test_c: it was wrong" in summary(outcomes)
    assert "larger: test_a: 1 to 2 nodes, 80 to 70 bytes" in summary(outcomes)
    path = save(outcomes, Options(), tmp_path, date(2026, 11, 22))
    assert path.read_text().splitlines()[1] == "test_a,equal,onnxruntime,,3,1,2,False,,80,70"
    assert "- refused: 1" in path.with_suffix(".md").read_text()
