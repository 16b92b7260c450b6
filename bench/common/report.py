"""A folder of tables and plots: Markdown, CSV, PNG, and all runs as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.common.cell_results import Result
from bench.common.result_file import provenance
from bench.common.table import Table
from relational_tensat.base.files import write_aside

#: Draws into a file.
Plot = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What is written.

    Attributes:
        name: of the Markdown file, without its suffix.
        introduction: what stands before the tables.
        tables: in order.
        plots: by the name of the table that each stands below.
        origin: see ``origin_of``.
        runs: what the figures are from.
    """

    name: str
    introduction: str
    tables: Sequence[Table]
    plots: Mapping[str, Plot]
    origin: Mapping[str, Any]
    runs: Sequence[Result]

    def markdown(self) -> str:
        """Return the tables, each with its plot."""
        parts = [self.introduction]
        for table in self.tables:
            parts.append(table.markdown())
            if table.name in self.plots:
                parts.append(f"![{table.title}]({table.name}.png)\n")
        return "\n".join(parts)

    def write(self, folder: Path) -> None:
        """Write all files.

        Raises:
            InputError: the folder cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with write_aside(folder / f"{self.name}.md") as aside:
            for table in self.tables:
                (aside / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
            for name, plot in self.plots.items():
                plot(aside / f"{name}.png")
            content = json.dumps({**self.origin, "runs": list(self.runs)}, indent=1)
            (aside / "runs.json").write_text(content + "\n", encoding="utf-8")
            (aside / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")


def origin_of(settings: Any) -> dict[str, Any]:
    """Return where, when and with which settings (a dataclass) runs were made, and how busy it is now."""
    return {
        **provenance(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
        "settings": asdict(settings),
    }
