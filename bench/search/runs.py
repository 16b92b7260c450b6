"""How cells are run; what comes out is plain JSON, and is kept."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

from bench.common.cell_results import Result
from bench.common.machine import describe_commit
from bench.common.rule_sets import RULE_SETS, rules_hash
from bench.search.cells import Cell
from bench.search.common_steps import run_for
from bench.search.measure import measure
from bench.search.models import model_of
from bench.search.search_run import Made, SearchRun
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions
from relational_tensat.extract import ExtractionOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """What all cells share; with other values a kept result does not count.

    Attributes:
        rules: a set of ``bench.common.rule_sets``.
        cost: a profile.
        subgraph_nodes, universe_limit: as the options of these names; 0 for no ``subgraph_nodes``.
        time_limit_s: wall seconds of an exploration.
        extract_time_limit_s: wall seconds of an extraction.
    """

    rules: str
    cost: str
    subgraph_nodes: int
    universe_limit: int
    time_limit_s: float
    extract_time_limit_s: float


@dataclass(frozen=True, slots=True)
class SearchRuns:
    """Runs the cells, with one thread.

    Attributes:
        folder: where results are kept: one that is another cell's, too, is not run again.
    """

    settings: Settings
    folder: Path

    def run(self, cell: Cell) -> Result:
        """Run a cell, unless a kept run is its, too."""
        return self._shared(cell) or self._measured(cell)

    def made_with(self, cell: Cell) -> Result:
        """Return what a result depends on, beside the code."""
        made_with = {"cell": asdict(cell), "settings": asdict(self.settings)}
        return {**made_with, "rules": rules_hash(self.settings.rules)}

    def short(self, result: Result) -> str:
        """Return the cost, the CPU seconds, and why the search ended."""
        run = result["run"]
        text = f"{run['cost_after_us']:.1f} µs, {run['cpu_s']:.1f} s, {run['stop_reason']}"
        return f"{text}, the run of {run['same_as']}" if run["same_as"] else text

    def _measured(self, cell: Cell) -> Result:
        load = round(os.getloadavg()[0], 2)
        made = Made(date.today().isoformat(), describe_commit() or "", load, load)
        settings = self.settings
        limits = ExplorationOptions(
            multi_iterations=cell.limits.k_multi,
            node_limit=cell.limits.node_limit,
            subgraph_nodes=settings.subgraph_nodes or None,
            universe_limit=settings.universe_limit,
            time_limit_s=settings.time_limit_s,
        )
        found = measure(
            model_of(cell.model),
            cell.search,
            limits,
            ExtractionOptions(time_limit_s=settings.extract_time_limit_s),
            RULE_SETS[settings.rules](),
            load_profile(settings.cost),
            cell.limits.cpu_s,
            cell.seed,
        )
        return {"run": asdict(replace(found, made=made))}

    def _shared(self, cell: Cell) -> Result | None:
        """Return the result of a kept run that is this cell's, too."""
        own = self.made_with(cell)
        for path in sorted(self.folder.glob(f"{Path(cell.model).stem}-{cell.search}-*.json")):
            content = json.loads(path.read_bytes())
            made_with, result = content["made_with"], content["result"]
            is_like = made_with["cell"]["model"] == cell.model and "run" in result
            if not is_like or any(made_with[key] != own[key] for key in ("settings", "rules")):
                continue
            run = SearchRun.of(result["run"])
            found = run_for(cell, run, self.settings.subgraph_nodes)
            if found is not None:
                return {"run": asdict(replace(found, same_as=run.same_as or path.stem))}
        return None
