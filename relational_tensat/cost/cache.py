"""The cost cache: measured times in one DuckDB file, which any number of processes may share.

DuckDB lets one process at a time write to a file, so nobody keeps it open. A batch is looked up in one
query, and each result is written by itself: attach, insert and detach take some 10 ms, and measuring takes
tenths of a second. A process that finds the file locked waits for those milliseconds. A result
that has been written is there for good, whatever happens to the process: DuckDB commits through its log.
Ctrl-C waits until a row is written: DuckDB would drop the statement that it interrupts. A folder of
small files would need no lock, and would have to be tidied up; this is one file, open to anyone's SQL.

A row is used for exactly the device, driver, libraries and protocol that it was measured with.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.files import is_disk_full, sql
from relational_tensat.base.folders import CACHE_VARIABLE as CACHE_VARIABLE
from relational_tensat.base.folders import PrivateFolder, check_own, user_cache
from relational_tensat.base.watch import DeferredInterrupt
from relational_tensat.cost.device import Configuration, DeviceKey, TimingSample, Unmeasurable
from relational_tensat.cost.key import TIME_COLUMNS, Record, configuration_text, device_columns, now
from relational_tensat.cost.race import RACE_VERSION, RaceOutcome

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: Another process holds the file for milliseconds; one that does so for longer is stuck.
_LOCK_WAIT_S = 30.0
_LOCK_RETRY_S = (0.005, 0.025)
#: The advice where a cache cannot be used.
_ANOTHER = "--cost-cache names another file"
#: The tables that are made when they are first needed, and what deletes a key's rows of each.
_MORE_TABLES = {
    "race_outcome": "cost_cache/forget_races",
    "compiled_cost": "cost_cache/forget_compiled",
    "raced_graph": "cost_cache/forget_raced",
    "run_seconds": "cost_cache/forget_seconds",
    "settled_choice": "cost_cache/forget_settled",
}


def default_cache() -> Path:
    """Return the cost cache of the user who runs this."""
    return user_cache() / "costs.duckdb"


def in_memory_when_full(method: _Method) -> _Method:
    """Decorator of what uses a cache: where its disk is full, it is done once more, in memory."""

    @wraps(method)
    def done(holder: Any, *args: Any, **options: Any) -> Any:
        try:
            return method(holder, *args, **options)
        except InputError as error:
            if not getattr(holder, "_cache", holder).go_on_in_memory(error):
                raise
        return method(holder, *args, **options)

    return cast("_Method", done)


class CostCache:
    """A cost cache; the file is made when the first row is written.

    All methods raise ``InputError`` where the file cannot be used: it is no cost cache, cannot be read or
    written, or another process keeps it.
    """

    def __init__(self, path: Path, *, is_dispensable: bool = False) -> None:
        """Name its file.

        Args:
            is_dispensable: whether it may be lost if the disk is full: times are kept in memory then, and
                for this process only.
        """
        self.path = path
        self._is_dispensable = is_dispensable

    @in_memory_when_full
    def find(
        self, key: DeviceKey, configurations: Sequence[Configuration]
    ) -> dict[Configuration, TimingSample | Unmeasurable]:
        """Return what is known of a batch of configurations under exactly this key, in one query."""
        if not self.path.exists():
            return {}
        by_text = {
            configuration_text(configuration): configuration for configuration in configurations
        }
        with self.opened() as connection:
            rows = connection.execute(
                sql("cost_cache/find"), {**device_columns(key), "configurations": [*by_text]}
            ).fetchall()
        return {by_text[text]: _result(*columns) for text, *columns in rows}

    @in_memory_when_full
    def count_outdated(self, key: DeviceKey, configurations: Sequence[Configuration]) -> int:
        """Return of how many configurations there are times of this device under another key only."""
        if not self.path.exists():
            return 0
        texts = [configuration_text(configuration) for configuration in configurations]
        with self.opened() as connection:
            ((count,),) = connection.execute(
                sql("cost_cache/outdated"), {**device_columns(key), "configurations": texts}
            ).fetchall()
        return int(count)

    def keep(
        self, key: DeviceKey, configuration: Configuration, result: TimingSample | Unmeasurable
    ) -> None:
        """Write one result; when this returns, it is there for good."""
        self.add([Record(configuration_text(configuration), key, result, now())])

    @in_memory_when_full
    def add(self, records: Sequence[Record]) -> int:
        """Write rows; where there is one already, it stays. Return how many are new."""
        if not records:
            return 0
        columns: dict[str, list[Any]] = {}
        for record in records:
            for name, value in _columns(record).items():
                columns.setdefault(name, []).append(value)
        with self.opened() as connection:
            ((count,),) = connection.execute(sql("cost_cache/add"), columns).fetchall()
        return int(count)

    @in_memory_when_full
    def rows(self) -> list[Record]:
        """Return everything."""
        if not self.path.exists():
            return []
        with self.opened() as connection:
            rows = connection.execute(sql("cost_cache/rows")).fetchall()
        return [
            Record(
                text,
                DeviceKey(kind, device, driver, json.loads(libraries), protocol),
                _result(*result),
                date,
            )
            for text, kind, device, driver, libraries, protocol, *result, date in rows
        ]

    @in_memory_when_full
    def keep_races(self, key: DeviceKey, outcomes: Sequence[RaceOutcome]) -> None:
        """Write the results of races on a device; they replace earlier ones of the same models."""
        columns = {
            "model": [each.model for each in outcomes],
            "before_us": [json.dumps(each.before_us, sort_keys=True) for each in outcomes],
            "after_us": [json.dumps(each.after_us, sort_keys=True) for each in outcomes],
            "speedup": [each.speedup for each in outcomes],
            "error": [each.error for each in outcomes],
        }
        with self.opened() as connection:
            connection.execute(sql("cost_cache/race_schema"))
            connection.execute(
                sql("cost_cache/replace_races"), {"model": columns["model"], **device_columns(key)}
            )
            connection.execute(
                sql("cost_cache/add_races"),
                {**columns, **device_columns(key), "race_version": RACE_VERSION, "date": now()},
            )

    @in_memory_when_full
    def races(self, key: DeviceKey) -> list[RaceOutcome]:
        """Return what all races under exactly this key said, as far as they were run as today."""
        if not self.path.exists():
            return []
        with self.opened() as connection:
            if not _has_table(connection, "race_outcome"):
                return []
            connection.execute(sql("cost_cache/race_schema"))
            rows = connection.execute(
                sql("cost_cache/races"), {**device_columns(key), "race_version": RACE_VERSION}
            ).fetchall()
        return [
            RaceOutcome(model, json.loads(before_us), json.loads(after_us), speedup, error)
            for model, before_us, after_us, speedup, error in rows
        ]

    @in_memory_when_full
    def find_compiled(
        self, key: DeviceKey, codes: Sequence[str], compiler: str
    ) -> dict[str, TimingSample]:
        """Return what is known of some codes, compiled so, under exactly this key, in one query."""
        if not self.path.exists():
            return {}
        where = {**device_columns(key), "codes": list(codes), "compiler": compiler}
        with self.opened() as connection:
            if not _has_table(connection, "compiled_cost"):
                return {}
            rows = connection.execute(sql("cost_cache/find_compiled"), where).fetchall()
        return {code: TimingSample(*row) for code, *row in rows}

    @in_memory_when_full
    def keep_compiled(
        self, key: DeviceKey, compiler: str, samples: Mapping[str, TimingSample]
    ) -> None:
        """Write what some codes take, compiled so."""
        columns = {
            name: [getattr(each, name) for each in samples.values()]
            for name in (*TIME_COLUMNS, "samples")
        }
        where = {**device_columns(key), "code": list(samples), "compiler": compiler}
        with self.opened() as connection:
            connection.execute(sql("cost_cache/compiled_schema"))
            connection.execute(sql("cost_cache/add_compiled"), {**where, **columns, "date": now()})

    def keys(self) -> list[DeviceKey]:
        """Return what any table has rows of: graphs race on devices on which nothing was measured, too."""
        if not self.path.exists():
            return []
        found = set()
        with self.opened() as connection:
            for table in ("measured_cost", *_MORE_TABLES):
                if _has_table(connection, table):
                    columns = "kind, device, driver, libraries, protocol"
                    text = f"-- keys\nSELECT DISTINCT {columns} FROM {table}"
                    found |= {tuple(row) for row in connection.execute(text).fetchall()}
        return [
            DeviceKey(kind, device, driver, json.loads(libraries), protocol)
            for kind, device, driver, libraries, protocol in sorted(found)
        ]

    def forget(self, key: DeviceKey) -> int:
        """Delete the rows of one key, the races under it, and the times of compiled code; return how many
        rows there were."""
        if not self.path.exists():
            return 0
        with self.opened() as connection:
            for table, statement in _MORE_TABLES.items():
                if _has_table(connection, table):
                    connection.execute(sql(statement), device_columns(key))
            ((count,),) = connection.execute(
                sql("cost_cache/forget"), device_columns(key)
            ).fetchall()
        return int(count)

    @contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Attach the file for a statement or two; make it, and its table, where they are missing."""
        with DeferredInterrupt() as interruption, _ENGINE_LOCK:
            if self._is_dispensable and self.path in _IN_MEMORY:
                yield _IN_MEMORY[self.path]
                return
            with self._attached(interruption) as engine:
                yield engine

    def go_on_in_memory(self, error: InputError) -> bool:
        """Keep what comes in memory, if a full disk has made something fail, and if it may be lost."""
        if not (self._is_dispensable and is_disk_full(error)):
            return False
        _log.warning("not kept in the cost cache: %s", error)
        _engine.cache_clear()  # DuckDB does not go on with a database that it could not write
        _IN_MEMORY[self.path] = duckdb.open_database(None, {"threads": 1})
        _IN_MEMORY[self.path].execute(sql("cost_cache/schema"))
        return True

    @contextmanager
    def _attached(self, interruption: DeferredInterrupt) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            engine = _engine(self.path)
            self._attach(engine, interruption)
            try:
                engine.execute("USE attached")
                self._check(engine)
                yield engine
            finally:
                engine.execute("USE memory")
                engine.execute("DETACH attached")
        except duckdb.Error as error:
            raise InputError(f"{self.path}: {first_line(error)}") from error

    def _make(self) -> None:
        """Make an empty cache aside and give it its name.

        DuckDB makes a file first and locks and fills it after, so another process that opens it in between
        finds no database; one that is killed there leaves none.
        """
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with PrivateFolder(folder, self.path.name) as aside:
                new = aside.path / self.path.name
                duckdb.open_database(new, writes=True).close()
                _name_once(new, self.path)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"{folder}: a cost cache cannot be made there: {reason}; {_ANOTHER}"
            ) from error
        except duckdb.Error as error:
            raise InputError(
                f"{self.path}: cannot be made: {first_line(error)}; {_ANOTHER}"
            ) from error

    def _attach(self, engine: duckdb.DuckDBPyConnection, interruption: DeferredInterrupt) -> None:
        if not self.path.exists():
            self._make()
        check_own(self.path)
        give_up = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                engine.execute(f"ATTACH {_quoted(self.path)} AS attached (TYPE duckdb)")
                return
            except duckdb.Error as error:
                if not _is_lock(error):
                    raise InputError(
                        f"{self.path}: cannot be used as a cost cache: {first_line(error)}; {_ANOTHER}"
                    ) from error
                if time.monotonic() > give_up:
                    raise InputError(
                        f"{self.path}: another process has kept it for {_LOCK_WAIT_S:.0f} s; "
                        f"{_ANOTHER}"
                    ) from error
            interruption.check()
            time.sleep(random.uniform(*_LOCK_RETRY_S))

    def _check(self, engine: duckdb.DuckDBPyConnection) -> None:
        """Make the table in a new file; refuse databases of something else."""
        if _has_table(engine, "measured_cost"):
            return
        tables = {str(name) for (name,) in engine.execute("SHOW TABLES").fetchall()}
        if tables:
            raise InputError(
                f"{self.path}: a database with the tables {', '.join(sorted(tables))}, "
                f"expected a cost cache; {_ANOTHER}"
            )
        engine.execute(sql("cost_cache/schema"))


