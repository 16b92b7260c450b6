"""How much faster many workers are: kept durations of tasks, given to workers that are only imagined.

Tasks are handed out as a fleet does: the longest first, one at a time to whatever worker is free. A worker
takes a while to begin, its first task imports what all later ones have, and each task takes some time to
be handed out. A worker that is lost loses its task, which is begun again by another, and comes back.
"""

from __future__ import annotations

import csv
import heapq
import itertools
import json
import math
import random
import statistics
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.plots import DPI, new_figure
from bench.common.result_file import RESULTS
from bench.common.table import table_row

WORKERS = (1, 2, 4, 8, 16, 32, 64)
#: Hosts that search beside quiet ones, and the workers of each.
SEARCHING = (16, 4)
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
        more_s: until Ray begins one more task on a host than that has CPUs; twice as long for the next
            one, and so on, ``most_more_s`` at most (``worker_cap_initial_backoff_delay_ms``).
        known_s: until other hosts of Ray know that one is free: half of what is between two reports
            (``raylet_report_resources_period_milliseconds``).
    """

    start_s: float = 10.0
    first_s: float = 2.0
    each_s: float = 0.03
    back_s: float = 60.0
    more_s: float = 1.0
    most_more_s: float = 10.0
    known_s: float = 0.05


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
    tasks_s: Sequence[Sequence[float]], hosts: int, cpus: int, quiet: int, overheads: Overheads
) -> float:
    """Return when the last of tasks ends that are searched on hosts, and have others timed on quiet ones.

    Args:
        tasks_s: of each the seconds of search, timing, search, and so on; in the order in which they begin.
        hosts: those that search, of so many ``cpus`` each.
        quiet: hosts that time, one thing after the other.
    """
    return _Apart(tasks_s, [_Host(cpus, cpus) for _ in range(hosts)], quiet, overheads).end_s()


@dataclass
class _Host:
    """A host that searches.

    Attributes:
        free: CPUs that no task has; fewer than none where tasks go on that were timed.
        running: tasks that have begun and not ended, also those that are timed.
        more_at_s: when it may begin one more than it has CPUs.
    """

    cpus: int
    free: int
    running: int = 0
    more_at_s: float = math.inf


class _Apart:
    """Tasks on hosts and quiet hosts, as Ray and a fleet hand them out.

    A fleet hands out twice as many tasks as there are CPUs. While one is timed, its CPU is another's. Then
    it goes on at once.
    """

    def __init__(
        self,
        tasks_s: Sequence[Sequence[float]],
        hosts: Sequence[_Host],
        quiet: int,
        overheads: Overheads,
    ) -> None:
        self._tasks_s, self._hosts, self._overheads = tasks_s, hosts, overheads
        self._new = deque(range(len(tasks_s)))
        self._slots = self._fresh = 2 * sum(host.cpus for host in hosts)
        self._idle, self._unused = list(range(quiet)), set(range(quiet))
        self._asking: deque[tuple[_Host, int, int]] = deque()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._now_s = self._end_s = overheads.start_s

    def end_s(self) -> float:
        """Return when the last one ends."""
        self._hand_out()
        while self._events:
            self._now_s, _, happen = heapq.heappop(self._events)
            happen()
            self._hand_out()
        return self._end_s

    def _after(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now_s + seconds, next(self._numbers), happen))

    def _hand_out(self) -> None:
        while self._slots and self._new:
            able = [host for host in self._hosts if self._may_begin(host)]
            if not able:
                break
            self._begin(min(able, key=lambda host: host.running))
        while self._idle and self._asking:
            self._time(heapq.heappop(self._idle), *self._asking.popleft())

    def _may_begin(self, host: _Host) -> bool:
        """Ray starts a clock where a task would be one more than there are CPUs."""
        if host.running < host.cpus or self._now_s >= host.more_at_s:
            return host.free > 0
        wait_s = self._overheads.more_s * 2 ** (host.running - host.cpus)
        wait_s = min(wait_s, self._overheads.most_more_s)
        if self._now_s + wait_s < host.more_at_s:
            host.more_at_s = self._now_s + wait_s
            self._after(wait_s, lambda: None)
        return False

    def _begin(self, host: _Host) -> None:
        host.more_at_s, host.running, self._slots = math.inf, host.running + 1, self._slots - 1
        first_s = self._overheads.first_s if self._fresh else 0.0
        self._fresh -= bool(self._fresh)
        self._search(host, self._new.popleft(), 0, self._overheads.each_s + first_s)

    def _search(self, host: _Host, task: int, part: int, more_s: float = 0.0) -> None:
        host.free -= 1
        self._after(self._tasks_s[task][part] + more_s, lambda: self._searched(host, task, part))

    def _searched(self, host: _Host, task: int, part: int) -> None:
        host.free += 1
        if part + 1 < len(self._tasks_s[task]):
            self._asking.append((host, task, part + 1))
            return
        self._end_s, self._slots, host.running = self._now_s, self._slots + 1, host.running - 1

    def _time(self, quiet: int, host: _Host, task: int, part: int) -> None:
        first_s = self._overheads.first_s if quiet in self._unused else 0.0
        self._unused.discard(quiet)
        took_s = self._tasks_s[task][part] + self._overheads.each_s + first_s
        self._after(took_s, lambda: self._timed(quiet, host, task, part))

    def _timed(self, quiet: int, host: _Host, task: int, part: int) -> None:
        """What waits, waits at the first quiet host; it hears of the others when they report."""
        self._after(
            self._overheads.known_s if quiet else 0.0, lambda: heapq.heappush(self._idle, quiet)
        )
        self._search(host, task, part + 1)


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
        n: cold_s / apart_makespan_s(durations.cold, *SEARCHING, n, overheads) for n in QUIET
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
