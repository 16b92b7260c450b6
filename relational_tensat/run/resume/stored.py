"""What the database of a run contains: whether the run can be resumed, where it was, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.checks import check_choice
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.option import options_in
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.restore import restore_egraph
from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.formats.json_read import parse_graph
from relational_tensat.rules.model import Rule
from relational_tensat.rules.text import rule_text
from relational_tensat.run.options import Options
from relational_tensat.run.resume.digest import graph_digest
from relational_tensat.run.resume.found_model import FoundModel
from relational_tensat.run.resume.opening import OpenedRun
from relational_tensat.run.resume.record import RunRecord, cost_digest
from relational_tensat.tensor.graph import Graph

if TYPE_CHECKING:
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel

#: Values of the option ``search`` that are continued where they were.
_RESUMABLE = ("saturation", "auto", "focus", "focus-mcts", "mcts")


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run that another process started.

    Attributes:
        path: its database.
        checkpoint: where its exploration was, or how it ended.
        rules: its rules by name, in order, as text.
        kernel_rows, kernel_rules: of the model's own kernels, if it had been fused.
        stop_reason: why exploration ended; None if it had not.
        is_extracted: whether a graph had been extracted after that.
    """

    path: Path
    record: RunRecord
    checkpoint: Checkpoint
    rules: dict[str, str]
    kernel_rows: list[tuple[Any, ...]]
    kernel_rules: dict[str, str]
    stop_reason: str | None
    is_extracted: bool

    @property
    def note(self) -> str:
        """Where the run was."""
        if self.stop_reason is not None:
            ended = "the run had ended" if self.is_extracted else "exploration had ended"
            return f"{ended} ({self.stop_reason}): extracted from the e-graph that was there"
        return f"resumed after iteration {self.iteration}"

    @property
    def iteration(self) -> int:
        """The last complete iteration; 0 if there was none."""
        return self.checkpoint.iteration

    def options(self, **changes: Any) -> Options:
        """Return the run's options, but for changes, which the e-graph must not depend on.

        Where something is written is for the changes alone to say: a database may be anybody's.

        Raises:
            InputError: they are those of another version, or the file that costs are from has changed.
            UsageError: one of the values cannot be, or is the run's own to choose.
        """
        may_change = [field.name for _, field in options_in(Options) if field.about.may_change]
        for name in changes:
            check_choice("option of a run that is resumed", name, may_change)
        options = self._readable(self.record.read_options)
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

    def check_search(self, options: Options) -> None:
        """Reject a search that had not ended, of a kind that cannot be continued.

        Raises:
            InputError: it is one.
        """
        search = options.exploration.search
        if search not in _RESUMABLE and self.stop_reason is None:
            raise InputError(
                f"{self.path}: the run cannot be resumed: its search ({search}) had not ended, "
                f"expected one that had, or one by {' or '.join(_RESUMABLE)}"
            )

    def check_rules(self, rules: Sequence[Rule]) -> None:
        """Reject rules other than those that the run started with.

        Raises:
            InputError: they have changed; names the first that has.
        """
        claims = {rule.name: _claim(rule_text(rule)) for rule in rules}
        stored_claims = {name: _claim(text) for name, text in self.rules.items()}
        for name in (*stored_claims, *claims):
            if claims.get(name) != stored_claims.get(name):
                change = "differs" if name in claims else "is gone"
                if name not in stored_claims:
                    change = "is new"
                raise InputError(
                    f"{self.path}: the run cannot be resumed: its rules have changed since it began: "
                    f"{name!r} {change}"
                )
        if list(claims) != list(stored_claims):
            raise InputError(
                f"{self.path}: the run cannot be resumed: the order of its rules has changed"
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
        reason = "the run's model was a graph and no file, expected it to be given"
        if path is not None:
            graph, reason = self._read(path, read)
            if graph is not None:
                return FoundModel(path, graph)
        if model is not None or self.record.model_copy is None:
            raise InputError(f"{self.path}: the run cannot be resumed: {reason}")
        graph = parse_graph(self.record.model_copy.encode(), f"{self.path}: model_copy")
        note = "" if path is None else f"{reason}: the run's own copy was used"
        return FoundModel(graph, graph, note)

    def open(self, graph: Graph, options: Options) -> EGraph:
        """Return the e-graph of the run, to be explored further.

        Args:
            graph: what the e-graph was made from.

        Raises:
            InputError: another process uses the database.
        """
        database = Database(self.path, options.process, keep=True)
        return restore_egraph(graph, database, self.checkpoint.counters)

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

    def _readable(self, read: Callable[[], Options]) -> Options:
        try:
            return read()
        except InputError as error:
            raise InputError(f"{self.path}: the run cannot be resumed: {error}") from None


def read_run(path: Path) -> StoredRun:
    """Return what the database of a run contains.

    Raises:
        InputError: there is no such file, it is not the database of a run or of another version's, the
            run had not started exploration, or it is still in progress.
    """
    with OpenedRun(path) as run:
        return StoredRun(
            path=path,
            record=run.record(),
            checkpoint=run.checkpoint(),
            rules=run.rules(),
            kernel_rows=run.kernels(),
            kernel_rules=run.kernel_rules(),
            stop_reason=run.stop_reason(),
            is_extracted=run.is_extracted(),
        )


def _claim(text: str) -> str:
    """Return a rule's text without the line that says where it was written."""
    first_line, newline, rest = text.partition("\n")
    return rest if newline and first_line.startswith("; ") else text
