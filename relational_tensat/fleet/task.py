"""The task of a fleet: one model, optimized. A pure function, which any machine may carry out.

The files of models are those that a command names, and those that go with each.
"""

from __future__ import annotations

import _thread
import json
import platform
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from relational_tensat import __version__
from relational_tensat.base.errors import (
    OtherMachineError,
    RelationalTensatError,
    UsageError,
    first_line,
)
from relational_tensat.base.folders import temporary_folder
from relational_tensat.base.runner import (
    CancelledPart,
    LostError,
    TooLittleMemoryError,
    is_stopping,
)
from relational_tensat.formats.frontend import FRONTENDS, file_digest, files_beside, is_onnx
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.reports import NOT_RACED, NOT_RACED_ON
from relational_tensat.run.result import Result

#: Of a row: another graph was written; the original was; the program cannot use the model; the program has
#: a defect; the process or machine ended, again and again.
CHANGED, KEPT, REFUSED, FAILED, LOST = "changed", "kept", "refused", "failed", "lost"
#: The reason of a row whose search or race Ctrl-C has ended: its file is the best so far.
INTERRUPTED = "interrupted"
_KILOBYTES = 1 if sys.platform == "darwin" else 1024
#: So often a task asks whether it is to end.
_ASKED_EVERY_S = 0.1
#: A file by its name, beside the model's.
Files = tuple[tuple[str, bytes], ...]


def now() -> datetime:
    """Return the time as the ledger has it: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class FleetTask:
    """A model to optimize.

    Attributes:
        model: its name in the ledger: its path below the output folder.
        source, output: where it is, and where the result goes.
        model_digest, options_digest: of what decides the result.
        memory_bytes: the memory that it may need.
        with_savings: whether it is run again without each rule that the result needs.
        contents: the model's files, for a machine that has no folder in common; None where it has.
        attempts: how often it was begun, this time included.
    """

    model: str
    source: Path
    output: Path
    options: Options
    model_digest: str
    options_digest: str
    memory_bytes: int = 0
    with_savings: bool = False
    contents: Files | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class FleetRow:
    """The outcome of a model: a row of ``fleet_run``, whose columns say the meaning of each attribute."""

    model: str
    model_digest: str
    options_digest: str
    version: str
    state: str
    reason: str = ""
    attempts: int = 1
    host: str = ""
    ended: datetime = field(default_factory=now)
    output: str | None = None
    output_digest: str | None = None
    costs: str | None = None
    basis: str | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    cost_before_us: float | None = None
    cost_after_us: float | None = None
    nodes_before: int | None = None
    nodes_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_bytes: int = 0
    report: str | None = None
    rules: tuple[tuple[str, int], ...] = ()
    savings: tuple[tuple[str, float], ...] = ()


def carry_out(task: FleetTask) -> tuple[FleetRow, Files]:
    """Optimize a model; a complaint of the program about it is a result, too.

    Returns:
        Its row; and the files that are written, where the task has ``contents``.

    Raises:
        TooLittleMemoryError: memory did not suffice.
        LostError: a quiet core that it raced on ended, again and again.
        OtherMachineError: that is of another kind than this machine.
        CancelledPart: the fleet is to end, and there is no graph yet.
    """
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    state, reason, files = REFUSED, "", Files()
    placed = task
    row = FleetRow(
        task.model, task.model_digest, task.options_digest, versions(), state,
        attempts=task.attempts, host=platform.node(),
    )  # fmt: skip
    try:
        with _placed(task) as placed, _ended_softly():
            result = optimize(placed.source, placed.options, output=placed.output)
            row = _with_result(row, placed, result)
            files = () if task.contents is None else _files_in(placed.output.parent)
    except (RelationalTensatError, OSError) as error:
        if isinstance(error, CancelledPart | LostError | OtherMachineError):
            raise
        reason = first_line(error).replace(str(placed.source), str(task.source))
    except MemoryError as error:
        raise TooLittleMemoryError("its memory did not suffice") from error
    except KeyboardInterrupt:
        if not is_stopping():
            raise
        raise CancelledPart("cancelled") from None
    except Exception as error:  # a defect: of all the others, none is lost for it
        state, reason = FAILED, f"{type(error).__name__}: {first_line(error)}"
    if reason:
        row = replace(row, state=state, reason=reason)
    row = replace(
        row,
        ended=now(),
        cpu_s=time.process_time() - start_cpu_s,
        wall_s=time.perf_counter() - start_s,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILOBYTES,
    )
    return row, files


@contextmanager
def _placed(task: FleetTask) -> Iterator[FleetTask]:
    """Give the task with its files where this machine has them."""
    if task.contents is None:
        task.output.parent.mkdir(parents=True, exist_ok=True)
        yield task
        return
    with temporary_folder() as folder:
        source, written = folder / "model", folder / "result"
        source.mkdir()
        written.mkdir()
        for name, content in task.contents:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(content)
        output = task.options.output
        beside = {"certificate": output.certificate, "view": output.view}
        here = {name: written / path.name for name, path in beside.items() if path is not None}
        yield replace(
            task,
            source=source / task.source.name,
            output=written / task.output.name,
            options=task.options.replace(**here),
        )


def _files_in(folder: Path) -> Files:
    """Return what is in a folder, the model's data before the model."""
    paths = sorted((each for each in folder.rglob("*") if each.is_file()), reverse=True)
    return tuple((each.relative_to(folder).as_posix(), each.read_bytes()) for each in paths)


