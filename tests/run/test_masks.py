"""A rule that loses what a mask does to a row is refused by the run's comparison, if it is used at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relational_tensat import Options, Result, optimize
from relational_tensat.formats import load_model
from tests.rules.model_spellings import Spelling
from tests.rules.soundness.wrong_rules import WRONG
from tests.tiers import nightly

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

#: Softmax ignores any summand that is the same in a row, as a formula: it was a rule.
WRONG_RULES = "".join(
    f'(rule {name} (law "a law of the reals") {WRONG[name]})'
    for name in ("shift-before-softmax", "bias-before-softmax")
)
LOWEST = float(np.finfo(np.float32).min)


def attention(mask_type: str, folder: Path) -> Path:
    """Write attention of one head, with a mask of queries that is added, or 0 where there is nothing.

    Its two matrices are one, which pays on every device.
    """
    s = Spelling(x=(2, 6, 8), mask=(2, 6, 1))
    added = "mask"
    if mask_type != "FLOAT":
        kept = s("Cast", "mask", to=onnx.TensorProto.BOOL)
        added = s("Where", kept, 0.0, LOWEST)
    queries = s("MatMul", s("MatMul", "x", s.weight(8, 8)), s.weight(8, 8))
    scores = s("MatMul", queries, s("Transpose", "x", perm=[0, 2, 1]))
    result = s("MatMul", s("Softmax", s("Add", scores, added), axis=-1), "x")
    path = folder / "attention.onnx"
    onnx.save_model(s.model(result, mask=mask_type), path)
    return path


def run(mask_type: str, folder: Path, *rules: Path, **options: object) -> tuple[Path, Path, Result]:
    before, after = attention(mask_type, folder), folder / "out.onnx"
    given = {"rules": rules, "allow_unsound": True} if rules else {}
    return before, after, optimize(before, Options.of(**given, **options), output=after)


@pytest.mark.parametrize("mask_type", ["FLOAT", "INT64"])
@pytest.mark.parametrize("backend", [nightly(None), "onnxruntime"])
def test_the_original_is_kept_and_the_report_says_where_it_differs(
    mask_type: str, backend: str | None, tmp_path: Path
) -> None:
    rules = tmp_path / "wrong.rules"
    rules.write_text(WRONG_RULES, encoding="utf-8")
    before, after, result = run(mask_type, tmp_path, rules, backend=backend, cost="analytic:cpu")
    assert result.unchanged
    assert after.read_bytes() == before.read_bytes()
    (rejection,) = result.rejections
    assert rejection.rule == "shift-before-softmax"
    assert "(float32[2,6,8]) has a relative error of" in rejection.why
    assert "(at [" in rejection.why and " instead of " in rejection.why
    if mask_type == "FLOAT":
        assert "rows of 'mask'" in rejection.why
    assert rejection.reproduction


@pytest.mark.parametrize("mask_type", ["FLOAT", "INT64"])
def test_what_the_rules_make_of_it_passes_with_masks(mask_type: str, tmp_path: Path) -> None:
    _, after, result = run(mask_type, tmp_path, backend="onnxruntime", cost="analytic:cpu")
    assert not result.rejections and not result.unchanged
    assert any(c.setting.rows == "rows of 'mask'" for c in result.verification.compared)
    assert "mask" in {name for node in load_model(after).nodes for name in node.inputs}
