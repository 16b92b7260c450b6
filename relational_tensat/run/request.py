"""The request: a run that has done nothing yet, and the values that all stages use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.deadline import standing_clock
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel, CostSource, as_source, open_source
from relational_tensat.cost.key import Contents
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.run.options import DEFAULT_PROFILE, Options, with_short_limits, without_clock
from relational_tensat.run.progress import Phases, Progress, Recording
from relational_tensat.run.purpose import Purpose, purpose_of
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    from relational_tensat.run.result import Result


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The request, and the values that all stages use.

    Attributes:
        source: the model as it was named, a file or a graph.
        output: where the result is to be written, as it was named.
        cost: the origin of costs, as it was named; ``has_own_costs`` if that is the caller's own object.
        purpose: where the result will run, for people, and why it is for something else than usual.
        phases: announces and times what is done.
        recording: the announcements, for the tables of the run's course.
        watch: has Ctrl-C, the clock and deadlines.
        again: optimizes a part of the model as one of its own.
        contents: hashes of graphs.
        resources: the e-graph's database, until the result is known to be right.
        attention: that Ctrl-C is remembered, until extraction is over.
        files: files that are removed at the end of the run, unless they were moved where they belong.
    """

    options: Options
    source: Graph | str | Path
    output: str | Path | DefaultOutput | None
    cost: CostSource
    has_own_costs: bool
    purpose: Purpose
    phases: Phases
    recording: Recording
    again: Callable[..., Result]
    watch: Watch = field(default_factory=Watch)
    contents: Contents = field(default_factory=Contents)
    resources: ExitStack = field(default_factory=ExitStack)
    attention: ExitStack = field(default_factory=ExitStack)
    files: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def begin(
        cls,
        options: Options,
        source: Graph | str | Path,
        output: str | Path | DefaultOutput | None,
        cost_model: CostModel | None,
        progress: Progress,
        again: Callable[..., Result],
    ) -> Run:
        """Return a run that has done nothing yet; costs are opened, not measured.

        Raises:
            UsageError, InputError: the origin of costs does not exist, or cannot be used.
        """
        if options.process.deterministic:
            options = without_clock(options)
        has_own_costs = cost_model is not None
        if has_own_costs and options.costs.source is None:
            options = options.replace(cost=DEFAULT_PROFILE)
        purpose = Purpose(options) if has_own_costs else purpose_of(options, source)
        options = purpose.options
        cost = _opened(options, progress) if cost_model is None else as_source(cost_model)
        is_for_here = options.purpose.runs_on in BACKENDS
        if (cost.is_lazy or is_for_here) and not has_own_costs:
            options = with_short_limits(options)
        recording = Recording(progress)
        phases = Phases(recording)
        return cls(options, source, output, cost, has_own_costs, purpose, phases, recording, again)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Have what stages use, until they are done."""
        clock = standing_clock() if self.options.process.deterministic else nullcontext()
        with clock, self.files, self.resources, self.attention:
            yield


def _opened(options: Options, progress: Progress) -> CostSource:
    """Return what costs are from; a backend's kernels are measured as it runs them."""
    costs = options.costs
    source = costs.source or DEFAULT_PROFILE
    if options.rules.backend is not None:
        source = load_backend(options.rules.backend).measured_as(source)
    return open_source(
        source,
        cache=costs.cache,
        watch=progress.measuring,
        limit_s=costs.measure_time_limit_s,
        learns=costs.learn_costs,
    )
