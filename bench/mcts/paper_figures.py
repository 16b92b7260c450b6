"""What the paper reports, from ``bench/data/``; where each figure is from stands there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "data" / "mcts_tables.json"

Published = Mapping[str, Any]

#: By profile, the tables of initial e-graphs and of searches on the GPU whose figures stand beside ours.
TABLES_OF = {"a100": ("table_1", "table_2"), "tensat_t4": ("table_3", "table_4")}


def initial(cost: str) -> Mapping[str, Published]:
    """Return the predicted runtimes of initial e-graphs by model."""
    return {row["model"]: row for row in _content()[TABLES_OF[cost][0]]["runs"]}


def searches(cost: str) -> Mapping[tuple[str, str, str], Published]:
    """Return tree searches by model, main and final extraction; TENSAT's have no main one."""
    return {
        (row["model"], row["main"], row["final"]): row
        for row in _content()[TABLES_OF[cost][1]]["runs"]
    }


def planning_s(model: str) -> float:
    """Return the seconds of planning on the A100 machine, main extraction by Algorithm 2, final by ILP."""
    return float(searches("a100")[model, "ocf", "ilp"]["seconds"])


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return content
