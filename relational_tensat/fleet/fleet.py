"""Optimizes many models, and goes on where it was stopped.

A model runs at least once, its row lands once, and its file is complete or absent. A model that the program
refuses is done: it is refused again only if it, the options or a version are others. A process that ends is
tried again twice; then the model is lost, and the others go on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.errors import InputError, NoSolutionError, UsageError
from relational_tensat.base.runner import runner
from relational_tensat.fleet.ledger import LEDGER, Ledger
from relational_tensat.fleet.task import LOST, FleetRow, FleetTask, carry_out, versions
from relational_tensat.formats.file_digest import file_digest
from relational_tensat.formats.frontend import FRONTENDS, is_onnx
from relational_tensat.run.options import LOW, Options

_MOST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        tasks: the largest models first: little is waited for at the end.
        done: rows of models that need nothing.
    """

    tasks: tuple[FleetTask, ...]
    done: tuple[FleetRow, ...]


def fleet(
    models: Sequence[str | Path],
    out: str | Path,
    options: Options | None = None,
    *,
    on: str = "here",
    certificates: bool = False,
    noted: Callable[[FleetRow], None] | None = None,
) -> list[FleetRow]:
    """Optimize models into a folder, those that are not there yet; return the rows of all.

    Args:
        models: files, folders (all ``.onnx`` files below them), or patterns such as ``models/*.onnx``.
        out: the folder of the results, and of the ledger ``fleet.duckdb``.
        options: of each run.
        on: ``here``, or ``processes:N``; several processes time nothing. A model that ends its process, as
            one may that onnxruntime has a defect for, ends this one where it is ``here``.
        certificates: write one beside each result: NAME.proof.json, for NAME.onnx.
        noted: called with each row when it lands.

    Raises:
        UsageError: there is no such model or runner, two results would have one name, or several processes
            would time models side by side.
        InputError: the ledger cannot be used.
        KeyboardInterrupt: Ctrl-C; what was done is in the ledger.

    Example:
        >>> fleet(["models"], "fast", Options.of(effort="low"), on="processes:4")  # doctest: +SKIP
    """
    options = options or Options()
    check_side_by_side(options, on)
    ledger = Ledger(Path(out))
    plan = plan_of(models, Path(out), options, ledger, certificates=certificates)
    if plan.tasks:
        _make(Path(out))
        ledger.create()
    rows = {row.model: row for row in plan.done}
    for row in _carried_out(plan.tasks, on):
        ledger.keep(row)
        rows[row.model] = row
        if noted is not None:
            noted(row)
    return [rows[name] for name in sorted(rows)]


def check_side_by_side(options: Options, on: str) -> None:
    """Check that no two models are timed at once.

    Raises:
        UsageError: they would be.
    """
    several = on.partition(":")[0] != "here" and on != "processes:1"
    if several and options.purpose.effort != LOW:
        raise UsageError(
            f"--on {on}: models that run side by side disturb each other's times, expected --effort low "
            "(nothing is timed), or --on here"
        )


def plan_of(
    models: Sequence[str | Path],
    out: Path,
    options: Options,
    ledger: Ledger,
    *,
    certificates: bool = False,
) -> Plan:
    """Return what is to be done: models that are not in the ledger as they and the options are now.

    Raises:
        UsageError, InputError: as ``fleet``.
    """
    settings = hashlib.sha256(repr((options, certificates)).encode()).hexdigest()
    known = {row.model: row for row in ledger.rows()}
    tasks, done = [], []
    is_new = not ledger.path.exists()
    for name, source in _named(models).items():
        output = out / name
        if output.resolve() == source.resolve():
            raise UsageError(f"{source}: would be written over, expected another output folder")
        if is_new and output.exists():
            raise UsageError(
                f"{output}: exists already, expected a new folder, or the one of an earlier fleet"
            )
        row, digest = known.get(name), _digest(source)
        same = (digest, settings, versions())
        if (
            row is not None
            and (row.model_digest, row.options_digest, row.version) == same
            and (row.output is None or output.exists())
        ):
            done.append(row)
        else:
            proof = {"certificate": output.with_suffix(".proof.json")} if certificates else {}
            own = options.replace(**proof)
            tasks.append(FleetTask(name, source, output, own, digest, settings))
    tasks.sort(key=lambda task: -task.source.stat().st_size)
    return Plan(tuple(tasks), tuple(done))


def _carried_out(tasks: Sequence[FleetTask], on: str) -> Iterator[FleetRow]:
    """Yield the row of each task when it is done; processes that end are begun again."""
    left = list(tasks)
    while left:
        with runner(on) as places:
            try:
                for place, row in places.each(carry_out, tuple(left)):
                    left[place] = replace(left[place], attempts=0)  # done
                    yield row
                return
            except NoSolutionError as error:
                left = [task for task in left if task.attempts]
                # Which of them ended it nobody knows: it is among the first, one for each process.
                left[0] = replace(left[0], attempts=left[0].attempts + 1)
                if left[0].attempts > _MOST_ATTEMPTS:
                    yield _lost(left.pop(0), str(error))


def _lost(task: FleetTask, reason: str) -> FleetRow:
    return FleetRow(
        task.model, task.model_digest, task.options_digest, versions(), LOST, reason,
        task.attempts - 1,
    )  # fmt: skip


def _named(models: Sequence[str | Path]) -> dict[str, Path]:
    """Return the files by the names of their results.

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


def _digest(source: Path) -> str:
    try:
        return file_digest(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}") from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror or error}") from None


def ledger_of(out: Path) -> Ledger:
    """Return the ledger of an output folder.

    Raises:
        InputError: there is none.
    """
    ledger = Ledger(out)
    if not ledger.path.exists():
        raise InputError(f"{out}: has no {LEDGER}, expected the output folder of a fleet")
    return ledger
