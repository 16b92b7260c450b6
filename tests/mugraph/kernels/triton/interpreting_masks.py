"""As a program, with TRITON_INTERPRET=1: prints errors of attention with masks and of choices, as JSON.

Of each: its name, the error where something is left, and the largest number where nothing is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.emulation.errors import drawn, norm_error
from bench.emulation.runs import run_kernels
from tests.mugraph.conditions import CHOSEN, chosen_expected, chosen_inputs
from tests.mugraph.masks import BY_BOOLS, MASKED, expected, with_mask


def _errors() -> Iterator[tuple[str, float, float]]:
    for graph in (*MASKED, *BY_BOOLS):
        inputs = with_mask(drawn(graph))
        with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
            values = run_kernels(graph, inputs, "triton", Path(folder))[graph.outputs[0]]
        nothing = float(np.abs(values[..., 1::4, :]).max())
        yield graph.name, norm_error(values, expected(inputs)), nothing
    inputs = chosen_inputs("float16")
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        values = run_kernels(CHOSEN, inputs, "triton", Path(folder))[CHOSEN.outputs[0]]
    is_right = np.isclose(values, chosen_expected(inputs), rtol=0, atol=0, equal_nan=True)
    yield CHOSEN.name, float(np.mean(~is_right)), 0.0


if __name__ == "__main__":
    print(json.dumps(list(_errors())))  # noqa: T201
