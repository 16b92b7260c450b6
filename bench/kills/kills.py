"""Runs of every kind that writes something, killed, and brought to their end from what is there by then.

Of a run that is resumed, also by another search, three things are demanded: the invariants of its database
hold, its result is verified, and costs at most what was reported before the kill. What else runs write is
not half-written: caches and kernels can be read, no folder is left.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.kills.forker import Forker
from relational_tensat.base.files import resource_dir
from relational_tensat.cost.cache import CostCache
from relational_tensat.kernels import entries

#: Where a kill can meet a run, in order: there is no database; no e-graph in it; there is one.
PLACES = ("beginning", "creating", "exploring")

#: Flags of each kind; what begins with ``+`` is a name in the run's folder.
KINDS: Mapping[str, tuple[str, ...]] = {
    "run": ("--for", "t4"),
    "db": ("--for", "t4", "--set", "extract-every=1", "--db", "+run.duckdb"),
    "focus": ("--for", "t4", "--search", "focus", "--time-limit", "1", "--db", "+run.duckdb"),
    "tree search": ("--for", "t4", "--search", "mcts", "--time-limit", "1", "--db", "+run.duckdb"),
    "fuse": ("--fuse", "--cost", "a100", "--set", "fuse-time-limit=1", "--db", "+run.duckdb"),
    "cost cache": (
        "--cost", "cpu", "--backend", "onnxruntime", "--cost-cache", "+costs.duckdb",
        "--set", "measure-time-limit=1", "--budget", "0", "--set", "end-to-end=no",
    ),
    "kernels folder": ("--fuse", "--cost", "a100", "--set", "fuse-time-limit=1", "--kernels", "+kernels"),
}  # fmt: skip
#: What a run is resumed by, in turn; empty: by its own search.
SEARCHES = ("", "saturation", "focus", "mcts")
#: What a cost may differ by: sums in another order; times that were estimated before, and measured now.
_COST_NOISE, _MEASURED_NOISE = 1e-6, 0.2
NOT_STARTED = "the run was killed before exploration had begun: start it again"
REFUSED = 3
_PRINTED = ("--json", "--json-events")
#: What only a cycle filter establishes: subgraphs share e-nodes of which none is filtered.
_ACYCLIC = ("cycles", "height_labels")
#: A table without which a folder's invariants say nothing.
_TABLE_OF = {"invariants": "enode", "subgraphs": "subgraph", "search_tree": "tree_decision"}


@dataclass(frozen=True, slots=True)
class Survival:
    """What became of a run that was killed.

    Attributes:
        place: where it was killed, one of ``PLACES``.
        trouble: what does not hold once it has been brought to its end; "" where all does.
    """

    place: str
    trouble: str = ""


class KilledRuns:
    """Runs of one kind on one model, each in a folder of its own.

    Attributes:
        seconds: what a run takes that nobody kills.
    """

    def __init__(self, kind: str, forker: Forker, folder: Path, model: Path) -> None:
        self.kind = kind
        self._forker, self._folder, self._model = forker, folder / kind.replace(" ", "_"), model
        whole = self._folder / "whole"
        whole.mkdir(parents=True)
        started = time.monotonic()
        if forker.run(self._argv(whole), whole / "printed") != 0:
            raise RuntimeError(f"{kind}: {(whole / 'printed').read_text()[-500:]}")
        self.seconds = time.monotonic() - started

    def survived(self, index: int, fraction: float) -> Survival:
        """Kill a run after that part of the time of a whole one, and bring it to its end."""
        folder = self._folder / f"run{index}"
        delay_s = fraction * self.seconds
        while True:
            folder.mkdir()
            if self._forker.kill_after(delay_s, self._argv(folder), folder / "killed"):
                break
            delay_s /= 2  # it was done already
            shutil.rmtree(folder)
        before_us = _best_us(folder / "killed")
        troubles = list(self._damaged(folder))
        place = self._bring_to_end(folder, before_us, SEARCHES[index % len(SEARCHES)], troubles)
        troubles += self._damaged(folder)
        if (folder / "run.duckdb").exists():
            broken = broken_invariants(folder / "run.duckdb")
            troubles += [f"the invariant {name}" for name in broken]
        troubles += [f"{path.name} is left" for path in folder.rglob("*.part")]
        shutil.rmtree(folder)
        return Survival(place, ", ".join(troubles))

    def _argv(self, folder: Path) -> list[object]:
        flags = [folder / flag[1:] if flag[0] == "+" else flag for flag in KINDS[self.kind]]
        return ["run", self._model, "-o", folder / "out.onnx", *flags, *_PRINTED]

    def _bring_to_end(
        self, folder: Path, before_us: float, search: str, troubles: list[str]
    ) -> str:
        """Resume, or begin again where nothing can be; return where the kill was."""
        database = folder / "run.duckdb"
        place = "beginning"
        if database.exists():
            place = "exploring"
            how = ["--search", search] if search else []
            argv = ["run", "--resume", database, "-o", folder / "out.onnx", *how, *_PRINTED]
            code = self._forker.run(argv, folder / "printed")
            if code == REFUSED and NOT_STARTED in (folder / "printed").read_text():
                place = "creating"
                again = [*self._argv(folder), "--force"]
                code = self._forker.run(again, folder / "printed")
        else:
            code = self._forker.run(self._argv(folder), folder / "printed")
        if code != 0:
            troubles.append(f"exit {code}: {(folder / 'printed').read_text()[-200:]}")
            return place
        result = json.loads((folder / "printed").read_text().splitlines()[-1])
        if not (result["verified"]["ok"] or result["unchanged"]):
            troubles.append("the result is not verified")
        noise = _MEASURED_NOISE if self.kind == "cost cache" else _COST_NOISE
        if result["cost_after_us"] > before_us * (1 + noise):
            troubles.append(f"{result['cost_after_us']} µs, and {before_us} before the kill")
        return place

    def _damaged(self, folder: Path) -> Iterator[str]:
        """Yield what is wrong with what a run has written, be it killed or not."""
        if (folder / "out.onnx").exists():
            import onnx

            try:
                onnx.checker.check_model(str(folder / "out.onnx"))
            except Exception as error:  # whatever is wrong with it
                yield f"the output: {error}"
        if (folder / "costs.duckdb").exists():
            CostCache(folder / "costs.duckdb").rows()
        if (folder / "kernels" / "kernels.json").exists():
            for entry in entries(folder / "kernels").values():
                assert entry.graph.kernels


def broken_invariants(database: Path) -> Iterator[str]:
    """Yield the invariants that a database breaks; what a kill has left of one may have no tables yet."""
    with duckdb.connect(str(database)) as connection:
        yield from invariants_broken_in(connection)


def invariants_broken_in(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield the invariants that the tables of a connection break."""
    rows = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    names = {name for (name,) in rows}
    for path in sorted((resource_dir("sql") / "invariants").rglob("*.sql")):
        if _TABLE_OF[path.parent.name] not in names:
            continue
        if "subgraph" in names and path.stem in _ACYCLIC:
            continue
        if connection.execute(path.read_text(encoding="utf-8")).fetchall():
            yield path.stem


def _best_us(events: Path) -> float:
    """Return what the cheapest graph costs that a run reported; infinity where it reported none."""
    best_us = float("inf")
    for line in events.read_text().splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            continue  # the kill met it
        if event.get("event") == "extracted":
            best_us = min(best_us, float(event["best_us"]))
    return best_us