@contextmanager
def _ended_softly() -> Iterator[None]:
    """Press Ctrl-C in this process, once, when its runner is stopped: the run ends with its best so far."""
    ended = threading.Event()

    def press() -> None:
        while not ended.wait(_ASKED_EVERY_S):
            handler = signal.getsignal(signal.SIGINT)
            if is_stopping() and callable(handler) and handler is not signal.default_int_handler:
                _thread.interrupt_main()  # a run takes it as its own Ctrl-C
                return

    threading.Thread(target=press, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _with_result(row: FleetRow, task: FleetTask, result: Result) -> FleetRow:
    gain, change = result.gain, result.change
    timed = None if gain.is_kept else gain.measured
    report = result.to_json() | {"model": task.model, "output": task.model}
    return replace(
        row,
        state=KEPT if result.unchanged else CHANGED,
        reason=INTERRUPTED if _is_interrupted(result) else "",
        output=task.model,
        output_digest=file_digest(task.output),
        costs=result.cost_profile,
        basis=gain.basis,
        speedup=gain.speedup,
        low=None if timed is None else timed.low,
        high=None if timed is None else timed.high,
        cost_before_us=result.cost_before_us,
        cost_after_us=result.cost_after_us,
        nodes_before=None if change is None else change.before.nodes,
        nodes_after=None if change is None else change.after.nodes,
        bytes_before=None if change is None else change.before.bytes,
        bytes_after=None if change is None else change.after.bytes,
        report=json.dumps(report),
        rules=tuple(sorted(result.rules_used.items())),
        savings=tuple(_savings(task, result)) if task.with_savings else (),
    )


def _is_interrupted(result: Result) -> bool:
    """Whether Ctrl-C has ended the search or the race."""
    was_racing = any(note in (NOT_RACED_ON, NOT_RACED) for note in result.notes)
    return was_racing or result.stop_reason == "interrupted"


def _savings(task: FleetTask, result: Result) -> Iterator[tuple[str, float]]:
    """Yield each rule that a result needs, and the µs that a run without it costs more.

    Rules that a backend applies by itself save nothing, and cannot be left out.
    """
    for rule in sorted(result.rules_used):
        skip = (*task.options.rules.skip, rule)
        without = task.options.replace(skip=skip, certificate=None, budget_s=0.0, end_to_end=False)
        try:
            other = optimize(task.source, without)
        except UsageError:  # of the same options, only the name can be wrong
            continue
        yield rule, other.cost_after_us - result.cost_after_us


@cache
def versions() -> str:
    """Return the versions that decide a result."""
    try:
        runtime = f", onnxruntime {version('onnxruntime')}"
    except PackageNotFoundError:
        runtime = ""
    return f"{__version__}{runtime}"


#: Up to so many bytes, a model goes to a machine of a cluster with its task; a larger one is read there.
_MOST_SENT_BYTES = 100 << 20


def model_files(models: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files of models by the names of their results.

    Raises:
        UsageError: nothing is there, or two have one name.
    """
    found: dict[str, Path] = {}
    for text in models:
        for name, path in _files(Path(text)):
            if name in found and found[name] != path:
                raise UsageError(
                    f"{found[name]} and {path}: both results would be {name!r}, expected other names"
                )
            found[name] = path
    return found


def _files(path: Path) -> list[tuple[str, Path]]:
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file() and is_onnx(each))
        if not files:
            raise UsageError(f"{path}: has no .onnx file")
        return [(each.relative_to(path).as_posix(), each) for each in files]
    if path.exists():
        if path.suffix.lower() not in FRONTENDS:
            raise UsageError(f"{path}: expected a model ({' or '.join(FRONTENDS)}), or a folder")
        return [(path.name, path)]
    pattern = path.relative_to(path.anchor)
    matches = sorted(Path(path.anchor).glob(str(pattern))) if pattern.parts else []
    if not matches:
        raise UsageError(f"{path}: no such file or folder")
    return [pair for match in matches for pair in _files(match)]


def sizes_of(source: Path) -> dict[str, int]:
    """Return the bytes of each file of a model, by its name beside the model's."""
    paths = [source, *files_beside(source)]
    return {
        str(path.relative_to(source.parent)): path.stat().st_size for path in paths if path.exists()
    }


def contents_of(source: Path) -> Files | None:
    """Return a model's files; None where they are large, or not all of them are below its folder."""
    sizes = sizes_of(source)
    folder = source.parent.resolve()
    is_inside = all((folder / name).resolve().is_relative_to(folder) for name in sizes)
    if sum(sizes.values()) > _MOST_SENT_BYTES or not is_inside:
        return None
    return tuple((name, (source.parent / name).read_bytes()) for name in sizes)
