"""Triton of attention with masks of -inf, and of choices by conditions, interpreted."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench.emulation.errors import TOLERANCES
from tests.mugraph.masks import BY_BOOLS, MASKED
from tests.with_triton import skip_without_triton


def test_attention_is_right_and_0_where_nothing_is_left() -> None:
    skip_without_triton()
    command = [sys.executable, "-m", "tests.mugraph.kernels.triton.interpreting_masks"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    errors = json.loads(printed.stdout)
    assert len(errors) == len(MASKED) + len(BY_BOOLS) + 1
    for name, error, nothing in errors:
        assert error < TOLERANCES["float16"] and nothing == 0.0, name
