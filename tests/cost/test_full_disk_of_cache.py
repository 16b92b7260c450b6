"""A disk that is full under a cache costs what would be kept, and no result; later it is kept again."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import unless_full, write_aside
from relational_tensat.cost import cache as cache_module
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.earlier_runs import RunsBefore
from tests.cost.fakes import FakeDevice
from tests.cost.test_cache_files import CPU, products
from tests.run.resume.test_full_disk import file_limit
from tests.tiers import nightly

_KIB = 1024


@pytest.mark.parametrize("limit", [0, *map(nightly, (4 * _KIB, 13 * _KIB, 20 * _KIB, 300 * _KIB))])
def test_what_is_measured_is_known_whatever_the_disk(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "_IN_MEMORY", {})
    path = tmp_path / "costs.duckdb"
    cache = CostCache(path, is_dispensable=True)
    configurations = products(40)
    results = dict(FakeDevice().measure(configurations))
    with file_limit(limit), caplog.at_level(logging.WARNING):
        for configuration, result in results.items():
            cache.keep(CPU, configuration, result)
            RunsBefore(cache, CPU).add_seconds("run", "measuring", 1.0)
    assert ("not kept in the cost cache" in caplog.text) == (path in cache_module._IN_MEMORY)
    assert limit > 100 * _KIB or path in cache_module._IN_MEMORY
    cache_module._IN_MEMORY.clear()
    later = CostCache(path)  # another process, with room
    known = len(later.rows())
    for configuration, result in results.items():
        later.keep(CPU, configuration, result)
    assert len(later.rows()) == len(results) >= known


def test_who_asks_for_a_cache_is_told(tmp_path: Path) -> None:
    """``costs import``, for one, must not say that it has added what is lost."""
    configuration = products(1)[0]
    result = dict(FakeDevice().measure([configuration]))[configuration]
    with file_limit(0), pytest.raises(InputError):
        CostCache(tmp_path / "costs.duckdb").keep(CPU, configuration, result)


def test_a_file_of_a_cache_is_left_out_and_other_trouble_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kept.json"
    with file_limit(0), caplog.at_level(logging.WARNING), unless_full(), write_aside(path) as aside:
        (aside / path.name).write_text("text")
    assert "not kept in a cache" in caplog.text
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(InputError, match="No such file"),
        unless_full(),
        write_aside(tmp_path / "missing" / "x.json"),
    ):
        pass
