"""Sources of costs: they answer for many configurations at once, each once.

``CostSource`` is the interface of all four: analytic profiles (cost/analytic.py), devices with their
cache (cost/measured_source.py) and recorded tables (cost/table.py). Every source is a ``CostModel``, too.

A whole graph costs the sum of its configurations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol, TypeAlias

from relational_tensat.base.records import record
from relational_tensat.cost.device import Configuration, Device
from relational_tensat.cost.key import as_constants, configuration_of, graph_configurations
from relational_tensat.cost.profile import Profile
from relational_tensat.tensor import Attrs, Graph, ValueType
from relational_tensat.tensor.graph import RUN_US_KEY
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.uses import inference_nodes


class CostModel(Protocol):
    """Says how long one application of an operator takes.

    A model knows nothing of graphs: that values which depend on weights only cost nothing is the
    graph's business (see ``graph_cost_us``).
    """

    @property
    def name(self) -> str:
        """How reports call this source of costs."""

    def cost_us(
        self, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
    ) -> float:
        """Return the microseconds of one kernel: finite, not negative, 0 where none is launched.

        Args:
            op: the operator's name.
            inputs: the types of its operands.
            output: the type of its result; a tuple for an operator of several outputs.
            attrs: its attributes; those left out have their defaults.

        Raises:
            UsageError: there is no such operator.
        """


#: Graphs that take less are not marked: nearly all of their weights are in a cache, before and after.
LEAST_MARKED_US = 10.0
#: The origins of costs; an operator without a kernel has none ("free").
MEASURED, CACHED, RECORDED, ESTIMATED = ORIGINS = ("measured", "cached", "recorded", "estimated")
FREE = "free"
#: The origins of costs that nobody measured: a lower bound, and an estimate.
AT_LEAST, ABOUT = UNMEASURED = ("at least, not measured", "about, not measured")


@record
class CostAnswer:
    """The cost of a configuration, in microseconds, and its origin.

    Attributes:
        origin: one of ``ORIGINS``, ``FREE``, or of ``UNMEASURED``.
    """

    cost_us: float
    origin: str


@record
class CostCounts:
    """How many distinct configurations were asked for, by where their costs are from.

    Attributes:
        estimated: the choice rests on estimates of them, asked for or not.
        spared: were not asked for, as bounds show that they are in no cheapest graph.
    """

    measured: int = 0
    cached: int = 0
    recorded: int = 0
    estimated: int = 0
    spared: int = 0

    @property
    def any_measured(self) -> bool:
        """Whether costs are from where kernels ran; else all are modelled."""
        return any((self.measured, self.cached, self.recorded))

    @property
    def estimates(self) -> str:
        """How many are estimates where others are not: "3 of 20 are estimated", or ""."""
        if not self.any_measured or not self.estimated:
            return ""
        return f"{self.estimated:,} of {self.total:,} are estimated"

    @property
    def total(self) -> int:
        """How many there are in all."""
        return self.measured + self.cached + self.recorded + self.estimated + self.spared


@record
class Race:
    """How fast a graph was against the original.

    Attributes:
        model: the model that raced: a later result of the same replaces this one.
        before, after: the configurations that the original and the graph run.
        speedup: how many times as fast the graph was.
        error: of the speed-up, as a fraction: a standard deviation.
    """

    model: str
    before: Sequence[Configuration]
    after: Sequence[Configuration]
    speedup: float
    error: float


#: Prices a configuration by a profile, in microseconds.
Prices: TypeAlias = Callable[[Profile, Configuration], float]


class CostSource(ABC):
    """Answers in batches and forgets nothing: no configuration is looked up or measured twice.

    Attributes:
        measuring_s: wall seconds spent on measuring so far.
        is_instant: asking costs nothing, so that what no result depends on may be asked for, too.
        is_lazy: answers may have to be measured, so that a choice is settled with bounds of most.
        tells_computed: whether operands that are computed instead of constant change an answer.
        gives_kernels: whether what runs graphs is given those of ``as_run``; else it is given operators.
    """

    is_instant: ClassVar[bool] = False
    is_lazy: ClassVar[bool] = False
    tells_computed: bool = False
    gives_kernels: bool = False

    def __init__(self, name: str) -> None:
        self._name = name
        self.measuring_s = 0.0
        self._answers: dict[Configuration, CostAnswer] = {}

    @property
    def name(self) -> str:
        """How reports call this source of costs."""
        return self._name

    @property
    def counts(self) -> CostCounts:
        """How many configurations were asked for so far, by origin."""
        origins = [answer.origin for answer in self._answers.values()]
        return CostCounts(*(origins.count(origin) for origin in ORIGINS))

    @property
    def device(self) -> Device | None:
        """The device of the measurements, if it is here: it can run whole graphs, too."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the reader of a report beside the figures, one sentence each."""
        return ()

    def run_us(self, values: int, size_nodes: int = 0) -> float:
        """Return what a run of a graph with so many inputs and outputs costs beside its kernels, as far as
        that is known.

        Args:
            size_nodes: how many nodes of its file compute sizes at inference, which are constants here.
        """
        return 0.0

    @property
    def n_threads(self) -> int:
        """How many threads modelled costs are for."""
        return 1

    @property
    def is_priced(self) -> bool:
        """Whether all that it answers are the prices of ``price_by``."""
        return False

    @property
    def asks_for_runs(self) -> bool:
        """Whether ``adapt_to`` asks how long a run of the graph takes: it is best given its kernels."""
        return False

    def adapt_to(self, graph: Graph) -> bool:
        """Answer from now on for this graph, where costs depend on what a graph leaves in the caches.

        Returns:
            Whether answers may be others than before; unless overridden, costs do not depend on it.
        """
        return False

    @property
    def turn_us(self) -> float:
        """How long a run takes by which ``adapt_to`` knew the caches; 0 where costs do not depend on it."""
        return 0.0

    def marked(self, graph: Graph) -> Graph:
        """Return the graph of ``adapt_to`` with ``turn_us`` in its metadata, as its results have it."""
        if self.turn_us < LEAST_MARKED_US:
            return graph
        return replace(graph, metadata={**graph.metadata, RUN_US_KEY: repr(self.turn_us)})

    def price_by(self, prices: Prices) -> None:  # noqa: B027  # most costs are not estimated
        """Take what configurations cost by a profile from somebody who knows more of them."""

    def as_timed(self, graph: Graph) -> Graph:
        """Return what a device that times whole graphs is given for one."""
        return self.as_run(graph) if self.gives_kernels else graph

    def as_run(self, graph: Graph) -> Graph:
        """Return the kernels that a graph is run by; unless overridden, each of its operators is one."""
        return graph

    def ask(self, configurations: Iterable[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Return what configurations cost; those not asked for before are found in one batch.

        Raises:
            InputError: the cache cannot be used.
            KeyboardInterrupt: measuring was interrupted; its text says what is kept.
        """
        told = {each: self._told(each) for each in configurations}
        unanswered = self._unanswered(told.values())
        if unanswered:
            self._answers.update(self.find(unanswered))
        return {each: self._answers[configuration] for each, configuration in told.items()}

    def known(self, configurations: Iterable[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Return what configurations cost, of those that are known without measuring.

        Raises:
            InputError: the cache cannot be used.
        """
        told = {each: self._told(each) for each in configurations}
        unanswered = self._unanswered(told.values())
        if unanswered:
            self._answers.update(self.look_up(unanswered))
        return {
            each: self._answers[configuration]
            for each, configuration in told.items()
            if configuration in self._answers
        }

    def at_least(
        self, configurations: Iterable[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """As ``ask``, but what would have to be measured is answered by no more than its cost."""
        return self._known_or(configurations, self.least_us, AT_LEAST)

    def about(self, configurations: Iterable[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """As ``ask``, but what would have to be measured is estimated."""
        return self._known_or(configurations, self.peek_us, ABOUT)

    def modelled(
        self, configurations: Iterable[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Return the costs of configurations by the profile alone, without measurements.

        Where costs are not measured they are all there is.
        """
        return {
            each: CostAnswer(0.0 if self.is_free(each) else self.modelled_us(each), ABOUT)
            for each in configurations
        }

    def peek_us(self, configuration: Configuration) -> float:
        """Return a cost without asking for it: the known one, else an estimate.

        For what no result depends on: nothing is measured, and nothing counted.
        """
        configuration = self._told(configuration)
        if configuration in self._answers:
            return self._answers[configuration].cost_us
        return 0.0 if self.is_free(configuration) else self.estimate_us(configuration)

    def cost_us(
        self, op: str, inputs: tuple[ValueType, ...], output: ValueType, attrs: Attrs
    ) -> float:
        """Return the microseconds of one kernel, as every ``CostModel``; ask in batches instead."""
        configuration = configuration_of(op, inputs, output, attrs)
        return self.ask([configuration])[configuration].cost_us

    def label(self, origin: str) -> str:
        """Return what the e-graph's table ``cost`` says of where an answer is from."""
        return f"{self.name}: {origin}"

    def learn_races(self, races: Sequence[Race]) -> None:  # noqa: B027  # most costs stand as they are
        """Keep what races of whole graphs said, for the costs of later runs, and of this if renewed."""

    def renew(self) -> bool:
        """Answer from now on by all that is known now: by estimates, and by what races said.

        Returns:
            Whether some costs have changed: earlier answers are out of date.
        """
        return False

    def begin_run(self, run: str) -> None:  # noqa: B027  # most costs need no measuring
        """Count what was measured in earlier runs of the same hash as this one's."""

    def is_free(self, configuration: Configuration) -> bool:
        """Whether a configuration takes no time: unless overridden, no kernel runs on any device."""
        operator = get_operator(configuration.op)
        return operator.free or operator.is_left_to_readers(dict(configuration.attrs))

    def _told(self, configuration: Configuration) -> Configuration:
        """Return the answers asked for, without corrections that change nothing."""
        return configuration if self.tells_computed else as_constants(configuration)

    def _known_or(
        self,
        configurations: Iterable[Configuration],
        stand_in_us: Callable[[Configuration], float],
        origin: str,
    ) -> Mapping[Configuration, CostAnswer]:
        """Return what is known without measuring; of the rest what stands in for it, of that origin."""
        asked = list(configurations)
        known = self.known(asked)
        return {
            each: known[each] if each in known else CostAnswer(stand_in_us(each), origin)
            for each in asked
        }

    def _unanswered(self, configurations: Iterable[Configuration]) -> list[Configuration]:
        """Return the configurations not answered yet, each once; free ones are answered from now on."""
        unanswered = []
        for configuration in dict.fromkeys(configurations):
            if configuration in self._answers:
                continue
            if self.is_free(configuration):
                self._answers[configuration] = CostAnswer(0.0, FREE)
            else:
                unanswered.append(configuration)
        return unanswered

    def look_up(
        self, configurations: Sequence[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Answer for those, of distinct, new ones that are not free, that need not be measured: for all."""
        return self.find(configurations)

    def least_us(self, configuration: Configuration) -> float:
        """Return no more than what a configuration costs that is not known; unless overridden, 0."""
        return 0.0

    def modelled_us(self, configuration: Configuration) -> float:
        """Return what a configuration costs by the profile alone; unless overridden, as estimated."""
        return self.estimate_us(configuration)

    @abstractmethod
    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Answer for configurations, distinct, new and not free, each."""

    @abstractmethod
    def estimate_us(self, configuration: Configuration) -> float:
        """Return what a configuration that is not free would cost, without finding out."""


def ask_for_graph(source: CostSource, graph: Graph) -> None:
    """Ask in one batch for all that ``graph_cost_us`` of this graph will need."""
    source.ask(graph_configurations(source.as_run(graph)))


def costs_by_kind_us(graph: Graph, source: CostSource) -> dict[str, float]:
    """Return what the kernels that a graph is run by cost, by operator, where that is anything."""
    configurations = list(graph_configurations(source.as_run(graph)))
    answers = source.ask(configurations)
    sums_us: dict[str, float] = {}
    for each in configurations:
        sums_us[each.op] = sums_us.get(each.op, 0.0) + answers[each].cost_us
    return {op: us for op, us in sums_us.items() if us}


def graph_cost_us(graph: Graph, cost_model: CostModel) -> float:
    """Return the sum of the kernels' microseconds, values that depend on weights only being free.

    Those are computed once, before inference, in every graph alike.
    """
    if isinstance(cost_model, CostSource):
        configurations = list(graph_configurations(cost_model.as_run(graph)))
        answers = cost_model.ask(configurations)
        return sum(answers[configuration].cost_us for configuration in configurations)
    total = 0.0
    for node, inputs, output in inference_nodes(graph):
        total += cost_model.cost_us(node.op, inputs, output, node.attrs)
    return total
