"""As a program, with TRITON_INTERPRET=1: prints errors of kernels that load windows of inputs, as JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from bench.emulation.errors import drawn, exact, norm_error
from bench.emulation.runs import DTYPES, run_kernels
from relational_tensat.mugraph.graph.mugraph import MuGraph
from tests.mugraph.kernels.test_windows import products, rows


def _error(graph: MuGraph) -> float:
    inputs = drawn(graph, DTYPES["triton"])
    with tempfile.TemporaryDirectory() as folder:
        values = run_kernels(graph, inputs, "triton", Path(folder))
    return norm_error(values[graph.outputs[0]], exact(graph, inputs))


if __name__ == "__main__":
    print(json.dumps([_error(rows()), _error(products())]))  # noqa: T201
