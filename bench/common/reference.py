"""A fixed statement, timed when a run is: how fast the machine is just then."""

from __future__ import annotations

import statistics
import time

import duckdb

#: Timed so often; the first few are not counted.
_TIMES, _FIRST = 25, 5

_QUERY = """
SELECT count(*) FROM e AS x JOIN e AS y ON x.a = y.id JOIN e AS z ON y.b = z.id
WHERE x.symbol = 3 AND y.symbol = 4
"""


def join_ms() -> float:
    """Return the CPU milliseconds of a join of three times 1,000 rows, the median of 20, one thread.

    A run of exploration is some thousand statements like this one. On the same machine it takes 1.8 to
    3.4 ms, as its other guests allow.
    """
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(
        "CREATE TABLE e AS SELECT i AS id, i % 50 AS symbol, (i * 7919) % 1000 AS a,"
        " (i * 31) % 1000 AS b FROM range(1000) AS t(i)"
    )
    taken_ms = []
    for _ in range(_TIMES):
        start_s = time.process_time()
        connection.execute(_QUERY).fetchall()
        taken_ms.append(1e3 * (time.process_time() - start_s))
    connection.close()
    return statistics.median(taken_ms[_FIRST:])
