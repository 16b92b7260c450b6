"""The values that stages hand on: loaded, explored, extracted, checked, written.

Each is complete when it is made, never changes, and holds the one before it. ``notes`` are what the reader
should know beside the figures, of all stages so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.cost import CostSource, graph_cost_us
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.explore import Exploration
from relational_tensat.explore.members import Seed
from relational_tensat.extract import Extraction
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.kept_choice import ExtractionEntry
from relational_tensat.rules.model import Rule
from relational_tensat.run.reports import MachineForm, RaceReport, RuntimeRace
from relational_tensat.run.request import Run
from relational_tensat.run.result_groups import Rejection, WholeRun
from relational_tensat.tensor import Array, Graph
from relational_tensat.verify import Verification
from relational_tensat.view.document import RunTables

if TYPE_CHECKING:
    from relational_tensat.formats.dynamic.sized_model import DynamicModel
    from relational_tensat.mugraph.fusion.own_kernel import KernelCosts, OwnKernel
    from relational_tensat.run.kernel_report import KernelForm, LibraryReport
    from relational_tensat.run.reports import BodyRewrite, FileChange, SizedResult


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model that was read.

    Attributes:
        source: its file as it was named, or itself if it is of none.
        dynamic: the model at several sizes, if its dynamic dimensions are to stay. ``graph`` is then the
            one at the sizes that it is optimized at, and values that are computed from sizes are inputs of
            it.
        returns_original: it has dynamic dimensions that are to stay, and is another graph at other
            sizes: no other file than its own is the result.
        moved_data: the file beside the result that large weights go to, "" for the result itself; None
            where they stay as they were.
        notes: on how it was read.
    """

    source: Graph | str | Path
    graph: Graph
    dynamic: DynamicModel | None = None
    returns_original: bool = False
    moved_data: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> Path | None:
        """The file that it is from, if it is from one."""
        return None if isinstance(self.source, Graph) else Path(self.source)

    @property
    def compared_file(self) -> Path | None:
        """The file that a result of fixed sizes is compared with: a dynamic one has other inputs."""
        return self.file if self.dynamic is None else None

    @property
    def stays_dynamic(self) -> bool:
        """Whether it has dynamic dimensions, which the result is to have, too."""
        return self.dynamic is not None or self.returns_original

    def is_in(self, opset: int | None) -> bool:
        """Whether it is in the version of the operator set that is to be written.

        One with dynamic dimensions is never written again if nothing else changes, or may change.
        """
        if opset is None or self.stays_dynamic:
            return True
        from relational_tensat.formats import opset_of  # needs onnx

        return opset_of(self.graph) == opset


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRun:
    """The model as an e-graph, with all that it is explored, costed and compared by.

    Attributes:
        cost: the origin of costs: of the runtime that will run the graph, if that is known.
        kernel_costs: the same, where they can be of the model's own kernels; or None.
        rules, untrusted: the rules, and why some of them are not known to be sound.
        inputs: to verify with, by name.
        output: where the result is written; None for nowhere.
        original: the model with one weight in place of equal ones. ``priced`` is the graph that the
            file's costs are those of.
        run_hash: of what decides which costs are asked for, where they are measured: a run of the same
            hash repeats this one.
        tables: of the e-graph, also when it is closed.
        resumed_after: the last iteration of earlier explorations; or None.
        kernels: the model's own that another process has put into the e-graph.
        bodies: the outcome of those of nodes (If, Loop, Scan), each put into the e-graph by a rule.
    """

    run: Run
    model: Model
    cost: CostSource
    kernel_costs: KernelCosts | None
    rules: list[Rule]
    untrusted: Mapping[str, str]
    inputs: Mapping[str, Array]
    output: Path | None
    original: Graph
    priced: Graph
    run_hash: str
    egraph: EGraph
    tables: RunTables
    notes: tuple[str, ...]
    resumed_after: int | None = None
    kernels: tuple[OwnKernel, ...] = ()
    bodies: tuple[BodyRewrite, ...] = ()

    @property
    def runs_on(self) -> str:
        """Where the result will run, or else what costs are from, for people."""
        return self.run.purpose.text or self.cost.name

    @property
    def original_us(self) -> float:
        """The original's cost by now."""
        return graph_cost_us(self.original, self.cost)


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """The faults found in extracted graphs.

    Attributes:
        rejections: why they are not returned.
        n_left_out: how many steps were left out that hold at some sizes only, and ``left_out`` what
            they built in the present e-graph.
    """

    rejections: tuple[Rejection, ...] = ()
    n_left_out: int = 0
    left_out: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.rejections or self.n_left_out)


