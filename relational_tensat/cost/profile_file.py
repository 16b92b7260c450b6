"""Reading profiles: TOML files of twenty keys, checked strictly.

peak_flops_per_s = 8.1e12                  # or a table, one number per element type and default
bandwidth_bytes_per_s = 320e9
launch_us = 5.0
free = ["reshape"]                         # operators that launch no kernel here; may be left out
views = ["split"]                          # those that launch none where their results lie in the operand:
                                           # of split, slice, transpose; may be left out
multiprocessors = 40                       # of a GPU, for kernels of one's own; may be left out
shared_bytes = 65536                       # of shared memory that a block may have; goes with these
memory_bytes = 16e9                        # of the device's main memory; may be left out
cache_bytes = 1048576                      # of a processor's cache for activations; may be left out
cache_bandwidth_bytes_per_s = 50e9         # of that cache; goes with it
elements_per_s = { erf = 3e9, row = 1e8 }  # what operators take for elements and steps; may be left out
weight_bandwidth_bytes_per_s = 30e9        # where weights come before they are worked on; may be left out
weight_cache_us = 1400                     # for how long a cache has them after a run; may be left out
cold_launch_us = 0.4                       # what a kernel costs more that a cache has not; may be left out
cold_weight_us = 0.5                       # and for each of its weights; may be left out
weight_cache_bandwidth_bytes_per_s = 80e9  # of that cache; goes with it
view_us = 0.2                              # what a reshape costs where it is free else; may be left out
graph_launch_us = 1.3                      # of a launch recorded in a CUDA graph; may be left out
run = { us = 3, value_us = 0.7 }           # of a run beside kernels, and for each input and output, also
                                           # cold_us, cold_value_us, size_us (for each node that
                                           # computes sizes) and cold_size_us; may be left out
threads = { speedup = 0.9, share_us = 1 }  # what further threads change, also weight_speedup, alone_us and
                                           # wake_us; may be left out
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.base.files import whole_content
from relational_tensat.cost.profile import (
    OTHER_DTYPES,
    PARTS,
    PROFILE_DIR,
    Profile,
    RunCosts,
    ThreadCosts,
    profile_names,
)
from relational_tensat.tensor import DTYPE_BYTES
from relational_tensat.tensor.operators import operators
from relational_tensat.tensor.operators.work_steps import STEPS

_KEYS = (
    "peak_flops_per_s", "bandwidth_bytes_per_s", "launch_us", "free", "views", "multiprocessors",
    "shared_bytes", "memory_bytes", "cache_bytes", "cache_bandwidth_bytes_per_s", "elements_per_s",
    "weight_bandwidth_bytes_per_s", "weight_cache_us", "weight_cache_bandwidth_bytes_per_s", "view_us",
    "graph_launch_us", "cold_launch_us", "cold_weight_us", "run", "threads",
)  # fmt: skip
_CACHE_BANDWIDTH = "cache_bandwidth_bytes_per_s"
_WEIGHT_BANDWIDTH = "weight_bandwidth_bytes_per_s"
_WEIGHT_CACHE_BANDWIDTH = "weight_cache_bandwidth_bytes_per_s"
_TOGETHER = {
    "cache_bytes": (_CACHE_BANDWIDTH,),
    "weight_cache_us": (_WEIGHT_CACHE_BANDWIDTH,),
}


def load_profile(name_or_path: str | Path) -> Profile:
    """Return a profile that ships, by name, or one's own, by the path of its ``.toml`` file.

    Raises:
        UsageError: no such profile ships; names the nearest.
        InputError: the file is missing or malformed; names file, key and what was expected.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text:
        return _read(Path(text))
    if text not in profile_names():
        choices = ", ".join(profile_names())
        raise UsageError(
            f"unknown cost profile {text!r}, expected one of {choices} or a .toml file"
            f"{nearest(text, profile_names())}"
        )
    return _read(PROFILE_DIR / f"{text}.toml")


