"""The request of a run: rows of the table ``run_record``, written before exploration starts."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from relational_tensat.base.files import read_bytes
from relational_tensat.base.folders import is_temporary
from relational_tensat.base.option import from_json, to_json
from relational_tensat.base.shown_text import storable
from relational_tensat.egraph.database import Database
from relational_tensat.formats.json_graph import graph_text
from relational_tensat.run.options import Options
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.types import Array

#: A model whose weights have no more bytes than this is stored in the database whole.
MOST_KEPT_BYTES = 1 << 20

_COST_PREFIXES = ("analytic:", "table:")
#: Parameters that may follow a profile's name.
_THREADS = re.compile(r":threads=\d+$")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """All that a run depends on beside the e-graph; paths are absolute.

    Attributes:
        options: its options, as ``options_text`` gives them. The rules that they name are in the
            table ``rule``.
        model: the model's file; None for a model that was in memory.
        model_digest: see ``graph_digest``.
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
        file = None if isinstance(model, Graph) else Path(model).absolute()
        return cls(
            options=options_text(options),
            model=file if file is None or not is_temporary(file) else None,
            model_digest=graph_digest(graph),
            model_copy=None if is_dynamic else small_copy(graph),
            cost_digest=None if own_costs else cost_digest(options),
            own_costs=own_costs,
        )


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


def options_text(options: Options) -> str:
    """Return options as JSON, with absolute paths."""
    return json.dumps(to_json(options.replace(cost=_absolute_cost(options.costs.source))))


def read_options(text: str) -> Options:
    """Return the options that ``options_text`` wrote.

    Raises:
        InputError: they are those of another version of this program.
    """
    return from_json(Options, json.loads(text))


def cost_file(cost: str | None) -> Path | None:
    """Return the file that ``--cost`` names, None if it names a profile, table or device, or nothing."""
    if cost is None:
        return None
    place = _THREADS.sub("", cost.removeprefix(_cost_prefix(cost)))
    return Path(place) if place.endswith((".toml", ".parquet")) or "/" in place else None


def _absolute_cost(cost: str | None) -> str | None:
    file = cost_file(cost)
    if cost is None or file is None:
        return cost
    threads = _THREADS.search(cost)
    return f"{_cost_prefix(cost)}{file.absolute()}{threads[0] if threads else ''}"


def _cost_prefix(cost: str) -> str:
    return next((prefix for prefix in _COST_PREFIXES if cost.startswith(prefix)), "")


def graph_digest(graph: Graph) -> str:
    """Return a hash of all that a graph contains, the elements of its weights included.

    These go in as CRC-32: it distinguishes a changed file from an unchanged one, at memory's pace.
    """
    digest = hashlib.sha256(graph_text(_without_data(graph)).encode())
    for name, weight in graph.weights.items():
        if weight.data is not None:
            digest.update(f"{name} {_checksum(np.asarray(weight.data))}\n".encode())
    return digest.hexdigest()


def small_copy(graph: Graph) -> str | None:
    """Return the graph as JSON if its weights have few bytes; else it must be read from its file."""
    arrays = [
        np.asarray(weight.data) for weight in graph.weights.values() if weight.data is not None
    ]
    size = sum(array.itemsize if _is_uniform(array) else array.nbytes for array in arrays)
    return graph_text(graph) if size <= MOST_KEPT_BYTES else None


def _without_data(graph: Graph) -> Graph:
    return replace(
        graph, weights={k: replace(w, data=None) for k, w in graph.weights.items()}, origin=None
    )


def _checksum(array: Array) -> int:
    """Return a checksum of the elements; of a view that repeats one of them, of that."""
    content = array.reshape(-1)[:1] if _is_uniform(array) else array
    if content.dtype.hasobject:
        return zlib.crc32(repr(content.tolist()).encode())
    return zlib.crc32(np.ascontiguousarray(content).reshape(-1).view(np.uint8).data)


def _is_uniform(array: Array) -> bool:
    return array.size > 0 and not any(array.strides)
