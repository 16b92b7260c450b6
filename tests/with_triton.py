"""Whether Triton is installed, asked without importing it: that decides whether a process interprets it."""

from __future__ import annotations

import importlib.util

import pytest


def skip_without_triton() -> None:
    """Skip the test that asks, where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
