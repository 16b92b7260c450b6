"""Costs that a formula or one's own ``CostModel`` gives: estimates, all of them.

With several threads, kernels cost what follows from a profile of one. onnxruntime shares the work of most
kernels out to all threads, however small they are. These are products, convolutions, pools, norms, and
reorders. Those that go through elements one by one, or copy them, it leaves to one thread until there is
enough of it. Arithmetic and activations are nearly as much quicker as there are threads; weights that come
from main memory hardly, since one thread reads about as fast as all. To share out costs something each
time, and so does waking the threads, which sleep a while after a run.

A cache has some of what a model reads since it ran last: weights, code and data of kernels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from relational_tensat.cost.calibration import profile_us
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import graph_configurations
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import ESTIMATED, FREE, CostAnswer, CostModel, CostSource, Prices
from relational_tensat.tensor import Graph
from relational_tensat.tensor.graph import RUN_US_KEY

#: Operators that one thread carries out while there is little work.
_ALONE = frozenset({
    "abs", "add", "cast", "clip", "concat", "dequantize", "div", "dynamic_quantize", "equal", "erf",
    "exp", "expand", "floor", "gather", "greater", "greater_equal", "hard_sigmoid", "hard_swish",
    "is_nan", "leaky_relu", "less", "less_equal", "log", "logical_and", "logical_not", "logical_or",
    "maximum", "minimum", "mul", "neg", "opaque", "ort_blocked_activation", "ort_blocked_concat",
    "ort_blocked_mul", "ort_blocked_spread", "ort_from_channels_last", "ort_heads_rotary",
    "ort_quantized_add", "ort_sum", "ort_to_channels_last", "pad", "pow", "quantize", "reciprocal",
    "relu", "sigmoid", "slice", "split", "sqrt", "sub", "tanh", "where",
})  # fmt: skip


def in_threads(prices: Prices) -> Prices:
    """Return prices of kernels by a profile whose ``n_threads`` they may be shared out to."""

    def price_us(profile: Profile, configuration: Configuration) -> float:
        alone_us = prices(profile, configuration)
        if profile.n_threads == 1 or not _is_shared_out(profile, configuration.op, alone_us):
            return alone_us
        return prices(_shared_out(profile), configuration)

    return price_us


def _is_shared_out(profile: Profile, op: str, alone_us: float) -> bool:
    if op in profile.free or alone_us == 0:
        return False
    return op not in _ALONE or alone_us >= profile.threads.alone_us


def _shared_out(profile: Profile) -> Profile:
    """Return a profile's rates where all threads work on a kernel."""
    threads, more = profile.threads, profile.n_threads - 1
    faster, weights_faster = 1 + more * threads.speedup, 1 + more * threads.weight_speedup
    peaks = profile.peak_flops_per_s
    return replace(
        profile,
        peak_flops_per_s=_times(peaks, faster) if isinstance(peaks, Mapping) else peaks * faster,
        elements_per_s=_times(profile.elements_per_s, faster),
        cache_bandwidth_bytes_per_s=profile.cache_bandwidth_bytes_per_s * faster,
        weight_cache_bandwidth_bytes_per_s=profile.weight_cache_bandwidth_bytes_per_s * faster,
        weight_bandwidth_bytes_per_s=profile.weight_bandwidth_bytes_per_s * weights_faster,
        bandwidth_bytes_per_s=profile.bandwidth_bytes_per_s * weights_faster,
        launch_us=profile.launch_us + threads.share_us,
    )


def _times(rates: Mapping[str, float], factor: float) -> Mapping[str, float]:
    return {name: rate * factor for name, rate in rates.items()}


def with_cache_state(profile: Profile, graph: Graph, prices: Prices = profile_us) -> Profile:
    """Return a profile as a graph finds its caches that runs, for some milliseconds, in turn with others.

    The first run of a turn finds next to nothing there, the second half of it, the fourth nearly all. So
    the part is the less, the fewer runs a turn has: nothing if one takes ``weight_cache_us``, half if it
    takes half of that. How long it takes depends on that part in turn: T = cold - part (cold
    - warm), and part = 1 - T / weight_cache_us. A graph that is compared with it is run as often
    (``Repeated.as_often_as``), so that the same part holds for it, however quick it is. A graph that says
    in its metadata what it was compared with keeps that part.

    Args:
        graph: its kernels, as far as it is known what these are.
        prices: their costs by the profile.
    """
    most_us = profile.weight_cache_us
    if not most_us:
        return profile
    configurations = Counter(graph_configurations(graph))
    cold, warm = (replace(profile, cached=part) for part in (0.0, 1.0))
    cold_us, warm_us = (
        sum(count * prices(found, each) for each, count in configurations.items())
        for found in (cold, warm)
    )
    if cold_us >= most_us:
        return cold
    cached = (most_us - cold_us) / (most_us - (cold_us - warm_us))
    return replace(profile, cached=min(cached, _told_part(graph, most_us)))


def _told_part(graph: Graph, most_us: float) -> float:
    """Return which part is there for runs as a graph's metadata say; 1 where they say nothing of use."""
    try:
        run_us = float(graph.metadata.get(RUN_US_KEY, 0.0))
    except ValueError:
        return 1.0
    return max(0.0, 1 - run_us / most_us) if 0 < run_us < math.inf else 1.0


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
        """The cost model that is asked."""
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

    def adapt_to(self, graph: Graph) -> bool:
        """Take the profile as a graph finds its weights."""
        if not isinstance(self._given, Profile):
            return False
        suited = with_cache_state(self._given, graph, self._prices)
        if suited == self._model:
            return False
        self._model = suited
        self._answers.clear()
        return True

    @property
    def turn_us(self) -> float:
        """Follows from the part that a cache has."""
        profile = self._model
        return (
            profile.weight_cache_us * (1 - profile.cached) if isinstance(profile, Profile) else 0.0
        )

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
