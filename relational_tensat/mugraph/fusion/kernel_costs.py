"""Costs of a run whose model has kernels of its own: of these as they are modelled, else as before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.cost import Configuration, CostCounts, CostSource, Device
from relational_tensat.cost.source import ESTIMATED, Answer
from relational_tensat.tensor import Graph


class KernelCosts(CostSource):
    """Costs of operators from any source, and of kernels by a table.

    Args:
        operators: what all else costs.
        kernels_us: modelled microseconds by the kernel's key.
    """

    def __init__(self, operators: CostSource, kernels_us: Mapping[str, float]) -> None:
        super().__init__(operators.name)
        self.is_instant = operators.is_instant  # type: ignore[misc]  # as is what it asks
        self._operators = operators
        self._kernels_us = kernels_us

    @property
    def counts(self) -> CostCounts:
        """Those of operators."""
        return self._operators.counts

    @property
    def device(self) -> Device | None:
        """What operators are measured on."""
        return self._operators.device

    @property
    def notes(self) -> tuple[str, ...]:
        """Those about operators."""
        return self._operators.notes

    def suit(self, graph: Graph) -> None:
        """Take the device as this graph finds it."""
        self._operators.suit(graph)
        self._answers.clear()

    def as_run(self, graph: Graph) -> Graph:
        """Return what the operators' source says that a graph is run by."""
        return self._operators.as_run(graph)

    def label(self, origin: str) -> str:
        """Return what the operators' source says."""
        return self._operators.label(origin)

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the operators' source says so."""
        return self._kernel_us(configuration) is None and self._operators.is_free(configuration)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, Answer]:
        """Ask for operators in one batch."""
        kernels = {
            each: Answer(us, ESTIMATED)
            for each in configurations
            if (us := self._kernel_us(each)) is not None
        }
        others = [each for each in configurations if each not in kernels]
        answers = {**kernels, **(self._operators.ask(others) if others else {})}
        self.measuring_s = self._operators.measuring_s
        return {each: answers[each] for each in configurations}

    def estimate_us(self, configuration: Configuration) -> float:
        """Return what a kernel is modelled to take, or what the operators' source estimates."""
        us = self._kernel_us(configuration)
        return self._operators.peek_us(configuration) if us is None else us

    def _kernel_us(self, configuration: Configuration) -> float | None:
        if configuration.op != "fused":
            return None
        return self._kernels_us.get(str(dict(configuration.attrs)["mugraph"]))
