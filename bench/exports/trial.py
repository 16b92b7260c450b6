"""One model's way: optimized, then held against the original by other means than the run's own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from bench.conformance.runs import sizes
from bench.exports.models import Inputs, Made
from bench.exports.runs import Run, run_model
from relational_tensat.formats.onnx_external import external_locations
from relational_tensat.verify.comparison import relative_error

#: How far outputs may differ, relative to an output's largest element. Rounding that differs moves what is
#: quantized by a step.
TOLERANCES = {"float32": 1e-3, "float16": 5e-2, "qdq": 5e-2, "quantize_dynamic": 5e-2}

_NO_LOG = 4
#: How the note begins by which a run says that its file has grown, and why.
_GROWTH = "the file has "
#: How long two files take turns in onnxruntime, and at least how often.
_TURNS_S, _FEWEST_TURNS = 2.0, 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a model. The attributes are keys of the results that the bench keeps.

    Attributes:
        exit_code, message, cpu_s, peak_mib: of the run; see ``running.Run``.
        comparisons, verified_error: what the run's own verification compared, and its worst error.
        nodes_before, nodes_after: ONNX nodes of the files, those of subgraphs not counted.
        bytes_before, bytes_after: of the files and their external data.
        cost_before_us, cost_after_us: modelled.
        unchanged: the written file is the original, byte for byte.
        growth_explained: the report says that the file has grown, and what that saves.
        notes: what the report said: why graphs were rejected, notes and cautions.
        not_run: why onnxruntime by its defaults does not run what was written; "" where it does.
        error: the worst relative difference of outputs between both files in onnxruntime by its
            defaults, on inputs that the bench has; None where nothing could be compared.
        runtime_before_ms, runtime_after_ms: CPU time of one run in these sessions, one thread, the
            shortest of several that take turns.
        dims: symbolic dimensions of inputs in the original, and how many of them were kept.
        tolerance: what ``error`` may be.
    """

    name: str
    library: str
    exit_code: int
    message: str
    cpu_s: float
    peak_mib: float
    tolerance: float
    comparisons: int = 0
    verified_error: float = 0.0
    nodes_before: int = 0
    nodes_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    cost_before_us: float = 0.0
    cost_after_us: float = 0.0
    unchanged: bool = False
    growth_explained: bool = False
    notes: tuple[str, ...] = ()
    not_run: str = ""
    error: float | None = None
    runtime_before_ms: float = 0.0
    runtime_after_ms: float = 0.0
    dims: int = 0
    dims_kept: int = 0

    def defects(self) -> list[str]:
        """Return what is wrong, a few words each; nothing where all is as promised."""
        if self.exit_code:
            return [f"exit code {self.exit_code}: {self.message}"]
        faults = {
            f"not run by onnxruntime: {self.not_run}": bool(self.not_run),
            f"outputs differ by {self.error or 0.0:.1e}": (self.error or 0.0) > self.tolerance,
            "changed, and nothing compared": not self.unchanged and self.comparisons == 0,
            f"{self.nodes_after - self.nodes_before} more nodes and no reason": self.nodes_after
            > self.nodes_before
            and not self.growth_explained,
            f"{self.bytes_after - self.bytes_before} more bytes and no reason": self.bytes_after
            > self.bytes_before
            and not self.growth_explained,
            "dynamic dimensions lost": self.dims_kept < self.dims,
            "costs more": self.cost_after_us > self.cost_before_us,
        }
        return [fault for fault, is_there in faults.items() if is_there]


def try_model(
    made: Made, library: str, variant: str, options: Sequence[str], limit_s: float
) -> Outcome:
    """Optimize a model and compare what is written with it."""
    input_sets = made.input_sets()
    dims = sizes(made.path.read_bytes(), input_sets[0])
    with tempfile.TemporaryDirectory(prefix="exports-") as folder:
        written = Path(folder) / "optimized.onnx"
        run = run_model(made.path, written, dims, options, limit_s)
        facts: dict[str, Any] = {}
        if run.exit_code == 0:
            facts = _reported(run) | _files(made.path, written)
            facts |= _compared(made.path, written, input_sets)
    return Outcome(
        made.name,
        library,
        run.exit_code,
        run.message,
        run.cpu_s,
        run.peak_mib,
        TOLERANCES[variant],
        **facts,
    )


