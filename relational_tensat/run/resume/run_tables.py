"""The tables of a run beside its e-graph, and the first stage of a run that is resumed.

The e-graph needs nothing more: its tables are whole after every transaction. So what a killed process left
is opened as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, UsageError, check_choice, first_line
from relational_tensat.base.option import options_in
from relational_tensat.base.outputs import is_database
from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import FORMAT_VERSION, Database
from relational_tensat.egraph.egraph import restore_egraph
from relational_tensat.formats.json_graph import parse_graph
from relational_tensat.rules.backends.backend import FUSED_FILE
from relational_tensat.run.options import Options, resumable_options
from relational_tensat.run.request import Run
from relational_tensat.run.resume.record import (
    RunRecord,
    cost_digest,
    graph_digest,
    read_options,
    record_of_rows,
)
from relational_tensat.run.stages.load import load, read_model
from relational_tensat.run.values import LoadedRun, Model
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel

#: A DuckDB file begins with three blocks of 4 KiB; a file with less was not finished being made.
_LEAST_BYTES = 3 * 4096

_NOT_STARTED = "the run was killed before exploration had begun: start it again"


@dataclass(frozen=True, slots=True, eq=False)
class FoundModel:
    """A model that was read.

    Attributes:
        model: its file as it was named, or itself if it is of none.
        note: where it is from, if that is not where it was; else empty.
    """

    model: Graph | str | Path
    graph: Graph
    note: str = ""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run that another process started.

    Attributes:
        path: its database.
        iteration: the last one in the tables; 0 for none.
        kernel_rows, kernel_rules: of the model's own kernels, if it had been fused.
    """

    path: Path
    record: RunRecord
    iteration: int
    kernel_rows: list[tuple[Any, ...]]
    kernel_rules: dict[str, str]

    def options(self, **changes: Any) -> Options:
        """Return the run's options with the changes; the original graph and its costs are not among them.

        Where something is written is for the changes alone to say: a database may be anybody's.

        Raises:
            InputError: they are those of another version, or the file that costs are from has changed.
            UsageError: one of the values cannot be, or is the run's own to choose.
        """
        may_change = [option.name for option in resumable_options()]
        for name in changes:
            check_choice("option of a run that is resumed", name, may_change)
        try:
            options = read_options(self.record.options)
        except InputError as error:
            raise InputError(f"{self.path}: the run cannot be resumed: {error}") from None
        places = {
            option.name: option.default for _, option in options_in(Options) if option.about.writes
        }
        options = options.replace(**{**places, "force": False, **changes, "db": self.path})
        if not self.record.own_costs and cost_digest(options) != self.record.cost_digest:
            raise InputError(
                f"{self.path}: the run cannot be resumed: its cost profile {options.costs.source} has "
                "changed since it began"
            )
        return options

    def check_costs(self, *, own: bool) -> None:
        """Reject costs of another kind than the run's.

        Raises:
            UsageError: they are given and the run's were not, or the other way round.
        """
        if own != self.record.own_costs:
            was, preposition = ("a", "with") if self.record.own_costs else ("no", "without")
            raise UsageError(
                f"{self.path}: the run had {was} cost model of its own, expected resume {preposition} one"
            )

    def kernels(self) -> list[OwnKernel]:
        """Return the model's own kernels that the run had found: they are not sought again.

        Raises:
            InputError: one is malformed.
        """
        from relational_tensat.mugraph.fusion.own_kernel import kernels_of  # few runs need it

        try:
            return kernels_of(self.kernel_rows, self.kernel_rules)
        except InputError as error:
            raise InputError(f"{self.path}: the run cannot be resumed: {error}") from None

    def find_model(
        self, model: Graph | str | Path | None, read: Callable[[Path], Graph]
    ) -> FoundModel:
        """Return the model that the run started with.

        Args:
            model: where it is now, if not where it was.
            read: reads a file under the run's options.

        Raises:
            InputError: it is not there any more, or another one is, and its weights are needed.
        """
        if isinstance(model, Graph):
            if graph_digest(model) != self.record.model_digest:
                raise InputError(f"{self.path}: the graph {model.name!r} is not the run's model")
            return FoundModel(model, model)
        path = self.record.model if model is None else Path(model)
        reason = "the run's model was in memory and in no file, expected it to be given"
        if path is not None:
            graph, reason = self._read(path, read)
            if graph is not None:
                return FoundModel(path, graph)
        if model is not None or self.record.model_copy is None:
            raise InputError(f"{self.path}: the run cannot be resumed: {reason}")
        graph = parse_graph(self.record.model_copy.encode(), f"{self.path}: model_copy")
        note = "" if path is None else f"{reason}: the run's own copy was used"
        return FoundModel(graph, graph, note)

    def open(self, graph: Graph, process: ProcessOptions) -> EGraph:
        """Return the e-graph of the run, to be explored further.

        Args:
            graph: the graph that the e-graph was made from.

        Raises:
            InputError: another process uses the database.
        """
        return restore_egraph(graph, Database(self.path, process, keep=True))

    def _read(self, path: Path, read: Callable[[Path], Graph]) -> tuple[Graph | None, str]:
        """Return the model of a file, or None and why it is not the run's."""
        if not path.is_file():
            return None, f"its model {path} is gone"
        try:
            graph = read(path)
        except InputError:
            return None, f"its model {path} has changed since it began, and cannot be read"
        if graph_digest(graph) != self.record.model_digest:
            return None, f"its model {path} has changed since it began"
        return graph, ""


