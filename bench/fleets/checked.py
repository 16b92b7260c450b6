"""Real clusters of Ray against the simulation: their tasks wait, as two cores cannot compute so many."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.common.table import table_row
from bench.fleets.simulate import Overheads, apart_makespan_s, kept

if TYPE_CHECKING:
    from relational_tensat.base.runner import Runner

#: Of kept durations, so many are waited for, shortened so that all of them take so long.
_TASKS, _TOGETHER_S = 60, 60.0
_CPUS = 2
#: With quiet hosts, so many search beside them.
_SEARCHING_HOSTS = 2
#: What a task takes to be handed out is found so exactly, by halves.
_HALVINGS = 20


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

    Processes have begun and imported by then: how long that takes depends on the machine. What a task takes
    to be handed out is known from tasks that do nothing, on the same cluster.
    """
    durations = kept()
    warm = sorted(random.Random(0).sample(durations.warm, _TASKS), reverse=True)
    cold = sorted(random.Random(0).sample(durations.cold, _TASKS), key=sum, reverse=True)
    results = [_checked(count, 0, [[each] for each in warm]) for count in counts]
    return results + [_checked(_SEARCHING_HOSTS, quiet, cold) for quiet in counts]


def _checked(hosts: int, quiet: int, tasks_s: Sequence[Sequence[float]]) -> Checked:
    from bench.fleets.kills import Machines
    from relational_tensat.base.runner import runner

    shorter = _TOGETHER_S / sum(map(sum, tasks_s))
    shortened = [[each * shorter for each in task] for task in tasks_s]
    nothing = [[0.0] * len(task) for task in tasks_s]
    machines = Machines(hosts=hosts, cpus=_CPUS, quiet=quiet)
    try:
        # One job: another would have processes of its own.
        with runner(f"ray:{machines.address}") as place:
            _waited_s(place, [[0.5] * len(tasks_s[0])] * (4 * hosts * _CPUS))
            nothing_s = _waited_s(place, nothing)
            real_s = _waited_s(place, shortened)
    finally:
        machines.close()

    def simulated_s(parts_s: Sequence[Sequence[float]], each_s: float) -> float:
        overheads = Overheads(start_s=0.0, first_s=0.0, each_s=each_s)
        return apart_makespan_s(parts_s, hosts, _CPUS, quiet, overheads)

    low_s, high_s = 0.0, nothing_s
    for _ in range(_HALVINGS):
        each_s = (low_s + high_s) / 2
        is_less = simulated_s(nothing, each_s) < nothing_s
        low_s, high_s = (each_s, high_s) if is_less else (low_s, each_s)
    return Checked(hosts, quiet, simulated_s(shortened, low_s), real_s)


def _waited_s(place: Runner, tasks_s: Sequence[Sequence[float]]) -> float:
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


def check_text(results: Sequence[Checked]) -> str:
    """Return simulated and real fleets as a table."""
    titles = ["hosts of two workers", "quiet hosts", "simulated s", "real s", "off by"]
    lines = [table_row(titles), table_row(["---"] * len(titles))]
    for each in results:
        cells = [str(each.hosts), str(each.quiet), f"{each.simulated_s:.1f}", f"{each.real_s:.1f}"]
        lines.append(table_row([*cells, f"{100 * each.error:+.1f} %"]))
    return "\n".join(lines) + "\n"
