"""Prices of kernels that nobody has measured: a profile's, times what others take beside theirs.

For each measured time the logarithm of time / price is known. An estimate's is their weighted mean, in
three steps, from the least specific to the most: the median over all times; the kernels of its family, with
the first as one more, of weight ``PARENT``; those of its operator, with the second likewise. A kernel's
weight is 1 / (1 + (d / ``NEAR``)²), d being its distance in the logarithms of the roofline's arithmetic and
memory time (Shepard 1968, "A two-dimensional interpolation function for irregularly-spaced data"). So
kernels of its own size decide if there are any, and else far ones. No ratio counts as further than ``MOST``
from its step's parent: a few wild times do not decide.

A mix of measured and estimated costs misleads where one kind is cheaper as a rule. With 40 of a model's 124
measured kernels the others' sum is estimated 1 % too high (regnet). With a factor for each family, and
launch, arithmetic and memory fitted over all, it was 45 % too low; 12 and 20 % too low for mobilenet_v3.

A backend knows more about the price of a kernel than its profile does (``Prices``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.cost.device import Configuration, DeviceKey
from relational_tensat.cost.key import graph_configurations
from relational_tensat.cost.profile import Profile, cpu_profile, kernel_time_us, roofline_us
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.cost.source import Prices
from relational_tensat.tensor import Weight, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.opaque import array_of_constant, constants_of

#: Fewer times say nothing of others; nor does so little of an operator that the profile has for free.
FEWEST = 3
#: Distance, in the logarithms of both sides of the roofline, at which a kernel counts half.
NEAR = 0.5
#: Less specific knowledge counts like so much of a kernel of the same size.
PARENT = 0.3
#: Ratios of time and price are at most exp(MOST) times what less is known of says.
MOST = 1.5
#: Below this, in microseconds, amounts of work are alike.
_LITTLE_US = 0.01


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """How well a family's times are estimated.

    Attributes:
        times: how many there are.
        ratio: the median of time / price.
        median_error, p90_error: of |estimate / time - 1|, each estimated by all other times.
    """

    times: int
    ratio: float
    median_error: float
    p90_error: float


def profile_us(profile: Profile, configuration: Configuration) -> float:
    """Return what a profile says; of a node with bodies, with these."""
    bodies_us = bodies_price_us(profile, configuration, profile_us)
    return bodies_us + kernel_us(profile, configuration)


def kernel_us(profile: Profile, configuration: Configuration) -> float:
    """Return what a profile says of a node without bodies."""
    return kernel_time_us(
        profile,
        configuration.op,
        configuration.inputs,
        configuration.output,
        dict(configuration.attrs),
    )


def bodies_price_us(profile: Profile, configuration: Configuration, prices: Prices) -> float:
    """Return what the bodies of a node cost by somebody's prices, as often as they run; else 0."""
    if configuration.op != "opaque":
        return 0.0
    return sum(turns * prices(profile, inner) for inner, turns in kernels_of_bodies(configuration))


