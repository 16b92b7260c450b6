"""An e-graph to work with by hand: made from a model, explored, queried, extracted from, again and again.

    with EGraph.of("bench/inputs/nasrnn.json") as egraph:
        egraph.explore(iterations=5)
        print(egraph.sql("SELECT op, count(*) FROM enode_text GROUP BY op"))
        print(egraph.extract("a100"))

``optimize`` is the way from a file to a verified file; here nothing is verified or written.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, MissingDependencyError, first_line, unknown
from relational_tensat.base.folders import Closing
from relational_tensat.base.option import OptionGroup, options_of
from relational_tensat.base.shown_text import HtmlTable, html_fields
from relational_tensat.cost import CostModel, as_source, graph_cost_us, open_source
from relational_tensat.egraph import EGraph as Subgraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.extract import Extraction, ExtractionOptions, extract
from relational_tensat.extract.few_measurements import settle
from relational_tensat.extract.tables import choose, chosen_graph, forget_costs, rules_of_chosen
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import check_trust
from relational_tensat.run.models_in_memory import AnyModel, placed
from relational_tensat.run.options import Options
from relational_tensat.run.resume.record import RunRecord, write_record
from relational_tensat.run.resume.run_tables import read_run
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.uses import share_equal_weights

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


_Group = TypeVar("_Group", bound=OptionGroup)


@dataclass(frozen=True, slots=True, repr=False)
class Extracted:
    """The cheapest graph that an extraction found.

    Attributes:
        graph: the chosen graph, with the names of the model.
        cost_us, original_us: of one inference, of this graph and of the original.
        bound_us: no graph of the e-graph costs less; 0 where nothing was proven.
        optimal: whether the graph was proven to be the cheapest of the e-graph under these costs.
        cost: the name of the cost source.
        rules: per rule, how many e-nodes of the graph it made.
        extraction: the extractor's answer.
    """

    graph: Graph
    cost_us: float
    original_us: float
    bound_us: float
    optimal: bool
    cost: str
    rules: Mapping[str, int]
    extraction: Extraction

    @property
    def gap(self) -> float:
        """How much of the cost might still be saved, as a fraction of it."""
        return self.extraction.gap

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else f"gap {self.gap:.2%}"
        return (
            f"Extracted({self.graph.name}: {self.original_us:,.2f} → {self.cost_us:,.2f} µs "
            f"under {self.cost}, {self.extraction.method}, {proof})"
        )

    def _repr_html_(self) -> str:
        return html_fields(
            self.graph.name,
            [
                ("cost", f"{self.original_us:,.2f} → {self.cost_us:,.2f} µs under {self.cost}"),
                ("extractor", self.extraction.method),
                ("optimal", self.optimal),
                ("gap", f"{self.gap:.2%}"),
                ("operators", ", ".join(f"{n} {op}" for op, n in self.graph.count_ops().items())),
                ("rules", ", ".join(f"{name} {count}" for name, count in self.rules.items())),
            ],
        )


class EGraph(Closing):
    """An e-graph in DuckDB tables, to explore, query and extract from.

    Attributes:
        subgraph: its tables, with what the package's own rooms work on.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        """Wrap tables; see ``of`` and ``open``."""
        self.subgraph = subgraph

    @classmethod
    def of(cls, model: AnyModel, *, db: str | Path | None = None, **options: Any) -> EGraph:
        """Put a model into an e-graph.

        Args:
            model: as ``optimize`` takes it; dynamic dimensions need sizes, by the option dims.
            db: a file that keeps the tables, replaced where it exists; None for in memory.
            options: of ``Options.of``: dims, threads, memory_limit, temp_directory.

        Raises:
            UsageError: an option does not exist or cannot be.
            InputError: the model cannot be read, or the file cannot be created.
        """
        settings = Options.of(**options, **({} if db is None else {"db": Path(db)}))
        with placed(model, None, settings) as place:
            source = place.source
            graph = source if isinstance(source, Graph) else _load(Path(source), settings)
            subgraph = Subgraph.create(
                share_equal_weights(graph), settings.output.db, settings.process
            )
            if settings.output.db is not None:
                record = RunRecord.of(settings, source, graph, own_costs=False)
                write_record(subgraph.database, record)
        return cls(subgraph)

    @classmethod
    def open(cls, db: str | Path, model: Graph | str | Path | None = None) -> EGraph:
        """Open the e-graph that a run, or ``of`` and ``explore``, left in a file.

        Args:
            model: where the model is now, if not where it was.

        Raises:
            InputError: the file is no such database, another process uses it, or its model is gone or
                changed.
        """
        stored = read_run(Path(db))
        options = stored.options()
        found_model = stored.find_model(model, lambda path: _load(path, options))
        return cls(stored.open(share_equal_weights(found_model.graph), options.process))

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's connection to the tables."""
        return self.subgraph.connection

    @property
    def e_nodes(self) -> int:
        """How many e-nodes there are."""
        return self.subgraph.counts()[0]

    @property
    def e_classes(self) -> int:
        """How many e-classes there are."""
        return self.subgraph.counts()[1]

    def explore(
        self,
        rules: Sequence[Rule | str | Path] | None = None,
        limits: ExplorationOptions | None = None,
        *,
        allow_unsound: bool = False,
        **options: Any,
    ) -> Exploration:
        """Grow the e-graph by rules, until nothing is left to add or a limit is reached.

        Args:
            rules: rules, or paths of rule files and folders; None for the rules that ship.
            limits: all limits together.
            allow_unsound: take rules that are not known to be sound.
            options: single ones of ``ExplorationOptions``, by name.

        Raises:
            UsageError: an option does not exist or cannot be.
            RuleError: a rule file is malformed, or a rule is not sound.
            UnsoundRuleError: a rule united two classes of different types.
        """
        limits = _replaced(limits or ExplorationOptions(), options)
        values = _rules(rules)
        check_trust(values, allow_unsound=allow_unsound)
        return explore(self.subgraph, values, limits)

    def sql(self, query: str, **parameters: Any) -> SqlRows:
        """Run a statement; ``$name`` in it is a parameter. Tables: docs/schema.md.

        The rows are tuples to iterate over; ``df()``, ``pl()`` and ``arrow()`` make tables of them.

        Raises:
            InputError: the database rejects it; gives the reason.
        """
        try:
            return SqlRows.fetch(self.connection.execute(query, parameters or None))
        except duckdb.Error as error:
            raise InputError(f"sql: {first_line(error)}") from error

    def extract(
        self,
        cost: str | CostModel = "t4",
        limits: ExtractionOptions | None = None,
        **options: Any,
    ) -> Extracted:
        """Choose the cheapest graph of the e-graph.

        Rows that you have put into the table ``cost`` hold; costs of an extraction before this one do not.

        Args:
            cost: what ``--cost`` may name, or a cost model.
            limits: all options together.
            options: single ones of ``ExtractionOptions``, by name.

        Raises:
            UsageError: an option or cost source does not exist or cannot be.
            NoSolutionError: no graph could be extracted within the limits.
        """
        limits = _replaced(limits or ExtractionOptions(), options)
        source = open_source(cost) if isinstance(cost, str) else as_source(cost)
        forget_costs(self.subgraph)
        table, extraction = settle(
            self.subgraph, source, lambda table, start: extract(table.problem, limits, start=start)
        )
        choose(self.subgraph, table, extraction.choice)
        return Extracted(
            graph=chosen_graph(self.subgraph),
            cost_us=extraction.cost_us,
            original_us=graph_cost_us(self.subgraph.graph, source),
            bound_us=extraction.bound_us,
            optimal=extraction.optimal,
            cost=source.name,
            rules=rules_of_chosen(self.subgraph),
            extraction=extraction,
        )

    def close(self) -> None:
        """Close the database; a file keeps its tables."""
        self.subgraph.close()

    def __repr__(self) -> str:
        e_nodes, e_classes = self.subgraph.counts()
        return f"EGraph({self.subgraph.graph.name}: {e_nodes:,} e-nodes in {e_classes:,} e-classes)"

    def _repr_html_(self) -> str:
        e_nodes, e_classes = self.subgraph.counts()
        operators = self.sql(
            "SELECT op, count(*) AS e_nodes FROM enode_text GROUP BY op ORDER BY e_nodes DESC, op"
        )
        return html_fields(
            self.subgraph.graph.name,
            [
                ("e-nodes", f"{e_nodes:,}"),
                ("e-classes", f"{e_classes:,}"),
                ("operators", ", ".join(f"{count:,} {op}" for op, count in operators)),
            ],
        )


