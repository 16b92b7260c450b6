"""Runs of the command line in processes that can be killed, without each of them importing everything.

A process of this module imports the package, and forks a child for each run that it is asked for. It
never runs anything itself, so it has no threads and no database that a child could inherit.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Forker:
    """Starts runs; each is a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, argv: Sequence[object], output: Path) -> int:
        """Start ``relational-tensat ARGV``; what it prints goes to a file. Return its process id."""
        return self._ask({"run": [str(argument) for argument in argv], "output": str(output)})

    def wait(self, pid: int) -> int:
        """Wait for a run; return its exit code, or minus the signal that ended it."""
        return self._ask({"wait": pid})

    def run(self, argv: Sequence[object], output: Path) -> int:
        """Start a run and wait for it; return its exit code."""
        return self.wait(self.start(argv, output))

    def kill_after(self, seconds: float, argv: Sequence[object], output: Path) -> bool:
        """Start a run and kill it after some time; return whether it was not done by then."""
        pid = self.start(argv, output)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)  # until it is waited for, its id is its own
        return self.wait(pid) == -signal.SIGKILL

    def _ask(self, request: dict[str, object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def forking() -> Iterator[Forker]:
    """Give a forker, and end it."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.kills.forker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            yield Forker(process)
        finally:
            process.kill()


def serve() -> None:
    """Answer requests until there are no more."""
    from relational_tensat.cli.main import main

    _import_all()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                with Path(request["output"]).open("w") as file:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
                    code = main(request["run"])
                    sys.stdout.flush()
                    os._exit(code)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _import_all() -> None:
    """Import what runs import when they need it."""
    import highspy  # noqa: F401
    import pyarrow.parquet  # noqa: F401


if __name__ == "__main__":
    serve()
