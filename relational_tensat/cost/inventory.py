"""What a cost cache has, device by device, and what of it this machine may use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError, nearest
from relational_tensat.cost.device import PROTOCOLS, Configuration, DeviceKey, Sample
from relational_tensat.cost.key import parse_configuration
from relational_tensat.cost.opening import DEVICES, open_device
from relational_tensat.cost.record import (
    Record,
    describe_device,
    device_columns,
    device_id,
    differences,
)

#: What a holding is to this machine: its times are used; made by other versions; of another device.
CURRENT, STALE, ELSEWHERE = "current", "stale", "elsewhere"


@dataclass(frozen=True)
class Holding:
    """All rows of a cache with one key.

    Attributes:
        status: ``CURRENT``, ``STALE`` or ``ELSEWHERE``.
        why: what differs, for stale ones.
    """

    key: DeviceKey
    records: Sequence[Record]
    status: str
    why: tuple[str, ...]

    @property
    def id(self) -> str:
        """Eight digits that stand for the key."""
        return device_id(self.key)

    @cached_property
    def measured(self) -> list[Record]:
        """The rows with times."""
        return [record for record in self.records if isinstance(record.result, Sample)]

    @property
    def unmeasurable(self) -> int:
        """How many rows say that the device cannot run a configuration."""
        return len(self.records) - len(self.measured)

    def of_operator(self, op: str) -> list[Record]:
        """Return the rows of one operator."""
        return [record for record in self.records if operator_of(record) == op]

    def times_us(self) -> dict[Configuration, float]:
        """Return what each configuration costs; those that this version cannot read are left out."""
        statistic = PROTOCOLS[self.key.kind].statistic
        times = {}
        for record in self.measured:
            try:
                times[parse_configuration(record.configuration)] = getattr(record.result, statistic)
            except InputError:  # an operator or attribute that there no longer is: never asked for
                continue
        return times


def holdings(records: Sequence[Record], here: Sequence[DeviceKey]) -> list[Holding]:
    """Return rows by device, what this machine can use first.

    Args:
        here: the keys of this machine's devices, see ``devices_here``.
    """
    groups: dict[tuple[str | int, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(device_columns(record.key).values()), []).append(record)
    found = []
    for group in groups.values():
        key = group[0].key
        status, why = _status(key, here)
        found.append(Holding(key, group, status, why))
    order = (CURRENT, STALE, ELSEWHERE)
    return sorted(found, key=lambda each: (order.index(each.status), each.key.kind, each.key.name))


def devices_here(kinds: Sequence[str]) -> list[DeviceKey]:
    """Return the keys of those devices of these kinds that this machine has, in all their modes."""
    found = []
    for name in DEVICES:
        if name.partition(":")[0] in kinds:
            try:
                device = open_device(name)
            except MissingDependencyError:  # not here: its times are another machine's
                continue
            found += [device.key, device.suited(0).key]
    return found


def matching(all_holdings: Sequence[Holding], device: str) -> list[Holding]:
    """Return the holdings of a device: by kind, by id, or by a part of its name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    found = [each for each in all_holdings if is_device(each.key, device)]
    if not found:
        names = [name for each in all_holdings for name in (each.key.kind, each.id, each.key.name)]
        known = ", ".join(f"{each.id} ({each.key.name})" for each in all_holdings) or "none"
        raise UsageError(
            f"--device {device!r}: no such device in the cache, which has {known}{nearest(device, names)}"
        )
    return found


def is_device(key: DeviceKey, text: str) -> bool:
    """Whether a text names a device: its kind, its id, or a part of its name."""
    return text in (key.kind, device_id(key)) or text.lower() in key.name.lower()


def only_one(found: Sequence[Holding]) -> Holding:
    """Return the one holding that is meant: the only one, or of one device the one that is current.

    Raises:
        UsageError: there are several; names them.
    """
    one_device = len({(each.key.kind, each.key.name) for each in found}) == 1
    current = [each for each in found if each.status == CURRENT and one_device]
    for choice in (found, current):
        if len(choice) == 1:
            return choice[0]
    if not found:
        raise UsageError("the cost cache is empty: nothing has been measured")
    listed = ", ".join(f"{each.id} ({describe_device(each.key)})" for each in found)
    raise UsageError(f"which device? name one with --device: {listed}")


def operator_of(record: Record) -> str:
    """Return the operator of a row, whatever version wrote it; "" where it has none."""
    try:
        content = json.loads(record.configuration)
    except ValueError:
        return ""
    return str(content.get("op", "")) if isinstance(content, dict) else ""


def _status(key: DeviceKey, here: Sequence[DeviceKey]) -> tuple[str, tuple[str, ...]]:
    same = next((each for each in here if (each.kind, each.name) == (key.kind, key.name)), None)
    if same is not None:
        why = differences(key, same)
        return (STALE, why) if why else (CURRENT, ())
    version = PROTOCOLS[key.kind].version if key.kind in PROTOCOLS else key.protocol
    if key.protocol != version:
        return STALE, (f"protocol: {key.protocol} → {version}",)
    return ELSEWHERE, ()
