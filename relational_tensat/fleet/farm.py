"""A farm of costs: the kernels of many models, each measured once, on quiet cores, into a snapshot.

Searches of the models say which kernels they would ask for, and are told what the snapshot has; of the rest
they take estimates. The kernels that searches asked for are measured, one at a time on a quiet core. Then
they search
again: other kernels may matter now. It ends when none is asked for.

The snapshot is a cost cache, which runs read by ``--cost-cache FILE``. Beside it is a table of each device
in it, and that never changes: runs by ``--cost table:FILE`` give the same bytes everywhere.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from relational_tensat.base.errors import RelationalTensatError, UsageError, first_line
from relational_tensat.base.folders import temporary_folder
from relational_tensat.base.runner import LostError, Runner, runner
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.device import (
    Configuration,
    Device,
    DeviceKey,
    TimingSample,
    Unmeasurable,
)
from relational_tensat.cost.inventory import holdings
from relational_tensat.cost.key import Record, check_is_same, configuration_text, device_id, now
from relational_tensat.cost.measured_source import BATCH, MeasuredSource
from relational_tensat.cost.opener import DEVICES, open_device
from relational_tensat.cost.table import write_table
from relational_tensat.fleet.task import model_files
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.run.options import Options, with_short_limits
from relational_tensat.run.pipeline import optimize
from relational_tensat.run.purpose import purpose_of

#: The snapshot in the output folder.
SNAPSHOT = "costs.duckdb"
_MOST_ATTEMPTS = 3
#: Searches repeat so often: each time, fewer kernels are new.
_MOST_ROUNDS = 6
#: Seconds for a kernel: of 3,914 in 447 s, on a quiet EPYC. Where a farm has measured some, theirs.
_KERNEL_S = 0.114


@dataclass(frozen=True, slots=True)
class FarmPlan:
    """The kernels to measure next.

    Attributes:
        device: on which.
        kernels: how many.
        quiet_cores: how many measure at a time.
        seconds: how long it takes, about.
    """

    device: str
    kernels: int
    quiet_cores: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FrozenTable:
    """The table of a device.

    Attributes:
        kernels: how many are measured.
        models: whose kernels it has.
    """

    path: Path
    device: str
    kernels: int
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """When a machine measured some kernels: seconds of its clock since 1970."""

    host: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Farmed:
    """The times that a farm brought in.

    Attributes:
        snapshot: the cost cache.
        measured: how many kernels this call measured.
        refused: by model, why nothing is known of its kernels.
    """

    snapshot: Path
    tables: tuple[FrozenTable, ...]
    measured: int
    refused: Mapping[str, str]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Kernels that a search asked for: on which device, as a model of so many bytes finds it."""

    key: DeviceKey
    device: str
    weights_bytes: int
    configurations: tuple[Configuration, ...]


@dataclass(frozen=True, slots=True)
class _Search:
    source: Path
    options: Options
    known: tuple[Record, ...]


def farm(
    models: Sequence[str | Path],
    out: str | Path,
    options: Options,
    *,
    on: str = "here",
    planned: Callable[[FarmPlan], None] | None = None,
    measured: Callable[[int, int], None] | None = None,
) -> Farmed:
    """Measure the kernels that runs of some models ask for, those that are not in the folder yet.

    Args:
        models: as ``fleet`` takes them.
        out: the folder of the snapshot and its tables.
        options: of the runs to come; they name what is measured.
        on: as for ``fleet``. Searches go anywhere; kernels are measured on quiet cores: one of this
            machine, Ray's resource ``quiet_core``, or a machine of Slurm that a job has for itself.
        planned: called before kernels are measured, each time.
        measured: called with how many of how many are, of these.

    Raises:
        UsageError: nothing is measured for these options, there is no such model or no quiet core, or
            quiet cores are of several kinds.
        InputError: the snapshot cannot be used.

    Example:
        >>> farm(["models"], "costs", Options.of(cost="cpu"))  # doctest: +SKIP
    """
    folder, files = Path(out), model_files(models)
    folder.mkdir(parents=True, exist_ok=True)
    snapshot = CostCache(folder / SNAPSHOT)
    refused: dict[str, str] = {}
    users: dict[str, set[str]] = {}
    spans: list[Span] = []
    count = 0
    with runner(on) as place:
        for _ in range(_MOST_ROUNDS):
            known = tuple(snapshot.rows())
            searches = [_Search(path, options, known) for path in files.values()]
            wanted: dict[str, _Asked] = {}
            for name, asked in zip(files, place.map(_asked_for, searches), strict=True):
                if isinstance(asked, str):
                    refused[name] = asked
                    continue
                users.setdefault(device_id(asked.key), set()).add(name)
                _merge(wanted, asked)
            new = [asked for asked in wanted.values() if asked.configurations]
            if not new:
                break
            harvest = _Harvest(place, snapshot, measured or (lambda done, of: None))
            if planned is not None:
                planned(harvest.plan(new, count, spans))
            count += harvest.bring_in(new)
            spans += harvest.spans
    tables = tuple(_frozen(snapshot, folder, users))
    return Farmed(snapshot.path, tables, count, refused, tuple(spans))


def _merge(wanted: dict[str, _Asked], asked: _Asked) -> None:
    """Add what one search asks for to what others do: each kernel once."""
    known = wanted.setdefault(device_id(asked.key), replace(asked, configurations=()))
    both = dict.fromkeys((*known.configurations, *asked.configurations))
    wanted[device_id(asked.key)] = replace(known, configurations=tuple(both))


