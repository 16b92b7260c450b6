"""The output of ``costs show``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from relational_tensat.base.errors import InputError
from relational_tensat.cli.console import table
from relational_tensat.cost.calibration import Calibration, base_profile, calibrate
from relational_tensat.cost.device import TimingSample
from relational_tensat.cost.inventory import Holding
from relational_tensat.cost.key import Record, device_columns, parse_configuration
from relational_tensat.egraph.catalogue import type_text

_ROWS_SHOWN = 50
_TEXT_SHOWN = 100


def holding_json(holding: Holding) -> dict[str, Any]:
    """Return a device and its rows as an object."""
    return {
        "id": holding.id,
        **device_columns(holding.key),
        "libraries": dict(sorted(holding.key.libraries.items())),
        "status": holding.status,
        "why": list(holding.why),
        "configurations": len(holding.measured),
        "unmeasurable": holding.unmeasurable,
        "rows": [_record_json(record) for record in holding.records],
    }


def print_holdings(holdings: Sequence[Holding], console: Console) -> None:
    """Print a row per device and set of versions."""
    columns = ("configurations", "unmeasurable")
    rows = table(
        "id", "device", "driver", "libraries", "protocol", *columns, "last", "", numbers=columns
    )
    for holding in holdings:
        libraries = ", ".join(
            f"{name} {holding.key.libraries[name]}" for name in sorted(holding.key.libraries)
        )
        why = f" ({'; '.join(holding.why)})" if holding.why else ""
        rows.add_row(
            holding.id,
            f"{holding.key.kind}: {holding.key.name}",
            holding.key.driver,
            libraries,
            str(holding.key.protocol),
            f"{len(holding.measured):,}",
            f"{holding.unmeasurable:,}",
            max(record.date for record in holding.records),
            holding.status + why,
            style="yellow" if holding.status == "stale" else None,
        )
    console.print(rows)


def print_records(holding: Holding, console: Console) -> None:
    """Print the rows of a device, the slowest first."""
    times = ("median µs", "p10", "p90", "samples")
    rows = table("configuration", *times, "date", numbers=times)
    for record in sorted(holding.records, key=_median_us, reverse=True)[:_ROWS_SHOWN]:
        rows.add_row(_words(record.configuration), *_result_text(record), record.date)
    console.print(f"{holding.id} {holding.key.name}: {holding.status}")
    console.print(rows)
    if len(holding.records) > _ROWS_SHOWN:
        console.print(f"(showing {_ROWS_SHOWN} of {len(holding.records):,}; --json has all)")


def print_calibration(holding: Holding, console: Console) -> None:
    """Print how well the analytic profile, fitted to a device's times, estimates others."""
    calibration = calibrate(base_profile(holding.key), holding.times_us())
    console.print(f"other kernels are estimated by {calibration.describe()}")
    if calibration.median_error is not None:
        _print_families(calibration, console)


def _print_families(calibration: Calibration, console: Console) -> None:
    numbers = ("times", "time / profile", "median error", "p90 error")
    rows = table("family", *numbers, numbers=numbers)
    for name, fit in calibration.families.items():
        rows.add_row(
            name,
            f"{fit.times:,}",
            f"{fit.ratio:.2f}",
            f"{fit.median_error:.0%}",
            f"{fit.p90_error:.0%}",
        )
    console.print(rows)


def _record_json(record: Record) -> dict[str, Any]:
    result = record.result
    if isinstance(result, TimingSample):
        fields: dict[str, Any] = {
            "median_us": result.median_us,
            "p10_us": result.p10_us,
            "p90_us": result.p90_us,
            "samples": result.samples,
        }
    else:
        fields = {"reason": result.reason}
    return {"configuration": record.configuration, **fields, "date": record.date}


def _result_text(record: Record) -> tuple[str, str, str, str]:
    result = record.result
    if not isinstance(result, TimingSample):
        return "cannot be measured", result.reason, "", ""
    times = (result.median_us, result.p10_us, result.p90_us)
    median, p10, p90 = (f"{time_us:,.2f}" for time_us in times)
    return median, p10, p90, f"{result.samples:,}"


def _median_us(record: Record) -> float:
    return record.result.median_us if isinstance(record.result, TimingSample) else -1.0


def _words(text: str) -> str:
    """Return a configuration's text in fewer signs; one that this version cannot read, as it is."""
    try:
        configuration = parse_configuration(text)
    except InputError:
        return _shortened(text)
    kinds = [type_text(kind) for kind in configuration.inputs]
    attrs = [f"{name}={value}".replace(" ", "") for name, value in configuration.attrs]
    return _shortened(" ".join([configuration.op, *kinds, *attrs]))


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[:_TEXT_SHOWN]}…"
