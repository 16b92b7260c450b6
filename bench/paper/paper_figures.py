"""What TENSAT's paper says, from ``bench/data/``; sources stand there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "data" / "tensat_tables.json"

Published = Mapping[str, Any]


def by_model(table: str) -> dict[str, Published]:
    """Return the rows of one of the tables by model."""
    return {row["model"]: row for row in _content()[table]["runs"]}


def by_model_and_k(table: str) -> dict[tuple[str, int], Published]:
    """Return the rows of one of the tables by model and k_multi."""
    return {(row["model"], row["k_multi"]): row for row in _content()[table]["runs"]}


def timed_out_at_3() -> tuple[str, ...]:
    """Return the models whose extraction at k_multi = 3 met the paper's limit of an hour."""
    return tuple(_content()["figure_7"]["timed_out_at_3"])


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return content
