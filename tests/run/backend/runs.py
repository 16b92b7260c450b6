"""Runs for the backend onnxruntime, on small graphs."""

from __future__ import annotations

from pathlib import Path

from relational_tensat import Options, optimize
from relational_tensat.base.files import resource_dir
from relational_tensat.formats import save_model
from relational_tensat.run.result import Result
from relational_tensat.tensor import Graph


def run_for_backend(graph: Graph, folder: Path, *families: str) -> tuple[Path, Path, Result]:
    """Return the file of a graph, that of what a run for the backend makes of it, and the run's result.

    Args:
        families: of shipped rules, beside those that drop what does nothing.
    """
    source, target = folder / "m.onnx", folder / "out.onnx"
    save_model(graph, source)
    # those of the backend come with them
    rules = tuple(resource_dir("rules") / f"{name}.rules" for name in ("identity", *families))
    options = Options.of(rules=rules, cost="analytic:cpu", backend="onnxruntime", end_to_end=False)
    result = optimize(source, options, output=target)
    assert result.verification is not None
    assert not result.verification.failure()
    return source, target, result
