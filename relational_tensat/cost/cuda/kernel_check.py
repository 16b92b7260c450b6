"""Whether a kernel computes what its operator means: against float64, before it is timed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relational_tensat.tensor import Array, TensorType

#: ‖result - exact‖ / ‖exact‖ that rounding explains, by element type; of tf32 by that name. Sums are
#: in float32 throughout; results are rounded once.
TOLERANCES = {
    "float64": 1e-12, "float32": 1e-4, "tf32": 2e-3, "float16": 5e-3, "bfloat16": 3e-2,
}  # fmt: skip


def fault(
    results: Sequence[Array], exact: Sequence[Array], kinds: Sequence[TensorType], math: str
) -> str:
    """Return what is wrong with a kernel's results, in one line; "" where nothing is.

    Args:
        results: what the device computed.
        exact: the same in float64.
        math: how float32 was multiplied.
    """
    for index, (result, exact_result, kind) in enumerate(zip(results, exact, kinds, strict=True)):
        label = f"result {index}" if len(kinds) > 1 else "the result"
        if not kind.is_float:
            if not np.array_equal(result, exact_result):
                bad = int(np.count_nonzero(result != exact_result))
                return f"{label} differs from the exact one in {bad} elements"
            continue
        if not np.isfinite(result).all() and np.isfinite(exact_result).all():
            bad = int(np.count_nonzero(~np.isfinite(result)))
            return f"{label} has {bad} elements that are not finite: not written, or wrong"
        error = norm_error(result, exact_result)
        limit = TOLERANCES["tf32" if kind.dtype == "float32" and math == "tf32" else kind.dtype]
        if not error <= limit:
            return f"{label} is off by {error:.1e} relative to float64, more than {limit:.0e}"
    return ""


def norm_error(result: Array, exact: Array) -> float:
    """Return ‖result - exact‖ / ‖exact‖ over what is finite in ``exact``; NaN where ``result`` is."""
    is_finite = np.isfinite(exact)
    reference = np.asarray(exact, np.float64)[is_finite]
    difference = np.asarray(result, np.float64)[is_finite] - reference
    scale = float(np.linalg.norm(reference)) or 1.0
    return float(np.linalg.norm(difference)) / scale
