"""A kernel of a model's own: its μGraph, its cost, its row in a run's database.

A run is resumed from the rows of ``fused_kernel``. Costs of a model with kernels of its own are those of
the kernels, modelled or measured, and of all else as before. A ``RegionReport`` says how a search for one
went.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.cost import Configuration, CostCounts, CostSource, Device
from relational_tensat.cost.key import configuration_of
from relational_tensat.cost.source import ESTIMATED, MEASURED, CostAnswer, Race
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.rules.backends.backend import FUSED_FILE, know_kernels
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from relational_tensat.tensor.operators import get_operator

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A kernel that was made or found for a part of a model, and passed verification.

    Attributes:
        key: k and the hash of its μGraph's content; a word of the rule language, which digits are not.
        graph: the μGraph.
        rules: let it stand for operators, each for other ones of the same program.
        dtype: of its elements.
        operands, results: shapes as the model has them: the μGraph has no dims of size 1, and several of
            its dims may be one here.
        cost_us: modelled, or measured as C where costs are; None where it costs what its operators do in
            one kernel, by the roofline.
        masks: by rule, the variables whose elements may be -inf, or the lowest number: it was tested so.
        loops: sizes of loops around the kernel, each 0 where it may be any; shapes have them below 0: -1 is
            the first.
        block: how many elements it computes of all loops together; 0 where it is one of each loop.
        quantized: element types of the μGraph's operands and results that are integers in memory; a scale
            and a zero point of each are operands behind the others.
    """

    key: str
    graph: MuGraph
    rules: tuple[Rule, ...]
    dtype: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    cost_us: float | None
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    loops: tuple[int, ...] = ()
    block: int = 0
    quantized: Mapping[str, str] = field(default_factory=dict)


#: The columns, in order.
COLUMNS = ("mugraph", "cost_us", "dtype", "operands", "results", "rules", "graph")


