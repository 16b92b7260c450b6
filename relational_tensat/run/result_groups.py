"""The groups of a result: the price, the search, the proof, the outcome, and the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.cost import CostCounts
from relational_tensat.cost.device import WholeTiming
from relational_tensat.explore import Exploration

if TYPE_CHECKING:
    import onnx

    from relational_tensat.extract import Extraction
    from relational_tensat.extract.kept_choice import ExtractionEntry
    from relational_tensat.run.kernel_report import LibraryReport
    from relational_tensat.run.reports import (
        FileChange,
        FusionReport,
        MachineForm,
        RaceReport,
        RuntimeRace,
    )
    from relational_tensat.verify import Verification
    from relational_tensat.view.document import RunTables


#: The names of the terms that operators are counted in.
ONNX, GRAPH = "ONNX", "graph"


@dataclass(frozen=True, slots=True)
class OperatorCounts:
    """How often each operator occurs, before and after.

    Attributes:
        terms: ``ONNX``, of the files as they are, or ``GRAPH``, of the graphs at inference.
    """

    terms: str
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def changes(self) -> list[tuple[str, int, int]]:
        """Those whose counts differ, with both counts, the largest change first."""
        both = ((op, self.before.get(op, 0), self.after.get(op, 0)) for op in self.names)
        changed = [row for row in both if row[1] != row[2]]
        return sorted(changed, key=lambda row: (-abs(row[2] - row[1]), row[0]))

    @property
    def names(self) -> list[str]:
        """All operators, the most frequent of before first."""
        return sorted({*self.before, *self.after}, key=lambda op: (-self.before.get(op, 0), op))

    def to_json(self) -> dict[str, Any]:
        """Return the counts as an object."""
        return {"terms": self.terms, "before": dict(self.before), "after": dict(self.after)}


@dataclass(frozen=True, slots=True)
class ExtractionSummary:
    """The work of the final extraction.

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
        """Return the times, the speed-up and its spread, the prediction of the sums, and the kept graph."""
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


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of an inference, before and after.

    Attributes:
        on: where the result will run, and by how many threads.
        profile: the name of the cost model.
        before_us, after_us: sums of kernels; after is never more than before.
        run_us, run_after_us: an inference's time beside kernels, before and after, where costs tell: it is
            in neither of these. They differ where dimensions are dynamic, by nodes that compute sizes.
        counts: how many configurations were measured, cached, recorded and estimated.
        kernels_us: the costs of kernels before and after, by operator, the costliest first.
        lists_kernels: whether the report has these: where they are measured, or are what will be run.
    """

    on: str
    profile: str
    before_us: float
    after_us: float
    run_us: float = 0.0
    run_after_us: float = 0.0
    counts: CostCounts = field(default_factory=CostCounts)
    kernels_us: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    lists_kernels: bool = False


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """The e-graph and how it came about.

    Attributes:
        e_nodes, e_classes: at the end.
        fusion: kernels of the model's own, with the option ``fuse``; else None.
        resumed_after: the last iteration of the processes whose run this one resumed; None if it started
            the run itself.
        untrusted_rules: rules that were let in although they are not known to be sound, and why.
    """

    exploration: Exploration
    e_nodes: int
    e_classes: int
    fusion: FusionReport | None = None
    resumed_after: int | None = None
    untrusted_rules: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """How the graph was extracted, and what is proven of it.

    Attributes:
        extractor: which one chose the graph.
        bound_us: no graph in the e-graph costs less; 0 where the extractor gives no bound.
        gap: ``(cost_after - bound) / cost_after``.
        optimal: the solver proved that no graph in the e-graph is cheaper than this one under the costs
            that were used (``cost_basis``: some of them may be estimates); never where the
            original is kept since a cheaper graph is slower whole.
        exhaustive: no graph at all that the rules can reach is cheaper: it is optimal, and the e-graph has
            every one of them (``Exploration.is_exhaustive``).
        rules_used: per rule, how many e-nodes of the optimized graph it made.
        extraction: the work of the final extraction.
        extractions: the outcome of each extraction, those between iterations first.
    """

    extractor: str
    bound_us: float
    gap: float
    optimal: bool
    exhaustive: bool = False
    rules_used: Mapping[str, int] = field(default_factory=dict)
    extraction: ExtractionSummary = field(default_factory=ExtractionSummary)
    extractions: tuple[ExtractionEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the graph is right and fast, and which one is returned.

    Attributes:
        verification: the comparisons and the errors found; empty if the original's file is returned.
        unchanged: whether the original is returned; its file is copied where the format is the same, if it
            is not ``machine`` that is written.
        rejections: why graphs that were extracted are not returned.
        race: how the cheapest graphs that differ were against the original, whole; None where they were
            not raced.
        whole: original and extracted graph run whole, where costs are measured here and a graph other
            than the original was extracted; None where they were not run.
        runtimes: which runtime runs which file fastest; None where that was not found out.
    """

    verification: Verification
    unchanged: bool = False
    rejections: tuple[Rejection, ...] = ()
    race: RaceReport | None = None
    whole: WholeRun | None = None
    runtimes: RuntimeRace | None = None

    @property
    def keeps_original(self) -> bool:
        """Whether the original is returned although what was extracted is cheaper, as it is slower
        whole or was rejected."""
        is_slower = any(run is not None and run.keeps_original for run in (self.whole, self.race))
        return is_slower or (self.unchanged and bool(self.rejections))


@dataclass(frozen=True, slots=True)
class Files:
    """The files that were read and written.

    Attributes:
        source: the model's file; None for a model that was in memory.
        model: the written model, of a model that was in memory or has dynamic dimensions; else None.
        output: the file written; None if none was requested.
        change: the ONNX files' nodes, bytes and versions, before and after, also where the original is
            kept; None where one of them is no ONNX.
        machine: the result as onnxruntime saves it here, and whether that was written; None without the
            option ``this_machine``, or if it was not found out: then a note says why.
        library: the file with kernels for onnxruntime beside the one without, and whether it was written;
            None without the option ``fuse``, or if a note says why.
        tables: the run's tables, for ``view``: in the file of the option ``db``, or in memory; None where
            those in memory were too large to be kept.
    """

    source: Path | None = None
    model: onnx.ModelProto | None = None
    output: Path | None = None
    change: FileChange | None = None
    machine: MachineForm | None = None
    library: LibraryReport | None = None
    tables: RunTables | None = None
