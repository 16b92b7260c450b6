"""An analytic profile fitted to measured times, per family of operators.

A family's time is the roofline's with three factors of its own:

    time = launch + max(compute_factor · flops / peak, memory_factor · bytes / bandwidth)

none of them negative. The fit minimizes the sum of |estimate / time - 1| over the family's measured times:
absolute, so that a few wild times do not decide, and relative, so that small kernels count as much as
large ones. Which side of the max a kernel is on depends on the factors, so sides and factors are found in
turn, from the profile's own sides on; with sides given the problem is linear, and is solved by iteratively
reweighted least squares (Holland and Welsch, 1977) over the factors that are not 0.

A family of fewer than ``FEWEST_FAMILY`` times takes the fit over all times; with fewer than
``FEWEST_GLOBAL`` of these, the profile stands as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost.device import Configuration, DeviceKey
from relational_tensat.cost.fitting import Factors, fit
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.cost.roofline import roofline_us
from relational_tensat.tensor.operators import get_operator

#: Fewest times that a family's own fit takes: three per factor.
FEWEST_FAMILY = 9
#: Fewest times that the fit over all families takes.
FEWEST_GLOBAL = 3
#: Estimates are compared with times outside their fit (cross-validation): so many folds.
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """How well a family's times are estimated.

    Attributes:
        times: how many there are.
        own: whether the factors are its own, not those of all families together.
        median_error, p90_error: of |estimate / time - 1| on times outside the fit.
    """

    factors: Factors
    times: int
    own: bool
    median_error: float
    p90_error: float


@dataclass(frozen=True)
class Calibration:
    """A profile with the factors of each family.

    Attributes:
        everything: the factors over all families; ``Factors(launch of the profile, 1, 1)`` without times.
        families: by name, those that times exist of.
        median_error: as in ``FamilyFit``, over all times; None without any.
    """

    profile: Profile
    everything: Factors
    families: Mapping[str, FamilyFit] = field(default_factory=dict)
    times: int = 0
    median_error: float | None = None

    def cost_us(self, configuration: Configuration) -> float:
        """Return the estimated microseconds of a configuration; 0 where no kernel runs."""
        if self.is_free(configuration):
            return 0.0
        compute_us, memory_us = _sides(self.profile, configuration)
        family_fit = self.families.get(get_operator(configuration.op).family)
        factors = self.everything if family_fit is None else family_fit.factors
        return factors.time_us(compute_us, memory_us)

    def is_free(self, configuration: Configuration) -> bool:
        """Whether a configuration takes no time: no kernel runs, unless enough times say otherwise."""
        operator = get_operator(configuration.op)
        if operator.is_left_to_readers(dict(configuration.attrs)):
            return True
        family = self.families.get(operator.family)
        is_timed = family is not None and family.own
        return operator.free and not is_timed

    def describe(self) -> str:
        """Return what estimates, for a sentence."""
        if self.median_error is None:
            return f"the profile {self.profile.name}, as it is (too few measured times)"
        return (
            f"the profile {self.profile.name}, calibrated on {self.times} measured times "
            f"(median error {self.median_error:.0%} on times not used)"
        )


def base_profile(key: DeviceKey) -> Profile:
    """Return the profile that ships whose figures are nearest to a device's own: what is calibrated."""
    if key.kind == "cpu":
        return load_profile("cpu")
    name = key.name.lower()
    return load_profile(next((model for model in ("h200", "a100", "t4") if model in name), "h200"))


def calibrate(profile: Profile, times_us: Mapping[Configuration, float]) -> Calibration:
    """Fit a profile to measured times.

    Args:
        times_us: by configuration; those of 0 (no kernel runs) are left out.
    """
    measured = {configuration: time for configuration, time in times_us.items() if time > 0}
    if len(measured) < FEWEST_GLOBAL:
        return Calibration(profile, Factors(profile.launch_us, 1.0, 1.0))
    sides = np.array([_sides(profile, configuration) for configuration in measured])
    times = np.array([*measured.values()])
    owners = np.array([get_operator(configuration.op).family for configuration in measured])
    everything = fit(sides, times)
    errors = np.empty(len(times))
    families = {}
    for name in sorted(set(owners.tolist())):
        own = owners == name
        errors[own] = _unseen_errors(sides, times, own)
        enough = int(own.sum()) >= FEWEST_FAMILY
        families[name] = FamilyFit(
            factors=fit(sides[own], times[own]) if enough else everything,
            times=int(own.sum()),
            own=enough,
            median_error=float(np.median(errors[own])),
            p90_error=float(np.percentile(errors[own], 90)),
        )
    return Calibration(profile, everything, families, len(times), float(np.median(errors)))


def _unseen_errors(
    sides: NDArray[np.float64], times: NDArray[np.float64], own: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return |estimate / time - 1| of a family's times, each estimated by a fit without it.

    Where few times are left for a family, the fit over all others is used, as for a new configuration.
    """
    members = np.flatnonzero(own)
    errors = np.empty(len(members))
    for part in range(min(_FOLDS, len(members))):
        tested = np.arange(part, len(members), _FOLDS)
        training = own.copy()
        training[members[tested]] = False
        if int(training.sum()) < FEWEST_FAMILY:
            training = np.ones(len(times), dtype=bool)
            training[members[tested]] = False
        factors = fit(sides[training], times[training])
        for place in tested:
            row = members[place]
            errors[place] = abs(factors.time_us(*sides[row]) / times[row] - 1)
    return errors


def _sides(profile: Profile, configuration: Configuration) -> tuple[float, float]:
    return roofline_us(
        profile,
        configuration.op,
        configuration.inputs,
        configuration.output,
        dict(configuration.attrs),
    )


def rows_of(calibration: Calibration) -> Sequence[tuple[str, FamilyFit]]:
    """Return the families and their fits, most times first."""
    return sorted(calibration.families.items(), key=lambda item: (-item[1].times, item[0]))
