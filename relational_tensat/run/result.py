"""What a run returns: a graph, and in groups how it was found; as an object for ``--json``, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import UsageError
from relational_tensat.base.shown_text import html_fields
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.run.gain import Gain, standing_of
from relational_tensat.run.result_groups import Files, Outcome, Price, Proof, SearchSummary
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import count_inference_ops

if TYPE_CHECKING:
    from relational_tensat.cost import CostCounts
    from relational_tensat.explore import IterationReport, RuleStats
    from relational_tensat.explore.outcome import DecisionReport, WorldReport
    from relational_tensat.extract.anytime import ExtractionEntry
    from relational_tensat.run.reports import FileChange, FusionReport, MachineForm, RaceReport
    from relational_tensat.run.result_groups import ExtractionSummary, Rejection, WholeRun
    from relational_tensat.verify import Verification
    from relational_tensat.view.document import RunPage, RunTables


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """An optimized graph and how it was found.

    What the groups hold can be read from the result, too: ``result.cost_after_us``, ``result.optimal``.

    Attributes:
        model: the model's path as given, or the graph's name.
        graph: the optimized graph as written: what depends on weights only is folded. Where nothing was
            saved, it is the original as it was read.
        original: the graph that was given.
        seconds: per phase: load (the model, the rules), fuse, explore, extract, verify, whole (running
            both graphs), write, and total; measure is a part of these.
        time_spent: where the seconds of explore and extract went.
        notes: what the reader should know beside the figures, one sentence each.
    """

    model: str
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

    @property
    def runs_on(self) -> str:
        """Where the result will run, and by how many threads."""
        return self.price.on

    @property
    def cost_profile(self) -> str:
        """The name of the cost model."""
        return self.price.profile

    @property
    def cost_before_us(self) -> float:
        """Of one inference of the original."""
        return self.price.before_us

    @property
    def cost_after_us(self) -> float:
        """Of one inference of the result; never more than before."""
        return self.price.after_us

    @property
    def run_us(self) -> float:
        """What an inference of the original takes beside kernels."""
        return self.price.run_us

    @property
    def run_after_us(self) -> float:
        """The same of the result."""
        return self.price.run_after_us

    @property
    def costs(self) -> CostCounts:
        """How many configurations were measured, cached, recorded and estimated."""
        return self.price.counts

    @property
    def kernels_us(self) -> Mapping[str, tuple[float, float]]:
        """What kernels cost before and after, by operator."""
        return self.price.kernels_us

    @property
    def lists_kernels(self) -> bool:
        """Whether the report has these."""
        return self.price.lists_kernels

    @property
    def e_nodes(self) -> int:
        """Of the e-graph, at the end of exploration."""
        return self.search.e_nodes

    @property
    def e_classes(self) -> int:
        """Of the e-graph, at the end of exploration."""
        return self.search.e_classes

    @property
    def iterations(self) -> int:
        """Of exploration."""
        return self.search.exploration.iterations

    @property
    def statements(self) -> int:
        """SQL statements that exploration ran."""
        return self.search.exploration.statements

    @property
    def stop_reason(self) -> str:
        """Why exploration ended; see ``Exploration``."""
        return self.search.exploration.stop_reason

    @property
    def rules(self) -> Mapping[str, RuleStats]:
        """Per rule, its matches, how many of them were applied, and its seconds."""
        return self.search.exploration.rules

    @property
    def log(self) -> tuple[IterationReport, ...]:
        """What each iteration did."""
        return self.search.exploration.log

    @property
    def worlds(self) -> tuple[WorldReport, ...]:
        """Of a search, those that it has grown; of a tree search, those that it has kept."""
        return self.search.exploration.worlds

    @property
    def decisions(self) -> tuple[DecisionReport, ...]:
        """Of a tree search."""
        return self.search.exploration.decisions

    @property
    def fusion(self) -> FusionReport | None:
        """Kernels of the model's own."""
        return self.search.fusion

    @property
    def resumed_after(self) -> int | None:
        """The last iteration of the processes whose run this one resumed."""
        return self.search.resumed_after

    @property
    def untrusted_rules(self) -> Mapping[str, str]:
        """Rules that are not known to be sound, and why."""
        return self.search.untrusted_rules

    @property
    def extractor(self) -> str:
        """Which one chose the graph."""
        return self.proof.extractor

    @property
    def bound_us(self) -> float:
        """No graph in the e-graph costs less."""
        return self.proof.bound_us

    @property
    def gap(self) -> float:
        """How much of the cost might still be saved, as a fraction of it."""
        return self.proof.gap

    @property
    def optimal(self) -> bool:
        """Whether no graph in the e-graph is cheaper."""
        return self.proof.optimal

    @property
    def exhaustive(self) -> bool:
        """Whether no graph that the rules can reach is cheaper."""
        return self.proof.exhaustive

    @property
    def rules_used(self) -> Mapping[str, int]:
        """Per rule, how many e-nodes of the optimized graph it made."""
        return self.proof.rules_used

    @property
    def extraction(self) -> ExtractionSummary:
        """What the final extraction had to do."""
        return self.proof.extraction

    @property
    def extractions(self) -> tuple[ExtractionEntry, ...]:
        """What each extraction found."""
        return self.proof.extractions

    @property
    def verification(self) -> Verification:
        """What was compared, and the errors found."""
        return self.outcome.verification

    @property
    def unchanged(self) -> bool:
        """Whether the original is returned."""
        return self.outcome.unchanged

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Why graphs that were extracted are not returned."""
        return self.outcome.rejections

    @property
    def keeps_original(self) -> bool:
        """Whether the original is returned although what was extracted is cheaper."""
        return self.outcome.keeps_original

    @property
    def race(self) -> RaceReport | None:
        """How the cheapest graphs that differ were against the original, whole."""
        return self.outcome.race

    @property
    def whole(self) -> WholeRun | None:
        """Original and extracted graph run whole."""
        return self.outcome.whole

    @property
    def output(self) -> Path | None:
        """The file written."""
        return self.files.output

    @property
    def change(self) -> FileChange | None:
        """The ONNX files' nodes, bytes and versions, before and after."""
        return self.files.change

    @property
    def machine(self) -> MachineForm | None:
        """How the result is as onnxruntime saves it here."""
        return self.files.machine

    @property
    def tables(self) -> RunTables | None:
        """The run's tables, for ``view``."""
        return self.files.tables

    @property
    def gain(self) -> Gain:
        """What was gained, and how that is known: measured, or modelled."""
        measured = standing_of(self.race, self.whole.timing if self.whole else None)
        is_kept = self.unchanged
        if is_kept and self.machine is not None and self.machine.taken:
            measured, is_kept = self.machine.standings[self.machine.taken], False
        return Gain(
            self.runs_on,
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
