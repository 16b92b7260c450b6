"""The options of a run as text, so that another process, in another folder, can go by them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.run.options import Options

_PATH = "path"
_COST_PREFIXES = ("analytic:", "table:")


def options_text(options: Options) -> str:
    """Return options as JSON, with absolute paths."""
    whole = replace(options, cost=_absolute_cost(options.cost))
    return json.dumps({each.name: _encode(getattr(whole, each.name)) for each in fields(whole)})


def read_options(text: str) -> Options:
    """Return the options that ``options_text`` wrote.

    Raises:
        InputError: they are those of another version of this program.
    """
    values = {name: _decode(value) for name, value in json.loads(text).items()}
    known = {each.name for each in fields(Options)}
    if set(values) != known:
        odd = ", ".join(sorted(known.symmetric_difference(values)))
        raise InputError(f"the run's options are another version's, they differ in {odd}")
    return Options(**values)


def cost_file(cost: str) -> Path | None:
    """Return the file that ``--cost`` names, None if it names a profile, table or device."""
    place = cost.removeprefix(_cost_prefix(cost))
    return Path(place) if place.endswith((".toml", ".parquet")) or "/" in place else None


def _absolute_cost(cost: str) -> str:
    file = cost_file(cost)
    if file is None:
        return cost
    return f"{_cost_prefix(cost)}{file.absolute()}"


def _cost_prefix(cost: str) -> str:
    return next((each for each in _COST_PREFIXES if cost.startswith(each)), "")


def _encode(value: Any) -> Any:
    if isinstance(value, Path):
        return {_PATH: str(value.absolute())}
    if isinstance(value, Mapping):
        return {"items": [[key, _encode(item)] for key, item in value.items()]}
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if isinstance(value, dict):
        if _PATH in value:
            return Path(value[_PATH])
        return {key: _decode(item) for key, item in value["items"]}
    return value
