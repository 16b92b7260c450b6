"""The state of a run: what its stages have brought so far.

What a run has chosen that another one repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.files import folder_beside
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel, CostSource, as_source, open_source
from relational_tensat.cost.key import Contents
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.explore import Exploration
from relational_tensat.explore.members import Seed
from relational_tensat.extract import Extraction
from relational_tensat.extract.anytime import AnytimeExtractor, ExtractionEntry
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.rules.model import Rule
from relational_tensat.rules.targets.backend import load_backend
from relational_tensat.run.options import DEFAULT_PROFILE, Options, with_measured_limits
from relational_tensat.run.progress import Phases, Progress, Recording
from relational_tensat.run.purpose import Purpose, purpose_of
from relational_tensat.run.reports import MachineForm, RaceReport
from relational_tensat.run.result import Rejection, WholeRun
from relational_tensat.tensor import Array, Graph
from relational_tensat.verify import Verification
from relational_tensat.view.document import RunTables

if TYPE_CHECKING:
    from relational_tensat.formats.dynamic.sized_model import DynamicModel
    from relational_tensat.mugraph.fusion.own_kernel import KernelCosts, OwnKernel
    from relational_tensat.run.reports import FileChange, SizedResult


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """The choice of a run before, in the e-graph of this one.

    Attributes:
        digest: hash of its graph.
        without, is_by_profile: as of the candidate that it was.
        is_dearer: it cost more than the original by the sums.
    """

    digest: str
    seed: Seed
    without: tuple[str, ...]
    is_by_profile: bool
    is_dearer: bool


#: The value of what a later stage brings: a stage that reads it too early is a mistake of the pipeline's
#: order, not a case that every reader has to think of.
_LATER: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """What a run was requested to do, and what each stage has produced so far.

    Attributes:
        options: what was chosen.
        source: the model as it was named, a file or a graph.
        output: where the result is to be written, as it was named.
        cost: what costs are from; ``has_own_costs`` if that is the caller's own object.
        watch: has Ctrl-C, the clock and deadlines.
        phases: announces and times what is done.
        recording: what was announced, for the tables of the run's course.
        resources: the e-graph's database, until the result is known to be right.
        attention: that Ctrl-C is remembered, until extraction is over.
        files: files that are removed at the end of the run, unless they were moved where they belong.
        notes: what the reader should know beside the figures.
        purpose: where the result will run, for people; "" where costs were named instead.

        graph: (load) the model as it was read.
        rules, untrusted: the rules, and why some of them are not known to be sound.
        inputs: to verify with, by name.
        target: where the result is written; None for nowhere.
        dynamic: the model at several sizes, where its dynamic dimensions are to stay; ``graph`` is then
            the one at the sizes that it is optimized at, with what is computed from sizes as inputs.
        returns_original: the model has dynamic dimensions that are to stay, and is another graph at other
            sizes: no other file than its own is the result.

        original: (share) the model with one weight in place of equal ones. ``priced`` is the graph that the
            file's costs are those of.
        run: hash of what decides which costs are asked for, where they are measured: a run of the same hash
            repeats this one. ``contents`` has hashes of graphs.
        egraph, extractor: what is explored and extracted from.
        tables: of the e-graph, also when it is closed.
        resumed_after: the last iteration of explorations before this one; None where there is none.

        kernel_costs: costs that can be of the model's own kernels; None where there are none.

        exploration: (explore) how it went.

        kernels: (fuse) the model's own; ``fused_parts`` for how many parts of it they were sought.
        has_fused: another process has put their e-nodes into the e-graph.

        by_profile: (extract) the cheapest graph by the profile alone, where costs are measured; it is among
            those that race. ``settled`` what a run has chosen that this repeats: nothing races then.
        extracted: (extract) the cheapest graph of the e-graph; ``extraction`` how it was found.
        extractions: those between iterations, and the last.
        rules_used: how many e-nodes of the extracted graph each rule made.
        e_nodes, e_classes: of the e-graph, at the end.
        time_spent: where the seconds of exploration and extraction went.

        chosen: (choose) the original or the extracted graph.
        race: (race) how the cheapest graphs that differ were against the original, whole; ``raced`` the
            graph that won.
        sized: (verify) the chosen graph at each of the dynamic model's sizes, and the file that it is.
        folded, verification: (verify) the chosen graph as it is written, and how it compares.
        candidate: the ONNX file that was compared, of ``folded``; what is written is this file.
        rejections: why graphs that were extracted are not returned.
        n_left_out: how many steps were left out that hold at some sizes only, and ``left_out`` what
            they built in the present e-graph.
        has_same_file: (verify) the original's file is already what the extracted graph is written as, so
            that it costs as much, though the file has no words for some kernels.
        change: (verify) what becomes of the file, if it is written as another.
        whole: (time) how long both take end to end; None where that was not timed.
        machine: (save for this machine) how the result is as onnxruntime saves it; None where that was not
            asked for, or not found out. ``saved`` is the file, if it is the one to be written.
    """

    options: Options
    source: Graph | str | Path
    output: str | Path | DefaultOutput | None
    cost: CostSource
    has_own_costs: bool
    phases: Phases
    recording: Recording
    watch: Watch = field(default_factory=Watch)
    resources: ExitStack = field(default_factory=ExitStack)
    attention: ExitStack = field(default_factory=ExitStack)
    files: ExitStack = field(default_factory=ExitStack)
    notes: tuple[str, ...] = ()
    purpose: str = ""

    graph: Graph = _LATER
    rules: list[Rule] = _LATER
    untrusted: Mapping[str, str] = _LATER
    inputs: Mapping[str, Array] = _LATER
    target: Path | None = None
    dynamic: DynamicModel | None = None
    returns_original: bool = False

    original: Graph = _LATER
    priced: Graph = _LATER
    run: str = ""
    contents: Contents = field(default_factory=Contents)
    egraph: EGraph = _LATER
    tables: RunTables | None = None
    extractor: AnytimeExtractor = _LATER
    resumed_after: int | None = None

    kernel_costs: KernelCosts | None = None

    exploration: Exploration = _LATER

    kernels: tuple[OwnKernel, ...] = ()
    fused_parts: int = 0
    has_fused: bool = False

    by_profile: Seed | None = None
    settled: Settled | None = None
    extracted: Graph = _LATER
    extraction: Extraction = _LATER
    extractions: tuple[ExtractionEntry, ...] = ()
    rules_used: Mapping[str, int] = _LATER
    e_nodes: int = 0
    e_classes: int = 0
    time_spent: TimeSpent = _LATER

    chosen: Graph = _LATER
    race: RaceReport | None = None
    raced: Graph | None = None
    sized: SizedResult | None = None
    folded: Graph = _LATER
    verification: Verification = _LATER
    candidate: Path | None = None
    rejections: tuple[Rejection, ...] = ()
    n_left_out: int = 0
    left_out: frozenset[int] = frozenset()
    has_same_file: bool = False
    change: FileChange | None = None
    whole: WholeRun | None = None
    machine: MachineForm | None = None
    saved: Path | None = None

    @classmethod
    def begin(
        cls,
        options: Options,
        source: Graph | str | Path,
        output: str | Path | DefaultOutput | None,
        cost_model: CostModel | None,
        progress: Progress,
    ) -> RunState:
        """Return the state of a run that has done nothing yet; costs are opened, not measured.

        Raises:
            UsageError, InputError: what costs are from does not exist, or cannot be used.
        """
        has_own_costs = cost_model is not None
        if has_own_costs and options.costs.source is None:
            options = options.replace(cost=DEFAULT_PROFILE)
        purpose = Purpose(options) if has_own_costs else purpose_of(options, source)
        options = purpose.options
        cost = _opened(options, progress) if cost_model is None else as_source(cost_model)
        if cost.is_lazy and not has_own_costs:
            options = with_measured_limits(options)
        recording = Recording(progress)
        phases = Phases(recording)
        state = cls(options, source, output, cost, has_own_costs, phases, recording)
        return replace(state, purpose=purpose.text).noting(purpose.note)

    @property
    def file(self) -> Path | None:
        """The file that the model is from, if it is from one."""
        return None if isinstance(self.source, Graph) else Path(self.source)

    @property
    def runs_on(self) -> str:
        """Where the result will run, or else what costs are from, for people."""
        return self.purpose or self.cost.name

    @property
    def compared_file(self) -> Path | None:
        """The file that a result of fixed sizes is compared with: a dynamic one has other inputs."""
        return self.file if self.dynamic is None else None

    @property
    def stays_dynamic(self) -> bool:
        """Whether the model has dynamic dimensions, which the result is to have, too."""
        return self.dynamic is not None or self.returns_original

    @property
    def is_unchanged(self) -> bool:
        """Whether the original is what is returned."""
        return self.chosen is self.original

    @property
    def copies_file(self) -> bool:
        """Whether what is returned is the file that the model is from, as it is."""
        if not self.is_unchanged or self.file is None:
            return False
        if self.target is None:
            return True
        return self.target.suffix.lower() == self.file.suffix.lower() and self.keeps_opset

    @property
    def keeps_opset(self) -> bool:
        """Whether the original is in the version of the operator set that is to be written.

        One with dynamic dimensions is never written again if nothing else changes, or may change.
        """
        opset = self.options.output.opset
        if opset is None or self.stays_dynamic:
            return True
        from relational_tensat.formats import opset_of  # needs onnx

        return opset_of(self.graph) == opset

    @property
    def keeps_original(self) -> bool:
        """Whether the original is returned although what was extracted is cheaper.

        That is so where it is slower end to end, or was rejected.
        """
        is_slower = any(run is not None and run.keeps_original for run in (self.whole, self.race))
        return is_slower or (self.is_unchanged and bool(self.rejections))

    def noting(self, *notes: str) -> RunState:
        """Return the same state with further notes; empty ones are left out."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def with_egraph(self, egraph: EGraph) -> RunState:
        """Return the same state with an e-graph; if it is in a file, it is closed with ``resources``.

        From now on there is a best graph so far, so Ctrl-C is remembered, and ends what looks for a
        better one; exploration has a way of its own to take it.
        """
        path = self.options.output.db
        if path is None:
            tables = RunTables(memory=egraph.database.connection)  # open as long as somebody has it
        else:
            tables = RunTables(path)
            self.resources.enter_context(closing(egraph))
        self.attention.enter_context(self.watch.watching())
        return replace(self, egraph=egraph, tables=tables).with_fresh_extractor()

    def with_candidate(self) -> RunState:
        """Return the same state with a place, beside the target, for the ONNX file that is compared.

        Raises:
            InputError: nothing can be written there.
        """
        if self.candidate is not None or self.target is None or not is_onnx(self.target):
            return self
        folder = self.files.enter_context(folder_beside(self.target))
        return replace(self, candidate=folder / self.target.name)

    def with_fresh_extractor(self) -> RunState:
        """Return the same state with an extractor that knows of no graph so far."""
        extractor = AnytimeExtractor(
            self.egraph,
            self.cost,
            self.options.extraction,
            self.options.process,
            self.phases.progress,
            self.watch,
        )
        extractor.log += self.extractions
        return replace(self, extractor=extractor)


def _opened(options: Options, progress: Progress) -> CostSource:
    """Return what costs are from; a backend's kernels are measured as it runs them."""
    costs = options.costs
    source = costs.source or DEFAULT_PROFILE
    if options.rules.target is not None:
        source = load_backend(options.rules.target).measured_as(source)
    return open_source(
        source,
        cache=costs.cache,
        watch=progress.measuring,
        limit_s=costs.measure_time_limit_s,
        learns=costs.learn_costs,
    )
