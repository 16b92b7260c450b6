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
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
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


def apart_makespan_s(
    tasks_s: Sequence[Sequence[float]], workers: int, quiet: int, overheads: Overheads
) -> float:
    """Return when the last of tasks ends that search on workers, and have others timed on quiet hosts.

    While a task waits for a quiet host, its worker is another's; as a fleet on Ray does, twice as many are
    begun as there are workers.

    Args:
        tasks_s: of each the seconds of search, timing, search, and so on; in the order in which they begin.
    """
    new, ready, asking = (
        deque(range(len(tasks_s))),
        deque[tuple[int, int]](),
        deque[tuple[int, int]](),
    )
    slots, free = 2 * workers, [workers, quiet]
    fresh = slots
    events: list[tuple[float, int, int]] = []
    now_s = overheads.start_s
    while True:
        while slots and new:
            slots -= 1
            ready.append((new.popleft(), 0))
        for is_quiet, waiting in enumerate((ready, asking)):
            while free[is_quiet] and waiting:
                task, part = waiting.popleft()
                free[is_quiet] -= 1
                took_s = tasks_s[task][part]
                took_s += overheads.each_s if is_quiet or not part else 0.0
                if not part and fresh:
                    fresh -= 1
                    took_s += overheads.first_s
                heapq.heappush(events, (now_s + took_s, task, part))
        if not events:
            return now_s
        now_s, task, part = heapq.heappop(events)
        free[part % 2] += 1
        if part + 1 == len(tasks_s[task]):
            slots += 1
        elif part % 2:
            ready.appendleft((task, part + 1))
        else:
            asking.append((task, part + 1))


@dataclass(frozen=True, slots=True)
class Kept:
    """Durations of real runs, in seconds.

    Attributes:
        warm: of exports whose kernels are known.
        cold: of exports whose kernels are not, the longest first: before kernels are measured, that, until
            graphs race, that, and the end. All of a race counts as timing, also what it searches.
        searches: of a paper's tables.
    """

    warm: list[float]
    cold: list[list[float]]
    searches: list[float]


def kept() -> Kept:
    """Return durations from bench/results, the exports repeated until they are many models."""
    path = RESULTS / "exports-cold-warm-2026-11-28.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    cold = sorted((_parts(run["cold"]) for run in runs), key=sum, reverse=True)
    times = _MODELS // len(runs)
    table = RESULTS / "search-2026-11-28-shipped-tables" / "runs.csv"
    with table.open(encoding="utf-8") as file:
        searches = [float(row["CPU s"]) for row in csv.DictReader(file)]
    warm = [run["warm"]["wall_s"] for run in runs]
    return Kept(warm * times, [each for each in cold for _ in range(times)], searches)


def _parts(run: Mapping[str, Any]) -> list[float]:
    spent_s = run["seconds"]
    before_s = spent_s["load"] + spent_s["explore"] + max(spent_s["price"] - spent_s["measure"], 0)
    end_s = spent_s["verify"] + spent_s["write"]
    between_s = run["wall_s"] - before_s - end_s - spent_s["measure"] - spent_s["whole"]
    return [before_s, spent_s["measure"], max(between_s, 0.0), spent_s["whole"], end_s]


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
    cold_s = sum(map(sum, durations.cold))
    models = f"{len(durations.cold)} models, costs measured"
    rows[f"{models}, whole runs on quiet hosts"] = {
        n: cold_s / makespan_s(list(map(sum, durations.cold)), n, overheads) for n in WORKERS
    }
    rows[f"{models}, searched by 64 others"] = {
        n: cold_s / apart_makespan_s(durations.cold, 64, n, overheads) for n in QUIET
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
#: With quiet hosts, so many search beside them.
_SEARCHING_HOSTS = 2


@dataclass(frozen=True, slots=True)
class Checked:
    """A fleet of Ray whose tasks wait, and what was said of it.

    Attributes:
        hosts: machines, which are processes here, of two workers each.
        quiet: further ones that what is timed waits on; 0 where nothing is timed.
    """

    hosts: int
    quiet: int
    simulated_s: float
    real_s: float

    @property
    def error(self) -> float:
        """By what part the simulation is off."""
        return self.simulated_s / self.real_s - 1.0


def check(counts: Sequence[int] = (1, 2, 3)) -> list[Checked]:
    """Return what tasks that wait take on a cluster of so many hosts, and what the simulation says.

    Workers have begun and imported by then: how long that takes depends on the machine. What a task takes
    to be handed out is known from tasks that do nothing, on the same cluster.
    """
    durations = kept()
    warm = sorted(random.Random(0).sample(durations.warm, _TASKS), reverse=True)
    cold = sorted(random.Random(0).sample(durations.cold, _TASKS), key=sum, reverse=True)
    results = [_checked(count, 0, [[each] for each in warm]) for count in counts]
    return results + [_checked(_SEARCHING_HOSTS, quiet, cold) for quiet in counts]


def _checked(hosts: int, quiet: int, tasks_s: Sequence[Sequence[float]]) -> Checked:
    workers, together_s = _CPUS * hosts, sum(map(sum, tasks_s))
    shortened = [[each * _TOGETHER_S / together_s for each in task] for task in tasks_s]
    nothing = [[0.0] * len(task) for task in tasks_s]
    with _cluster(hosts, quiet) as address:
        # All workers begin; on quiet hosts, too.
        _waited_s(address, [[0.5] * len(tasks_s[0])] * (4 * workers))
        nothing_s = _waited_s(address, nothing)
        real_s = _waited_s(address, shortened)
    each_s = nothing_s / apart_makespan_s(nothing, workers, quiet, Overheads(0.0, 0.0, 1.0))
    own = Overheads(0.0, 0.0, each_s)
    return Checked(hosts, quiet, apart_makespan_s(shortened, workers, quiet, own), real_s)


def _waited_s(address: str, tasks_s: Sequence[Sequence[float]]) -> float:
    from relational_tensat.base.runner import runner

    with runner(f"ray:{address}") as place:
        start_s = time.perf_counter()
        new, running = deque(tasks_s), set[Any]()
        while new or running:
            while new and len(running) < place.slots:
                running.add(place.submit_lending(_wait, new.popleft()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                each.result()
        return time.perf_counter() - start_s


def _wait(parts_s: Sequence[float]) -> None:
    """Wait instead of searching and timing."""
    from relational_tensat.base.runner import undisturbed

    for number, seconds in enumerate(parts_s):
        if number % 2:
            undisturbed(time.sleep, seconds)
        else:
            time.sleep(seconds)


@contextmanager
def _cluster(hosts: int, quiet: int) -> Any:
    from bench.fleets.kills import Machines

    machines = Machines(hosts=hosts, cpus=_CPUS, quiet=quiet)
    try:
        yield machines.address
    finally:
        machines.close()


def check_text(results: Sequence[Checked]) -> str:
    """Return simulated and real fleets as a table."""
    titles = ["hosts of two workers", "quiet hosts", "simulated s", "real s", "off by"]
    lines = [table_row(titles), table_row(["---"] * len(titles))]
    for each in results:
        cells = [str(each.hosts), str(each.quiet), f"{each.simulated_s:.1f}", f"{each.real_s:.1f}"]
        lines.append(table_row([*cells, f"{100 * each.error:+.1f} %"]))
    return "\n".join(lines) + "\n"