def rows_of(kernels: Iterable[OwnKernel]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of kernels."""
    for kernel in kernels:
        graph = json.dumps(encoded(kernel.graph), ensure_ascii=False)
        operands = [list(shape) for shape in kernel.operands]
        results = [list(shape) for shape in kernel.results]
        rules = [rule.name for rule in kernel.rules]
        yield kernel.key, kernel.cost_us, kernel.dtype, operands, results, rules, graph


def kernels_of(rows: Iterable[tuple[Any, ...]], texts: Mapping[str, str]) -> list[OwnKernel]:
    """Return the kernels that rows are.

    Args:
        rows: of the table.
        texts: the run's rules by name.

    Raises:
        InputError: one is malformed, or its rule is missing.
    """
    know_kernels()
    return [_kernel(row, texts) for row in rows]


def _kernel(row: tuple[Any, ...], texts: Mapping[str, str]) -> OwnKernel:
    key, cost_us, dtype, operands, results, names, graph = row
    missing = [name for name in names if name not in texts]
    if missing:
        raise InputError(f"the rule {missing[0]} of the kernel {key} is missing")
    rules = [rule for name in names for rule in parse_rules(texts[name], FUSED_FILE, sys.maxsize)]
    return OwnKernel(
        key,
        decoded(json.loads(graph), f"the kernel {key}"),
        tuple(rules),
        dtype,
        tuple(map(tuple, operands)),
        tuple(map(tuple, results)),
        cost_us,
    )


class KernelCosts(CostSource):
    """Costs of operators from any source, and of kernels as they were modelled, or measured as C.

    Attributes:
        operators: the costs of all else.
    """

    def __init__(self, operators: CostSource) -> None:
        super().__init__(operators.name)
        self.is_instant = operators.is_instant  # type: ignore[misc]  # as is what it asks
        self.is_lazy = operators.is_lazy  # type: ignore[misc]
        self.tells_computed = operators.tells_computed
        self.operators = operators
        self._kernels_us: dict[str, float] = {}

    def learn(self, kernels: Iterable[OwnKernel]) -> None:
        """Know what kernels cost from now on."""
        self._kernels_us |= {k.key: k.cost_us for k in kernels if k.cost_us is not None}

    @property
    def counts(self) -> CostCounts:
        """Those of operators."""
        return self.operators.counts

    @property
    def device(self) -> Device | None:
        """The device of operators' times."""
        return self.operators.device

    @property
    def notes(self) -> tuple[str, ...]:
        """Those about operators."""
        return self.operators.notes

    def adapt_to(self, graph: Graph) -> bool:
        """Take the device as this graph finds it."""
        is_other = self.operators.adapt_to(graph)
        self._answers.clear()
        return is_other

    @property
    def turn_us(self) -> float:
        """As the operators' source says."""
        return self.operators.turn_us

    def run_us(self, values: int, size_nodes: int = 0) -> float:
        """Return what the operators' source says that a run takes beside its kernels."""
        return self.operators.run_us(values, size_nodes)

    @property
    def n_threads(self) -> int:
        """As many as operators' costs are for."""
        return self.operators.n_threads

    def as_run(self, graph: Graph) -> Graph:
        """Return what the operators' source says that a graph is run by."""
        return self.operators.as_run(graph)

    def label(self, origin: str) -> str:
        """Return what the operators' source says."""
        return self.operators.label(origin)

    def learn_races(self, races: Sequence[Race]) -> None:
        """Keep what races say about operators."""
        self.operators.learn_races(races)

    def renew(self) -> bool:
        """Renew what operators cost."""
        are_others = self.operators.renew()
        if are_others:
            self._answers.clear()
        return are_others

    def begin_run(self, run: str) -> None:
        """Count what was measured of operators."""
        self.operators.begin_run(run)

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the operators' source says so."""
        return self._kernel_us(configuration) is None and self.operators.is_free(configuration)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Ask for operators in one batch."""
        kernels = self._own(configurations)
        others = [each for each in configurations if each not in kernels]
        answers = {**kernels, **(self.operators.ask(others) if others else {})}
        self.measuring_s = self.operators.measuring_s
        return {each: answers[each] for each in configurations}

    def look_up(
        self, configurations: Sequence[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Answer for own kernels, and the operators that are known."""
        kernels = self._own(configurations)
        return {**kernels, **self.operators.known(c for c in configurations if c not in kernels)}

    def least_us(self, configuration: Configuration) -> float:
        """Return what the operators' source says; own kernels are known."""
        return self.operators.at_least([configuration])[configuration].cost_us

    def estimate_us(self, configuration: Configuration) -> float:
        """Return what a kernel is modelled to take, or what the operators' source estimates."""
        us = self._kernel_us(configuration)
        return self.operators.peek_us(configuration) if us is None else us

    @property
    def is_measured(self) -> bool:
        """Whether kernels are measured as C, as operators are in onnxruntime."""
        return self.device is not None

    @property
    def _origin(self) -> str:
        return MEASURED if self.is_measured else ESTIMATED

    def _own(self, configurations: Sequence[Configuration]) -> dict[Configuration, CostAnswer]:
        """Return what those of own kernels take, modelled or measured."""
        return {
            each: CostAnswer(us, self._origin)
            for each in configurations
            if (us := self._kernel_us(each)) is not None
        }

    def _kernel_us(self, configuration: Configuration) -> float | None:
        if configuration.op != "fused":
            return None
        return self._kernels_us.get(str(dict(configuration.attrs)["mugraph"]))


class PlainCosts(CostSource):
    """Costs where kernels are run by the plain operators that an ONNX file has of them."""

    def __init__(self, costs: KernelCosts) -> None:
        """Take what operators cost."""
        super().__init__(costs.name)
        self.tells_computed = costs.tells_computed
        self._operators = costs.operators

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the operators' source says so."""
        return configuration.op != "fused" and self._operators.is_free(configuration)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Ask for all operators in one batch."""
        parts = {each: _parts(each) for each in configurations}
        answers = self._operators.ask([part for own in parts.values() for part in own])
        return {
            each: CostAnswer(sum(answers[part].cost_us for part in own), ESTIMATED)
            for each, own in parts.items()
        }

    def estimate_us(self, configuration: Configuration) -> float:
        """Return what the operators' source estimates."""
        return sum(self._operators.peek_us(part) for part in _parts(configuration))


def _parts(configuration: Configuration) -> list[Configuration]:
    operator = get_operator(configuration.op)
    if not isinstance(operator, FusedKernel):
        return [configuration]
    inputs = configuration.inputs
    parts, kinds = operator.typed_parts(inputs, dict(configuration.attrs))
    first = len(kinds) - len(parts)
    return [
        configuration_of(
            part.op, tuple(kinds[number] for number in part.operands), kinds[place], part.attrs
        )
        for place, part in enumerate(parts, first)
    ]


@dataclass(frozen=True, slots=True)
class RegionReport:
    """The outcome of a part of a model.

    Attributes:
        place, total: it is this one of so many.
        outputs: the values that it computes.
        operators: of its program.
        operators_us: the cost of the model's operators.
        kernel_us: the kernel's modelled time, or None.
        reason: why there is no kernel.
    """

    place: int
    total: int
    outputs: tuple[str, ...]
    operators: tuple[str, ...]
    operators_us: float
    kernel_us: float | None
    reason: str = ""