#: Stand-ins for caches whose disks are full, by their paths.
_IN_MEMORY: dict[Path, duckdb.DuckDBPyConnection] = {}
_log = logging.getLogger("relational_tensat")

#: One thread at a time has a cache attached: DuckDB's locks are between processes.
_ENGINE_LOCK = threading.Lock()


@lru_cache(maxsize=4)
def _engine(path: Path) -> duckdb.DuckDBPyConnection:
    """Return the DuckDB that a file is attached to: starting one takes longer than writing a row."""
    return duckdb.open_database(None, {"threads": 1, "temp_directory": ""}, attaches=path)


def _has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether the attached cache has a table: caches of before have only the first."""
    try:
        connection.execute(f"FROM {name} LIMIT 0")  # SHOW TABLES takes ten times as long
    except duckdb.CatalogException:
        return False
    return True


def _columns(record: Record) -> Mapping[str, Any]:
    return {
        "configuration": record.configuration,
        **device_columns(record.key),
        **_result_columns(record.result),
        "date": record.date,
    }


def _result_columns(result: TimingSample | Unmeasurable) -> Mapping[str, Any]:
    if isinstance(result, Unmeasurable):
        return {**dict.fromkeys((*TIME_COLUMNS, "samples")), "reason": result.reason}
    return {
        "median_us": result.median_us,
        "p10_us": result.p10_us,
        "p90_us": result.p90_us,
        "samples": result.samples,
        "reason": None,
    }


def _result(
    median_us: float, p10_us: float, p90_us: float, samples: int, reason: str | None
) -> TimingSample | Unmeasurable:
    if reason is not None:
        return Unmeasurable(reason)
    return TimingSample(median_us, p10_us, p90_us, samples)


def _quoted(path: Path) -> str:
    return "'" + duckdb.database_name(path).replace("'", "''") + "'"


def _name_once(new: Path, path: Path) -> None:
    """Give a file its name unless another process was first; its file then stays."""
    try:
        os.link(new, path)
    except FileExistsError:
        pass
    except (
        OSError
    ):  # a file system without hard links: what the other kept in these milliseconds is lost
        new.replace(path)


def _is_lock(error: duckdb.Error) -> bool:
    return isinstance(error, duckdb.IOException) and "set lock" in str(
        error
    )  # and no damaged block
