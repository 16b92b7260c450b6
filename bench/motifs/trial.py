"""A random model on its way through the program, and what became of it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.conformance.runs import difference
from bench.motifs.drawn import drawn_sketch
from bench.motifs.sketch import Sketch, as_model, feeds
from relational_tensat.base.errors import RelationalTensatError, VerificationError, first_line
from relational_tensat.formats import load_model
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.verify.comparison import relative_error
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.sessions import Session, open_session

#: What can become of a model, the good ends first.
STATUSES = ("equal", "rounding", "refused", "not run", "different", "crashed")
_DRAWS = 3


def try_sketches(seed: int, indices: Sequence[int], options: Options) -> dict[str, Any]:
    """Draw a model, optimize it, and compare the file with its own; return a row of the table."""
    drawn = [drawn_sketch(seed, index) for index in indices]
    sketches = [sketch for sketch, _ in drawn]
    row: dict[str, Any] = {
        "first": indices[0],
        "graphs": len(indices),
        "motifs": [name for _, names in drawn for name in names],
    }
    start_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="motifs-") as name:
        source, target = Path(name) / "model.onnx", Path(name) / "optimized.onnx"
        source.write_bytes(as_model(sketches))
        if _ends_onnxruntime(source):
            return row | {"status": "not run", "reason": "the original ends onnxruntime's process"}
        try:
            result = optimize(source, options, output=target)
        except VerificationError as error:
            return row | {"status": "different", "reason": first_line(error)}
        except RelationalTensatError as error:
            return row | {"status": "refused", "reason": first_line(error)}
        except Exception as error:  # what is counted: a model that ends in a traceback
            reason = f"{type(error).__name__}: {first_line(error)}"
            return row | {"status": "crashed", "reason": reason}
        status, reason = compared(source, target, sketches, [seed, indices[0], 1])
    return row | {
        "status": status,
        "reason": reason,
        "unchanged": result.unchanged,
        "unproven": result.verification.unproven,
        "rejections": [rejection.why for rejection in result.rejections],
        "rules": dict(result.rules_used),
        "seconds": round(time.perf_counter() - start_s, 2),
    }


def _ends_onnxruntime(source: Path) -> bool:
    """Whether a file ends the process that opens it in onnxruntime: that has defects of its own."""
    child = os.fork()
    if child == 0:
        with suppress(Exception):
            open_session(source, 1, Session.AS_BY_DEFAULT)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def compared(
    source: Path, target: Path, sketches: Sequence[Sketch], seed: Sequence[int]
) -> tuple[str, str]:
    """Run both files, with onnxruntime's optimizations off and on, and both graphs in float64."""
    draw, status = np.random.default_rng(seed), "equal"
    drawn = [feeds(sketches, draw) for _ in range(_DRAWS)]
    for run_as in Session:
        before, after = (open_session(path, 1, run_as) for path in (source, target))
        for values in drawn:
            expected, results = (session.run(None, values) for session in (before, after))
            for index, (a, b) in enumerate(zip(expected, results, strict=True)):
                reason = difference([a], [b])
                if not reason:
                    continue
                if a.dtype.kind != "f" or not (
                    _is_rounding(before, values, index, a, b)
                    or _is_no_farther(source, values, index, a, b)
                ):
                    return "different", f"{run_as.value}, output {index}: {reason}"
                status = "rounding"
    graphs = [load_model(path) for path in (source, target)]
    for values in drawn[:1]:
        expected, results = (
            [_as_float32(array) for array in compute_outputs(graph, values, _own(graph.weights))]
            for graph in graphs
        )
        for index, (a, b) in enumerate(zip(expected, results, strict=True)):
            reason = difference([a], [b])
            if reason and not _is_close_to_a_step(before, values, index):
                return "different", f"float64, output {index}: {reason}"
            status = "rounding" if reason else status
    return status, ""


def _own(weights: Mapping[str, Any]) -> dict[str, Any]:
    return {name: weight.data for name, weight in weights.items()}


def _as_float32(array: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):  # masks times something: infinite in the files, too
        return array.astype(np.float32) if array.dtype.kind == "f" else array


def _is_rounding(
    session: Any, values: Mapping[str, NDArray[Any]], index: int, a: Any, b: Any
) -> bool:
    """Whether the original's own output moves as much where its inputs are the next floats."""
    most = max(
        float(np.nanmax(np.abs(a.astype(np.float64) - other), initial=0.0))
        for other in _neighbours(session, values, index)
    )
    return float(np.nanmax(np.abs(a.astype(np.float64) - b), initial=0.0)) <= 2 * most


def _is_no_farther(
    source: Path, values: Mapping[str, NDArray[Any]], index: int, a: Any, b: Any
) -> bool:
    """Whether a result is no farther from the original's, as that is written, than its own is.

    onnxruntime makes one quantization of two of the original, and of the result not.
    """
    as_written = open_session(source, 1, Session.AS_WRITTEN).run(None, dict(values))[index]
    return relative_error(as_written, b) <= relative_error(as_written, a)


def _is_close_to_a_step(session: Any, values: Mapping[str, NDArray[Any]], index: int) -> bool:
    """Whether the original's own output is another where its inputs are the next floats."""
    expected = session.run(None, dict(values))[index]
    return any(difference([expected], [x]) for x in _neighbours(session, values, index))


def _neighbours(session: Any, values: Mapping[str, NDArray[Any]], index: int) -> list[Any]:
    results = []
    for direction in (np.inf, -np.inf):
        for scale in (1, 16):
            near = {
                name: _moved(value, direction, scale) if value.dtype.kind == "f" else value
                for name, value in values.items()
            }
            results.append(session.run(None, near)[index])
    return results


def _moved(value: NDArray[Any], direction: float, times: int) -> NDArray[Any]:
    for _ in range(times):
        value = np.asarray(np.nextafter(value, value.dtype.type(direction)))
    return value
