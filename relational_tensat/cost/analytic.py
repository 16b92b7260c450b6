"""Costs that a formula or one's own ``CostModel`` gives: estimates, all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.cost.cost_model import CostModel
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import ESTIMATED, FREE, Answer, CostSource
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import weight_bytes


class AnalyticSource(CostSource):
    """A profile, or any other ``CostModel``, as a source.

    Args:
        model: is asked for everything, operators that run no kernel included.
    """

    is_instant = True

    def __init__(self, model: CostModel) -> None:
        super().__init__(model.name)
        self._model = self._given = model

    @property
    def model(self) -> CostModel:
        """What is asked."""
        return self._model

    def suit(self, graph: Graph) -> None:
        """Take the profile as a graph of so many weights finds it."""
        if isinstance(self._given, Profile):
            suited = self._given.suited(weight_bytes(graph))
            if suited != self._model:
                self._model = suited
                self._answers.clear()

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, Answer]:
        """Ask the model for each."""
        return {configuration: self._answer(configuration) for configuration in configurations}

    def label(self, origin: str) -> str:
        """Return the model's name: all is from there."""
        return self.name

    def _answer(self, configuration: Configuration) -> Answer:
        cost_us = self.estimate_us(configuration)
        is_free = cost_us == 0 and super().is_free(configuration)
        return Answer(cost_us, FREE if is_free else ESTIMATED)

    def is_free(self, configuration: Configuration) -> bool:
        """Return False: the model itself knows what is free."""
        return False

    def estimate_us(self, configuration: Configuration) -> float:
        """Return the cost that the model computes."""
        return self._model.cost_us(
            configuration.op, configuration.inputs, configuration.output, dict(configuration.attrs)
        )


def as_source(cost: CostModel) -> CostSource:
    """Return a cost model as a source; a source is returned as it is."""
    return cost if isinstance(cost, CostSource) else AnalyticSource(cost)
