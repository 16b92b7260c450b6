"""One row of a cost cache or of a recorded table: what was measured, on what, when, with which result."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from relational_tensat.cost.device import DeviceKey, TimingSample, Unmeasurable
from relational_tensat.cost.key import libraries_text

#: The columns that distinguish devices; a configuration has one row for each.
DEVICE_COLUMNS = ("kind", "device", "driver", "libraries", "protocol")
#: The columns of a sample.
TIME_COLUMNS = ("median_us", "p10_us", "p90_us")


@dataclass(frozen=True, slots=True)
class Record:
    """One row.

    Attributes:
        configuration: its text, see cost/key.py.
        date: when it was measured: UTC, ISO 8601, to the second.
    """

    configuration: str
    key: DeviceKey
    result: TimingSample | Unmeasurable
    date: str


def device_columns(key: DeviceKey) -> dict[str, str | int]:
    """Return a device's values of ``DEVICE_COLUMNS``."""
    return {
        "kind": key.kind,
        "device": key.name,
        "driver": key.driver,
        "libraries": libraries_text(key.libraries),
        "protocol": key.protocol,
    }


def device_id(key: DeviceKey) -> str:
    """Return eight hexadecimal digits that stand for a device and all versions in its key."""
    text = "\n".join(map(str, device_columns(key).values()))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def describe_device(key: DeviceKey) -> str:
    """Return a device's name and all versions, for people."""
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(key.libraries.items()))
    parts = (key.name, key.driver, libraries, f"protocol {key.protocol}")
    return "; ".join(part for part in parts if part)


def differences(old: DeviceKey, new: DeviceKey) -> tuple[str, ...]:
    """Return what differs between two keys of one device, each as ``what: old → new``."""
    changes = [
        f"{field}: {before} → {after}"
        for field, before, after in (
            ("driver", old.driver, new.driver),
            ("protocol", old.protocol, new.protocol),
        )
        if before != after
    ]
    for name in sorted({*old.libraries, *new.libraries}):
        before, after = _version(old.libraries, name), _version(new.libraries, name)
        if before != after:
            changes.append(f"{name}: {before} → {after}")
    return tuple(changes)


def sample_fault(sample: TimingSample) -> str:
    """Return what is wrong with a sample, in a few words; "" where nothing is."""
    for name in TIME_COLUMNS:
        time_us = getattr(sample, name)
        if not math.isfinite(time_us) or time_us < 0:
            return f"{name} = {time_us}, expected a finite number, not negative"
    if not sample.p10_us <= sample.median_us <= sample.p90_us:
        return (
            f"p10_us, median_us, p90_us = {sample.p10_us}, {sample.median_us}, {sample.p90_us}, "
            "expected none above the next"
        )
    return "" if sample.samples > 0 else f"samples = {sample.samples}, expected 1 or more"


def now() -> str:
    """Return the time as rows have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _version(libraries: Mapping[str, str], name: str) -> str:
    return libraries.get(name, "none")
