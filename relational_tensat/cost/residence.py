"""How much of a model's weights a cache has since the model ran last."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.cost.calibration import profile_us
from relational_tensat.cost.configurations import graph_configurations
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import Prices
from relational_tensat.tensor import Graph


def as_found(profile: Profile, graph: Graph, prices: Prices = profile_us) -> Profile:
    """Return a profile as a graph finds its weights that runs, for some milliseconds, in turn with others.

    What a run has read it reads again a run later, and a cache that others use, too, has the less of it the
    longer that is: of weights that are read again after ``weight_cache_us`` nothing, of those after half of
    it half. How long a run takes depends on that part in turn: T = cold - part (cold - warm), and part =
    1 - T / weight_cache_us.

    Args:
        graph: its kernels, as far as it is known what these are.
        prices: what they cost by the profile.
    """
    most_us = profile.weight_cache_us
    if not most_us:
        return profile
    configurations = list(graph_configurations(graph))
    cold, warm = (replace(profile, cached_weights=part) for part in (0.0, 1.0))
    cold_us, warm_us = (
        sum(prices(found, each) for each in configurations) for found in (cold, warm)
    )
    if cold_us >= most_us:
        return cold
    return replace(profile, cached_weights=(most_us - cold_us) / (most_us - (cold_us - warm_us)))