@dataclass(frozen=True)
class Calibration:
    """A profile beside measured times.

    Attributes:
        times_us: by configuration; those of 0 (no kernel runs) are left out.
        prices: the costs of configurations by the profile.
    """

    profile: Profile
    times_us: Mapping[Configuration, float]
    prices: Prices = profile_us
    _known_us: dict[Configuration, float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def times(self) -> int:
        """How many times there are."""
        return len(self.times_us)

    def cost_us(self, configuration: Configuration) -> float:
        """Return the estimated microseconds of a configuration; 0 where no kernel runs."""
        if configuration not in self._known_us:
            self._known_us[configuration] = self._estimate_us(configuration)
        return self._known_us[configuration]

    @property
    def median_error(self) -> float | None:
        """Of |estimate / time - 1|, each estimated by all other times; None where these say nothing."""
        return float(np.median(self._errors)) if len(self._errors) else None

    @property
    def families(self) -> Mapping[str, FamilyFit]:
        """How well times are estimated, by family, most times first."""
        fits = []
        families = self._priced.families
        for name in set(families.tolist()):
            own = families == name
            errors = self._errors[own] if len(self._errors) else np.full(own.sum(), np.nan)
            ratio = math.exp(float(np.median(self._priced.ratios[own])))
            p50, p90 = np.percentile(errors, (50, 90)).tolist()
            fits.append((str(name), FamilyFit(int(own.sum()), ratio, p50, p90)))
        return dict(sorted(fits, key=lambda item: (-item[1].times, item[0])))

    def describe(self) -> str:
        """Return what estimates, for a sentence."""
        if self.median_error is None:
            return f"the profile {self.profile.name}, as it is (too few measured times)"
        return (
            f"the profile {self.profile.name}, calibrated on {self.times} measured times "
            f"(median error {self.median_error:.0%} on times not used)"
        )

    def _estimate_us(self, configuration: Configuration) -> float:
        if get_operator(configuration.op).is_left_to_readers(dict(configuration.attrs)):
            return 0.0
        price_us = self.prices(self.profile, configuration)
        if price_us <= 0:
            own = [us for each, us in self.times_us.items() if each.op == configuration.op]
            return float(np.median(own)) if len(own) >= FEWEST else 0.0
        rows = self._priced
        if len(rows.ratios) < FEWEST:
            return price_us
        place, family = _place(self.profile, configuration), get_operator(configuration.op).family
        return price_us * math.exp(rows.ratio(place, configuration.op, family))

    @cached_property
    def _priced(self) -> _Ratios:
        """The times of what has a price."""
        prices = {each: self.prices(self.profile, each) for each in self.times_us}
        priced = [each for each, us in prices.items() if us > 0]
        return _Ratios(
            np.array([_place(self.profile, each) for each in priced]).reshape(-1, 2),
            np.array([math.log(self.times_us[each] / prices[each]) for each in priced]),
            np.array([each.op for each in priced], dtype=object),
            np.array([str(get_operator(each.op).family) for each in priced], dtype=object),
        )

    @cached_property
    def _errors(self) -> NDArray[np.float64]:
        """Return |estimate / time - 1|, each estimated by all other times; none where they are too few."""
        rows = self._priced
        if len(rows.ratios) <= FEWEST:
            return np.empty(0)
        unseen = [
            rows.ratio(rows.places[n], rows.operators[n], rows.families[n], without=n)
            for n in range(len(rows.ratios))
        ]
        errors: NDArray[np.float64] = np.abs(np.exp(np.array(unseen) - rows.ratios) - 1)
        return errors


@dataclass(frozen=True, eq=False)
class _Ratios:
    """Measured kernels.

    Attributes:
        places: shape (n, 2): logarithms of the roofline's arithmetic and memory time.
        ratios: logarithms of time / price.
    """

    places: NDArray[np.float64]
    ratios: NDArray[np.float64]
    operators: NDArray[np.object_]
    families: NDArray[np.object_]

    @cached_property
    def over_all(self) -> float:
        """The median over all times."""
        return float(np.median(self.ratios))

    def ratio(
        self, place: NDArray[np.float64], operator: str, family: str, without: int | None = None
    ) -> float:
        """Return the logarithm of what a kernel takes beside its price; see the module.

        Args:
            without: leave this time out.
        """
        weights = 1 / (1 + ((self.places - place) ** 2).sum(axis=1) / NEAR**2)
        if without is not None:
            weights[without] = 0.0
        ratio = self.over_all
        for owners, name in ((self.families, family), (self.operators, operator)):
            own = np.flatnonzero(owners == name)
            clipped = np.clip(self.ratios[own], ratio - MOST, ratio + MOST)
            ratio = float((weights[own] @ clipped + PARENT * ratio) / (weights[own].sum() + PARENT))
        return ratio


def base_profile(key: DeviceKey) -> Profile:
    """Return what is calibrated: the nearest profile, as kernels are measured, again and again."""
    return replace(nearest_profile(key), cold_launch_us=0.0, cold_weight_us=0.0)


def nearest_profile(key: DeviceKey) -> Profile:
    """Return the profile that ships whose figures are nearest to a device's own."""
    if key.kind == "cpu":
        return replace(load_profile(cpu_profile(key.driver)), view_us=0.0)  # nobody measures views
    name = key.name.lower()
    return load_profile(
        next((model for model in ("h200", "h100", "a100", "t4") if model in name), "h200")
    )


def calibrate(
    profile: Profile, times_us: Mapping[Configuration, float], prices: Prices = profile_us
) -> Calibration:
    """Return a profile beside measured times; those of 0 (no kernel runs) say nothing.

    Args:
        prices: the costs of configurations by the profile, where more is known of them than that has.
    """
    timed = {configuration: us for configuration, us in times_us.items() if us > 0}
    return Calibration(profile, timed, prices)


def _place(profile: Profile, configuration: Configuration) -> NDArray[np.float64]:
    sides = roofline_us(
        profile,
        configuration.op,
        configuration.inputs,
        configuration.output,
        dict(configuration.attrs),
    )
    place: NDArray[np.float64] = np.log(np.add(sides, _LITTLE_US))
    return place


@lru_cache(maxsize=1024)
def kernels_of_bodies(configuration: Configuration) -> tuple[tuple[Configuration, float], ...]:
    """Return what the bodies of a node run, and how often each runs when the node runs once."""
    return tuple(_kernels(configuration))


def _kernels(configuration: Configuration) -> Iterator[tuple[Configuration, float]]:
    from relational_tensat.formats.onnx_bodies import bodies_of, has_bodies  # they need onnx
    from relational_tensat.formats.onnx_read import read_model

    attrs = dict(configuration.attrs)
    if not has_bodies(attrs):
        return
    kinds = [part for kind in configuration.inputs for part in tensors_of(kind)]
    known = {
        place: Weight(kinds[place], array_of_constant(attrs, place, kinds[place]))
        for place in constants_of(attrs)
    }
    imports = {"": int(str(attrs["opset"])), "ai.onnx.ml": 3, "com.microsoft": 1}
    for body in bodies_of(attrs, [(kind,) for kind in kinds], known, imports):
        with suppress(RelationalTensatError):
            graph = read_model(body.model, dict(body.sizes), body.attribute)
            for inner in graph_configurations(graph):
                yield inner, body.turns
