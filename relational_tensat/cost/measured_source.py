"""Costs that a device gives: from the cache, else measured, once, and kept at once."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.base.runner import is_lent, undisturbed
from relational_tensat.cost.analytic import with_cache_state
from relational_tensat.cost.bound import MARGIN, LeastCosts
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.calibration import (
    Calibration,
    base_profile,
    calibrate,
    nearest_profile,
    profile_us,
)
from relational_tensat.cost.device import (
    PROTOCOLS,
    Configuration,
    Device,
    DeviceKey,
    TimingSample,
    Unmeasurable,
)
from relational_tensat.cost.earlier_runs import MEASURING, RunsBefore
from relational_tensat.cost.key import check_is_same, configuration_text, sample_fault
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.race import SPREAD, Corrections, RaceOutcome, corrections_of
from relational_tensat.cost.source import (
    CACHED,
    ESTIMATED,
    MEASURED,
    CostAnswer,
    CostCounts,
    CostSource,
    Prices,
    Race,
)
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import weight_bytes

#: Wall seconds of measuring for a run, and all that repeat it.
LIMIT_S = 40.0
#: So many kernels go to a quiet core at a time: if it is lost, no more are.
BATCH = 16
#: Is called with how many of how many configurations have been measured.
Watch: TypeAlias = Callable[[int, int], None]


class MeasuredSource(CostSource):
    """A device and its cache.

    Configurations that the device cannot run are estimated by the analytic profile, calibrated on the
    others.

    Args:
        name: how reports call it.
        watch: is called before the first measurement and after each.
        limit_s: wall seconds of measuring; later configurations are estimated. None: as long as earlier
            runs have left of ``LIMIT_S``.
        learns: costs are corrected by what races of whole graphs said before (``cost.corrections``), and
            what they say is kept.
    """

    is_lazy = True

    def __init__(
        self,
        name: str,
        device: Device,
        cache: CostCache,
        watch: Watch | None = None,
        limit_s: float | None = math.inf,
        *,
        learns: bool = False,
    ) -> None:
        super().__init__(name)
        self._learns = learns
        self._corrections: Corrections | None = None
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._counts_runs = limit_s is None
        self._run = ""
        self._device = device
        self._opened = device
        self._cache = cache
        self._watch = watch or _ignore
        self._samples: dict[Configuration, TimingSample] = {}
        self._unmeasurable: dict[Configuration, str] = {}
        self.tells_computed = PROTOCOLS[device.key.kind].prepares
        self._outdated = 0
        self._calibration: Calibration | None = None
        self._prices: Prices = profile_us
        self._least = LeastCosts(base_profile(device.key))
        #: The profile's prices: of the graph, and of the profile as it finds its weights.
        self._graph: Graph | None = None
        self._found: Profile | None = None
        #: Configurations that the cache lacked when it was looked up.
        self._absent: set[Configuration] = set()
        #: Configurations that bounds settled a choice of, and those left unmeasured for lack of time.
        self._bounded: set[Configuration] = set()
        self._late: set[Configuration] = set()

    @property
    def device(self) -> Device:
        """The device."""
        return self._device

    @property
    def counts(self) -> CostCounts:
        """How many configurations were asked for so far, by origin, and how many need not be."""
        late = len(self._late.difference(self._answers))
        asked = super().counts
        spared = len(self._bounded.difference(self._answers, self._late))
        return replace(asked, estimated=asked.estimated + late, spared=spared)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on estimates and their reasons, on configurations left unmeasured, and on earlier times
        that were not used."""
        sentences = []
        if self._device.key != self._opened.key:
            sentences.append(
                f"the size of the model's weights asks for costs of {self._device.key.name}"
            )
        if self._unmeasurable:
            count = len(self._unmeasurable)
            reason = next(iter(self._unmeasurable.values()))
            sentences.append(
                f"{count} {_configurations(count)} cannot be measured (the first: {reason}); "
                f"estimated by {self._calibrated().describe()}"
            )
        if corrected := self.corrections.describe({each.op for each in self._samples}):
            sentences.append(
                f"measured costs are corrected by what races say ({self.corrections.races} in "
                f"{self._cache.path}): times {corrected}; --set learn-costs=no takes them as they are"
            )
        if self._late:
            count = len(self._late)
            before = ", in this run and those before it" if self._counts_runs else ""
            sentences.append(
                f"measuring was ended after {LIMIT_S if self._counts_runs else self._limit_s:g} s{before}: "
                f"{count} {_configurations(count)} {'is' if count == 1 else 'are'} estimated by "
                f"{self._calibrated().describe()}; --set measure-time-limit=S measures for S seconds more"
            )
        if count := self.counts.spared:
            sentences.append(
                f"{count} {_configurations(count)} need not be measured: none is in a cheaper graph, as "
                f"long as no kernel is, for its work, more than {MARGIN:g} times as quick as the quickest "
                "measured ones of about its size"
            )
        if self._outdated:
            sentences.append(
                f"{self._outdated} {_configurations(self._outdated)} had times of another driver, "
                "library or protocol, which were not used: see relational-tensat costs show"
            )
        return tuple(sentences)

    @property
    def corrections(self) -> Corrections:
        """Factors of costs, as the races say until the last call of ``renew``."""
        if self._corrections is None:
            outcomes = self._cache.races(self._device.key) if self._learns else []
            self._corrections = corrections_of(outcomes)
        return self._corrections

    def learn_races(self, races: Sequence[Race]) -> None:
        """Keep what races said, if that is wanted."""
        found = [self._outcome(race) for race in races] if self._learns else []
        outcomes = [each for each in found if each is not None]
        if outcomes:
            self._cache.keep_races(self._device.key, outcomes)

    def renew(self) -> bool:
        """Take into account what races said since, and estimate by all that is measured by now."""
        self._corrections = None
        again = {
            configuration: self._cost_us(configuration)
            for configuration, answer in self._answers.items()
            if configuration in self._samples or answer.origin == ESTIMATED
        }
        are_others = any(
            not math.isclose(us, self._answers[each].cost_us) for each, us in again.items()
        )
        if are_others:
            for each, us in again.items():
                self._answers[each] = replace(self._answers[each], cost_us=us)
        return are_others

    def begin_run(self, run: str) -> None:
        """Count what measuring earlier runs of this hash have done."""
        if self._counts_runs:
            self._run = run
            spent_s = RunsBefore(self._cache, self._device.key).seconds(run, MEASURING)
            self._limit_s = max(LIMIT_S - spent_s, 0.0)

    def _outcome(self, race: Race) -> RaceOutcome | None:
        """Return what a race says of sums of uncorrected times; None where these are alike.

        Where kernels that only one of the graphs has are estimated, it says as much less.
        """
        before_us, after_us = self._by_kind(race.before), self._by_kind(race.after)
        total_us = sum(before_us.values())
        if before_us == after_us or not total_us:
            return None
        before, after = (Counter(map(self._told, each)) for each in (race.before, race.after))
        unsure_us = sum(
            self._uncorrected_us(each) * count
            for each, count in ((before - after) + (after - before)).items()
            if each not in self._samples
        )
        error = math.hypot(race.error, SPREAD * unsure_us / total_us)
        return RaceOutcome(race.model, before_us, after_us, race.speedup, error)

    def _by_kind(self, configurations: Sequence[Configuration]) -> dict[str, float]:
        """Return the sum of uncorrected times by kind of kernel."""
        sums_us: dict[str, float] = {}
        for each in map(self._told, configurations):
            if not self.is_free(each):
                sums_us[each.op] = sums_us.get(each.op, 0.0) + self._uncorrected_us(each)
        return {kind: round(us, 3) for kind, us in sums_us.items()}

    def _uncorrected_us(self, configuration: Configuration) -> float:
        if self.is_free(configuration):
            return 0.0
        if configuration in self._samples:
            return self._time_us(self._samples[configuration])
        return self._calibrated().cost_us(configuration)

    def _cost_us(self, configuration: Configuration) -> float:
        """Return what a configuration costs by what is known of it, corrected."""
        return self._uncorrected_us(configuration) * self.corrections.of(configuration.op)

    def adapt_to(self, graph: Graph) -> bool:
        """Take the device as this graph finds it; answers about it in another state are forgotten."""
        self._graph, self._found = graph, None
        suited = self._opened.adapted(weight_bytes(graph))
        is_other = suited.key != self._device.key
        if is_other:
            self._device, self._calibration, self._corrections = suited, None, None
            self._least = LeastCosts(base_profile(suited.key))
            for known in (
                self._answers, self._samples, self._unmeasurable,
                self._absent, self._bounded, self._late,
            ):  # fmt: skip
                known.clear()
        return is_other

    def price_by(self, prices: Prices) -> None:
        """Estimate by somebody's prices instead of the profile's own."""
        self._prices, self._calibration, self._found = prices, None, None

    def modelled_us(self, configuration: Configuration) -> float:
        """Return what the profile says whose figures are nearest to the device's."""
        if self._found is None:
            base, graph = nearest_profile(self._device.key), self._graph
            self._found = base if graph is None else with_cache_state(base, graph, self._prices)
        return self._prices(self._found, configuration)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Look a batch up in one query; measure what is missing, and keep each result at once."""
        answers = dict(self.look_up(configurations))
        uncached = [
            configuration for configuration in configurations if configuration not in answers
        ]
        if uncached:
            self._outdated += self._cache.count_outdated(self._device.key, uncached)
            answers |= self._learned(self._measure(uncached), MEASURED)
        late = [configuration for configuration in configurations if configuration not in answers]
        self._late.update(late)
        return answers | {each: CostAnswer(self.estimate_us(each), ESTIMATED) for each in late}

    def look_up(
        self, configurations: Sequence[Configuration]
    ) -> Mapping[Configuration, CostAnswer]:
        """Look a batch up in the cache, in one query, but for what it lacked before."""
        new = [each for each in configurations if each not in self._absent]
        if not new:
            return {}
        cached = self._cache.find(self._device.key, new)
        self._absent.update(each for each in new if each not in cached)
        return self._learned(cached, CACHED)

    def compiled_us(self, code: str, compiler: str, measure: Callable[[], TimingSample]) -> float:
        """Return what code that a run made takes: as the cache says, else measured, and kept at once.

        Args:
            code: a hash of it.
            compiler: its version and flags.
            measure: compiles and runs it; it raises where that cannot be done, and nothing is kept.
        """
        key = self._device.key
        sample = self._cache.find_compiled(key, [code], compiler).get(code)
        if sample is None:
            sample = measure()
            self._cache.keep_compiled(key, compiler, {code: sample})
        return self._time_us(sample)

    def least_us(self, configuration: Configuration) -> float:
        """Return what it takes at least (``cost.bound``)."""
        self._bounded.add(configuration)
        return self._least.least_us(configuration) * self.corrections.of(configuration.op)

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the protocol of this kind of device says so."""
        return PROTOCOLS[self._device.key.kind].is_free(configuration)

    def estimate_us(self, configuration: Configuration) -> float:
        """Return what the profile says, calibrated on all that was asked for so far."""
        corrected = self.corrections.of(configuration.op)
        return self._calibrated().cost_us(configuration) * corrected

    def _learned(
        self, results: Mapping[Configuration, TimingSample | Unmeasurable], origin: str
    ) -> dict[Configuration, CostAnswer]:
        """Take results into account, and return what they answer."""
        for configuration, result in results.items():
            if isinstance(result, TimingSample):
                self._samples[configuration] = result
                self._least.learn(configuration, self._time_us(result))
            else:
                self._unmeasurable[configuration] = result.reason
        if results:
            self._calibration = None
        return {each: self._answer(each, result, origin) for each, result in results.items()}

    def _time_us(self, sample: TimingSample) -> float:
        return float(getattr(sample, self._device.statistic))

    def _answer(
        self, configuration: Configuration, result: TimingSample | Unmeasurable, origin: str
    ) -> CostAnswer:
        is_measured = isinstance(result, TimingSample)
        return CostAnswer(self._cost_us(configuration), origin if is_measured else ESTIMATED)

    def _measure(
        self, configurations: Sequence[Configuration]
    ) -> dict[Configuration, TimingSample | Unmeasurable]:
        """Measure configurations while there is time; each result is kept before the next is asked for.

        Raises:
            InputError: a time is no time.
            KeyboardInterrupt: with a text that says what has been kept.
        """
        results: dict[Configuration, TimingSample | Unmeasurable] = {}
        start_s = time.perf_counter()
        left_s = self._limit_s - self.measuring_s
        if left_s <= 0:
            return {}
        self._watch(0, len(configurations))
        try:
            for configuration, result, waited_s in self._results(configurations):
                start_s += waited_s
                fault = sample_fault(result) if isinstance(result, TimingSample) else ""
                if fault:
                    text = configuration_text(configuration)
                    raise InputError(f"{self._device.key.name}: measured {fault}, for {text}")
                self._cache.keep(self._device.key, configuration, result)
                results[configuration] = result
                self._watch(len(results), len(configurations))
                if time.perf_counter() - start_s >= left_s:
                    break
        except KeyboardInterrupt:
            cached_count = len(self._cache.find(self._device.key, configurations))
            raise KeyboardInterrupt(
                f"interrupted while measuring: {cached_count} of {len(configurations)} configurations "
                f"are measured and kept in {self._cache.path}; another run resumes there"
            ) from None
        spent_s = time.perf_counter() - start_s
        self.measuring_s += spent_s
        if self._run:
            RunsBefore(self._cache, self._device.key).add_seconds(self._run, MEASURING, spent_s)
        return results

    def _results(
        self, configurations: Sequence[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable, float]]:
        """Yield what is measured, and the seconds that were waited for it."""
        if not is_lent():
            yield from ((*each, 0.0) for each in self._device.measure(configurations))
            return
        for begin in range(0, len(configurations), BATCH):
            part = configurations[begin : begin + BATCH]
            results, waited_s = undisturbed(_measured, (self._device, self._device.key, part))
            for number, result in enumerate(results):
                yield *result, 0.0 if number else waited_s

    def _calibrated(self) -> Calibration:
        if self._calibration is None:
            times = {
                configuration: self._time_us(sample)
                for configuration, sample in self._samples.items()
            }
            self._calibration = calibrate(base_profile(self._device.key), times, self._prices)
        return self._calibration


def _measured(
    task: tuple[Device, DeviceKey, Sequence[Configuration]],
) -> list[tuple[Configuration, TimingSample | Unmeasurable]]:
    """Measure on what the device is here.

    Raises:
        OtherMachineError: it is another one.
    """
    device, key, configurations = task
    check_is_same(device, key)
    return list(device.measure(configurations))


def _ignore(done: int, total: int) -> None:
    """Report to nobody."""


def _configurations(count: int) -> str:
    return "configuration" if count == 1 else "configurations"
