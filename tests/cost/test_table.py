"""Recorded tables: written, read, and refused with the row and the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cost import CostCounts, DeviceKey, TimingSample, Unmeasurable
from relational_tensat.cost.device import PROTOCOLS
from relational_tensat.cost.key import Record, configuration_text
from relational_tensat.cost.table import COLUMNS, RecordedSource, read_table, write_table
from tests.cost.fakes import CPU, configuration, flat_us, products
from tests.graphs import f32

DATE = "2026-11-21T13:36:00Z"


def records(count: int, key: DeviceKey = CPU) -> list[Record]:
    """Return rows of matrix products."""
    return [
        Record(
            configuration_text(configuration),
            key,
            TimingSample(
                flat_us(configuration) * 1.1,
                flat_us(configuration),
                flat_us(configuration) * 1.5,
                30,
            ),
            DATE,
        )
        for configuration in products(count)
    ]


def changed(path: Path, row: int, **values: Any) -> Path:
    """Write a good table of four rows with one row changed; return its path."""
    write_table(path, records(4))
    rows = pq.read_table(path).to_pylist()
    rows[row - 1] |= values
    schema = pa.schema([
        (name, {"string": pa.string(), "int32": pa.int32(), "double": pa.float64()}[kind])
        for name, kind in COLUMNS.items()
    ])  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


def test_a_table_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "fake.parquet"
    rows = [
        *records(4),
        Record(configuration_text(configuration("relu", f32(2))), CPU, Unmeasurable("no"), DATE),
    ]
    write_table(path, rows)
    table = read_table(path)
    assert table.name == "fake"
    assert table.key == CPU
    assert list(table.samples) == products(4)
    assert sorted(table.records, key=lambda record: record.configuration) == sorted(
        records(4), key=lambda record: record.configuration
    )
    assert table.times_us() == {
        configuration: flat_us(configuration) for configuration in products(4)
    }  # a CPU's is p10


def test_a_gpus_cost_is_the_median(tmp_path: Path) -> None:
    path = tmp_path / "gpu.parquet"
    write_table(path, records(2, replace(CPU, kind="cuda", protocol=PROTOCOLS["cuda"].version)))
    times = read_table(path).times_us()
    assert times == {
        configuration: pytest.approx(flat_us(configuration) * 1.1) for configuration in products(2)
    }


SECOND = configuration_text(products(2)[1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"median_us": float("nan")}, "median_us = nan, expected a finite number, not negative"),
        ({"p10_us": -0.5}, "p10_us = -0.5, expected a finite number, not negative"),
        ({"p90_us": float("inf")}, "p90_us = inf"),
        ({"p10_us": 5.0}, "expected none above the next"),
        ({"samples": 0}, "samples = 0, expected 1 or more"),
        ({"kind": "gpu"}, "kind 'gpu', expected cpu or cuda"),
        ({"protocol": 7}, "measured by version 7 of the protocol for cpu, expected 5"),
        ({"device": "Other"}, "of the device Other; .*but row 1 is of Fake 9000"),
        ({"driver": "avx2"}, "but row 1 is of Fake 9000"),
        ({"libraries": "{}"}, "but row 1 is of Fake 9000"),
        ({"libraries": "1.31"}, "libraries '1.31', expected a JSON object"),
        ({"configuration": "matmul"}, "not a configuration"),
        ({"configuration": SECOND.replace("matmul", "matmal")}, "did you mean 'matmul'"),
        ({"configuration": configuration_text(products(1)[0])}, "a second time"),
        ({"date": None}, "date is NULL"),
        ({"median_us": None}, "median_us is NULL"),
    ],
)
def test_rows_that_cannot_be_believed(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    path = changed(tmp_path / "bad.parquet", 3, **values)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: row 3: ")
    assert "\n" not in str(caught.value)


def test_columns_that_are_missing_or_of_another_type(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    write_table(path, records(2))
    good = pq.read_table(path)
    pq.write_table(good.rename_columns({"median_us": "medain_us"}), path)
    with pytest.raises(InputError, match="'median_us' is missing; did you mean 'medain_us'"):
        read_table(path)
    texts = pa.array(["fast", "slow"])
    pq.write_table(good.set_column(good.column_names.index("p10_us"), "p10_us", texts), path)
    with pytest.raises(InputError, match="'p10_us' is of type string, expected double"):
        read_table(path)
    pq.write_table(good.slice(0, 0), path)
    with pytest.raises(InputError, match="the table has no rows"):
        read_table(path)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    path.write_text("configuration,median_us\n")
    with pytest.raises(InputError, match="cannot be read as a table of costs") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "absent.parquet")


def test_what_a_table_lacks_is_estimated_and_counted_as_such(tmp_path: Path) -> None:
    path = tmp_path / "fake.parquet"
    write_table(path, records(20))
    source = RecordedSource("table:fake", read_table(path))
    known = products(20)
    assert source.notes == ()
    answers = source.ask([*known, configuration("fill", value=1.0, dtype="float32", shape=(2,))])
    assert {answers[configuration].origin for configuration in known} == {"recorded"}
    other = products(21)[-1]
    assert source.ask([other])[other].origin == "estimated"
    assert source.cost_us("matmul", other.inputs, other.output, {}) == pytest.approx(1.0, rel=0.1)
    assert source.counts == CostCounts(recorded=20, estimated=1)
    (note,) = source.notes
    assert note.startswith("1 of 21 configurations are not in table:fake: estimated by the profile")
    assert "median error 2%" in note


def test_the_tables_that_ship_are_good() -> None:
    from relational_tensat.cost.opener import load_table, table_names

    for name in table_names():
        assert load_table(name).name == name
