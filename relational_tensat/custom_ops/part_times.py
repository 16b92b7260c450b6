"""Times of parts with their kernels and without, from earlier runs, in the user's cost cache.

A time holds for exactly one device and its libraries, number of threads, operator set, compiler with its
flags, and for all that makes, verifies and compares a kernel: where a line of that was changed, the part is
timed again. So a kernel that has a time was found to be right, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.device import DeviceKey, TimingSample
from relational_tensat.mugraph.kernels.emit_c import FLAGS, compiler, compiler_version

#: Folders that make and verify C, within the package.
_MAKERS = ("custom_ops", "mugraph/fusion", "mugraph/graph", "mugraph/kernels", "mugraph/verify")


@dataclass(frozen=True, slots=True)
class SessionSetting:
    """How a file is run.

    Attributes:
        threads: of a session.
        opset: the version of its operator set: functions of an older one say a norm by ten operators.
    """

    threads: int
    opset: int


@dataclass(frozen=True, slots=True)
class PartTime:
    """The time of one part, in microseconds; a session's own time is in both.

    Attributes:
        plain_us: without its kernel.
        kernel_us: with it.
    """

    plain_us: float
    kernel_us: float


class PartTimes:
    """The times of one device and setting.

    Args:
        again: whether parts are timed again that earlier runs have timed.

    Raises:
        MissingDependencyError: there is no C compiler.
    """

    def __init__(
        self, costs: CostCache, key: DeviceKey, setting: SessionSetting, *, again: bool = False
    ) -> None:
        self._costs, self._key, self._again = costs, key, again
        made_by = f"{compiler_version(compiler())} {' '.join(FLAGS)}; made by {_makers()}"
        self._compiler = f"{made_by}; {setting.threads} threads, operator set {setting.opset}"
        self._known: dict[str, TimingSample] = {}
        self._new: dict[str, TimingSample] = {}

    @property
    def setting(self) -> str:
        """All that times hold for, but for the device."""
        return self._compiler

    def look_up(self, patterns: Iterable[str]) -> None:
        """Ask for what is known of parts, in one query."""
        if self._again:
            return
        codes = [_code(pattern, what) for pattern in patterns for what in _WHAT]
        self._known |= self._costs.find_compiled(self._key, codes, self._compiler)

    def of(self, pattern: str) -> PartTime | None:
        """Return what is known of a part that was looked up."""
        plain, kernel = (self._known.get(_code(pattern, what)) for what in ("plain", "kernel"))
        return PartTime(plain.median_us, kernel.median_us) if plain and kernel else None

    def rough_us(self, pattern: str) -> float | None:
        """Return what a part takes without a kernel, from before one was made."""
        known = self._known.get(_code(pattern, "alone"))
        return known.median_us if known else None

    def learn_rough(self, pattern: str, time_us: float) -> None:
        """Take what a part takes without a kernel, roughly."""
        self._new[_code(pattern, "alone")] = TimingSample(time_us, time_us, time_us, 1)

    def learn(self, pattern: str, plain_us: Iterable[float], kernel_us: Iterable[float]) -> None:
        """Take samples of both, made in turn, however busy the machine was.

        A run that repeats this one makes the same choice of kernels, so that their race is known.
        """
        for what, times_us in (("plain", [*plain_us]), ("kernel", [*kernel_us])):
            low, middle, high = np.percentile(times_us, [10, 50, 90]).tolist()
            self._new[_code(pattern, what)] = TimingSample(middle, low, high, len(times_us))

    def keep(self) -> None:
        """Write what was learned."""
        if self._new:
            self._costs.keep_compiled(self._key, self._compiler, self._new)
            self._known, self._new = {**self._known, **self._new}, {}


#: Without a kernel in turn with it, with it, and without one, roughly.
_WHAT = ("plain", "kernel", "alone")


def _code(pattern: str, what: str) -> str:
    return hashlib.sha256(f"part {what}\n{pattern}".encode()).hexdigest()


@cache
def _makers() -> str:
    """Return the hash of what makes C."""
    root = Path(__file__).resolve().parents[1]
    files = [path for name in _MAKERS for path in (root / name).rglob("*") if path.suffix in _TEXTS]
    whole = hashlib.sha256((root / "tensor" / "spellings.py").read_bytes())
    for path in sorted(files):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


_TEXTS = frozenset({".py", ".h"})
