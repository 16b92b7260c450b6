"""How much faster many workers are: kept durations of tasks, given to workers that are only imagined.

Tasks are handed out as a fleet does: the longest first, one at a time to whatever worker is free. A worker
takes a while to begin, its first task imports what all later ones have, and each task takes some time to
be handed out. A worker that is lost loses its task, which is begun again by another, and comes back.
"""

from __future__ import annotations

import csv
import heapq
import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.plots import DPI, new_figure
from bench.common.result_file import RESULTS
from bench.common.table import table_row

WORKERS = (1, 2, 4, 8, 16, 32, 64)
QUIET = (1, 4, 8, 16)
_MODELS, _DRAWS = 500, 20
_HALF_AN_HOUR_S = 1800.0


@dataclass(frozen=True, slots=True)
class Overheads:
    """Seconds beside those of tasks.

    Attributes:
        start_s: until a worker begins.
        first_s: what its first task takes more.
        each_s: what each takes to be handed out, and to come back.
        back_s: until a lost worker has another in its place.
    """

    start_s: float = 10.0
    first_s: float = 2.0
    each_s: float = 0.03
    back_s: float = 60.0


def ends_of(
    durations_s: Sequence[float],
    workers: int,
    overheads: Overheads,
    *,
    lost_every_s: float | None = None,
    seed: int = 0,
) -> list[float]:
    """Return when each task ends, in seconds since workers were asked for.

    Args:
        durations_s: of the tasks, in the order in which they are handed out.
        lost_every_s: how long a worker lives on average; None for ever.
    """
    draw = random.Random(seed)
    todo = list(durations_s)
    free = [overheads.start_s + overheads.first_s] * workers
    ends = []
    for duration_s in todo:  # what was lost is added behind
        begin_s = heapq.heappop(free)
        took_s = duration_s + overheads.each_s
        life_s = draw.expovariate(1 / lost_every_s) if lost_every_s else took_s
        if life_s < took_s:
            todo.append(duration_s)
            heapq.heappush(free, begin_s + life_s + overheads.back_s + overheads.first_s)
        else:
            ends.append(begin_s + took_s)
            heapq.heappush(free, begin_s + took_s)
    return ends


def makespan_s(
    durations_s: Sequence[float], workers: int, overheads: Overheads, **how: Any
) -> float:
    """Return when the last task ends, the longest handed out first."""
    return max(ends_of(sorted(durations_s, reverse=True), workers, overheads, **how))


def measured_makespan_s(
    search_s: Sequence[float],
    quiet_s: Sequence[float],
    workers: int,
    quiet: int,
    overheads: Overheads,
) -> float:
    """Return when the last of tasks ends that are searched by workers and then timed on quiet hosts.

    Those whose search is short come first, so that quiet hosts soon have something to do (Johnson, 1954).
    """
    both = sorted(zip(search_s, quiet_s, strict=True))
    found = ends_of([search for search, _ in both], workers, overheads)
    free = [overheads.start_s + overheads.first_s] * quiet
    for found_s, (_, timing_s) in sorted(zip(found, both, strict=True)):
        begin_s = max(heapq.heappop(free), found_s)
        heapq.heappush(free, begin_s + timing_s + overheads.each_s)
    return max(free)


@dataclass(frozen=True, slots=True)
class Kept:
    """Durations of real runs, in seconds.

    Attributes:
        warm: of exports whose kernels are known.
        search, quiet: of exports whose kernels are not, without what needs a quiet core, and only that.
        searches: of a paper's tables.
    """

    warm: list[float]
    search: list[float]
    quiet: list[float]
    searches: list[float]


def kept() -> Kept:
    """Return durations from bench/results, the exports repeated until they are many models."""
    path = RESULTS / "exports-cold-warm-2026-11-28.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    cold = [run["cold"] for run in runs]
    quiet = [each["seconds"]["measure"] + each["seconds"]["whole"] for each in cold]
    search = [max(each["wall_s"] - q, 0.5) for each, q in zip(cold, quiet, strict=True)]
    times = _MODELS // len(runs)
    table = RESULTS / "search-2026-11-28-shipped-tables" / "runs.csv"
    with table.open(encoding="utf-8") as file:
        searches = [float(row["CPU s"]) for row in csv.DictReader(file)]
    warm = [run["warm"]["wall_s"] for run in runs]
    return Kept(warm * times, search * times, quiet * times, searches)