def _read(path: Path) -> Profile:
    table = _parse(path)
    for key in table:
        if key not in _KEYS:
            raise InputError(
                f"{path}: unknown key {key!r}, expected {', '.join(_KEYS)}{nearest(key, _KEYS)}"
            )
    for key in _KEYS[:3]:
        if key not in table:
            raise InputError(f"{path}: the key {key!r} is missing")
    for key, others in _TOGETHER.items():
        if len({each in table for each in (key, *others)}) > 1:
            raise InputError(
                f"{path}: {key} and {', '.join(others)} go together, expected all or none"
            )
    if "weight_cache_us" in table and _WEIGHT_BANDWIDTH not in table:
        raise InputError(f"{path}: weight_cache_us goes with {_WEIGHT_BANDWIDTH}, expected both")
    return Profile(
        name=path.stem,
        peak_flops_per_s=_peak(table["peak_flops_per_s"], path),
        bandwidth_bytes_per_s=_positive(
            table["bandwidth_bytes_per_s"], "bandwidth_bytes_per_s", path
        ),
        launch_us=_number(table["launch_us"], "launch_us", path),
        free=_operator_names(table, "free", path),
        views=_operator_names(table, "views", path),
        multiprocessors=_whole(table, "multiprocessors", path),
        shared_bytes=_whole(table, "shared_bytes", path),
        memory_bytes=int(_number(table.get("memory_bytes", 0), "memory_bytes", path)),
        cache_bytes=_whole(table, "cache_bytes", path),
        cache_bandwidth_bytes_per_s=_positive(
            table.get(_CACHE_BANDWIDTH, table["bandwidth_bytes_per_s"]), _CACHE_BANDWIDTH, path
        ),
        elements_per_s=_rates(table.get("elements_per_s", {}), path),
        weight_bandwidth_bytes_per_s=_number(
            table.get(_WEIGHT_BANDWIDTH, 0.0), _WEIGHT_BANDWIDTH, path
        ),
        weight_cache_us=_number(table.get("weight_cache_us", 0.0), "weight_cache_us", path),
        weight_cache_bandwidth_bytes_per_s=_number(
            table.get(_WEIGHT_CACHE_BANDWIDTH, 0.0), _WEIGHT_CACHE_BANDWIDTH, path
        ),
        view_us=_number(table.get("view_us", 0.0), "view_us", path),
        graph_launch_us=_number(table.get("graph_launch_us", 0.0), "graph_launch_us", path),
        cold_launch_us=_number(table.get("cold_launch_us", 0.0), "cold_launch_us", path),
        cold_weight_us=_number(table.get("cold_weight_us", 0.0), "cold_weight_us", path),
        run=RunCosts(**_parts(table, "run", RunCosts, path)),
        threads=ThreadCosts(**_parts(table, "threads", ThreadCosts, path)),
    )


def _parts(
    table: Mapping[str, Any], key: str, kind: type[RunCosts | ThreadCosts], path: Path
) -> dict[str, float]:
    """Return the numbers of a table within the profile, none where it is not there."""
    value, names = table.get(key, {}), [each.name for each in fields(kind)]
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key} = {value!r}, expected a table of {', '.join(names)}")
    for name in value:
        if name not in names:
            hint = nearest(name, names)
            raise InputError(
                f"{path}: {key}: unknown key {name!r}, expected {', '.join(names)}{hint}"
            )
    return {name: _number(number, f"{key}.{name}", path) for name, number in value.items()}


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = whole_content(path).decode("utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from error


def _peak(value: object, path: Path) -> float | Mapping[str, float]:
    key = "peak_flops_per_s"
    if not isinstance(value, dict):
        return _positive(value, key, path)
    dtypes = (*DTYPE_BYTES, OTHER_DTYPES)
    for dtype in value:
        if dtype not in dtypes:
            raise InputError(
                f"{path}: {key}: unknown element type {dtype!r}{nearest(dtype, dtypes)}"
            )
    if OTHER_DTYPES not in value:
        raise InputError(f"{path}: {key} has no {OTHER_DTYPES!r}, for the types it does not list")
    return {dtype: _positive(rate, f"{key}.{dtype}", path) for dtype, rate in value.items()}


def _number(value: object, key: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{path}: {key} = {value!r}, expected a number")
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{path}: {key} = {value!r}, expected a finite number, not negative")
    return float(value)


def _whole(table: Mapping[str, Any], key: str, path: Path) -> int:
    value = table.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{path}: {key} = {value!r}, expected a whole number, not negative")
    return value


def _positive(value: object, key: str, path: Path) -> float:
    number = _number(value, key, path)
    if number == 0:
        raise InputError(f"{path}: {key} = 0, expected a positive number")
    return number


def _operator_names(table: Mapping[str, Any], key: str, path: Path) -> frozenset[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{path}: {key} = {value!r}, expected a list of operator names")
    _check_operators(value, key, path)
    if key == "views" and not PARTS.issuperset(value):
        raise InputError(f"{path}: views = {value!r}, expected some of {', '.join(sorted(PARTS))}")
    return frozenset(value)


def _rates(value: object, path: Path) -> Mapping[str, float]:
    key = "elements_per_s"
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key} = {value!r}, expected a table, a number per operator")
    _check_operators((name for name in value if name not in STEPS), key, path)
    return {name: _positive(rate, f"{key}.{name}", path) for name, rate in value.items()}


def _check_operators(given: Iterable[str], key: str, path: Path) -> None:
    names = operators()
    for name in given:
        if name not in names:
            raise InputError(f"{path}: {key}: unknown operator {name!r}{nearest(name, names)}")