def _reported(run: Run) -> dict[str, Any]:
    report = run.report
    whys = [rejection["why"] for rejection in report["rejections"]]
    return {
        "comparisons": report["verified"]["runs"],
        "verified_error": report["verified"]["max_relative_error"],
        "cost_before_us": report["cost_before_us"],
        "cost_after_us": report["cost_after_us"],
        "notes": tuple(dict.fromkeys([*whys, *report["notes"], *report["cautions"]])),
        "growth_explained": any(n.startswith(_GROWTH) for n in report["notes"]),
    }


def _files(original: Path, written: Path) -> dict[str, Any]:
    before, after = (onnx.load(path, load_external_data=False) for path in (original, written))
    dims_before, dims_after = _symbolic_dims(before), _symbolic_dims(after)
    return {
        "nodes_before": len(before.graph.node),
        "nodes_after": len(after.graph.node),
        "bytes_before": _bytes(original),
        "bytes_after": _bytes(written),
        "unchanged": original.read_bytes() == written.read_bytes(),
        "dims": len(dims_before),
        "dims_kept": len(dims_before & dims_after),
    }


def _bytes(model: Path) -> int:
    files = [model, *(model.parent / name for name in external_locations(model))]
    return sum(file.stat().st_size for file in files)


def _symbolic_dims(model: onnx.ModelProto) -> set[tuple[str, int]]:
    """Return the dimensions of inputs that have no size, by input and axis."""
    return {
        (value.name, axis)
        for value in model.graph.input
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if not dim.HasField("dim_value")
    }


def _compared(original: Path, written: Path, input_sets: Sequence[Inputs]) -> dict[str, Any]:
    """Run both in onnxruntime by its defaults, at the other sizes only where these are still open."""
    try:
        after = open_session(written)
    except Exception as error:  # onnxruntime's errors have no common base class
        return {"not_run": " ".join(str(error).split())}
    before = open_session(original)
    errors = []
    for index, inputs in enumerate(input_sets):
        if index and not all(map(_takes, after.get_inputs(), inputs.values())):
            continue
        expected = before.run(None, inputs)
        try:
            results = after.run(None, inputs)
        except Exception as error:  # as above
            return {"not_run": " ".join(str(error).split())}
        errors += [relative_error(a, b) for a, b in zip(expected, results, strict=True)]
    before_ms, after_ms = times_ms(before, after, input_sets[0])
    return {"error": max(errors), "runtime_before_ms": before_ms, "runtime_after_ms": after_ms}


def times_ms(
    before: onnxruntime.InferenceSession, after: onnxruntime.InferenceSession, inputs: Inputs
) -> tuple[float, float]:
    """Return the CPU time of a run of each, the shortest of several."""
    shortest = {before: float("inf"), after: float("inf")}
    deadline_s = time.monotonic() + _TURNS_S
    turns = 0
    while turns < _FEWEST_TURNS or time.monotonic() < deadline_s:
        for session in shortest:
            start = time.process_time()
            session.run(None, inputs)
            shortest[session] = min(shortest[session], time.process_time() - start)
        turns += 1
    return shortest[before] * 1e3, shortest[after] * 1e3


def _takes(declared: Any, array: Any) -> bool:
    pairs = zip(declared.shape, array.shape, strict=True)
    return all(not isinstance(dim, int) or dim == size for dim, size in pairs)


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """Return a session of one thread, by onnxruntime's other defaults."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _NO_LOG
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def summary(outcomes: Sequence[Outcome]) -> Mapping[str, int]:
    """Return how many models came out how."""
    done = [outcome for outcome in outcomes if outcome.exit_code == 0]
    return {
        "models": len(outcomes),
        "exit code 0": len(done),
        "optimized": sum(not outcome.unchanged for outcome in done),
        "with a defect": sum(bool(outcome.defects()) for outcome in outcomes),
    }
