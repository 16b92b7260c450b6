"""Fleets whose models are timed on quiet machines of Ray, which are killed too.

Runs that are timed choose by the clock: their bytes differ. So each result is held to what it says of
itself: the file is complete, computes what the model does, and costs no more than its report claims, by the
times that its fleet has measured. Meanwhile two things are never timed at once on one quiet machine.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fleets.kills import KilledFleets, Machines
from relational_tensat.base.errors import VerificationError
from relational_tensat.cost import graph_cost_us, open_device
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.fleet import FleetRow
from relational_tensat.fleet.task import CHANGED
from relational_tensat.formats import load_model
from relational_tensat.formats.frontend import file_digest
from relational_tensat.tensor import Graph
from relational_tensat.verify import verify

#: So often the quiet machines are looked at.
_LOOKED_EVERY_S = 0.01
#: What is summed in another order differs by so much.
_ROUNDING = 1e-9


@dataclass
class TimedFleets(KilledFleets):
    """Fleets that measure kernels and race; ``prepare`` writes their models only.

    Attributes:
        machines: those of ``on``.
        raced: models of a fleet that raced; on a busy machine, a race may have no time.
    """

    machines: Machines = field(kw_only=True)
    raced: int = 0

    def prepare(self) -> None:
        """Write the models."""
        self.write_models()

    def flags(self, out: Path) -> tuple[str, ...]:
        """Return the options of the runs: each fleet has a cost cache for itself, and corrects no time."""
        cache = str(_cache(out))
        return ("--cost", "cpu", "--budget", "2", "--set", "learn-costs=no", "--cost-cache", cache)

    def run(self, number: int, most: int) -> Iterator[dict[str, Any]]:
        """Run a fleet as others are run, and look at the quiet machines meanwhile."""
        self.raced = 0
        with _QuietWatch(self.machines) as watch:
            for row in super().run(number, most):
                if "trouble" in row:
                    row |= {"raced": self.raced, "looks": watch.looks}
                    if watch.together:
                        row["trouble"] += f"; two things timed at once, seen {watch.together} times"
                yield row

    def wrong(self, row: FleetRow, out: Path) -> Iterator[str]:
        """Yield what a row says of its file that is not so."""
        path = out / row.model
        if row.output is None or row.report is None or not path.exists():
            yield f"no result ({row.state}: {row.reason})"
            return
        report, graph = json.loads(row.report), load_model(path)
        if file_digest(path) != row.output_digest:
            yield "the file is another than the ledger has"
        self.raced += row.basis == "measured"
        if row.state == CHANGED and not report["verified"]["ok"]:
            yield "it was not compared"
        if not _computes(load_model(self.models / row.model), graph):
            yield "the file computes something else"
        if Counter(node.op for node in graph.nodes) != report["operators"]["after"]:
            yield "the file has other operators than its report"
        costs = MeasuredSource("cpu", open_device("cpu"), CostCache(_cache(out)), limit_s=0.0)
        costs.adapt_to(graph)
        cost_us = graph_cost_us(graph, costs)
        if costs.counts.estimated or cost_us > report["cost_after_us"] * (1 + _ROUNDING):
            yield f"the file costs {cost_us} us, its report claims {report['cost_after_us']}"


def _computes(model: Graph, graph: Graph) -> bool:
    try:
        return verify(model, graph).ok
    except VerificationError:  # other outputs
        return False


def _cache(out: Path) -> Path:
    return out.with_name(f"{out.name}.costs.duckdb")


@dataclass
class _QuietWatch:
    """Looks all the time whether two things are timed at once on one quiet machine.

    Attributes:
        looks: how often something was timed.
        together: how often two things were, on one machine.
    """

    machines: Machines
    looks: int = 0
    together: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> _QuietWatch:
        threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(_LOOKED_EVERY_S):
            counts = [len(workers) for workers in self.machines.timing()]
            self.looks += any(counts)
            self.together += any(count > 1 for count in counts)
