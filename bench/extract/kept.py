"""The e-graphs that the ablation is made on: every technique of ours earns its place on one of them."""

from __future__ import annotations

from pathlib import Path

from bench.extract.egraphs import Exploration
from bench.extract.instances import GeneratedSource, ModelSource, PlantedSource, Source

#: Model, k_multi and cycle filter: quick enough to be repeated, and not solved by reductions alone.
_MODELS = (
    ("bert", 1, "efficient"),
    ("inception_v3", 2, "efficient"),
    ("nasnet_a", 1, "efficient"),
    ("nasnet_a", 2, "efficient"),
    ("nasrnn", 1, "efficient"),
    ("nasrnn", 1, "none"),
)
_PLANTED = (
    ("rings", 100),
    ("rings", 300),
    ("zones", 100),
    ("zones", 300),
    ("zones", 500),
)
#: Of the generated e-graphs that stand in for public ones.
_GENERATED = ("expressions-01",)


def kept_sources(folder: Path, *, fresh: bool = False) -> list[Source]:
    """Return the instances that are kept.

    Args:
        folder: where explored e-graphs are kept.
        fresh: explore again what the folder has.
    """
    explorations = [
        Exploration(model=model, k_multi=k_multi, cycle_filter=cycle_filter)
        for model, k_multi, cycle_filter in _MODELS
    ]
    return [
        *(ModelSource(exploration, folder, fresh) for exploration in explorations),
        *(PlantedSource(size, kind, 0) for kind, size in _PLANTED),
        *map(GeneratedSource, _GENERATED),
    ]
