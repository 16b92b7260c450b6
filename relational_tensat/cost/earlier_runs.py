"""Earlier runs in the cost cache: the graphs that were timed whole, and how long was measured.

A run of the same model in the same way gets the same choice. It has the same costs, measures no more of
them, and its graphs do not race again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from relational_tensat.base import duckdb
from relational_tensat.base.files import sql
from relational_tensat.cost.cache import CostCache, in_memory_when_full
from relational_tensat.cost.device import DeviceKey
from relational_tensat.cost.key import device_columns
from relational_tensat.cost.race import Standing

#: Seconds that a run spent and a repeated run need not spend; and those that the fewest heats take of two
#: graphs, where these are too many.
MEASURING, RACING, PROBING = "measuring", "racing", "probing"

#: An interval whose ends are so many times apart, and that has 1 in it, tells nothing.
_WIDE = 1.25


@dataclass(frozen=True, slots=True)
class Raced:
    """A graph that was timed whole against an original.

    Attributes:
        standing: against the original; of one that won its race, in heats of its own.
        is_final: whether it won.
        noise: the original's standing against itself.
        date: UTC, ISO 8601.
    """

    standing: Standing
    is_final: bool
    noise: Standing
    date: str

    @property
    def tells_something(self) -> bool:
        """Whether it is worth to be kept: a machine that was busy then may be idle now."""
        return self.standing.is_clear or self.standing.high < _WIDE * self.standing.low


@dataclass(frozen=True, slots=True)
class SettledChoice:
    """The choice of a run.

    Attributes:
        graph: hash of the graph that won its races.
        choice: its e-nodes, as text.
        is_dearer: it cost more than the original by the sums.
        cost_ratio: its cost by the sums, as a fraction of the original's.
        has_held: there was nothing left to race; else the time was over.
    """

    graph: str
    choice: str
    is_dearer: bool
    cost_ratio: float
    has_held: bool


class RunsBefore:
    """A device's part of a cost cache.

    All methods raise ``InputError`` where the file cannot be used.
    """

    def __init__(self, cache: CostCache, key: DeviceKey) -> None:
        self._cache = cache
        self._columns = device_columns(key)

    @in_memory_when_full
    def raced(self, original: str, setting: str) -> dict[str, Raced]:
        """Return what is known of graphs, by hash.

        Args:
            original: hash of what they raced against.
            setting: how, and with which values.
        """
        if not self._cache.path.exists():
            return {}
        with self._opened() as connection:
            rows = connection.execute(
                sql("cost_cache/raced"),
                {**self._columns, "original": original, "setting": setting},
            ).fetchall()
        return {
            graph: Raced(Standing(*row[:4]), bool(row[4]), Standing(*row[5:9]), row[9])
            for graph, *row in rows
        }

    @in_memory_when_full
    def keep(self, original: str, setting: str, raced: Mapping[str, Raced]) -> None:
        """Write facts about graphs, by hash; they replace earlier ones."""
        known = list(raced.values())
        columns = {
            "graph": list(raced),
            "speedup": [each.standing.speedup for each in known],
            "low": [each.standing.low for each in known],
            "high": [each.standing.high for each in known],
            "heats": [each.standing.heats for each in known],
            "is_final": [each.is_final for each in known],
            "noise": [each.noise.speedup for each in known],
            "noise_low": [each.noise.low for each in known],
            "noise_high": [each.noise.high for each in known],
            "noise_heats": [each.noise.heats for each in known],
            "date": [each.date for each in known],
        }
        with self._opened() as connection:
            connection.execute(
                sql("cost_cache/add_raced"),
                {**self._columns, **columns, "original": original, "setting": setting},
            )

    @in_memory_when_full
    def settled(self, run: str, setting: str) -> SettledChoice | None:
        """Return what runs of this hash chose last; None where none has come to its end."""
        if not self._cache.path.exists():
            return None
        with self._opened() as connection:
            row = connection.execute(
                sql("cost_cache/settled"), {**self._columns, "run": run, "setting": setting}
            ).fetchone()
        return None if row is None else SettledChoice(*row)

    @in_memory_when_full
    def settle(self, run: str, setting: str, choice: SettledChoice) -> None:
        """Write a run's choice; it replaces those of earlier runs of its hash."""
        where = {**self._columns, "run": run, "setting": setting}
        with self._opened() as connection:
            connection.execute(sql("cost_cache/settle"), {**where, **asdict(choice)})

    @in_memory_when_full
    def seconds(self, run: str, what: str) -> float:
        """Return the seconds that runs of this hash have spent on ``MEASURING`` or ``RACING``."""
        if not self._cache.path.exists():
            return 0.0
        with self._opened() as connection:
            rows = connection.execute(
                sql("cost_cache/seconds"), {**self._columns, "run": run, "what": what}
            ).fetchall()
        return float(rows[0][0]) if rows else 0.0

    @in_memory_when_full
    def add_seconds(self, run: str, what: str, seconds: float) -> None:
        """Add to the seconds that runs of this hash have spent on something."""
        with self._opened() as connection:
            connection.execute(
                sql("cost_cache/add_seconds"),
                {**self._columns, "run": run, "what": what, "seconds": seconds},
            )

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._cache.opened() as connection:
            connection.execute(sql("cost_cache/raced_schema"))
            yield connection
