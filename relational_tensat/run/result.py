"""The result of a run: a graph, and in groups how it was found; an object for ``--json``, a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from relational_tensat.base.errors import UsageError
from relational_tensat.base.shown_text import html_fields
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.run.gain import Gain, standing_of
from relational_tensat.run.result_groups import (
    GRAPH,
    ONNX,
    Files,
    OperatorCounts,
    Outcome,
    Price,
    Proof,
    SearchSummary,
)
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import count_inference_ops

if TYPE_CHECKING:
    import onnx

    from relational_tensat.view.document import RunPage


_Value = TypeVar("_Value")
_COMMAND_LINE = "relational_tensat.cli"
#: Of the object that ``--json`` prints: another one where a key goes, or means something else.
SCHEMA_VERSION = 1


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``Result.to_json``, which stands in ``report.schema.json``."""
    text = Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


class Held(Generic[_Value]):
    """A value of a result's group, read from the result itself."""

    def __init__(self, read: Callable[[Result], _Value]) -> None:
        self._read = read

    @overload
    def __get__(self, result: None, owner: type) -> Held[_Value]: ...

    @overload
    def __get__(self, result: Result, owner: type) -> _Value: ...

    def __get__(self, result: Result | None, owner: type) -> Held[_Value] | _Value:
        return self if result is None else self._read(result)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """An optimized graph and how it was found.

    Values of the groups can be read from the result, too: ``result.cost_after_us``, ``result.optimal``.

    Attributes:
        source: the model's path as given, or the name of a graph or model that was in memory.
        graph: the optimized graph as written: parts that depend on weights only are folded. Where nothing
            was saved, it is the original as it was read.
        original: the graph that was given.
        seconds: per phase: load (the model, the rules), fuse, explore, extract, verify, whole (running
            both graphs), write, and total; measure is a part of these.
        time_spent: where the seconds of explore and extract went.
        notes: remarks for the reader beside the figures, one sentence each.
    """

    source: str
    graph: Graph
    original: Graph
    price: Price
    search: SearchSummary
    proof: Proof
    outcome: Outcome
    files: Files
    seconds: Mapping[str, float]
    time_spent: TimeSpent
    notes: tuple[str, ...] = ()

    runs_on = Held(lambda result: result.price.on)
    cost_profile = Held(lambda result: result.price.profile)
    cost_before_us = Held(lambda result: result.price.before_us)
    cost_after_us = Held(lambda result: result.price.after_us)
    run_us = Held(lambda result: result.price.run_us)
    run_after_us = Held(lambda result: result.price.run_after_us)
    costs = Held(lambda result: result.price.counts)
    kernels_us = Held(lambda result: result.price.kernels_us)
    lists_kernels = Held(lambda result: result.price.lists_kernels)
    e_nodes = Held(lambda result: result.search.e_nodes)
    e_classes = Held(lambda result: result.search.e_classes)
    iterations = Held(lambda result: result.search.exploration.iterations)
    statements = Held(lambda result: result.search.exploration.statements)
    stop_reason = Held(lambda result: result.search.exploration.stop_reason)
    rules = Held(lambda result: result.search.exploration.rules)
    log = Held(lambda result: result.search.exploration.log)
    subgraphs = Held(lambda result: result.search.exploration.subgraphs)
    decisions = Held(lambda result: result.search.exploration.decisions)
    fusion = Held(lambda result: result.search.fusion)
    resumed_after = Held(lambda result: result.search.resumed_after)
    untrusted_rules = Held(lambda result: result.search.untrusted_rules)
    extractor = Held(lambda result: result.proof.extractor)
    bound_us = Held(lambda result: result.proof.bound_us)
    gap = Held(lambda result: result.proof.gap)
    optimal = Held(lambda result: result.proof.optimal)
    exhaustive = Held(lambda result: result.proof.exhaustive)
    rules_used = Held(lambda result: result.proof.rules_used)
    extraction = Held(lambda result: result.proof.extraction)
    extractions = Held(lambda result: result.proof.extractions)
    verification = Held(lambda result: result.outcome.verification)
    unchanged = Held(lambda result: result.outcome.unchanged)
    rejections = Held(lambda result: result.outcome.rejections)
    keeps_original = Held(lambda result: result.outcome.keeps_original)
    race = Held(lambda result: result.outcome.race)
    whole = Held(lambda result: result.outcome.whole)
    runtimes = Held(lambda result: result.outcome.runtimes)
    output = Held(lambda result: result.files.output)
    change = Held(lambda result: result.files.change)
    machine = Held(lambda result: result.files.machine)
    library = Held(lambda result: result.files.library)
    tables = Held(lambda result: result.files.tables)

    @property
    def gain(self) -> Gain:
        """The gain, and its evidence: measured, or modelled."""
        race = self.runtimes
        if race is not None and (race.standing or race.is_in_one):
            return Gain(
                self.runs_on,
                self.cost_before_us,
                self.cost_after_us,
                race.standing or race.final,
                from_kernels=self.costs.any_measured,
                is_kept=race.standing is None,
                place=str(race.first),
            )
        measured = standing_of(self.race, self.whole.timing if self.whole else None)
        is_kept = self.unchanged
        if is_kept and self.machine is not None and self.machine.taken:
            measured, is_kept = self.machine.standings[self.machine.taken], False
        if is_kept and self.library is not None and self.library.is_taken:
            measured, is_kept = self.library.with_library, False
        return Gain(
            self.runs_on,
            self.cost_before_us,
            self.cost_after_us,
            measured,
            (self.run_us, self.run_after_us),
            from_kernels=self.costs.any_measured,
            is_kept=is_kept,
        )

    @property
    def cost_basis(self) -> str:
        """The basis of costs, and the proof that rests on them: modelled, measured, partly estimated."""
        if not self.costs.any_measured:
            return "modelled"
        return "partly estimated" if self.costs.estimated else "measured"

    @property
    def saturated(self) -> bool:
        """Whether no rule had anything left to add."""
        return self.stop_reason == "saturated"

    @property
    def ops_before(self) -> dict[str, int]:
        """Operators of the original that run at inference, by name."""
        return count_inference_ops(self.original)

    @property
    def ops_after(self) -> dict[str, int]:
        """Operators of the optimized graph that run at inference, by name."""
        return count_inference_ops(self.graph)

    @property
    def operators(self) -> OperatorCounts:
        """Operators of both files in ONNX's terms; of both graphs where one file is no ONNX."""
        if self.change is None:
            return OperatorCounts(GRAPH, self.ops_before, self.ops_after)
        return OperatorCounts(ONNX, self.change.before.operators, self.change.after.operators)

    @property
    def model(self) -> onnx.ModelProto:
        """The result as an ONNX model: the written one, or else the graph.

        Raises:
            UsageError: the model is a ``.json`` graph.
            InputError: the file that was written is gone, or the graph has no ONNX form.
            MissingDependencyError: onnx is not installed.
        """
        from relational_tensat.run.result_model import result_model  # few runs need it

        return result_model(self.files, self.graph, is_unchanged=self.unchanged)

    def save(self, path: str | Path) -> Path:
        """Write the result as a ``.onnx`` or ``.json`` file, and return where it is.

        Raises:
            UsageError: the path is unusable, or the result has dynamic dimensions and ``.json`` has none.
            InputError: the file that was written is gone, or it cannot be written.
            MissingDependencyError: onnx is not installed.
        """
        from relational_tensat.run.result_model import save_result  # few runs need it

        save_result(self.files, self.graph, Path(path), is_unchanged=self.unchanged)
        return Path(path)

    def report(self, *, details: bool = False) -> str:
        """Return what ``relational-tensat run`` prints.

        Args:
            details: all that is known of the run, as with ``--details``.
        """
        # The command line has the words; results are made without it.
        console, text = (
            import_module(f"{_COMMAND_LINE}.{name}") for name in ("console", "run_text")
        )
        shown: str = console.text_of(partial(text.print_report, self, details=details))
        return shown

    def view(self, *, check: bool = False) -> RunPage:
        """Return the page that shows the run: a notebook shows it, ``save`` writes it into a file.

        Args:
            check: compute every tensor that a step replaces both ways.

        Raises:
            UsageError: the run's tables were not kept, or were in the memory of another process.
            InputError: its file is gone.
            NoSolutionError: no explanation of the result was found within the limits.
        """
        if self.tables is None:
            raise UsageError(
                f"the tables of {self.e_nodes:,} e-nodes were not kept in memory: "
                "run with the option db, or view"
            )
        return self.tables.page(check=check)

    def __repr__(self) -> str:
        proof = "optimal" if self.optimal else f"gap {self.gap:.2%}"
        return f"Result({self.source}: {self.gain.text}, {proof}, {self.stop_reason})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: cost, e-graph, proof, verification, rules, operators."""
        counts = self.operators
        operators = [
            f"{op} {counts.before.get(op, 0)} → {counts.after.get(op, 0)}" for op in counts.names
        ]
        return html_fields(
            self.source,
            [
                ("gain", self.gain.text),
                ("optimal", self.optimal),
                ("gap", f"{self.gap:.2%}"),
                ("e-graph", f"{self.e_nodes:,} e-nodes in {self.e_classes:,} e-classes"),
                ("stopped", f"{self.stop_reason}, after {self.iterations} iterations"),
                (
                    "verified",
                    f"{self.verification.runs} comparisons"
                    if self.verification.ok and not self.verification.unproven
                    else self.verification.unproven or "no",
                ),
                ("operators", ", ".join(operators)),
                ("rules", ", ".join(f"{name} {count}" for name, count in self.rules_used.items())),
            ],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints, see ``report_schema``; every number is finite."""
        return {
            "schema_version": SCHEMA_VERSION,
            "model": self.source,
            "runs_on": self.runs_on,
            "gain": self.gain.to_json(),
            "cost_profile": self.cost_profile,
            "cost_before_us": self.cost_before_us,
            "cost_after_us": self.cost_after_us,
            "run_us": self.run_us,
            "run_after_us": self.run_after_us,
            "costs": asdict(self.costs),
            "cost_basis": self.cost_basis,
            "kernels_us": {
                op: {"before": before, "after": after}
                for op, (before, after) in self.kernels_us.items()
            },
            "race": None if self.race is None else self.race.to_json(),
            "whole": None if self.whole is None else self.whole.to_json(),
            "runtimes": None if self.runtimes is None else self.runtimes.to_json(),
            "machine": None if self.machine is None else self.machine.to_json(),
            "library": None if self.library is None else self.library.to_json(),
            "e_nodes": self.e_nodes,
            "e_classes": self.e_classes,
            "iterations": self.iterations,
            "stop_reason": self.stop_reason,
            "saturated": self.saturated,
            "gap": self.gap,
            "optimal": self.optimal,
            "exhaustive": self.exhaustive,
            "fusion": None if self.fusion is None else asdict(self.fusion),
            "extraction": self.extraction.to_json(),
            "extractions": [asdict(entry) for entry in self.extractions],
            "subgraphs": [asdict(subgraph) for subgraph in self.subgraphs],
            "decisions": [asdict(decision) for decision in self.decisions],
            "seconds": dict(self.seconds),
            "time_spent": self.time_spent.to_json(),
            "verified": self.verification.to_json(),
            "rules": {
                name: {
                    "matches": stats.matches,
                    "applied": stats.applied,
                    "seconds": stats.seconds,
                }
                for name, stats in self.rules.items()
            },
            "unchanged": self.unchanged,
            "file": None if self.change is None else self.change.to_json(),
            "operators": self.operators.to_json(),
            "rejections": [asdict(rejection) for rejection in self.rejections],
            "notes": list(self.notes),
            "cautions": list(self.verification.warnings),
            "output": None if self.output is None else str(self.output),
            "resumed_after": self.resumed_after,
            "untrusted_rules": dict(self.untrusted_rules),
        }
