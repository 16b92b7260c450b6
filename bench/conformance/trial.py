"""One conformance model's way through the program: read, optimized, written, compared."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from bench.conformance.cases import Case
from bench.conformance.runs import RUNNERS, difference, feeds, sizes
from relational_tensat.base.errors import RelationalTensatError, VerificationError
from relational_tensat.formats.onnx_opaque import is_deterministic
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize

#: What can become of a model, the good ends first.
STATUSES = ("equal", "random", "not run", "refused", "different", "crashed", "time-out")
#: Those that say that a model was read, optimized and written.
ACCEPTED = ("equal", "random", "not run", "different")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a model.

    Attributes:
        status: one of ``STATUSES``; random: it draws random numbers, so that only element types and
            shapes were compared; not run: nothing here can run the original.
        compared_in: what ran both models on ONNX's own inputs.
        reason: why it was refused, what differs, what was raised.
        comparisons: how many the run's own verification made.
        nodes_before, nodes_after, bytes_before, bytes_after: ONNX nodes in the files, and their sizes.
        unchanged: the file written is the original.
        rejected: why graphs that were extracted were not written.
    """

    name: str
    status: str
    compared_in: str = ""
    reason: str = ""
    comparisons: int = 0
    nodes_before: int = 0
    nodes_after: int = 0
    unchanged: bool = False
    rejected: str = ""
    bytes_before: int = 0
    bytes_after: int = 0


class _TimeOut(BaseException):
    """The model's time is over; no handler of errors may take it for one of its own."""


def try_case(case: Case, options: Options, limit_s: float) -> Outcome:
    """Optimize a model and compare what is written with it, on its own inputs."""
    try:
        with _alarm(limit_s), tempfile.TemporaryDirectory(prefix="conformance-") as name:
            return _tried(case, options, Path(name))
    except _TimeOut:
        return Outcome(case.name, "time-out", reason=f"took over {limit_s:g} s")
    except VerificationError as error:
        return Outcome(case.name, "different", reason=str(error))
    except RelationalTensatError as error:
        return Outcome(case.name, "refused", reason=str(error))
    except Exception as error:  # what the bench counts: a model that ends in a traceback
        return Outcome(case.name, "crashed", reason=f"{type(error).__name__}: {error}")


def _tried(case: Case, options: Options, folder: Path) -> Outcome:
    source, target = folder / "model.onnx", folder / "optimized.onnx"
    source.write_bytes(case.model)
    values = feeds(case.model, case.inputs)
    result = optimize(source, options.replace(dims=sizes(case.model, values)), output=target)
    written = target.read_bytes()
    before, after = (
        onnx.load_model_from_string(model).graph.node for model in (case.model, written)
    )
    status, compared_in, reason = _compared(case.model, values, written, before)
    runs = result.verification.runs
    rejected = "; ".join(rejection.why for rejection in result.rejections)
    return Outcome(
        case.name,
        status,
        compared_in,
        reason,
        runs,
        len(before),
        len(after),
        written == case.model,
        rejected,
        len(case.model),
        len(written),
    )


def _compared(
    model: bytes, values: Mapping[str, Any], written: bytes, nodes: Sequence[onnx.NodeProto]
) -> tuple[str, str, str]:
    """Return the status, what ran both models, and what differs."""
    refusals: list[str] = []
    for name, runner in RUNNERS.items():
        try:
            expected = runner(model, values)
        except Exception as error:  # runners raise errors of many libraries; the next one is tried
            refusals.append(f"{name}: {type(error).__name__}")
            continue
        try:
            results = runner(written, values)
        except Exception as error:  # whatever it is: the original could be run, this one cannot
            return "different", name, f"cannot be run: {' '.join(str(error).split())}"
        if not all(map(is_deterministic, nodes)):
            return "random", name, _other_types(expected, results)
        reason = difference(expected, results)
        return ("different" if reason else "equal"), name, reason
    return "not run", "", "; ".join(refusals)


def _other_types(before: Sequence[Any], after: Sequence[Any]) -> str:
    pairs = zip(before, after, strict=True)
    same = all(a.dtype == b.dtype and a.shape == b.shape for a, b in pairs)
    return "" if same else "other element types or shapes"


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End the block after so many seconds; enough for all that comes back to Python now and then."""

    def ring(number: int, frame: Any) -> None:
        raise _TimeOut

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
