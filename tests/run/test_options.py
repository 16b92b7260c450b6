"""Options are checked when they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relational_tensat import explore, extract
from relational_tensat.base.errors import UsageError
from relational_tensat.base.paths import check_database, check_output, default_output
from relational_tensat.explore.limits import MULTI_SCHEDULES as MULTI_SCHEDULES_OF_LIMITS
from relational_tensat.explore.strategies import blocks
from relational_tensat.run.options import (
    BLOCKS,
    CYCLE_FILTERS,
    EXTRACTORS,
    ILP_CYCLES,
    MULTI_SCHEDULES,
    Options,
)


def test_the_names_are_those_of_the_parts() -> None:
    assert set(CYCLE_FILTERS) == set(explore.CYCLE_FILTERS)
    assert set(MULTI_SCHEDULES) == set(MULTI_SCHEDULES_OF_LIMITS)
    assert set(EXTRACTORS) == set(extract.METHODS)
    assert set(BLOCKS) == set(blocks.MODES)
    assert set(ILP_CYCLES) == set(extract.CYCLES)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"extractor": "ilb"}, "unknown extractor 'ilb'.*did you mean 'ilp'"),
        ({"cycle_filter": "eficient"}, "did you mean 'efficient'"),
        ({"multi_schedule": "frist"}, "did you mean 'first'"),
        ({"ilp_cycles": "integer"}, "expected one of auto, order, cuts, real, int, none"),
        ({"iterations": -1}, "iterations = -1, expected a whole number, at least 0"),
        ({"iterations": 1.5}, "iterations = 1.5"),
        ({"node_limit": 0}, "node_limit = 0"),
        ({"threads": True}, "threads = True"),
        ({"time_limit_s": float("nan")}, "time_limit_s = nan"),
        ({"time_limit_s": 0.0}, "time_limit_s = 0.0"),
        ({"extract_time_limit_s": float("inf")}, "extract_time_limit_s = inf"),
        ({"memory_limit": "2"}, "memory_limit = '2'"),
        ({"dims": {"batch": 0}}, "the dimension 'batch' = 0"),
    ],
)
def test_wrong_values(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Options(**wrong)


@pytest.mark.parametrize("text", ["2GB", "1.5 GiB", "500mb"])
def test_memory_limits(text: str) -> None:
    assert Options(memory_limit=text).memory_limit == text


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    model.write_text("{}")
    with pytest.raises(UsageError, match=r"suffix must be \.json or \.onnx; did you mean '\.json'"):
        check_output(tmp_path / "m.jsn", model)
    with pytest.raises(UsageError, match="does not exist"):
        check_output(tmp_path / "absent" / "m.json", model)
    with pytest.raises(UsageError, match="would overwrite the model"):
        check_output(tmp_path / "." / "m.json", model)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        check_output(tmp_path / "folder.json", model)
    assert check_output(None, model) is None
    assert check_output(default_output(model), model) == tmp_path / "m.opt.json"


def test_only_databases_are_replaced(tmp_path: Path) -> None:
    import duckdb

    check_database(tmp_path / "new.duckdb")
    duckdb.connect(str(tmp_path / "old.duckdb")).close()
    check_database(tmp_path / "old.duckdb")
    precious = tmp_path / "model.json"
    precious.write_text("{}")
    with pytest.raises(UsageError, match="is not a database, it is not overwritten"):
        check_database(precious)
    with pytest.raises(UsageError, match="does not exist"):
        check_database(tmp_path / "absent" / "x.duckdb")
    with pytest.raises(UsageError, match="is a folder"):
        check_database(tmp_path)
