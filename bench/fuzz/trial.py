"""A model of random graphs on its way through the program, and what became of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from bench.conformance.runs import difference
from bench.fuzz.extrema import differ, has_extrema, with_nan
from bench.fuzz.graphs import RandomGraph, as_model, drawn_graph
from bench.fuzz.values import Array
from relational_tensat.base.errors import RelationalTensatError, VerificationError
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize

#: What can become of a model, the good ends first.
STATUSES = ("equal", "rounding", "refused", "different", "crashed")
#: How onnxruntime runs a model, by name.
_SESSIONS = {
    "optimizations off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "optimizations on": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_DRAWS = 2
_FATAL_ONLY = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a model.

    Attributes:
        index: of its first graph, in the order drawn.
        n_graphs: how many it has.
        status: one of ``STATUSES``; rounding: it differs by more than the tolerance, and so does the
            original where its inputs are rounded otherwise (a comparison or a cast near its threshold).
        reason: what differs, was refused or raised.
        unchanged: the file written is the original.
        rejections: why graphs that were extracted were not written.
        rules: those that made the result, with their e-nodes.
    """

    index: int
    n_graphs: int
    status: str
    reason: str = ""
    unchanged: bool = False
    rejections: tuple[str, ...] = ()
    rules: Mapping[str, int] | None = None


def try_graphs(seed: int, index: int, n_graphs: int, options: Options) -> Outcome:
    """Draw graphs, optimize them as one model, and compare what is written with it."""
    graphs = [drawn_graph(seed, index + offset) for offset in range(n_graphs)]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        source, target = Path(name) / "model.onnx", Path(name) / "optimized.onnx"
        source.write_bytes(as_model(graphs))
        try:
            result = optimize(source, options, output=target)
        except VerificationError as error:
            return Outcome(index, n_graphs, "different", str(error))
        except RelationalTensatError as error:
            return Outcome(index, n_graphs, "refused", str(error))
        except Exception as error:  # what the bench counts: a model that ends in a traceback
            return Outcome(index, n_graphs, "crashed", f"{type(error).__name__}: {error}")
        status, reason = _compared(graphs, source.read_bytes(), target.read_bytes(), seed)
    rejections = tuple(rejection.why for rejection in result.rejections)
    return Outcome(
        index, n_graphs, status, reason, result.unchanged, rejections, dict(result.rules_used)
    )


def _compared(
    graphs: Sequence[RandomGraph], before: bytes, after: bytes, seed: int
) -> tuple[str, str]:
    """Run both models on inputs of their own, with onnxruntime's optimizations off and on."""
    random = np.random.default_rng([seed, 1])
    status = "equal"
    for name, level in _SESSIONS.items():
        for _ in range(_DRAWS):
            feeds = {key: value for graph in graphs for key, value in graph.feeds(random).items()}
            try:
                expected = _run(before, feeds, level)
            except Exception:  # what onnxruntime cannot run itself, it compares nothing with
                continue
            try:
                results = _run(after, feeds, level)
            except Exception as error:  # whatever it is: the original could be run, this one cannot
                return "different", f"{name}: cannot be run: {' '.join(str(error).split())}"
            reason = difference(expected, results)
            if reason and has_extrema(before):
                results = _where_defined(before, feeds, level, expected, results)
                reason = difference(expected, results)
            if reason and not _is_rounding(before, feeds, level, expected, results):
                return "different", f"{name}: {reason}"
            if reason:
                status = "rounding"
    return status, ""


def _where_defined(
    model: bytes,
    feeds: Mapping[str, Array],
    level: Any,
    expected: Sequence[Any],
    results: Sequence[Any],
) -> list[Any]:
    """Return results that are as expected where that depends on what extrema make of NaN."""
    spread, skipped = (
        _run(with_nan(model, spreads=spreads), feeds, level) for spreads in (True, False)
    )
    return [
        np.where(differ(a, b), value, result) if value.shape == result.shape else result
        for a, b, value, result in zip(spread, skipped, expected, results, strict=True)
    ]


def _is_rounding(
    model: bytes,
    feeds: Mapping[str, Array],
    level: Any,
    expected: Sequence[Any],
    results: Sequence[Any],
) -> bool:
    """Whether the original's own outputs differ where its inputs are the next floats."""
    for direction in (np.inf, -np.inf):
        others = {
            name: np.asarray(np.nextafter(value, value.dtype.type(direction)))
            if value.dtype.kind == "f"
            else value
            for name, value in feeds.items()
        }
        neighbours = _run(model, others, level)
        results = [
            result if difference([a], [b]) == "" else a
            for a, b, result in zip(expected, neighbours, results, strict=True)
        ]
    return difference(expected, results) == ""


def _run(model: bytes, feeds: Mapping[str, Array], level: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    result: list[Any] = session.run(None, dict(feeds))
    return result
