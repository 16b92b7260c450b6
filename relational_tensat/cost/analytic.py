"""Costs that a formula or one's own ``CostModel`` gives: estimates, all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.cost.calibration import profile_us
from relational_tensat.cost.cost_model import CostModel
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.residence import as_found
from relational_tensat.cost.several_threads import in_threads
from relational_tensat.cost.source import ESTIMATED, FREE, CostAnswer, CostSource, Prices
from relational_tensat.tensor import Graph


class AnalyticSource(CostSource):
    """A profile, or any other ``CostModel``, as a source.

    Args:
        model: is asked for everything, operators that run no kernel included.
    """

    is_instant = True

    def __init__(self, model: CostModel) -> None:
        super().__init__(model.name)
        self._model = self._given = model
        self._prices: Prices = in_threads(profile_us)

    @property
    def model(self) -> CostModel:
        """What is asked."""
        return self._model

    @property
    def is_priced(self) -> bool:
        """Whether a profile is asked."""
        return isinstance(self._given, Profile)

    @property
    def asks_for_runs(self) -> bool:
        """Whether the profile says for how long a cache has a model's weights."""
        return isinstance(self._given, Profile) and self._given.weight_cache_us > 0

    def price_by(self, prices: Prices) -> None:
        """Have what a profile says computed by somebody's prices."""
        self._prices, self.tells_computed = in_threads(prices), True
        self._answers.clear()

    def suit(self, graph: Graph) -> bool:
        """Take the profile as a graph finds its weights."""
        if not isinstance(self._given, Profile):
            return False
        suited = as_found(self._given, graph, self._prices)
        if suited == self._model:
            return False
        self._model = suited
        self._answers.clear()
        return True

    def run_us(self, values: int, size_nodes: int = 0) -> float:
        """Return what the profile says."""
        return self._model.run_us(values, size_nodes) if isinstance(self._model, Profile) else 0.0

    @property
    def n_threads(self) -> int:
        """How many threads the profile is of."""
        return self._given.n_threads if isinstance(self._given, Profile) else 1

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Ask the model for each."""
        return {configuration: self._answer(configuration) for configuration in configurations}

    def label(self, origin: str) -> str:
        """Return the model's name: all is from there."""
        return self.name

    def _answer(self, configuration: Configuration) -> CostAnswer:
        cost_us = self.estimate_us(configuration)
        is_free = cost_us == 0 and super().is_free(configuration)
        return CostAnswer(cost_us, FREE if is_free else ESTIMATED)

    def is_free(self, configuration: Configuration) -> bool:
        """Return False: the model itself knows what is free."""
        return False

    def estimate_us(self, configuration: Configuration) -> float:
        """Return the cost that the model computes."""
        if isinstance(self._model, Profile):
            return self._prices(self._model, configuration)
        return self._model.cost_us(
            configuration.op, configuration.inputs, configuration.output, dict(configuration.attrs)
        )


def as_source(cost: CostModel) -> CostSource:
    """Return a cost model as a source; a source is returned as it is."""
    return cost if isinstance(cost, CostSource) else AnalyticSource(cost)
