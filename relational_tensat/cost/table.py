"""Recorded tables: measured times of one device in a Parquet file; cost/tables/README.md has the columns.

A table is refused as a whole, with the row and the reason: a wrong time would go unnoticed.

It gives a device's times wherever the program runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError, first_line, nearest
from relational_tensat.base.files import write_aside
from relational_tensat.cost.calibration import Calibration, base_profile, calibrate, profile_us
from relational_tensat.cost.device import PROTOCOLS, Configuration, DeviceKey, TimingSample
from relational_tensat.cost.key import (
    Record,
    as_constants,
    describe_device,
    device_columns,
    parse_configuration,
    parse_libraries,
    sample_fault,
)
from relational_tensat.cost.source import ESTIMATED, RECORDED, CostAnswer, CostSource, Prices

#: The columns of a table and their types.
COLUMNS: Mapping[str, str] = {
    "configuration": "string",
    "kind": "string",
    "device": "string",
    "driver": "string",
    "libraries": "string",
    "protocol": "int32",
    "median_us": "double",
    "p10_us": "double",
    "p90_us": "double",
    "samples": "int32",
    "date": "string",
}


@dataclass(frozen=True, eq=False)
class RecordedTable:
    """The content of a table.

    Attributes:
        name: how messages call it.
        samples: the measurements, by configuration.
    """

    name: str
    key: DeviceKey
    samples: Mapping[Configuration, TimingSample]
    records: Sequence[Record]

    def times_us(self) -> dict[Configuration, float]:
        """Return what each configuration costs: the figure that its device's protocol names."""
        statistic = PROTOCOLS[self.key.kind].statistic
        return {
            configuration: float(getattr(sample, statistic))
            for configuration, sample in self.samples.items()
        }


def read_table(path: Path, name: str = "") -> RecordedTable:
    """Return a recorded table, every row checked.

    Raises:
        InputError: it cannot be read, lacks columns or rows, or a row is impossible; names the row.
    """
    rows = _read_rows(path)
    samples: dict[Configuration, TimingSample] = {}
    records = []
    first: DeviceKey | None = None
    for index, row in enumerate(rows, start=1):
        where = f"{path}: row {index}"
        key = _device(row, where)
        first = first or key
        if device_columns(key) != device_columns(first):
            raise InputError(
                f"{where}: of the device {describe_device(key)}, but row 1 is of "
                f"{describe_device(first)}: a table has the times of one"
            )
        configuration, sample = _measured(row, where)
        if configuration in samples:
            raise InputError(f"{where}: the configuration {row['configuration']} a second time")
        samples[configuration] = sample
        records.append(Record(str(row["configuration"]), key, sample, str(row["date"])))
    if first is None:
        raise InputError(f"{path}: the table has no rows")
    return RecordedTable(name or path.stem, first, samples, records)


def write_table(path: Path, records: Sequence[Record]) -> None:
    """Write a table of what could be measured, in the order of its configurations.

    Raises:
        InputError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "configuration": record.configuration,
            **device_columns(record.key),
            "median_us": record.result.median_us,
            "p10_us": record.result.p10_us,
            "p90_us": record.result.p90_us,
            "samples": record.result.samples,
            "date": record.date,
        }
        for record in sorted(records, key=lambda record: record.configuration)
        if isinstance(record.result, TimingSample)
    ]
    schema = pa.schema([(name, getattr(pa, _ARROW[kind])()) for name, kind in COLUMNS.items()])
    with write_aside(path) as folder:
        pq.write_table(
            pa.Table.from_pylist(rows, schema), str(folder / path.name), compression="zstd"
        )


#: Arrow's functions that make these types.
_ARROW = {"string": "string", "int32": "int32", "double": "float64"}


def _read_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path}: no such file, expected a table of costs (Parquet)")
    try:
        table = pq.read_table(str(path))
    except (pa.ArrowException, OSError) as error:
        reason = first_line(error)
        raise InputError(f"{path}: cannot be read as a table of costs: {reason}") from error
    names = table.column_names
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        hint = nearest(missing[0], names)
        raise InputError(f"{path}: the column {missing[0]!r} is missing{hint}")
    for name, kind in COLUMNS.items():
        if str(table.schema.field(name).type) != kind:
            dtype = table.schema.field(name).type
            raise InputError(f"{path}: the column {name!r} is of type {dtype}, expected {kind}")
    rows: list[dict[str, Any]] = table.select(list(COLUMNS)).to_pylist()
    for index, row in enumerate(rows, start=1):
        empty = next((name for name, value in row.items() if value is None), None)
        if empty is not None:
            raise InputError(f"{path}: row {index}: {empty} is NULL, expected a value")
    return rows


def _device(row: Mapping[str, Any], where: str) -> DeviceKey:
    kind, protocol = str(row["kind"]), int(row["protocol"])
    if kind not in PROTOCOLS:
        kinds = " or ".join(PROTOCOLS)
        raise InputError(f"{where}: kind {kind!r}, expected {kinds}{nearest(kind, PROTOCOLS)}")
    expected = PROTOCOLS[kind].version
    if protocol != expected:
        raise InputError(
            f"{where}: measured by version {protocol} of the protocol for {kind}, expected "
            f"{expected}: its times cannot be compared with those of now"
        )
    libraries = parse_libraries(str(row["libraries"]), where)
    return DeviceKey(kind, str(row["device"]), str(row["driver"]), libraries, protocol)


def _measured(row: Mapping[str, Any], where: str) -> tuple[Configuration, TimingSample]:
    sample = TimingSample(row["median_us"], row["p10_us"], row["p90_us"], row["samples"])
    fault = sample_fault(sample)
    if fault:
        raise InputError(f"{where}: {fault}")
    return parse_configuration(str(row["configuration"]), where), sample


class RecordedSource(CostSource):
    """A recorded table; configurations that it lacks are estimated by the analytic profile, calibrated on
    the table."""

    def __init__(self, name: str, table: RecordedTable) -> None:
        super().__init__(name)
        self._table = table
        self.tells_computed = PROTOCOLS[table.key.kind].prepares
        self._times_us = table.times_us()
        self._prices: Prices = profile_us

    @property
    def notes(self) -> tuple[str, ...]:
        """How many configurations the table lacks, and what estimates them."""
        count = self.counts.estimated
        if not count:
            return ()
        total = count + self.counts.recorded
        return (
            f"{count} of {total} configurations are not in {self.name}: estimated by "
            f"{self.calibration.describe()}",
        )

    @cached_property
    def calibration(self) -> Calibration:
        """The profile that estimates what the table lacks."""
        return calibrate(base_profile(self._table.key), self._times_us, self._prices)

    def price_by(self, prices: Prices) -> None:
        """Estimate by somebody's prices instead of the profile's own."""
        self._prices = prices
        self.__dict__.pop("calibration", None)

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Join a batch with the table."""
        return {configuration: self._answer(configuration) for configuration in configurations}

    def is_free(self, configuration: Configuration) -> bool:
        """Whether the protocol of the table's kind of device says so."""
        return PROTOCOLS[self._table.key.kind].is_free(configuration)

    def estimate_us(self, configuration: Configuration) -> float:
        """Return the table's time where it has one, else the calibrated profile's."""
        return self._answer(configuration).cost_us

    def _answer(self, configuration: Configuration) -> CostAnswer:
        time_us = self._times_us.get(configuration, self._times_us.get(as_constants(configuration)))
        if time_us is not None:
            return CostAnswer(time_us, RECORDED)
        return CostAnswer(self.calibration.cost_us(configuration), ESTIMATED)
