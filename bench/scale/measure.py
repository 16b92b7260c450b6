"""One measured run, in this process: its peak memory is the run's.

``python -m bench.scale.measure TASK`` takes a ``Task`` as JSON and prints a ``Row`` as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field

from bench.scale.families import FAMILIES, Family
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import (
    Exploration,
    ExplorationOptions,
    IterationReport,
    Observer,
    explore,
)
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.run.options import Options
from relational_tensat.run.stages.compare import check_result

#: Iterations are not what ends these runs.
ITERATIONS = 1000

#: What of exploration is in no other phase: rules compiled and put into tables, what is logged.
REST = "rest"

#: The phases that the database's stopwatch distinguishes; ``tables`` is the graph put into them.
EXPLORE_PHASES = ("tables", "match", "apply", "rebuild", "filter cycles", REST)


@dataclass(frozen=True, slots=True)
class Task:
    """What one process is to do.

    Attributes:
        size: e-nodes, or layers: what the family is sized by.
        node_limit: other than the family's own; None for that.
        time_limit_s: of exploration, and again of extraction.
        memory_limit: of the database, as DuckDB writes it.
        interrupt_s: press Ctrl-C so many seconds after exploration begins; None for never.
    """

    family: str
    size: int
    time_limit_s: float
    memory_limit: str
    node_limit: int | None = None
    interrupt_s: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured. The attributes are keys of the results that the bench writes.

    Attributes:
        ended: why exploration did: saturated, nodes, time, memory, interrupted.
        explore_cpu_s, explore_wall_s: from the graph in memory to the explored e-graph.
        peak_mib: the most memory that the process had, Python and its packages included.
        spilled_mib: the most that was in DuckDB's temporary files after an iteration.
        most_e_nodes: after any iteration.
        node_limit: what they are compared with.
        late_s: how long after the time limit, or Ctrl-C, exploration ended; None if neither did it.
        seconds: CPU seconds by phase; exploration's are shared among its phases as its wall seconds are.
        longest_statement: name and wall seconds of the statement that took most, over all its runs.
        verified: the worst relative error of a whole run, as verification says it; None without one.
        note: what went wrong, if the process did not end by itself.
    """

    family: str
    size: int
    ended: str
    e_nodes: int = 0
    e_classes: int = 0
    iterations: int = 0
    matches: int = 0
    filtered: int = 0
    explore_cpu_s: float = 0.0
    explore_wall_s: float = 0.0
    total_wall_s: float = 0.0
    peak_mib: float = 0.0
    spilled_mib: float = 0.0
    most_e_nodes: int = 0
    node_limit: int = 0
    late_s: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    longest_statement: tuple[str, float] = ("", 0.0)
    verified: str | None = None
    note: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the e-graph has the size it was to have: growth is fitted to such runs alone."""
        return self.ended in ("saturated", "nodes") and not self.note


def measure_here(task: Task) -> Row:
    """Explore, and what else the family asks for, in this process."""
    family = FAMILIES[task.family]
    graph, rules = family.build(task.size), family.rules()
    watch = _Watch(task, family)
    cpu_s, started = time.process_time(), time.perf_counter()
    with closing(
        EGraph.create(graph, process=ProcessOptions(memory_limit=task.memory_limit))
    ) as egraph:
        watch.begun = time.perf_counter()
        stopwatch = egraph.database.stopwatch
        limits = ExplorationOptions(
            ITERATIONS,
            family.multi_iterations,
            node_limit=watch.node_limit,
            time_limit_s=task.time_limit_s,
        )
        with watch.pressing(), stopwatch.phase(REST):
            exploration = explore(
                egraph,
                rules,
                limits,
                observer=Observer(progress=lambda entry: watch.note(egraph, entry)),
            )
        end_s = time.perf_counter()
        cpu_s = time.process_time() - cpu_s
        spent = stopwatch.spent()
        of_wall = cpu_s / (end_s - started)  # less than 1 where others use the processor, too
        seconds = {phase: spent.phases.get(phase, 0.0) * of_wall for phase in EXPLORE_PHASES}
        longest = max(spent.statements.items(), key=lambda item: item[1].seconds)
        longest_statement = longest[0][1], longest[1].seconds
        verified = None
        if family.is_whole_run and exploration.stop_reason in ("saturated", "nodes"):
            verified = _finish(egraph, task, seconds)
        e_nodes, e_classes = egraph.counts()
    return Row(
        family=task.family,
        size=task.size,
        ended=exploration.stop_reason,
        e_nodes=e_nodes,
        e_classes=e_classes,
        iterations=exploration.iterations,
        matches=sum(entry.matches for entry in exploration.log),
        filtered=sum(entry.filtered for entry in exploration.log),
        explore_cpu_s=cpu_s,
        explore_wall_s=end_s - started,
        total_wall_s=time.perf_counter() - started,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        spilled_mib=watch.spilled_mib,
        most_e_nodes=max([e_nodes, *(entry.e_nodes for entry in exploration.log)]),
        node_limit=watch.node_limit,
        late_s=watch.late_s(exploration, end_s),
        seconds=seconds,
        longest_statement=longest_statement,
        verified=verified,
    )


def _finish(egraph: EGraph, task: Task, seconds: dict[str, float]) -> str:
    """Extract and verify; add their CPU seconds, return the worst error."""
    start_s = time.process_time()
    table = extraction_problem(egraph, load_profile("t4"))
    extraction = extract(table.problem, ExtractionOptions(time_limit_s=task.time_limit_s))
    choose(egraph, table, extraction.choice)
    graph = chosen_graph(egraph)
    extracted_s = time.process_time()
    _, outcome = check_result(egraph.graph, graph, {}, Options(), source=None, output=None)
    seconds["extract"] = extracted_s - start_s
    seconds["verify"] = time.process_time() - extracted_s
    proof = "optimal" if extraction.optimal else f"gap {extraction.gap:.2%}"
    return f"{proof}, {outcome.failure() or f'error {outcome.max_relative_error:.0e}'}"


class _Watch:
    """Presses Ctrl-C when it is time, and notes what is only to be seen during exploration."""

    def __init__(self, task: Task, family: Family) -> None:
        self.begun = 0.0
        self.pressed: float | None = None
        self.spilled_mib = 0.0
        own = task.size if family.stops_at_size else 10**9
        self.node_limit = task.node_limit or own
        self._task = task

    @contextmanager
    def pressing(self) -> Iterator[None]:
        """Press Ctrl-C so many seconds after the block was entered, if that is asked for."""
        if self._task.interrupt_s is None:
            yield
            return
        timer = threading.Timer(self._task.interrupt_s, self._press)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _press(self) -> None:
        self.pressed = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    def note(self, egraph: EGraph, entry: IterationReport) -> None:
        """Report an iteration on stderr; ask what was written to temporary files."""
        query = "SELECT coalesce(sum(size), 0) FROM duckdb_temporary_files()"
        ((size,),) = egraph.connection.execute(query).fetchall()
        self.spilled_mib = max(self.spilled_mib, size / 2**20)
        print(
            f"  {entry.iteration}: {entry.e_nodes:,} e-nodes, {entry.matches:,} matches, "
            f"{entry.seconds:.1f} s",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def late_s(self, exploration: Exploration, end_s: float) -> float | None:
        """Return how many seconds exploration ran after it was asked to end."""
        if exploration.stop_reason == "interrupted" and self.pressed is not None:
            return end_s - self.pressed
        if exploration.stop_reason == "time":
            return end_s - self.begun - self._task.time_limit_s
        return None


if __name__ == "__main__":
    print(json.dumps(asdict(measure_here(Task(**json.loads(sys.argv[1]))))))