def _replaced(group: _Group, values: Mapping[str, Any]) -> _Group:
    """Return options with other values for some of them.

    Raises:
        UsageError: there is no such option or value; names the nearest.
    """
    fields = {
        name: option.field
        for option in options_of(type(group))
        for name in (option.name, option.field)
    }
    for name in values:
        if name not in fields:
            raise unknown("option", name, fields)
    return replace(group, **{fields[name]: value for name, value in values.items()})


def _rules(rules: Sequence[Rule | str | Path] | None) -> list[Rule]:
    """Return the rules that are named; files are read in order."""
    if rules is None:
        return load_rules()
    values: list[Rule] = []
    for rule in rules:
        values += [rule] if isinstance(rule, Rule) else load_rules([rule])
    return values


def _load(path: Path, options: Options) -> Graph:
    model = options.model
    return load_model(path, model.dims, keep_overridable=model.keep_overridable)


@dataclass(frozen=True, slots=True, repr=False)
class SqlRows(HtmlTable):
    """The rows of a query: iterated over, shown by a notebook, or made a table of another library.

    Attributes:
        types: of the columns, as DuckDB names them.
    """

    types: tuple[str, ...]

    @classmethod
    def fetch(cls, cursor: duckdb.DuckDBPyConnection) -> SqlRows:
        """Return all rows of a statement that was executed; none of one that gives none.

        Raises:
            duckdb.Error: the database cannot read them.
        """
        described = cursor.description or ()
        columns = tuple(str(column[0]) for column in described)
        rows = tuple(cursor.fetchall()) if columns else ()
        return cls(columns, rows, tuple(str(column[1]) for column in described))

    def arrow(self) -> pyarrow.Table:
        """Return the rows as a table of Arrow."""
        import pyarrow

        duckdb.import_package()
        with duckdb.open_database(None) as connection:
            arrays = [
                _array([row[place] for row in self.rows], kind, connection)
                for place, kind in enumerate(self.types)
            ]
        return pyarrow.Table.from_arrays(arrays, names=list(self.columns))

    def df(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        _need("pandas", "df")
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """Return the rows as a data frame of polars.

        Raises:
            MissingDependencyError: polars is not installed.
        """
        return _need("polars", "pl").from_arrow(self.arrow())


def _array(values: list[Any], kind: str, connection: duckdb.DuckDBPyConnection) -> pyarrow.Array:
    """Return a column; values that Arrow does not have become text."""
    import pyarrow

    null = connection.sql(f"SELECT CAST(NULL AS {kind}) AS value").to_arrow_table()
    wanted = null.schema.field(0).type
    shown = [list(value.items()) if _is_map(value, wanted) else value for value in values]
    refused = (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError)
    try:
        return pyarrow.array(shown, type=wanted)
    except refused:
        return pyarrow.array([None if value is None else str(value) for value in values])


def _is_map(value: Any, wanted: pyarrow.DataType) -> bool:
    import pyarrow

    return isinstance(value, dict) and pyarrow.types.is_map(wanted)


def _need(package: str, method: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingDependencyError(
            f"{method}() needs {package}: pip install {package}; arrow() needs nothing more"
        ) from None
