"""The values of ``--cost``, and the sources that they name.

    analytic:PROFILE   a profile by name, or a .toml file; PROFILE alone means the same
    analytic:PROFILE:threads=N
                       the same with N threads, where the profile says what these change, as cpu does
    cpu                this machine's processor, measured through onnxruntime, a graph run as it is
    cpu:all            the same, with all of onnxruntime's own graph optimizations
    cpu:threads=N      either with N threads, by wall time: cpu:threads=4, cpu:all:threads=4
    cuda               this machine's NVIDIA GPU, measured through PyCUDA; float32 is multiplied exactly
    cuda:tf32          the same, float32 multiplied by tensor cores, rounded to 10 bits of mantissa
    table:TABLE        a recorded table that ships, by name, or a .parquet file; TABLE alone, too

A name alone is a device first, then a profile, then a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.device import PROTOCOLS, Device
from relational_tensat.cost.profile import Profile, profile_names
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.cost.source import CostSource

if TYPE_CHECKING:
    from relational_tensat.cost.table import RecordedTable

#: Where the tables that ship are.
TABLE_DIR = Path(__file__).resolve().parent / "tables"

_ANALYTIC, _TABLE = "analytic:", "table:"
#: The sources that measure here: a kind of device, or a kind and a mode; each has times of its own.
DEVICES = (*PROTOCOLS, "cpu:all", "cuda:tf32")
_THREADS = re.compile(r"cpu(:all)?:threads=\d+")
#: A profile and its threads.
_PROFILE_THREADS = re.compile(r"(.+):threads=(\d+)")


def table_names() -> tuple[str, ...]:
    """Return the names of the recorded tables that ship, sorted."""
    return tuple(sorted(path.stem for path in TABLE_DIR.glob("*.parquet")))


def open_device(name: str) -> Device:
    """Return this machine's device, by one of the names in ``DEVICES``, or of a processor with threads.

    Raises:
        UsageError: the machine has fewer processors.
        MissingDependencyError: a package or a driver is missing; says what to install.
    """
    kind, _, mode = name.partition(":")
    module = import_module(f"relational_tensat.cost.{kind}")
    device: Device = module.open_device(mode) if mode else module.open_device()
    return device


def open_processor(threads: int) -> Device:
    """Return this machine's processor, with so many threads; errors are as of ``open_device``."""
    return open_device(f"cpu:threads={threads}" if threads > 1 else "cpu")


def open_source(
    text: str,
    *,
    cache: Path | None = None,
    watch: Callable[[int, int], None] | None = None,
    limit_s: float | None = math.inf,
    learns: bool = False,
) -> CostSource:
    """Return the source of costs that ``--cost`` names; nothing is measured yet.

    Args:
        text: see the module.
        cache: the cost cache of ``cpu`` and ``cuda``; None for the user's own.
        watch: is called with how many of how many configurations have been measured.
        limit_s: wall seconds of measuring; later configurations are estimated; None as for
            ``MeasuredSource``.
        learns: measured costs are corrected by what races said, and what they say is kept.

    Raises:
        UsageError: there is no such source; names the nearest.
        InputError: a profile or table is malformed.
        MissingDependencyError: a package that the device needs is not installed.
    """
    if text in DEVICES or _THREADS.fullmatch(text):
        from relational_tensat.cost.cache import CostCache, default_cache
        from relational_tensat.cost.measured_source import MeasuredSource

        file = CostCache(cache or default_cache(), is_dispensable=True)
        return MeasuredSource(text, open_device(text), file, watch, limit_s, learns=learns)
    if text.startswith(_TABLE):
        return _recorded(text.removeprefix(_TABLE))
    if text.startswith(_ANALYTIC):
        return AnalyticSource(_profile(text.removeprefix(_ANALYTIC)))
    if text.endswith(".parquet") or text in table_names():
        return _recorded(text)
    if text in profile_names() or text.endswith(".toml") or "/" in text:
        return AnalyticSource(load_profile(text))
    choices = (*DEVICES, *profile_names(), *table_names())
    raise UsageError(
        f"unknown cost profile {text!r}, expected analytic:PROFILE, {', '.join(DEVICES)}, cpu:threads=N, "
        f"table:TABLE or one of {', '.join((*profile_names(), *table_names()))}"
        f"{nearest(text, choices)}"
    )


def _profile(text: str) -> Profile:
    """Return a profile, with several threads if the text says so.

    Raises:
        UsageError: there is no such profile, or nothing is known of several threads.
        InputError: its file is malformed.
    """
    match = _PROFILE_THREADS.fullmatch(text)
    if match is None:
        return load_profile(text)
    profile, count = load_profile(match[1]), int(match[2])
    if count < 1:
        raise UsageError(f"{text}: threads = {count}, expected at least 1")
    if count == 1:
        return profile
    if not profile.threads.speedup:
        raise UsageError(f"{text}: the profile {match[1]} does not say what several threads change")
    return profile.with_threads(count)


def load_table(name_or_path: str) -> RecordedTable:
    """Return a recorded table that ships, by name, or one's own, by the path of its file.

    Raises:
        UsageError: no such table ships; names the nearest.
        InputError: the file is missing or holds an impossible row.
    """
    from relational_tensat.cost.table import read_table

    if name_or_path in table_names():
        return read_table(TABLE_DIR / f"{name_or_path}.parquet", name_or_path)
    if name_or_path.endswith(".parquet") or "/" in name_or_path:
        return read_table(Path(name_or_path))
    choices = ", ".join((*table_names(), "a .parquet file"))
    raise UsageError(
        f"unknown table of costs {name_or_path!r}, expected {choices}"
        f"{nearest(name_or_path, table_names())}"
    )


def _recorded(name_or_path: str) -> CostSource:
    from relational_tensat.cost.table import RecordedSource

    table = load_table(name_or_path)
    return RecordedSource(f"{_TABLE}{table.name}", table)
