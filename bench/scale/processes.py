"""A process for every measurement, and what becomes of one that does not answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict

from bench.scale.measure import Row, Task

#: What a process may take beside its time limit, which is exploration's and again extraction's: making
#: the graph, loading it, verification.
_MORE_S = 120.0


def run_task(task: Task) -> Row:
    """Measure in a process of its own; what went wrong with it is the row's note."""
    allowed_s = 2 * task.time_limit_s + _MORE_S
    command = [sys.executable, "-m", "bench.scale.measure", json.dumps(asdict(task))]
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, timeout=allowed_s, check=True)
    except subprocess.TimeoutExpired:
        return Row(task.family, task.size, "killed", note=f"no answer after {allowed_s:.0f} s")
    except subprocess.CalledProcessError as error:
        return Row(task.family, task.size, "failed", note=f"exit code {error.returncode}")
    return row_of(json.loads(process.stdout))


def row_of(values: dict[str, object]) -> Row:
    """Return the row that was written as JSON."""
    # Values of JSON have no types; they are those that another process made of a row's fields.
    longest = values.pop("longest_statement", ("", 0.0))
    return Row(**values, longest_statement=tuple(longest))  # type: ignore[arg-type]


#: How a task is measured; tests measure in their own process.
Measure = Callable[[Task], Row]
