"""The content of a cost cache, device by device, and the part that this machine may use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError, nearest
from relational_tensat.cost.device import PROTOCOLS, Configuration, DeviceKey, TimingSample
from relational_tensat.cost.key import (
    Record,
    describe_device,
    device_columns,
    device_id,
    differences,
    parse_configuration,
)
from relational_tensat.cost.opener import DEVICES, open_device

#: More weights than any cache holds.
_MANY_BYTES = 1 << 40
#: The relation of a holding to this machine: its times are used; made by other versions; of another device.
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
        return [record for record in self.records if isinstance(record.result, TimingSample)]

    @property
    def unmeasurable(self) -> int:
        """How many rows say that the device cannot run a configuration."""
        return len(self.records) - len(self.measured)

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


def holdings(records: Sequence[Record], device_keys: Sequence[DeviceKey]) -> list[Holding]:
    """Return rows by device, those that this machine can use first.

    Args:
        device_keys: the keys of this machine's devices, see ``devices_here``.
    """
    groups: dict[tuple[str | int, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(device_columns(record.key).values()), []).append(record)
    all_holdings = []
    for group in groups.values():
        key = group[0].key
        status, why = _status(key, device_keys)
        all_holdings.append(Holding(key, group, status, why))
    order = (CURRENT, STALE, ELSEWHERE)
    return sorted(
        all_holdings,
        key=lambda holding: (order.index(holding.status), holding.key.kind, holding.key.name),
    )


def devices_here(kinds: Sequence[str], threads: Collection[str] = ()) -> list[DeviceKey]:
    """Return the keys of those devices of these kinds that this machine has, in all their modes.

    Args:
        threads: numbers of them that processors are asked for with, too.
    """
    keys = []
    modes = [f"{name}:threads={n}" for name in ("cpu", "cpu:all") for n in sorted(threads)]
    for name in (*DEVICES, *modes):
        if name.partition(":")[0] in kinds:
            try:
                device = open_device(name)
            except (MissingDependencyError, UsageError):  # its times are another machine's
                continue
            keys += [device.key, device.adapted(0).key, device.adapted(_MANY_BYTES).key]
    return keys


def matching(all_holdings: Sequence[Holding], device: str) -> list[Holding]:
    """Return the holdings of a device: by kind, by id, or by a part of its name.

    Raises:
        UsageError: no holding has that name; names the nearest.
    """
    matches = [holding for holding in all_holdings if is_device(holding.key, device)]
    if not matches:
        names = [
            name
            for holding in all_holdings
            for name in (holding.key.kind, holding.id, holding.key.name)
        ]
        choices = (
            ", ".join(f"{holding.id} ({holding.key.name})" for holding in all_holdings) or "none"
        )
        raise UsageError(
            f"--device {device!r}: no such device in the cache, which has {choices}{nearest(device, names)}"
        )
    return matches


def is_device(key: DeviceKey, text: str) -> bool:
    """Whether a text names a device: its kind, its id, or a part of its name."""
    return text in (key.kind, device_id(key)) or text.lower() in key.name.lower()


def only_one(matches: Sequence[Holding]) -> Holding:
    """Return the one holding that is meant: the only one, or of one device the one that is current.

    Raises:
        UsageError: there are several; names them.
    """
    one_device = len({(holding.key.kind, holding.key.name) for holding in matches}) == 1
    current = [holding for holding in matches if holding.status == CURRENT and one_device]
    for choice in (matches, current):
        if len(choice) == 1:
            return choice[0]
    if not matches:
        raise UsageError("the cost cache is empty: nothing has been measured")
    listed = ", ".join(f"{holding.id} ({describe_device(holding.key)})" for holding in matches)
    raise UsageError(f"which device? name one with --device: {listed}")


def _status(key: DeviceKey, device_keys: Sequence[DeviceKey]) -> tuple[str, tuple[str, ...]]:
    same = next(
        (
            device_key
            for device_key in device_keys
            if (device_key.kind, device_key.name) == (key.kind, key.name)
        ),
        None,
    )
    if same is not None:
        why = differences(key, same)
        return (STALE, why) if why else (CURRENT, ())
    version = PROTOCOLS[key.kind].version if key.kind in PROTOCOLS else key.protocol
    if key.protocol != version:
        return STALE, (f"protocol: {key.protocol} → {version}",)
    return ELSEWHERE, ()
