"""How a run was requested: rows of the table ``run_record``, written before exploration starts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relational_tensat.base.escaping import storable
from relational_tensat.base.files import read_bytes
from relational_tensat.egraph.database import Database
from relational_tensat.run.options import Options
from relational_tensat.run.resume.digest import graph_digest, small_copy
from relational_tensat.run.resume.options_text import cost_file, options_text, read_options
from relational_tensat.tensor.graph import Graph


@dataclass(frozen=True, slots=True)
class RunRecord:
    """All that a run depends on beside the e-graph; paths are absolute.

    Attributes:
        options: its options, as ``options_text`` gives them. The rules that they name are in the
            table ``rule``.
        model: the model's file; None for a graph that was given.
        model_digest: see ``digest.graph_digest``.
        model_copy: the model itself as JSON, if its weights are small.
        cost_digest: the hash of the file that costs are from; None if it ships or is no file.
        own_costs: whether costs are from a Python object, which nothing but its maker can give.
    """

    options: str
    model: Path | None
    model_digest: str
    model_copy: str | None
    cost_digest: str | None
    own_costs: bool

    @classmethod
    def of(
        cls,
        options: Options,
        model: Graph | str | Path,
        graph: Graph,
        *,
        own_costs: bool,
        is_dynamic: bool = False,
    ) -> RunRecord:
        """Return the record of a run.

        Args:
            graph: the model as it was read.
            is_dynamic: its dynamic dimensions are kept, so that the graph is not all of the model.
        """
        return cls(
            options=options_text(options),
            model=None if isinstance(model, Graph) else Path(model).absolute(),
            model_digest=graph_digest(graph),
            model_copy=None if is_dynamic else small_copy(graph),
            cost_digest=None if own_costs else cost_digest(options),
            own_costs=own_costs,
        )

    def read_options(self) -> Options:
        """Return the run's options.

        Raises:
            InputError: they are those of another version of this program.
        """
        return read_options(self.options)


def cost_digest(options: Options) -> str | None:
    """Return the hash of the file that costs are from; None if it ships or is no file.

    Raises:
        InputError: the file cannot be read.
    """
    file = cost_file(options.costs.source)
    return None if file is None else hashlib.sha256(read_bytes(file)).hexdigest()


def write_record(database: Database, record: RunRecord) -> None:
    """Write a record, all or nothing of it."""
    rows = {
        "options": record.options,
        "model": None if record.model is None else storable(str(record.model)),
        "model_digest": record.model_digest,
        "model_copy": record.model_copy,
        "cost_digest": record.cost_digest,
        "own_costs": "yes" if record.own_costs else None,
    }
    database.append(
        "run_record", [(key, value) for key, value in rows.items() if value is not None]
    )


def remember_outcome(place: Path | Database, gain: str, kept_original: str) -> None:
    """Write into a run's database what was gained, and why the original was written, if it was.

    Args:
        place: the open database, or the file of one that was closed.

    Raises:
        InputError: the database cannot be opened.
    """
    if isinstance(place, Path):
        database = Database(place, keep=True)
        try:
            remember_outcome(database, gain, kept_original)
        finally:
            database.close()
        return
    place.run("run/set_gain", text=gain)
    if kept_original:
        place.run("run/set_kept_original", why=kept_original)


def record_of_rows(rows: Mapping[str, str]) -> RunRecord:
    """Return the record that the rows of ``run_record`` are."""
    model = rows.get("model")
    return RunRecord(
        options=rows["options"],
        model=None if model is None else Path(model),
        model_digest=rows["model_digest"],
        model_copy=rows.get("model_copy"),
        cost_digest=rows.get("cost_digest"),
        own_costs="own_costs" in rows,
    )
