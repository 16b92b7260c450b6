"""What a run returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import UsageError
from relational_tensat.base.shown_text import html_fields
from relational_tensat.cost import CostCounts
from relational_tensat.cost.device import WholeTiming
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.run.gain import Gain, standing_of
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import count_inference_ops

if TYPE_CHECKING:
    from relational_tensat.explore import IterationReport, RuleStats
    from relational_tensat.explore.outcome import DecisionReport, WorldReport
    from relational_tensat.extract import Extraction
    from relational_tensat.extract.anytime import ExtractionEntry
    from relational_tensat.run.reports import FileChange, FusionReport, MachineForm, RaceReport
    from relational_tensat.verify import Verification
    from relational_tensat.view.document import RunPage, RunTables


@dataclass(frozen=True, slots=True)
class ExtractionSummary:
    """What the final extraction had to do.

    Attributes:
        e_nodes, e_classes: that it chose from: the cycle filter's e-nodes are left out.
        reduced_e_nodes, reduced_e_classes: that were left of them for the integer program; None where
            there was none.
        components, distinct_components: that these fall into, and how many are not isomorphic to others.
        reductions: e-nodes that each reduction took away.
        interrupted: Ctrl-C ended it with the best so far.
    """

    e_nodes: int = 0
    e_classes: int = 0
    reduced_e_nodes: int | None = None
    reduced_e_classes: int | None = None
    components: int | None = None
    distinct_components: int | None = None
    reductions: Mapping[str, int] = field(default_factory=dict)
    interrupted: bool = False

    @classmethod
    def of(cls, extraction: Extraction) -> ExtractionSummary:
        """Return the summary of an extraction."""
        e_nodes, e_classes, _ = extraction.size
        if not extraction.was_reduced:
            return cls(e_nodes, e_classes, interrupted=extraction.interrupted)
        left_nodes, left_classes, _ = extraction.reduced_size
        return cls(
            e_nodes,
            e_classes,
            left_nodes,
            left_classes,
            extraction.components,
            extraction.distinct_components,
            dict(extraction.reductions),
            extraction.interrupted,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        return {**asdict(self), "reductions": dict(self.reductions)}


@dataclass(frozen=True, slots=True)
class WholeRun:
    """Original and extracted graph run whole on the device that costs are measured on.

    Attributes:
        modelled_before_us, modelled_after_us: the sums of their operators' times.
        keeps_original: the extracted graph is not known to be faster, so that the original is returned.
    """

    timing: WholeTiming
    modelled_before_us: float
    modelled_after_us: float
    keeps_original: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the times, the speed-up and its spread, what the sums predict, and which graph is kept."""
        return {
            **asdict(self.timing),
            "modelled_before_us": self.modelled_before_us,
            "modelled_after_us": self.modelled_after_us,
            "kept": "original" if self.keeps_original else "optimized",
        }


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a graph that was extracted is not returned.

    Attributes:
        why: one sentence.
        rule: the rule whose application made the graph wrong; "" where none is known.
        reproduction: lines that show it.
    """

    why: str
    rule: str = ""
    reproduction: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """An optimized graph and how it was found.

    Attributes:
        model: the model's path as given, or the graph's name.
        graph: the optimized graph as written: what depends on weights only is folded. Where nothing was
            saved, it is the original as it was read.
        original: the graph that was given.
        runs_on: where the result will run, and by how many threads.
        cost_profile: the name of the cost model.
        costs: how many configurations were measured, cached, recorded and estimated.
        kernels_us: what kernels cost before and after, by operator, the costliest first.
        lists_kernels: whether the report has these: where they are measured, or are what will be run.
        cost_before_us, cost_after_us: of one inference; after is never more than before.
        run_us, run_after_us: what an inference takes beside kernels, before and after, where costs tell: it
            is in neither of these. They differ where dimensions are dynamic, by nodes that compute sizes.
        whole: original and extracted graph run whole, where costs are measured here and a graph other
            than the original was extracted; None where they were not run.
        race: how the cheapest graphs that differ were against the original, whole; None where they were
            not raced.
        bound_us: no graph in the e-graph costs less; 0 where the extractor gives no bound.
        gap: ``(cost_after - bound) / cost_after``.
        optimal: the solver proved that no graph in the e-graph is cheaper than this one under the costs
            that were used (``cost_basis``: some of them may be estimates); never where the
            original is kept since a cheaper graph is slower whole.
        exhaustive: no graph at all that the rules can reach is cheaper: it is optimal, and the e-graph has
            every one of them (``Exploration.is_exhaustive``).
        extractor: which one chose the graph.
        e_nodes, e_classes: of the e-graph, at the end of exploration.
        iterations: of exploration.
        statements: SQL statements that exploration ran.
        stop_reason: saturated, schedule, iterations, nodes, time, memory, interrupted or patience; of a
            search also focus, universe or threshold.
        rules: per rule, its matches, how many of them were applied, and its seconds.
        rules_used: per rule, how many e-nodes of the optimized graph it made.
        log: what each iteration did.
        extraction: what the final extraction had to do.
        extractions: what each extraction found, those between iterations first.
        worlds: of a search, those that it has grown; of a tree search, those that it has kept.
        decisions: of a tree search.
        seconds: per phase: load (the model, the rules), fuse, explore, extract, verify, whole (running
            both graphs), write, and total; measure is a part of these.
        time_spent: where the seconds of explore and extract went.
        verification: what was compared, and the errors found; nothing where the original's file is
            what is returned.
        machine: how the result is as onnxruntime saves it here, and whether that is what was written; None
            without the option ``this_machine``, or where it was not found out: then a note says why.
        unchanged: whether the original is returned; its file is copied where the format is the same, if it
            is not ``machine`` that is written.
        rejections: why graphs that were extracted are not returned.
        change: the ONNX files' nodes, bytes and versions, before and after; None where the original is
            copied, or one of them is no ONNX.
        tables: the run's tables, for ``view``: in the file of the option ``db``, or in memory; None where
            those in memory were too large to be kept.
        output: the file written; None if none was requested.
        notes: what the reader should know beside the figures, one sentence each.
        fusion: kernels of the model's own, with the option ``fuse``; else None.
        resumed_after: the last iteration of the processes whose run this one resumed; None if it started
            the run itself.
        untrusted_rules: rules that were let in although they are not known to be sound, and why.
    """

    model: str
    graph: Graph
    original: Graph
    cost_profile: str
    cost_before_us: float
    cost_after_us: float
    bound_us: float
    gap: float
    optimal: bool
    extractor: str
    e_nodes: int
    e_classes: int
    iterations: int
    statements: int
    stop_reason: str
    rules: Mapping[str, RuleStats]
    rules_used: Mapping[str, int]
    log: tuple[IterationReport, ...]
    seconds: Mapping[str, float]
    verification: Verification
    output: Path | None = None
    notes: tuple[str, ...] = ()
    untrusted_rules: Mapping[str, str] = field(default_factory=dict)
    costs: CostCounts = field(default_factory=CostCounts)
    run_us: float = 0.0
    run_after_us: float = 0.0
    kernels_us: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    lists_kernels: bool = False
    extraction: ExtractionSummary = field(default_factory=ExtractionSummary)
    extractions: tuple[ExtractionEntry, ...] = ()
    worlds: tuple[WorldReport, ...] = ()
    decisions: tuple[DecisionReport, ...] = ()
    fusion: FusionReport | None = None
    resumed_after: int | None = None
    time_spent: TimeSpent = field(default_factory=TimeSpent)
    whole: WholeRun | None = None
    race: RaceReport | None = None
    machine: MachineForm | None = None
    unchanged: bool = False
    exhaustive: bool = False
    rejections: tuple[Rejection, ...] = ()
    change: FileChange | None = None
    tables: RunTables | None = None
    runs_on: str = ""

    @property
    def gain(self) -> Gain:
        """What was gained, and how that is known: measured, or modelled."""
        measured = standing_of(self.race, self.whole.timing if self.whole else None)
        is_kept = self.unchanged
        if is_kept and self.machine is not None and self.machine.taken:
            measured, is_kept = self.machine.standings[self.machine.taken], False
        return Gain(
            self.runs_on or self.cost_profile,
            self.cost_before_us,
            self.cost_after_us,
            measured,
            (self.run_us, self.run_after_us),
            from_kernels=self.costs.are_found_out,
            is_kept=is_kept,
        )

    @property
    def cost_basis(self) -> str:
        """What costs rest on, and what is proven of them: modelled, measured, partly estimated."""
        if not self.costs.are_found_out:
            return "modelled"
        return "partly estimated" if self.costs.estimated else "measured"

    @property
    def saturated(self) -> bool:
        """Whether no rule had anything left to add."""
        return self.stop_reason == "saturated"

    @property
    def keeps_original(self) -> bool:
        """Whether the original is returned although what was extracted is cheaper, as it is slower
        whole or was rejected."""
        is_slower = any(run is not None and run.keeps_original for run in (self.whole, self.race))
        return is_slower or (self.unchanged and bool(self.rejections))

    @property
    def ops_before(self) -> dict[str, int]:
        """Operators of the original that run at inference, by name."""
        return count_inference_ops(self.original)

    @property
    def ops_after(self) -> dict[str, int]:
        """Operators of the optimized graph that run at inference, by name."""
        return count_inference_ops(self.graph)

    def view(self, *, check: bool = False) -> RunPage:
        """Return the page that shows the run: a notebook shows it, ``save`` writes it into a file.

        Args:
            check: compute every tensor that a step replaces both ways.

        Raises:
            UsageError: the run's tables were not kept.
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
        return f"Result({self.model}: {self.gain.text}, {proof}, {self.stop_reason})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: cost, e-graph, proof, verification, rules, operators."""
        before, after = self.ops_before, self.ops_after
        operators = [f"{op} {before.get(op, 0)} → {after.get(op, 0)}" for op in {**before, **after}]
        return html_fields(
            self.model,
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
        """Return the object that ``--json`` prints; every number in it is finite."""
        return {
            "model": self.model,
            "runs_on": self.runs_on or self.cost_profile,
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
            "machine": None if self.machine is None else self.machine.to_json(),
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
            "worlds": [asdict(world) for world in self.worlds],
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
            "rejections": [asdict(rejection) for rejection in self.rejections],
            "notes": list(self.notes),
            "cautions": list(self.verification.warnings),
            "output": None if self.output is None else str(self.output),
            "resumed_after": self.resumed_after,
            "untrusted_rules": dict(self.untrusted_rules),
        }