def speed_ups(overheads: Overheads) -> dict[str, dict[int, float]]:
    """Return by experiment and number of workers how many times as fast as one after the other it is."""
    durations, rows = kept(), {}
    for name, tasks in (
        (f"{len(durations.warm)} models, costs known", durations.warm),
        (f"{len(durations.searches)} searches", durations.searches),
    ):
        serial_s = sum(tasks)
        rows[name] = {n: serial_s / makespan_s(tasks, n, overheads) for n in WORKERS}
        rows[f"{name}, each worker lost every 30 min"] = {
            n: serial_s
            / statistics.mean(
                makespan_s(tasks, n, overheads, lost_every_s=_HALF_AN_HOUR_S, seed=seed)
                for seed in range(_DRAWS)
            )
            for n in WORKERS
        }
    cold_s = sum(durations.search) + sum(durations.quiet)
    models = f"{len(durations.quiet)} models, costs measured"
    rows[f"{models}, whole runs on quiet hosts"] = {
        n: cold_s
        / makespan_s(
            list(map(sum, zip(durations.search, durations.quiet, strict=True))), n, overheads
        )
        for n in WORKERS
    }
    rows[f"{models}, searched by 64 others"] = {
        n: cold_s / measured_makespan_s(durations.search, durations.quiet, 64, n, overheads)
        for n in QUIET
    }
    return rows


def table(rows: Mapping[str, Mapping[int, float]]) -> str:
    """Return speed-ups as a table."""
    numbers = sorted({number for row in rows.values() for number in row})
    lines = [table_row(["tasks", *map(str, numbers)]), table_row(["---"] * (len(numbers) + 1))]
    for name, row in rows.items():
        cells = [f"{row[number]:.1f}" if number in row else "" for number in numbers]
        lines.append(table_row([name, *cells]))
    return "\n".join(lines) + "\n"


def draw(rows: Mapping[str, Mapping[int, float]], path: Path) -> None:
    """Draw speed-ups over workers."""
    figure, axes = new_figure(1, 1, (8, 6))
    for name, row in rows.items():
        axes.plot([*row], [*row.values()], marker="o", label=name)
    axes.plot([*WORKERS], [*WORKERS], color="grey", linewidth=0.8, label="as many times as workers")
    for set_scale in (axes.set_xscale, axes.set_yscale):
        set_scale("log", base=2)
    axes.set_xlabel("workers, or quiet hosts")
    axes.set_ylabel("times as fast as one after the other (simulated)")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=DPI)


# --- against real runs ---

#: Of kept durations, so many are waited for, shortened so that all of them take so long.
_TASKS, _TOGETHER_S = 60, 60.0
_CPUS = 2


@dataclass(frozen=True, slots=True)
class Checked:
    """A fleet of Ray whose tasks wait, and what was said of it.

    Attributes:
        hosts: machines, which are processes here, of two workers each.
    """

    hosts: int
    simulated_s: float
    real_s: float

    @property
    def error(self) -> float:
        """By what part the simulation is off."""
        return self.simulated_s / self.real_s - 1.0


def check(hosts: Sequence[int] = (1, 2, 3)) -> list[Checked]:
    """Return what tasks that wait take on a cluster of so many hosts, and what the simulation says.

    Workers have begun and imported by then: how long that takes depends on the machine. What a task takes
    to be handed out is known from tasks that do nothing, on the same cluster.
    """
    durations = random.Random(0).sample(kept().warm, _TASKS)
    shortened = [each * _TOGETHER_S / sum(durations) for each in durations]
    results = []
    for count in hosts:
        with _cluster(count) as address:
            _waited_s(address, [0.5] * (4 * _CPUS * count))  # all workers begin
            nothing_s = _waited_s(address, [0.0] * _TASKS)
            real_s = _waited_s(address, sorted(shortened, reverse=True))
        workers = _CPUS * count
        own = Overheads(0.0, 0.0, nothing_s * workers / _TASKS)
        results.append(Checked(count, makespan_s(shortened, workers, own), real_s))
    return results


def _waited_s(address: str, durations_s: Sequence[float]) -> float:
    from relational_tensat.base.runner import runner

    with runner(f"ray:{address}") as place:
        start_s = time.perf_counter()
        for _ in place.map(time.sleep, durations_s):
            pass
        return time.perf_counter() - start_s


@contextmanager
def _cluster(hosts: int) -> Any:
    from bench.fleets.kills import Machines

    machines = Machines(hosts=hosts, cpus=_CPUS)
    try:
        yield machines.address
    finally:
        machines.close()


def check_text(results: Sequence[Checked]) -> str:
    """Return simulated and real fleets as a table."""
    titles = ["hosts of two workers", "simulated s", "real s", "off by"]
    lines = [table_row(titles), table_row(["---"] * len(titles))]
    for each in results:
        cells = [str(each.hosts), f"{each.simulated_s:.1f}", f"{each.real_s:.1f}"]
        lines.append(table_row([*cells, f"{100 * each.error:+.1f} %"]))
    return "\n".join(lines) + "\n"
