"""Costs of graphs on a backend: the sum of the kernels that it runs them by.

Parts of a graph are priced as the backend runs them, with what it makes of several operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.cost import Configuration, CostCounts, CostSource, Device
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.calibration import bodies_price_us, kernel_us
from relational_tensat.cost.key import graph_configurations
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import CostAnswer, Race
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.outcome import Journal
from relational_tensat.explore.step import StepBudget, apply_further, step
from relational_tensat.explore.subgraph import begin_subgraph, write_down
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.few_measurements import settle
from relational_tensat.extract.tables import choose, chosen_graph, forget_costs
from relational_tensat.rules.backends.backend import FIXED_SHAPES, Backend
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel

#: Each rule of a backend makes a graph smaller: their e-graphs are small. A value in blocks passes from
#: one residual block of a network to the next in two steps.
_MOST_STEPS = 200
_BUDGET = StepBudget(1_000_000)
_EXTRACTION = ExtractionOptions(time_limit_s=10.0)
#: More than any graph costs.
_NEVER_US = 1e9


@contextmanager
def ways_to_run(
    graph: Graph, rules: Sequence[Rule], own: Sequence[OwnKernel] = ()
) -> Iterator[EGraph]:
    """Give all ways in which a backend can run a graph: the e-graph of it by the backend's rules.

    Args:
        graph: of plain operators.
        rules: the backend's.
        own: further kernels that it has, with rules that no rule of the backend reads the targets of.
    """
    with closing(EGraph.create(graph)) as egraph:
        subgraph = begin_subgraph(egraph, rules)
        turn = subgraph.rules.all_rules
        for _ in range(_MOST_STEPS):
            delta = step(subgraph, turn, _BUDGET)
            if delta.is_empty or not delta.single_complete:
                break
            turn = subgraph.rules.single_rules
        with egraph.transaction():
            write_down(subgraph, Journal(), has_ended=True)
        if own:
            masks = {name: mask for kernel in own for name, mask in kernel.masks.items()}
            own_rules = [rule for kernel in own for rule in kernel.rules]
            apply_further(egraph, own_rules, ExplorationOptions(), masks)
        yield egraph


def _cheapest_way(egraph: EGraph, cost: CostSource) -> Graph:
    """Return the kernels that a backend runs a graph by, of all ways the cheapest by costs of kernels.

    It folds constants only: where a kernel takes constants, it computes none of these instead, unless the
    graph does so already.

    Args:
        egraph: of ``ways_to_run``.
    """
    forget_costs(egraph)
    table, extraction = settle(
        egraph,
        _OfConstants(cost, egraph.graph),
        lambda problem, start: extract(problem.problem, _EXTRACTION, start=start),
    )
    choose(egraph, table, extraction.choice)
    return chosen_graph(egraph)


def _form(graph: Graph) -> tuple[object, ...]:
    """Return what graphs share that differ in names of computed values, and in metadata, only."""
    outputs = (value for node in graph.nodes for value in node.outputs)
    places = {value: place for place, value in enumerate(outputs)}
    nodes = (
        (node.op, repr(node.attrs), tuple(places.get(value, value) for value in node.inputs))
        for node in graph.nodes
    )
    weights = ((name, weight.type, id(weight.data)) for name, weight in graph.weights.items())
    returned = (places.get(value, value) for value in graph.outputs)
    return (*nodes, *weights, *graph.inputs.items(), *returned)


class _OfConstants(CostSource):
    """Costs by which a backend computes no operand that its kernels take as constants."""

    tells_computed = True

    def __init__(self, cost: CostSource, graph: Graph) -> None:
        super().__init__(cost.name)
        self.is_instant = cost.is_instant  # type: ignore[misc]  # as is what it asks
        self.is_lazy = cost.is_lazy  # type: ignore[misc]
        self._cost = cost
        self._own = frozenset(graph_configurations(graph))

    def is_free(self, configuration: Configuration) -> bool:
        return self._cost.is_free(configuration)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Ask for those that are possible."""
        possible = [each for each in configurations if self._is_possible(each)]
        return {**self._impossible(configurations), **self._cost.ask(possible)}

    def look_up(
        self, configurations: Sequence[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Answer for those that are known or impossible."""
        possible = [each for each in configurations if self._is_possible(each)]
        return {**self._impossible(configurations), **self._cost.known(possible)}

    def least_us(self, configuration: Configuration) -> float:
        return self._cost.at_least([configuration])[configuration].cost_us

    def estimate_us(self, configuration: Configuration) -> float:
        return self._cost.peek_us(configuration)

    def _impossible(
        self, configurations: Sequence[Configuration]
    ) -> dict[Configuration, CostAnswer]:
        never = CostAnswer(_NEVER_US, "never")
        return {each: never for each in configurations if not self._is_possible(each)}

    def _is_possible(self, configuration: Configuration) -> bool:
        return not configuration.computed or configuration in self._own


class BackendCosts(CostSource):
    """Costs of a backend's kernels, from any source of costs of single kernels.

    Args:
        kernels: the costs of single kernels.
        rules: those of the backend that hold for the file that it reads.

    Raises:
        UsageError: costs are measured on a device that has no such kernels.
    """

    tells_computed = True

    def __init__(self, kernels: CostSource, backend: Backend, rules: Sequence[Rule]) -> None:
        device = kernels.device
        kind = backend.device_kind
        if device is not None and backend.takes_kernels and device.key.kind != kind:
            raise UsageError(
                f"kernels of the backend {backend.name} cannot be measured by {kernels.name}, expected "
                f"{kind}, or a profile or table of such a device"
            )
        kernels = _as_priced(kernels, backend)
        super().__init__(f"{kernels.name} on {backend.name}")
        self.is_instant = kernels.is_instant  # type: ignore[misc]  # as is what it asks
        self.is_lazy = kernels.is_lazy  # type: ignore[misc]
        self.gives_kernels = backend.takes_kernels
        self._kernels = kernels
        self._backend = backend
        self._rules = rules
        self._as_run: dict[Graph, Graph] = {}
        #: The same by form: forms have ids of what these graphs keep in memory.
        self._by_form: dict[tuple[object, ...], Graph] = {}
        self._timed_us: dict[Configuration, float] = {}
        kernels.price_by(self._price_us)

    def know(self, times_us: Mapping[Configuration, float]) -> None:
        """Price what was timed by what it takes."""
        self._timed_us |= times_us
        self._forget()

    @property
    def counts(self) -> CostCounts:
        return self._kernels.counts

    @property
    def device(self) -> Device | None:
        return self._kernels.device

    @property
    def notes(self) -> tuple[str, ...]:
        return self._kernels.notes

    def adapt_to(self, graph: Graph) -> bool:
        """Take the device as this graph finds it."""
        is_other = self._kernels.adapt_to(graph)
        self._forget()
        if not self._kernels.asks_for_runs:
            return is_other
        with ways_to_run(self._backend.as_read(graph), self._rules) as ways:
            as_run = self._fused(_cheapest_way(ways, self))
            if self._kernels.adapt_to(replace(as_run, metadata=graph.metadata)):
                self._forget()
                as_run = self._fused(_cheapest_way(ways, self))
        self._as_run[graph] = self._by_form[_form(graph)] = as_run
        return True

    @property
    def turn_us(self) -> float:
        return self._kernels.turn_us

    def run_us(self, values: int, size_nodes: int = 0) -> float:
        return self._kernels.run_us(values, size_nodes)

    @property
    def n_threads(self) -> int:
        return self._kernels.n_threads

    def label(self, origin: str) -> str:
        """Return what the kernels' source says, after this one's name."""
        return self.name + self._kernels.label(origin).removeprefix(self._kernels.name)

    def as_run(self, graph: Graph) -> Graph:
        """Return the kernels that the backend runs a graph by."""
        if graph not in self._as_run:
            form = _form(graph)
            if form not in self._by_form:
                with ways_to_run(self._backend.as_read(graph), self._rules) as ways:
                    self._by_form[form] = self._fused(_cheapest_way(ways, self))
            self._as_run[graph] = self._by_form[form]
        return self._as_run[graph]

    def with_kernels(self, graph: Graph, own: Sequence[OwnKernel]) -> Graph:
        """Return what the backend runs a graph by if it has further kernels, of all the cheapest.

        Its own kernels, the layouts of what they read and give, and these are chosen in one extraction.

        Args:
            graph: of plain operators.
            own: kernels with their costs.
        """
        from relational_tensat.mugraph.fusion.own_kernel import KernelCosts  # few runs need it

        costs = KernelCosts(self)
        costs.learn(own)
        with ways_to_run(self._backend.as_read(graph), self._rules, own) as ways:
            return _cheapest_way(ways, costs)

    def learn_races(self, races: Sequence[Race]) -> None:
        self._kernels.learn_races(
            [
                replace(
                    race,
                    before=self._kernels_of_all(race.before),
                    after=self._kernels_of_all(race.after),
                )
                for race in races
            ]
        )

    def renew(self) -> bool:
        are_others = self._kernels.renew()
        if are_others:
            self._forget()
        return are_others

    def begin_run(self, run: str) -> None:
        self._kernels.begin_run(run)

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the kernels' source says so of all kernels."""
        return all(map(self._kernels.is_free, self._kernels_of(configuration)))

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Ask for the kernels that each is, in one batch; several cost the sum of theirs."""
        kernels = {each: self._kernels_of(each) for each in configurations}
        answers = self._kernels.ask(kernel for own in kernels.values() for kernel in own)
        self.measuring_s = self._kernels.measuring_s
        return {each: _sum(own, answers) for each, own in kernels.items()}

    def look_up(
        self, configurations: Sequence[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Answer for those of which all kernels are known."""
        kernels = {each: self._kernels_of(each) for each in configurations}
        answers = self._kernels.known(kernel for own in kernels.values() for kernel in own)
        return {
            each: _sum(own, answers)
            for each, own in kernels.items()
            if all(kernel in answers for kernel in own)
        }

    def least_us(self, configuration: Configuration) -> float:
        """Return the sum of what is known of the kernels, and what the others cost at least."""
        kernels = self._kernels_of(configuration)
        answers = self._kernels.at_least(kernels)
        return sum(answers[kernel].cost_us for kernel in kernels)

    def estimate_us(self, configuration: Configuration) -> float:
        """Return the sum of what the kernels would cost."""
        return sum(map(self._kernels.peek_us, self._kernels_of(configuration)))

    def modelled_us(self, configuration: Configuration) -> float:
        """Return what the kernels cost by the profile."""
        return self._kernels.modelled_us(configuration)

    def _fused(self, kernels: Graph) -> Graph:
        """Return kernels with those that the backend makes of several after its rules."""
        has_fixed_shapes = any(FIXED_SHAPES in rule.rulesets for rule in self._rules)
        return self._backend.as_fused(kernels, has_fixed_shapes=has_fixed_shapes)

    def _forget(self) -> None:
        self._answers.clear()
        self._as_run.clear()
        self._by_form.clear()

    def _price_us(self, profile: Profile, configuration: Configuration) -> float:
        """Return what a profile says, with what takes longer on the backend than its arithmetic."""
        if configuration in self._timed_us:
            return self._timed_us[configuration]
        bodies_us = bodies_price_us(profile, configuration, self._price_us)
        profile = self._backend.as_priced(profile)
        kernels = self._backend.kernels_of(configuration, tells_computed=False)
        us = bodies_us + sum(kernel_us(profile, kernel) for kernel in kernels)
        more, bare = self._backend.more_work_of(configuration), profile.without_launches()
        # Pieces of one work are alike, and there may be thousands of them.
        prices_us = {work: kernel_us(bare, work) for work in dict.fromkeys(more)}
        return us + sum(prices_us[work] for work in more)

    def _kernels_of_all(self, configurations: Sequence[Configuration]) -> list[Configuration]:
        return [kernel for each in configurations for kernel in self._kernels_of(each)]

    def _kernels_of(self, configuration: Configuration) -> list[Configuration]:
        """Return what is asked for: the kernels, or what is priced by ``_price_us`` as a whole."""
        if self._kernels.is_priced:
            return [configuration]
        tells = self._kernels.tells_computed
        kernels = self._backend.kernels_of(configuration, tells_computed=tells)
        return kernels if tells else [*kernels, *self._backend.more_work_of(configuration)]


def _as_priced(kernels: CostSource, backend: Backend) -> CostSource:
    """Return costs as they are in the setting that a backend runs graphs in: those of a profile."""
    if isinstance(kernels, AnalyticSource) and isinstance(kernels.model, Profile):
        return AnalyticSource(backend.as_priced(kernels.model))
    return kernels


def _sum(
    kernels: Sequence[Configuration], answers: Mapping[Configuration, CostAnswer]
) -> CostAnswer:
    cost_us = sum(answers[kernel].cost_us for kernel in kernels)
    return CostAnswer(cost_us, answers[kernels[0]].origin)
