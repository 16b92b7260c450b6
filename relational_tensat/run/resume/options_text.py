"""The options of a run as text, so that another process, in another folder, can go by them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from relational_tensat.base.option_json import from_json, to_json
from relational_tensat.run.options import Options

_COST_PREFIXES = ("analytic:", "table:")
#: What may be behind a profile's name.
_THREADS = re.compile(r":threads=\d+$")


def options_text(options: Options) -> str:
    """Return options as JSON, with absolute paths."""
    return json.dumps(to_json(options.replace(cost=_absolute_cost(options.costs.source))))


def read_options(text: str) -> Options:
    """Return the options that ``options_text`` wrote.

    Raises:
        InputError: they are those of another version of this program.
    """
    return from_json(Options, json.loads(text))


def cost_file(cost: str | None) -> Path | None:
    """Return the file that ``--cost`` names, None if it names a profile, table or device, or nothing."""
    if cost is None:
        return None
    place = _THREADS.sub("", cost.removeprefix(_cost_prefix(cost)))
    return Path(place) if place.endswith((".toml", ".parquet")) or "/" in place else None


def _absolute_cost(cost: str | None) -> str | None:
    file = cost_file(cost)
    if cost is None or file is None:
        return cost
    threads = _THREADS.search(cost)
    return f"{_cost_prefix(cost)}{file.absolute()}{threads[0] if threads else ''}"


def _cost_prefix(cost: str) -> str:
    return next((prefix for prefix in _COST_PREFIXES if cost.startswith(prefix)), "")
