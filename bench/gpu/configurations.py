"""What the bench measures on a GPU: the configurations of models, and of what they can become."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from bench.common.model_files import model_files
from bench.models import MODELS, GraphBuilder
from relational_tensat.base.errors import InputError
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.device import Configuration, Device, TimingSample
from relational_tensat.cost.key import graph_configurations as all_configurations
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.cost.source import CostAnswer, CostSource
from relational_tensat.cost.table import write_table
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import share_equal_weights

#: Asked for at once: the clock is looked at in between.
_BATCH = 8


def two_products() -> Graph:
    """Return two products that share their left factor: what merging is worth, in the smallest model."""
    builder = GraphBuilder("two_products")
    x = builder.input("x", 64, 512)
    weights = [builder.weight(name, 512, 512) for name in ("left", "right")]
    return builder.build(*(builder.op("matmul", x, weight) for weight in weights))


#: The graphs that are built, by name.
BUILT: Mapping[str, Callable[[], Graph]] = {**MODELS, "two_products": two_products}


def all_models() -> dict[str, Path | None]:
    """Return what is recorded: graphs that are built, and the ONNX files of the bench."""
    files = {f"{name}.onnx": path for name, path in model_files().items()}
    return {**dict.fromkeys(BUILT), **files}


def load(name: str, path: Path | None) -> Graph:
    """Return one of ``all_models``, as a run optimizes it."""
    return share_equal_weights(BUILT[name]() if path is None else load_model(path))


def graph_configurations(graph: Graph) -> list[Configuration]:
    """Return the distinct configurations that run at inference."""
    return list(dict.fromkeys(all_configurations(graph)))


def egraph_configurations(
    graph: Graph, rules: Sequence[Rule] | None = None, limits: ExplorationOptions | None = None
) -> list[Configuration]:
    """Return what a run asks for, with the shipped rules and default limits unless others are given."""
    collector = _Collector()
    with closing(EGraph.create(graph)) as egraph:
        explore(
            egraph,
            load_rules() if rules is None else rules,
            limits or ExplorationOptions(time_limit_s=None),
        )
        extraction_problem(egraph, collector)
    return collector.configurations


def record(
    source: MeasuredSource, configurations: Sequence[Configuration], until_s: float
) -> Iterator[int]:
    """Measure configurations batch by batch, until a time of ``time.perf_counter``.

    Yields:
        how many have been asked for.
    """
    for start in range(0, len(configurations), _BATCH):
        if time.perf_counter() > until_s:
            return
        source.ask(configurations[start : start + _BATCH])
        yield min(start + _BATCH, len(configurations))


def export(device: Device, cache: CostCache, path: Path) -> int:
    """Write all that a cache has measured on a device as a table; return how many rows.

    Raises:
        InputError: there is nothing, or the file cannot be written.
    """
    rows = [
        row
        for row in cache.rows()
        if row.key == device.key and isinstance(row.result, TimingSample)
    ]
    if not rows:
        raise InputError(f"{cache.path}: nothing has been measured on {device.key.name}")
    write_table(path, rows)
    return len(rows)


class _Collector(CostSource):
    """Records the configurations that costs are asked for; its answers are the profile's."""

    def __init__(self) -> None:
        self._profile = load_profile("cpu")
        super().__init__(self._profile.name)
        self.configurations: list[Configuration] = []

    def is_free(self, configuration: Configuration) -> bool:
        """Return False: which kernels are free depends on the device."""
        return False

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Answer, and remember."""
        self.configurations += configurations
        return {
            configuration: CostAnswer(self.estimate_us(configuration), "estimated")
            for configuration in configurations
        }

    def estimate_us(self, configuration: Configuration) -> float:
        """Return the cost that the profile models."""
        return self._profile.cost_us(
            configuration.op, configuration.inputs, configuration.output, dict(configuration.attrs)
        )
