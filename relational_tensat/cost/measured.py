"""Costs that a device gives: from the cache, else measured, once, and kept at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.calibration import Calibration, base_profile, calibrate
from relational_tensat.cost.device import PROTOCOLS, Configuration, Device, Sample, Unmeasurable
from relational_tensat.cost.key import configuration_text
from relational_tensat.cost.record import sample_fault
from relational_tensat.cost.source import CACHED, ESTIMATED, MEASURED, Answer, CostSource
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import weight_bytes

#: Is called with how many of how many configurations have been measured.
Watch: TypeAlias = Callable[[int, int], None]


class MeasuredSource(CostSource):
    """A device and its cache.

    What the device cannot run is estimated by the analytic profile, calibrated on what it can.

    Args:
        name: how reports call it.
        watch: is called before the first measurement and after each.
    """

    def __init__(
        self, name: str, device: Device, cache: CostCache, watch: Watch | None = None
    ) -> None:
        super().__init__(name)
        self._device = device
        self._opened = device
        self._cache = cache
        self._watch = watch or _ignore
        self._samples: dict[Configuration, Sample] = {}
        self._unmeasurable: dict[Configuration, str] = {}
        self.tells_computed = PROTOCOLS[device.key.kind].prepares
        self._outdated = 0
        self._calibration: Calibration | None = None

    @property
    def device(self) -> Device:
        """What is measured on."""
        return self._device

    @property
    def notes(self) -> tuple[str, ...]:
        """What was estimated and why; how many times of before were not used."""
        sentences = []
        if self._device.key != self._opened.key:
            sentences.append(f"the model is small enough for costs of {self._device.key.name}")
        if self._unmeasurable:
            count = len(self._unmeasurable)
            reason = next(iter(self._unmeasurable.values()))
            sentences.append(
                f"{count} {_configurations(count)} cannot be measured (the first: {reason}); "
                f"estimated by {self._calibrated().describe()}"
            )
        if self._outdated:
            sentences.append(
                f"{self._outdated} {_configurations(self._outdated)} had times of another driver, "
                "library or protocol, which were not used: see relational-tensat costs show"
            )
        return tuple(sentences)

    def suit(self, graph: Graph) -> None:
        """Take the device as this graph finds it; what was asked of it in another state is forgotten."""
        suited = self._opened.suited(weight_bytes(graph))
        if suited.key != self._device.key:
            self._device, self._calibration = suited, None
            for mapping in (self._answers, self._samples, self._unmeasurable):
                mapping.clear()

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, Answer]:
        """Look a batch up in one query; measure what is missing, and keep each result at once."""
        results = dict(self._cache.find(self._device.key, configurations))
        origins = dict.fromkeys(results, CACHED)
        uncached = [
            configuration for configuration in configurations if configuration not in results
        ]
        if uncached:
            self._outdated += self._cache.count_outdated(self._device.key, uncached)
            results |= self._measure(uncached)
        for configuration, result in results.items():
            if isinstance(result, Sample):
                self._samples[configuration] = result
            else:
                self._unmeasurable[configuration] = result.reason
        self._calibration = None
        return {
            configuration: self._answer(
                configuration, results[configuration], origins.get(configuration, MEASURED)
            )
            for configuration in configurations
        }

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the protocol of this kind of device says so."""
        return PROTOCOLS[self._device.key.kind].is_free(configuration.op)

    def estimate_us(self, configuration: Configuration) -> float:
        """Return what the profile says, calibrated on all that was asked for so far."""
        return self._calibrated().cost_us(configuration)

    def _answer(
        self, configuration: Configuration, result: Sample | Unmeasurable, origin: str
    ) -> Answer:
        if isinstance(result, Unmeasurable):
            return Answer(self.estimate_us(configuration), ESTIMATED)
        return Answer(float(getattr(result, self._device.statistic)), origin)

    def _measure(
        self, configurations: Sequence[Configuration]
    ) -> dict[Configuration, Sample | Unmeasurable]:
        """Measure configurations; each result is kept before the next is asked for.

        Raises:
            InputError: a time is no time.
            KeyboardInterrupt: with a text that says what has been kept.
        """
        results: dict[Configuration, Sample | Unmeasurable] = {}
        start_s = time.perf_counter()
        self._watch(0, len(configurations))
        try:
            for configuration, result in self._device.measure(configurations):
                self._check(configuration, result)
                self._cache.keep(self._device.key, configuration, result)
                results[configuration] = result
                self._watch(len(results), len(configurations))
        except KeyboardInterrupt:
            cached_count = len(self._cache.find(self._device.key, configurations))
            raise KeyboardInterrupt(
                f"interrupted while measuring: {cached_count} of {len(configurations)} configurations "
                f"are measured and kept in {self._cache.path}; another run resumes there"
            ) from None
        self.measuring_s += time.perf_counter() - start_s
        return results

    def _check(self, configuration: Configuration, result: Sample | Unmeasurable) -> None:
        fault = sample_fault(result) if isinstance(result, Sample) else ""
        if fault:
            text = configuration_text(configuration)
            raise InputError(f"{self._device.key.name}: measured {fault}, for {text}")

    def _calibrated(self) -> Calibration:
        if self._calibration is None:
            times = {
                configuration: float(getattr(sample, self._device.statistic))
                for configuration, sample in self._samples.items()
            }
            self._calibration = calibrate(base_profile(self._device.key), times)
        return self._calibration


def _ignore(done: int, total: int) -> None:
    """Report to nobody."""


def _configurations(count: int) -> str:
    return "configuration" if count == 1 else "configurations"
