"""Optimizes many models, and goes on where it was stopped.

A model runs at least once, its row lands once, and its file is complete or absent. A complaint of the
program about a model is a result, and is not tried again. A process or machine that ends is: three times,
then the model is lost, and the others go on. Where memory did not suffice, the model is tried once with
twice as much.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.files import write_aside
from relational_tensat.base.runner import (
    CancelledPart,
    LostError,
    Runner,
    TooLittleMemoryError,
    runner,
)
from relational_tensat.base.watch import ctrl_c_taken
from relational_tensat.fleet.ledger import CANCELLED, LEDGER, Ledger, OpenLedger
from relational_tensat.fleet.task import (
    INTERRUPTED,
    LOST,
    Files,
    FleetRow,
    FleetTask,
    carry_out,
    contents_of,
    model_files,
    sizes_of,
    versions,
)
from relational_tensat.formats.frontend import file_digest
from relational_tensat.run.options import LOW, ONNXRUNTIME, Options

_MOST_ATTEMPTS = 3
#: Runners of clusters, which may have a core for each of several models that are timed.
_WITH_QUIET_CORES = ("ray", "slurm")
#: Ctrl-C is looked for so often.
_LOOKED_EVERY_S = 0.2
#: Memory that a run takes beside the share of its model.
_LEAST_BYTES, _TIMES_THE_MODEL = 700 << 20, 4


@dataclass(frozen=True, slots=True)
class Beside:
    """The files written beside each result, and the checks of it.

    Attributes:
        certificates: a certificate, NAME.proof.json for NAME.onnx.
        pages: the page of the run, NAME.html.
        savings: each rule's saving: the model runs again without each rule that its result needs.
    """

    certificates: bool = False
    pages: bool = False
    savings: bool = False

    def files_of(self, output: Path) -> dict[str, Path]:
        """Return the files beside a result, by the option that writes each."""
        files = {}
        if self.certificates:
            files["certificate"] = output.with_suffix(".proof.json")
        if self.pages:
            files["view"] = output.with_suffix(".html")
        return files


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """The tasks, and how they run.

    Attributes:
        tasks: the largest models first: little is waited for at the end.
        done: rows of models that need nothing.
        at_once: how many tasks run at a time; 0 without tasks.
        quiet_cores: how many measure and race at a time; 0 where nothing is timed.
    """

    tasks: tuple[FleetTask, ...]
    done: tuple[FleetRow, ...]
    at_once: int = 0
    quiet_cores: int = 0


def fleet(
    models: Sequence[str | Path],
    out: str | Path,
    options: Options | None = None,
    *,
    on: str = "here",
    beside: Beside | None = None,
    planned: Callable[[FleetPlan], None] | None = None,
    begun: Callable[[FleetTask], None] | None = None,
    noted: Callable[[FleetRow], None] | None = None,
) -> list[FleetRow]:
    """Optimize models into a folder, those that are not there yet; return the rows of all.

    Args:
        models: files, folders (all ``.onnx`` files below them), or patterns such as ``models/*.onnx``.
        out: the folder of the results, and of the ledger ``fleet.duckdb``.
        options: of each run.
        on: ``here``; ``processes:N``; ``ray``, ``ray:ADDRESS`` or ``slurm:N``. Several processes of one
            machine time nothing; a cluster has quiet cores for models that are timed. A model that ends its
            process, as one may that onnxruntime has a defect for, ends this one where it is ``here``.
        beside: further files for each result.
        planned: called with all that is to be done, before the first task begins.
        begun, noted: called with each task when it is handed out, and with each row when it lands.

    Raises:
        UsageError: there is no such model or runner, two results would have one name, a file would be
            written over, or several runs would be timed side by side.
        InputError: the ledger cannot be used.
        MissingDependencyError: the runner needs a package that is not installed.
        KeyboardInterrupt: Ctrl-C. At the first one, running tasks end with their best so far; at a second
            one, at once. The finished tasks are in the ledger.

    Example:
        >>> fleet(["models"], "fast", Options.of(effort="low"), on="processes:4")  # doctest: +SKIP
    """
    options = options or Options()
    is_disturbed = on.partition(":")[0] not in ("here", *_WITH_QUIET_CORES) and on != "processes:1"
    if is_disturbed and is_timed(options):
        raise UsageError(
            f"--on {on}: models that run side by side disturb each other's times, expected --effort low "
            "or --deterministic (nothing is timed), or --on here"
        )
    ledger = Ledger(Path(out))
    with ExitStack() as ends:
        opened = ends.enter_context(ledger.write()) if ledger.path.exists() else None
        plan = plan_of(models, Path(out), options, opened, beside or Beside())
        rows = {row.model: row for row in plan.done}
        if plan.tasks:
            folder = Path(out)
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"{folder}: cannot be made: {error.strerror or error}") from None
            written = opened or ends.enter_context(ledger.write())
            place = ends.enter_context(runner(on))
            timed = is_timed(options)
            apart = timed and place.lends_quiet_slots and may_race_apart(options)
            quiet_cores = place.quiet_slots if timed else 0  # raises where there is none
            at_once = quiet_cores if timed and not apart else place.slots
            plan = replace(plan, at_once=at_once, quiet_cores=quiet_cores)
        if planned is not None:
            planned(plan)
        if plan.tasks:
            told = begun or (lambda _: None)
            course = _Course(place, written, deque(plan.tasks), told, timed, apart)
            for row in course.rows():
                rows[row.model] = row
                if noted is not None:
                    noted(row)
    return [rows[name] for name in sorted(rows)]


def is_timed(options: Options) -> bool:
    """Whether runs time something: kernels, or graphs in a race."""
    costs = options.costs
    is_modelled = costs.source is not None and not (
        costs.budget_s
        or options.rules.backend is not None
        or costs.source.partition(":")[0] in ("cpu", "cuda")
    )
    is_low = options.purpose.effort == LOW or is_modelled
    return not (is_low or options.process.deterministic)


def may_race_apart(options: Options) -> bool:
    """Whether all that runs time is kernels and graphs on a processor, as a quiet core does for others."""
    costs, place = options.costs.source or "", options.purpose.runs_on
    is_here = place in (None, ONNXRUNTIME) and options.rules.backend in (None, ONNXRUNTIME)
    has_more = options.output.this_machine or options.fusion.fuse
    return is_here and not has_more and costs.partition(":")[0] != "cuda"


def plan_of(
    models: Sequence[str | Path],
    out: Path,
    options: Options,
    ledger: OpenLedger | None,
    beside: Beside,
) -> FleetPlan:
    """Return what is to be done: models that are not in the ledger as they and the options are now.

    Args:
        ledger: of the folder; None where it has none.

    Raises:
        UsageError, InputError: as ``fleet``.
    """
    settings = hashlib.sha256(repr((options, beside)).encode()).hexdigest()
    known = {} if ledger is None else {row.model: row for row in ledger.rows()}
    attempts = [] if ledger is None else ledger.table("fleet_attempt", "model")
    begun = Counter(model for (model,) in attempts)
    tasks, done = [], []
    for name, source in model_files(models).items():
        output = out / name
        if output.resolve() == source.resolve():
            raise UsageError(f"{source}: would be written over, expected another output folder")
        files = beside.files_of(output)
        for path in (output, *files.values()):
            if path.exists() and not begun[name]:
                raise UsageError(
                    f"{path}: exists already, and no fleet wrote it here; expected another output folder"
                )
        row, digest = known.get(name), _digest(source)
        same = (digest, settings, versions())
        if (
            row is not None
            and (row.model_digest, row.options_digest, row.version) == same
            and row.reason != INTERRUPTED
            and (row.output is None or output.exists())
        ):
            done.append(row)
            continue
        memory_bytes = _LEAST_BYTES + _TIMES_THE_MODEL * sum(sizes_of(source).values())
        own = options.replace(**files) if files else options
        tasks.append(
            FleetTask(
                name, source, output, own, digest, settings, memory_bytes,
                beside.savings, attempts=begun[name] + 1,
            )
        )  # fmt: skip
    tasks.sort(key=lambda task: -task.memory_bytes)
    return FleetPlan(tuple(tasks), tuple(done))


@dataclass
class _Course:
    """What waits, what runs, and what becomes of it.

    Attributes:
        is_timed: whether each model has a quiet core for itself, for its races alone if it ``races_apart``.
        lost: by model, how many of its processes have ended.
        larger: models that have had twice the memory.
        is_ending: Ctrl-C was pressed: nothing more is begun.
    """

    place: Runner
    ledger: OpenLedger
    waiting: deque[FleetTask]
    begun: Callable[[FleetTask], None]
    is_timed: bool = False
    races_apart: bool = False
    running: dict[Future[tuple[FleetRow, Files]], FleetTask] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    larger: set[str] = field(default_factory=set)
    is_ending: bool = False

    def rows(self) -> Iterator[FleetRow]:
        """Yield the row of each task when it is done and kept.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed, and what ran has ended.
        """
        with self._ending_softly():
            is_told, rows, tasks = False, list[FleetRow](), self._next()
            while tasks or rows or self.running:
                self.ledger.keep(
                    rows, tasks
                )  # one transaction: it is most of what a task takes beside itself
                yield from rows
                for task in tasks:
                    if self.is_ending:  # meanwhile
                        self.ledger.end(task, CANCELLED)
                    else:
                        self._begin(task)
                done = wait(self.running, _LOOKED_EVERY_S, FIRST_COMPLETED).done
                if self.is_ending and not is_told:
                    is_told = True
                    self.place.stop()
                settled = [self._settled(future, self.running.pop(future)) for future in done]
                rows = [row for row in settled if row is not None]
                self.is_ending |= any(row.reason == INTERRUPTED for row in rows)
                tasks = self._next()
        if self.is_ending:
            raise KeyboardInterrupt

    def _next(self) -> list[FleetTask]:
        """Take the tasks that there are slots for."""
        is_alone = self.is_timed and not self.races_apart
        slots = self.place.quiet_slots if is_alone else self.place.slots
        count = 0 if self.is_ending else max(0, slots - len(self.running))
        return [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]

    def _begin(self, task: FleetTask) -> None:
        self.begun(task)
        sent = task if self.place.shares_files else replace(task, contents=contents_of(task.source))
        # A model that is read by its path stays where it is: its graphs are not sent to a quiet core
        # either.
        is_apart = self.races_apart and sent.contents is not None
        is_alone = self.is_timed and not is_apart
        lending = self.place.submit_lending if is_apart else self.place.submit
        submit = self.place.submit_quiet if is_alone else lending
        self.running[submit(carry_out, sent, task.memory_bytes)] = task

    def _settled(self, future: Future[tuple[FleetRow, Files]], task: FleetTask) -> FleetRow | None:
        """Return the row of a task, whose files are where they belong; None where it has none yet.

        Raises:
            UsageError: the machine has another version of this program.
        """
        again = replace(task, attempts=task.attempts + 1)
        try:
            row, files = future.result()
        except (CancelledPart, LostError) as error:
            if isinstance(error, CancelledPart) and self.is_ending:
                self.ledger.end(task, CANCELLED)
                return None
            is_memory = isinstance(error, TooLittleMemoryError)
            if is_memory and task.model not in self.larger:
                self.larger.add(task.model)
                again = replace(again, memory_bytes=2 * task.memory_bytes)
            elif is_memory or self.lost[task.model] == _MOST_ATTEMPTS - 1:
                return _lost(task, str(error))
            self.lost[task.model] += not is_memory
            self.ledger.end(task, "memory" if is_memory else LOST)
            self.waiting.appendleft(again)
            return None
        if row.version != versions():
            raise UsageError(f"{row.host}: has {row.version}, expected {versions()} as here")
        for name, content in files:
            path = task.output.parent / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_aside(path) as aside:
                (aside / path.name).write_bytes(content)
        return row

    @contextmanager
    def _ending_softly(self) -> Iterator[None]:
        """Note the first Ctrl-C in the block; raise at the second."""

        def press(*_: object) -> None:
            if self.is_ending:
                raise KeyboardInterrupt
            self.is_ending = True

        with ctrl_c_taken(press):
            yield


def _lost(task: FleetTask, reason: str) -> FleetRow:
    return FleetRow(
        task.model, task.model_digest, task.options_digest, versions(), LOST, reason, task.attempts
    )


def _digest(source: Path) -> str:
    try:
        return file_digest(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}") from None


def ledger_of(out: Path) -> Ledger:
    """Return the ledger of an output folder.

    Raises:
        InputError: the folder has no ledger.
    """
    ledger = Ledger(out)
    if not ledger.path.exists():
        raise InputError(f"{out}: has no {LEDGER}, expected the output folder of a fleet")
    return ledger
