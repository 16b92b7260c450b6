"""What the suite leaves to the nightly tier: slower cases, and the larger part of what is drawn."""

from __future__ import annotations

from typing import Any

import pytest


def nightly(*values: Any) -> Any:
    """Return a case for ``parametrize`` that only the nightly tier runs."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def seeds(count: int) -> list[Any]:
    """Return the seeds of a random loop for ``parametrize``: a quarter is the suite's, the rest nightly."""
    few = count // 4
    return [
        pytest.param(range(few), id="few"),
        pytest.param(range(few, count), id="many", marks=pytest.mark.nightly),
    ]
