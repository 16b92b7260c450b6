"""On a processor two products side by side cost what one of both costs, and taking it apart costs more."""

from __future__ import annotations

from pathlib import Path

from bench.models import GraphBuilder
from relational_tensat import Options, optimize
from relational_tensat.cost import ask_for_graph
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.opener import TABLE_DIR
from relational_tensat.cost.source import CostSource
from relational_tensat.cost.table import RecordedSource, RecordedTable, read_table
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import count_inference_ops
from tests.cost.fakes import FakeDevice

#: What onnxruntime took on one core of a Xeon at 2.5 GHz, by the columns of the right factor; and to split.
_PRODUCT_US = {512: 271.3, 1024: 555.0}
_SPLIT_US = 20.0


def _two_products() -> Graph:
    builder = GraphBuilder("two_products")
    x = builder.input("x", 64, 512)
    weights = [builder.weight(name, 512, 512) for name in ("left", "right")]
    return builder.build(*(builder.op("matmul", x, weight) for weight in weights))


def _measured(folder: Path) -> CostSource:
    def time_us(configuration: object) -> float:
        op, output = configuration.op, configuration.output  # type: ignore[attr-defined]
        return _PRODUCT_US[output.shape[-1]] if op == "matmul" else _SPLIT_US

    return MeasuredSource("cpu", FakeDevice(time_us=time_us), CostCache(folder / "costs.duckdb"))


def _optimized(cost: CostSource | str) -> dict[str, int]:
    rule = ("merge-products-sharing-left",)
    if isinstance(cost, str):
        return count_inference_ops(
            optimize(_two_products(), Options.of(only=rule, cost=cost, search="saturation")).graph
        )
    result = optimize(_two_products(), Options.of(only=rule, search="saturation"), cost_model=cost)
    return count_inference_ops(result.graph)


def test_products_are_merged_for_tensat_s_gpu_and_not_for_a_processor(tmp_path: Path) -> None:
    assert _optimized("tensat_t4") == {"matmul": 1, "split": 1}
    assert _optimized(_measured(tmp_path)) == {"matmul": 2}


def _processor_tables() -> dict[str, RecordedTable]:
    tables = {path.stem: read_table(path) for path in sorted(TABLE_DIR.glob("*.parquet"))}
    return {name: table for name, table in tables.items() if table.key.kind == "cpu"}


def test_the_tables_that_ship_know_it() -> None:
    tables = _processor_tables()
    assert tables
    for name, table in tables.items():
        source = RecordedSource(name, table)
        ask_for_graph(source, _two_products())
        assert source.counts.recorded == 1, name  # both products are of one configuration
        assert _optimized(source) == {"matmul": 2}, name
        assert source.counts.estimated == 0, name
