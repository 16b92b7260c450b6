"""The folder that ``python -m bench mirage --save`` leaves."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.common.result_file import provenance
from bench.mirage.measure import MirageRun, SearchRun
from bench.mirage.plots import plot_runs, plot_searches
from bench.mirage.table import HEADER, SEARCH_HEADER, Table, cells, search_cells
from relational_tensat.base.files import write_aside

_MODELLED = (
    "Times are modelled, of an A100: waves of blocks, the roofline, 4 µs a launch; ratios published are"
    " measured. `terms` and `CPU s` with a + : the limit of time ended the search; over limit: it ended one"
    " with fewer operators already, so this one was not made."
)


def write_runs(runs: Sequence[MirageRun], settings: Mapping[str, object], folder: Path) -> Path:
    """Write what was found as JSON, CSV, Markdown and a plot; return the Markdown's path."""
    table = Table("Benchmarks", HEADER, tuple(map(cells, runs)))
    origin = _origin(settings)
    with write_aside(_made(folder) / "benchmarks.md") as aside:
        plot_runs(runs, aside / "benchmarks.png")
        _write_json(aside / "benchmarks.json", origin, [_without_nan(asdict(run)) for run in runs])
        (aside / "benchmarks.csv").write_text(table.csv(), encoding="utf-8")
        text = _markdown("Mirage's benchmarks", origin, [table], ["benchmarks.png"])
        (aside / "benchmarks.md").write_text(text, encoding="utf-8")
    return folder / "benchmarks.md"


def write_searches(
    runs: Sequence[tuple[SearchRun, str]], settings: Mapping[str, object], folder: Path
) -> Path:
    """Write how large searches were as JSON, CSV, Markdown and plots; return the Markdown's path."""
    origin = _origin(settings)
    names = dict.fromkeys(run.case for run, _ in runs)
    tables, plots = [], []
    with write_aside(_made(folder) / "searches.md") as aside:
        for number, name in enumerate(names):
            mine = [(run, published) for run, published in runs if run.case == name]
            rows = tuple(search_cells(run, published) for run, published in mine)
            tables.append(Table(name, SEARCH_HEADER, rows))
            stem = "table5" if number == 0 else name.split()[0].lower()
            plots.append(f"{stem}.png")
            plot_searches([run for run, _ in mine], name, aside / plots[-1])
            (aside / f"{stem}.csv").write_text(tables[-1].csv(), encoding="utf-8")
        _write_json(aside / "searches.json", origin, [asdict(run) for run, _ in runs])
        text = _markdown("Searches, with means switched off", origin, tables, plots)
        (aside / "searches.md").write_text(text, encoding="utf-8")
    return folder / "searches.md"


def write_figures(figures: Sequence[str], folder: Path) -> Path:
    """Write the figures, which are Markdown, in one file."""
    with write_aside(_made(folder) / "figures.md") as aside:
        title = "# The paper's figures, as μGraphs that were found\n"
        text = "\n".join([title, *figures])
        (aside / "figures.md").write_text(text, encoding="utf-8")
    return folder / "figures.md"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _origin(settings: Mapping[str, object]) -> dict[str, Any]:
    load = [round(average, 1) for average in os.getloadavg()]
    return {**provenance(), "load_average": load, "settings": dict(settings)}


def _write_json(path: Path, origin: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> None:
    path.write_text(json.dumps({**origin, "runs": list(runs)}, indent=1) + "\n", encoding="utf-8")


def _without_nan(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run as JSON can have it: None for no number."""
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in run.items()}


def _markdown(
    title: str, origin: Mapping[str, Any], tables: Sequence[Table], plots: Sequence[str]
) -> str:
    machine = origin["machine"]
    parts = [
        f"# {title}\n",
        f"{origin['date']}, commit {origin['commit']}; {machine['cpu']}, {machine['cores']} cores, load"
        f" average of the last 15 minutes {origin['load_average'][2]}. {_MODELLED}\n",
    ]
    for table, plot in zip(tables, plots, strict=True):
        parts += [table.markdown(), f"![{table.title}]({plot})\n"]
    return "\n".join(parts)
