"""The folder that ``python -m bench paper`` leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.common.saving import provenance
from bench.paper.figures import figures_of
from bench.paper.plots import plot_figure_6, plot_figure_7, plot_table_1
from bench.paper.reading import Results
from bench.paper.running import Settings
from bench.paper.table import Table
from bench.paper.tables import tables_of
from relational_tensat.base.files import write_aside

_PLOTS = {"1": plot_table_1, "figure6": plot_figure_6, "figure7": plot_figure_7}


def write_all(
    names: Sequence[str],
    models: Sequence[str],
    results: Results,
    settings: Settings,
    folder: Path,
) -> tuple[str, list[Path]]:
    """Write CSV, plots, ``paper.md`` and ``runs.json``; return the Markdown, and all files.

    Raises:
        InputError: the folder cannot be written.
    """
    tables = [*tables_of(names, models, results), *figures_of(names, models, results)]
    plots = {f"{_stem(name)}.png": name for name in names if name in _PLOTS}
    origin = _made(settings)
    text = _markdown(tables, plots, origin)
    folder.mkdir(parents=True, exist_ok=True)
    with write_aside(folder / "paper.md") as aside:
        for table in tables:
            (aside / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        for file, name in plots.items():
            _PLOTS[name](models, results, aside / file)
        runs = [{**asdict(cell), **result} for cell, result in results.items()]
        content = json.dumps({**origin, "runs": runs}, indent=1)
        (aside / "runs.json").write_text(content + "\n", encoding="utf-8")
        (aside / "paper.md").write_text(text, encoding="utf-8")
        files = [folder / path.name for path in sorted(aside.iterdir())]
    return text, files


def _stem(name: str) -> str:
    return f"table{name}" if name.isdigit() else name


def _made(settings: Settings) -> dict[str, Any]:
    return {
        **provenance(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "settings": asdict(settings),
    }


def _markdown(tables: Sequence[Table], plots: Mapping[str, str], origin: Mapping[str, Any]) -> str:
    settings, machine = origin["settings"], origin["machine"]
    parts = [
        "# The paper's tables, from runs of this system\n",
        f"{origin['date']}, commit {origin['commit']}; {machine['cpu']}, {machine['cores']} cores;"
        f" costs of the profile {settings['cost']}; at most {settings['time_limit_s']:g} s for each"
        f" exploration, extraction and sequential search, {settings['iterations']} iterations,"
        f" {settings['node_limit']:,} e-nodes. Load average of the last 15 minutes:"
        f" {origin['load_average'][2]}; exploration and extraction are limited in wall seconds, so other"
        " work on the machine makes time-outs. '-': not known.\n",
    ]
    for table in tables:
        parts.append(table.markdown())
        file = f"{table.name}.png"
        if file in plots:
            parts.append(f"![{table.title}]({file})\n")
    return "\n".join(parts)