def read_run(path: Path) -> StoredRun:
    """Return what the database of a run contains. It is left as it is, its log of changes, too.

    Raises:
        InputError: the file does not exist, is not the database of a run or of another version's, is of a
            run that had not written its request, or is of one still in progress.
    """
    connection = _connect(path)

    def rows(text: str) -> list[tuple[Any, ...]]:
        try:
            return connection.execute(text).fetchall()
        except duckdb.Error as error:
            reason = first_line(error)
            raise InputError(
                f"{path}: not the database of a run of this program: {reason}"
            ) from error

    try:
        _check_version(path, rows)
        record = dict(rows("SELECT key, value FROM run_record"))
        if not record and rows("SELECT 1 FROM rule LIMIT 1"):
            raise InputError(
                f"{path}: the e-graph was not made by a run: nothing records how to resume it"
            )
        if not record:
            raise InputError(f"{path}: {_NOT_STARTED}")
        ((iteration,),) = rows("SELECT coalesce(max(iteration), 0) FROM iteration_log")
        return StoredRun(
            path=path,
            record=record_of_rows(record),
            iteration=int(iteration),
            kernel_rows=rows("FROM fused_kernel"),
            kernel_rules=dict(rows(f"SELECT name, text FROM rule WHERE file = '{FUSED_FILE}'")),
        )
    finally:
        connection.close()


def _check_version(path: Path, rows: Callable[[str], list[tuple[Any, ...]]]) -> None:
    tables = {name for (name,) in rows("SELECT table_name FROM duckdb_tables()")}
    if not tables:
        raise InputError(f"{path}: {_NOT_STARTED}")
    version = None
    if "meta" in tables:
        found = rows("SELECT value FROM meta WHERE key = 'format_version'")
        version = found[0][0] if found else None
    if version is None:
        raise InputError(f"{path}: not the database of a run of this program")
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path}: the database has format {version}, expected {FORMAT_VERSION}: "
            "start the run again"
        )


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.is_file():
        raise InputError(f"{path}: no such database file")
    size = path.stat().st_size
    if size and not is_database(path):
        raise InputError(f"{path}: not a database")
    if size < _LEAST_BYTES:
        raise InputError(f"{path}: {_NOT_STARTED}")
    try:
        return duckdb.open_database(path)
    except duckdb.Error as error:
        reason = first_line(error)
        if "set lock" in reason:  # damaged blocks are another matter
            reason = "another process uses it: does the run still use it?"
        raise InputError(f"{path}: cannot be opened: {reason}") from error


def restore(run: Run, stored: StoredRun, model: Graph | str | Path | None) -> LoadedRun:
    """Open what another process left: the model, the e-graph, the cheapest graph so far, kernels.

    Args:
        model: where it is now, if not where it was, or the graph that it was.

    Raises:
        InputError: the model has changed, or another process uses the database.
    """
    read_models: list[Model] = []

    def read(path: Path) -> Graph:
        read_models.append(read_model(run, path))
        return read_models[-1].graph

    found = stored.find_model(model, read)
    is_read = any(each.graph is found.graph for each in read_models)
    own = read_models[-1] if is_read else Model(found.model, found.graph)

    loaded = load(run, own, partial(stored.open, process=run.options.process))
    kernels = tuple(stored.kernels()) if stored.kernel_rows else ()
    if loaded.kernel_costs is not None:
        loaded.kernel_costs.learn(kernels)
    resumed = f"resumed after iteration {stored.iteration}"
    notes = (*loaded.notes, *filter(None, (resumed, found.note)))
    return replace(loaded, resumed_after=stored.iteration, kernels=kernels, notes=notes)
