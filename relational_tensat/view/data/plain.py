"""Plain data as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from relational_tensat.base.escaping import escaped


def to_json(data: object) -> str:
    """Return data as JSON; infinite and undefined numbers become null."""
    return json.dumps(plain(data), allow_nan=False, separators=(",", ":"))


def shown(data: object) -> Any:
    """Return data as ``plain`` does, its texts as people may look at them."""
    return _shown(plain(data))


def _shown(data: Any) -> Any:
    if isinstance(data, dict):
        return {_shown(key): _shown(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_shown(item) for item in data]
    return escaped(data, keep="\n\t") if isinstance(data, str) else data


def plain(data: object) -> Any:
    """Return data as what JSON has: objects, arrays, strings, numbers."""
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {field.name: plain(getattr(data, field.name)) for field in dataclasses.fields(data)}
    if isinstance(data, Mapping):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(item) for item in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data if isinstance(data, str | int | float | bool | None) else str(data)
