"""How much of what a model reads a cache has since it ran last: weights, code and data of kernels."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.cost.calibration import profile_us
from relational_tensat.cost.configurations import graph_configurations
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import Prices
from relational_tensat.tensor import Graph


def as_found(profile: Profile, graph: Graph, prices: Prices = profile_us) -> Profile:
    """Return a profile as a graph finds its caches that runs, for some milliseconds, in turn with others.

    Of the runs of a turn the first finds next to nothing there, the second half of it, the fourth nearly
    all; so the part is the less, the fewer runs such a turn has: none where one takes ``weight_cache_us``,
    half where it takes half of that. How long it takes depends on that part in turn: T = cold - part
    (cold - warm), and part = 1 - T / weight_cache_us. What is compared with the graph is run as often
    (``Repeated.as_often_as``), so that the same part holds for it, however quick it is.

    Args:
        graph: its kernels, as far as it is known what these are.
        prices: what they cost by the profile.
    """
    most_us = profile.weight_cache_us
    if not most_us:
        return profile
    configurations = list(graph_configurations(graph))
    cold, warm = (replace(profile, cached=part) for part in (0.0, 1.0))
    cold_us, warm_us = (
        sum(prices(found, each) for each in configurations) for found in (cold, warm)
    )
    if cold_us >= most_us:
        return cold
    return replace(profile, cached=(most_us - cold_us) / (most_us - (cold_us - warm_us)))