def _frozen(
    snapshot: CostCache, folder: Path, users: Mapping[str, set[str]]
) -> Iterator[FrozenTable]:
    for holding in holdings(snapshot.rows(), []):
        if holding.measured:
            path = folder / f"{holding.key.kind}-{holding.id}.parquet"
            write_table(path, holding.measured)
            names = tuple(sorted(users.get(holding.id, ())))
            yield FrozenTable(path, holding.key.name, len(holding.measured), names)


@dataclass
class _Harvest:
    """Measures kernels on all quiet cores of a place; each result is kept before more is handed out."""

    place: Runner
    snapshot: CostCache
    measured: Callable[[int, int], None]
    spans: list[Span] = field(default_factory=list)

    def plan(self, wanted: Sequence[_Asked], count: int, spans: Sequence[Span]) -> FarmPlan:
        """Return what will be done, as long as it took so far."""
        kernels = sum(len(asked.configurations) for asked in wanted)
        spent_s = sum(span.end_s - span.begin_s for span in spans)
        each_s = spent_s / count if count else _KERNEL_S
        cores = self.place.quiet_slots
        names = dict.fromkeys(asked.key.name for asked in wanted)
        return FarmPlan(" and ".join(names), kernels, cores, kernels * each_s / cores)

    def bring_in(self, wanted: Sequence[_Asked]) -> int:
        """Measure all; return how many.

        Raises:
            LostError: a quiet core was lost three times with the same kernels.
            OtherMachineError: a quiet core is of another kind.
        """
        left = [part for asked in wanted for part in _parts(asked)]
        total = sum(len(part.configurations) for part in left)
        attempts = dict.fromkeys(map(id, left), 0)
        running: dict[Future[tuple[list[Record], Span]], _Asked] = {}
        done = 0
        while left or running:
            while left and len(running) < self.place.quiet_slots:
                part = left.pop(0)
                attempts[id(part)] += 1
                running[self.place.submit_quiet(_measure, part)] = part
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                part = running.pop(future)
                try:
                    records, span = future.result()
                except LostError:
                    if attempts[id(part)] == _MOST_ATTEMPTS:
                        raise
                    left.insert(0, part)
                    continue
                self.snapshot.add(records)
                self.spans.append(span)
                done += len(records)
                self.measured(done, total)
        return done


def _parts(asked: _Asked) -> Iterator[_Asked]:
    for begin in range(0, len(asked.configurations), BATCH):
        yield replace(asked, configurations=asked.configurations[begin : begin + BATCH])


# --- on any machine ---


class _Listening:
    """A device that measures nothing, and remembers what it was asked for."""

    def __init__(self, device: Device, weights_bytes: int = 0) -> None:
        self.key, self.statistic = device.key, device.statistic
        self.weights_bytes = weights_bytes
        self.asked: dict[Configuration, None] = {}
        self.suited: _Listening = self
        self._device = device

    def adapted(self, weights_bytes: int) -> _Listening:
        suited = _Listening(self._device.adapted(weights_bytes), weights_bytes)
        if suited.key != self.suited.key:  # else who asks goes on with the one there is
            self.suited = suited
        self.suited.weights_bytes = weights_bytes
        return self.suited

    def measure(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable]]:
        self.asked.update(dict.fromkeys(configurations))
        return iter(())


def _device_of(options: Options, model: Path) -> tuple[str, Options]:
    """Return the device that runs of a model measure on, and their options.

    Raises:
        UsageError: they measure nothing.
    """
    purpose = purpose_of(options, model)
    source = purpose.options.costs.source or ""
    if purpose.options.rules.backend is not None:
        source = load_backend(purpose.options.rules.backend).measured_as(source)
    if source.partition(":")[0] not in {name.partition(":")[0] for name in DEVICES}:
        raise UsageError(
            f"{model}: a run measures no kernels, expected --cost cpu, --cost cuda or --effort high"
        )
    return source, with_short_limits(purpose.options)


def _asked_for(search: _Search) -> _Asked | str:
    """Return the kernels that a search asks for beside those known; or why it asks for nothing."""
    try:
        name, options = _device_of(search.options, search.source)
        listening = _Listening(open_device(name))
        with temporary_folder() as folder:
            cache = CostCache(folder / SNAPSHOT)
            cache.add(search.known)
            costs = MeasuredSource(name, listening, cache)  # type: ignore[arg-type]  # races nothing
            quiet = options.replace(budget_s=0.0, end_to_end=False, certificate=None, view=None)
            optimize(search.source, quiet, cost_model=costs)
    except UsageError:
        raise
    except (RelationalTensatError, OSError) as error:
        return first_line(error)
    asked = listening.suited
    return _Asked(asked.key, name, asked.weights_bytes, tuple(asked.asked))


@lru_cache(maxsize=8)
def _opened(name: str, weights_bytes: int) -> Device:
    """Return a device; a process learns once how fast it is when nobody disturbs it."""
    return open_device(name).adapted(weights_bytes)


def _measure(part: _Asked) -> tuple[list[Record], Span]:
    """Measure kernels, one after the other."""
    device = _opened(part.device, part.weights_bytes)
    check_is_same(device, part.key)
    begin_s = time.time()
    record = partial(Record, key=device.key)
    records = [
        record(configuration=configuration_text(each), result=result, date=now())
        for each, result in device.measure(part.configurations)
    ]
    return records, Span(platform.node(), begin_s, time.time())