@dataclass(frozen=True, slots=True, eq=False)
class ExploredRun:
    """The e-graph with what the rules lead to, and with the option ``fuse`` the model's own kernels.

    Attributes:
        exploration: how it went.
        extractor: it knows the cheapest graph so far.
        kernels: the model's own; ``fused_parts`` for how many parts of it they were sought.
        refused: the parts of it that are not to be extracted.
    """

    loaded: LoadedRun
    exploration: Exploration
    extractor: AnytimeExtractor
    notes: tuple[str, ...]
    kernels: tuple[OwnKernel, ...] = ()
    fused_parts: int = 0
    refused: Refused = field(default_factory=Refused)

    def noting(self, *notes: str) -> ExploredRun:
        """Return the same with further notes; empty ones are left out."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def refusing(self, *rejections: Rejection) -> ExploredRun:
        """Return the same with further graphs that are not returned, and notes why."""
        refused = replace(self.refused, rejections=(*self.refused.rejections, *rejections))
        return replace(self, refused=refused).noting(*(each.why for each in rejections))


@dataclass(frozen=True, slots=True, eq=False)
class CachedChoice:
    """The choice of a run before, in the e-graph of this one.

    Attributes:
        digest: hash of its graph.
        without, is_by_profile: as of the candidate that it was.
        is_costlier: it cost more than the original by the sums.
    """

    digest: str
    seed: Seed
    without: tuple[str, ...]
    is_by_profile: bool
    is_costlier: bool


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The beginning of extraction where costs are measured.

    Attributes:
        by_profile: the cheapest graph by the profile alone; it is among those that race.
        settled: the choice of a run that this one repeats: nothing races then.
    """

    by_profile: Seed | None = None
    settled: CachedChoice | None = None

    def __bool__(self) -> bool:
        return self.by_profile is not None or self.settled is not None


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedRun:
    """The cheapest graph of the e-graph, and which graph is chosen, that or the original.

    Attributes:
        explored: with it, the parts refused before.
        graph: the cheapest graph; ``extraction`` how it was found.
        rules_used: how many of its e-nodes each rule made.
        e_nodes, e_classes: of the e-graph.
        extractions: those between iterations, and the last.
        time_spent: where the seconds of exploration and extraction went.
        chosen: the original or the cheapest graph; where they raced, the fastest.
        race: how the cheapest graphs that differ were against the original, whole; None where they were
            not raced. ``raced`` is the graph that won.
        rewrites_file: where the original is chosen, it is written again: its file has nodes that lead
            nowhere, or that are known before inference.
        has_same_file: the original's file is already what the cheapest graph is written as, so that it
            costs as much, though the file has no words for some kernels.
    """

    explored: ExploredRun
    start: Start
    graph: Graph
    extraction: Extraction
    rules_used: Mapping[str, int]
    e_nodes: int
    e_classes: int
    extractions: tuple[ExtractionEntry, ...]
    time_spent: TimeSpent
    chosen: Graph
    notes: tuple[str, ...]
    race: RaceReport | None = None
    raced: Graph | None = None
    rewrites_file: bool = False
    has_same_file: bool = False

    @property
    def loaded(self) -> LoadedRun:
        """The exploration."""
        return self.explored.loaded

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Why graphs that were extracted are not returned."""
        return self.explored.refused.rejections

    @property
    def is_unchanged(self) -> bool:
        """Whether the original is what is returned."""
        return self.chosen is self.loaded.original

    @property
    def is_raced(self) -> bool:
        """Whether the chosen graph is the one that won the race."""
        return self.chosen is self.raced

    @property
    def copies_file(self) -> bool:
        """Whether what is returned is the file that the model is from, as it is."""
        file, output = self.loaded.model.file, self.loaded.output
        if not self.is_unchanged or file is None or self.rewrites_file:
            return False
        if output is None:
            return True
        is_of_same_kind = output.suffix.lower() == file.suffix.lower()
        return is_of_same_kind and self.loaded.model.is_in(self.loaded.run.options.output.opset)

    @property
    def has_kernels(self) -> bool:
        """Whether the chosen graph has kernels of the model's own."""
        return any(node.op == "fused" for node in self.chosen.nodes)

    @property
    def costs_us(self) -> tuple[float, float]:
        """The costs of the original and the chosen graph."""
        if self.has_same_file:
            us = graph_cost_us(self.graph, self.loaded.cost)
            return us, us
        return self.loaded.original_us, graph_cost_us(self.chosen, self.loaded.cost)

    def noting(self, *notes: str) -> ExtractedRun:
        """Return the same with further notes; empty ones are left out."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def keeping_original(self, *rejections: Rejection) -> ExtractedRun:
        """Return the same with the original chosen, and why other graphs are not."""
        explored = replace(self.explored, notes=self.notes).refusing(*rejections)
        return replace(self, explored=explored, chosen=self.loaded.original, notes=explored.notes)


@dataclass(frozen=True, slots=True, eq=False)
class CheckedRun:
    """A graph that computes what the original computes, or the original, as it is to be written.

    Attributes:
        folded, verification: the chosen graph as it is written, and how it compares.
        candidate: the ONNX file of ``folded`` that was compared; this file is written.
        sized: the chosen graph at each of the dynamic model's sizes, and the file that it is.
        change: the change to the file, if it is written as another.
        whole: how long both take end to end; None where that was not timed.
        machine: how the result is as onnxruntime saves it; None where that was not asked for, or not found
            out. ``saved`` is the file, if it is the one to be written.
        runtimes: which runtime runs which file fastest; None where that was not found out.
        kernels: the outcome of kernels that onnxruntime runs; if they are taken, ``folded`` and
            ``candidate`` have them. None where none were sought.
    """

    extracted: ExtractedRun
    folded: Graph
    verification: Verification
    notes: tuple[str, ...]
    candidate: Path | None = None
    sized: SizedResult | None = None
    change: FileChange | None = None
    whole: WholeRun | None = None
    machine: MachineForm | None = None
    saved: Path | None = None
    runtimes: RuntimeRace | None = None
    kernels: KernelForm | None = None

    @property
    def loaded(self) -> LoadedRun:
        """The exploration."""
        return self.extracted.loaded

    def noting(self, *notes: str) -> CheckedRun:
        """Return the same with further notes; empty ones are left out."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRun:
    """The result where it belongs.

    Attributes:
        output: its file; None where none was requested.
        machine: as ``CheckedRun`` has it, with the file of its weights.
        change: the figures of both files; None unless both are ONNX.
        library: the outcome of kernels that onnxruntime runs, with their folder.
    """

    checked: CheckedRun
    output: Path | None
    machine: MachineForm | None
    notes: tuple[str, ...]
    change: FileChange | None = None
    library: LibraryReport | None = None
