"""Costs from a recorded table: a device's times, wherever the program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from relational_tensat.cost.calibration import Calibration, base_profile, calibrate, profile_us
from relational_tensat.cost.device import PROTOCOLS, Configuration
from relational_tensat.cost.key import as_constants
from relational_tensat.cost.source import ESTIMATED, RECORDED, CostAnswer, CostSource, Prices
from relational_tensat.cost.table import RecordedTable


class RecordedSource(CostSource):
    """A recorded table; what it lacks is estimated by the analytic profile, calibrated on the table."""

    def __init__(self, name: str, table: RecordedTable) -> None:
        super().__init__(name)
        self._table = table
        self.tells_computed = PROTOCOLS[table.key.kind].prepares
        self._times_us = table.times_us()
        self._prices: Prices = profile_us

    @property
    def notes(self) -> tuple[str, ...]:
        """How many configurations the table lacks, and what estimates them."""
        count = self.counts.estimated
        if not count:
            return ()
        total = count + self.counts.recorded
        return (
            f"{count} of {total} configurations are not in {self.name}: estimated by "
            f"{self.calibration.describe()}",
        )

    @cached_property
    def calibration(self) -> Calibration:
        """The profile that estimates what the table lacks."""
        return calibrate(base_profile(self._table.key), self._times_us, self._prices)

    def price_by(self, prices: Prices) -> None:
        """Estimate by somebody's prices instead of the profile's own."""
        self._prices = prices
        self.__dict__.pop("calibration", None)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Join a batch with the table."""
        return {configuration: self._answer(configuration) for configuration in configurations}

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the protocol of the table's kind of device says so."""
        return PROTOCOLS[self._table.key.kind].is_free(configuration)

    def estimate_us(self, configuration: Configuration) -> float:
        """Return the table's time where it has one, else the calibrated profile's."""
        return self._answer(configuration).cost_us

    def _answer(self, configuration: Configuration) -> CostAnswer:
        time_us = self._times_us.get(configuration, self._times_us.get(as_constants(configuration)))
        if time_us is not None:
            return CostAnswer(time_us, RECORDED)
        return CostAnswer(self.calibration.cost_us(configuration), ESTIMATED)
