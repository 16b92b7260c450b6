"""Parsing a large e-graph file: quick, small in memory, and no key given twice goes unseen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import whole_content

NODE_FIELDS = ("op", "children", "eclass", "cost", "subsumed")
"""The fields of an e-node, in the order of its tuple."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """Stands in parsed JSON for an object in which a key is given twice."""

    key: str


def parse_json(path: Path) -> Any:
    """Return the content of an e-graph file, compressed by gzip or not; no value in it is checked.

    Objects are dictionaries, but for two: ``Repeated`` is one that contradicts itself, and a tuple
    of the values of ``NODE_FIELDS`` is one that has all of these, or all but ``subsumed``, in this
    order, as e-nodes usually do (JSON has no tuples of its own).

    Raises:
        InputError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(whole_content(path), object_pairs_hook=_object)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> Any:
    # Unpacked by hand: it is called a million times, and is a fifth of the time of parsing so.
    if len(pairs) == 4:
        (first, op), (second, children), (third, eclass), (fourth, cost) = pairs
        if (first, second, third, fourth) == _USUAL:
            return op, children, eclass, cost, False
    fields = dict(pairs)
    if len(fields) < len(pairs):
        return Repeated(_first_repeated(pairs))
    return tuple(fields.values()) if tuple(fields) == NODE_FIELDS else fields


_USUAL = NODE_FIELDS[:-1]


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    """Return the first key that was there before; a million keys are no trouble."""
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            break
        keys.add(key)
    return key
