"""Fleets whose workers, machines and own processes are killed at events, and that are continued.

Of each fleet this is demanded: every model has one row, and a result with the bytes that it has without any
kill; the ledger has an attempt for each that was begun; nothing half-written is left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from relational_tensat.fleet import FleetRow, Ledger, fleet
from relational_tensat.formats.frontend import frontend_of
from relational_tensat.run.options import Options
from relational_tensat.tensor import Node, TensorType, build_graph

ROOT = Path(__file__).resolve().parents[2]
_RULE = "negative-difference"
_ALWAYS = ("--only", _RULE, "--iterations", "2", "--set", "verify-runs=1", "--json-events")
_OPTIONS = Options.of(deterministic=True, cost="t4", only=(_RULE,), iterations=2, verify_runs=1)
#: All but the fleet itself is killed only while no model runs for the third time, which is its last. Ray
#: hands tasks to a dead machine until it knows: so on machines that is the second time.
_LAST_KILLED, _LAST_KILLED_ON_MACHINES = 2, 1
#: An event is followed by a kill with that probability.
_KILLED = 0.5
#: The fleet's own process is killed so much less often than each other kind: with it, all others end.
_TIMES_OTHERS = 4
#: A worker that is to be killed is waited for, as one that begins is not there yet.
_FOR_A_WORKER_S = 5.0

Kill = Callable[[int], bool]
"""Kills something of a fleet, whose process has this id; returns whether there was something to kill."""


@dataclass
class KilledFleets:
    """Fleets on the same models, one after the other.

    Attributes:
        kills: by kind, what kills; ``fleet`` is the fleet's own process, which has the ledger open.
        done: the kills of all fleets so far, a record each.
    """

    folder: Path
    count: int
    on: str
    kills: dict[str, Kill]
    draw: random.Random
    done: list[dict[str, Any]] = field(default_factory=list)

    def prepare(self) -> None:
        """Write the models, and what becomes of them where nothing is killed."""
        self.write_models()
        rows = fleet([self.models / "*.json"], self.folder / "whole", _OPTIONS)
        self._digests = {row.model: row.output_digest for row in rows}

    @property
    def models(self) -> Path:
        """Where the models are."""
        return self.folder / "models"

    def write_models(self) -> None:
        """Write the models."""
        self.models.mkdir()
        for number in range(self.count):
            _write_model(self.models / f"m{number:02}.json", number)

    def flags(self, out: Path) -> tuple[str, ...]:
        """Return the options of the runs of a fleet."""
        return ("--deterministic", "--cost", "t4")

    def wrong(self, row: FleetRow, out: Path) -> Iterator[str]:
        """Yield what is wrong with a model's result."""
        if row.output_digest != self._digests[row.model]:
            yield f"other bytes ({row.state}: {row.reason})"

    def run(self, number: int, most: int) -> Iterator[dict[str, Any]]:
        """Run a fleet to its end, with at most so many kills; yield each, and at last what is wrong."""
        out, left = self.folder / f"out{number}", most
        line = [
            sys.executable, "-m", "relational_tensat", "fleet", "run", str(self.folder / "models/*.json"),
            "-o", str(out), "--on", self.on, *self.flags(out), *_ALWAYS,
        ]  # fmt: skip
        while True:
            self._running: Counter[str] = Counter()
            with subprocess.Popen(
                line, cwd=ROOT, text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
            ) as process:
                assert process.stderr is not None
                told = []
                for text in process.stderr:
                    told.append(text)
                    kill = self._kill_at(text, process.pid, left)
                    if kill is not None:
                        left -= 1
                        yield {"fleet": number, **kill}
            if process.returncode == 0:
                break
            if process.returncode != -signal.SIGKILL:
                yield {"fleet": number, "trouble": f"exit {process.returncode}: {told[-1].strip()}"}
                return
        yield {"fleet": number, "trouble": ", ".join(self._troubles(out))}

    def _kill_at(self, text: str, process: int, left: int) -> dict[str, Any] | None:
        event = json.loads(text) if text.startswith("{") else {}
        if not event:
            return None
        if event["event"] == "row":
            del self._running[event["model"]]
        else:
            self._running[event["model"]] += 1
        if not left or self.draw.random() > _KILLED:
            return None
        last = _LAST_KILLED_ON_MACHINES if "machine" in self.kills else _LAST_KILLED
        may_lose = max(self._running.values(), default=0) <= last
        kinds = [kind for kind in self.kills if kind == "fleet" or may_lose]
        kind = self.draw.choices(
            kinds, [1 if kind == "fleet" else _TIMES_OTHERS for kind in kinds]
        )[0]
        give_up_s = time.monotonic() + _FOR_A_WORKER_S
        while not self.kills[kind](process):
            if time.monotonic() > give_up_s:
                return None
            time.sleep(0.05)
        return {"kind": kind, "event": event["event"], "model": event["model"]}

    def _names(self) -> list[str]:
        return sorted(path.name for path in self.models.iterdir())

    def _troubles(self, out: Path) -> Iterator[str]:
        rows = Ledger(out).rows()
        counted = Counter(row.model for row in rows)
        yield from (f"{name} is lost" for name in self._names() if not counted[name])
        yield from (f"{model} has {count} rows" for model, count in counted.items() if count > 1)
        for row in rows:
            yield from (f"{row.model}: {text}" for text in self.wrong(row, out))
        begun = Counter(m for (m,) in Ledger(out).table("fleet_attempt", "model"))
        for row in rows:
            if begun[row.model] != row.attempts:
                yield f"{row.model}: {row.attempts} attempts, and {begun[row.model]} in the ledger"
        yield from (f"{path.name} is left" for path in out.rglob(".*"))


def kill_fleet(process: int) -> bool:
    """Kill the fleet's own process."""
    os.kill(process, signal.SIGKILL)
    return True


def kill_worker(process: int) -> bool:
    """Kill a process that a fleet on ``processes:N`` has."""
    workers = [pid for pid in _children(process) if "spawn_main" in _command(pid)]
    return _killed(workers)


def _killed(workers: Sequence[int]) -> bool:
    for pid in workers[-1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
    return bool(workers)


def _children(process: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    except OSError:
        return []


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class Machines:
    """A cluster of Ray whose machines are processes here; one that is killed is replaced."""

    def __init__(self, hosts: int = 2, cpus: int = 1, quiet: int = 0) -> None:
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # of a machine that is busy
        os.environ.setdefault("RAY_worker_niceness", "0")
        # A process that waits for its next task does not end.
        os.environ.setdefault("RAY_idle_worker_killing_time_threshold_ms", "600000")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", token_hex(16))
        os.environ["PYTHONPATH"] = str(ROOT)
        from ray.cluster_utils import Cluster

        self._memory = {"object_store_memory": 200 << 20}
        head = {"num_cpus": 0, "include_dashboard": False, **self._memory}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._cpus = cpus
        self._machines = [self._machine() for _ in range(hosts)]
        self._quiet = [self._quiet_machine() for _ in range(quiet)]
        self.address: str = self._cluster.address

    def kill_machine(self, process: int) -> bool:
        """Kill a machine with all that runs on it."""
        self._cluster.remove_node(self._machines.pop(0), allow_graceful=False)
        self._machines.append(self._machine())
        return True

    def _machine(self) -> Any:
        return self._cluster.add_node(num_cpus=self._cpus, **self._memory)

    def _quiet_machine(self) -> Any:
        return self._cluster.add_node(num_cpus=0, resources={"quiet_core": 1}, **self._memory)

    def kill_worker(self, process: int) -> bool:
        """Kill a process that computes a task."""
        return _killed([pid for each in self._machines for pid in _workers(each, "_computed")])

    def timing(self) -> list[list[int]]:
        """Return the processes that time something, of each quiet machine."""
        return [_workers(each, "_timed") for each in list(self._quiet)]

    def kill_quiet_machine(self, process: int) -> bool:
        """Kill a quiet machine on which something is timed."""
        busy = next((n for n, workers in enumerate(self.timing()) if workers), None)
        if busy is not None:
            self._cluster.remove_node(self._quiet.pop(busy), allow_graceful=False)
            self._quiet.append(self._quiet_machine())
        return busy is not None

    def close(self) -> None:
        """End the cluster."""
        self._cluster.shutdown()


def _workers(machine: Any, task: str) -> list[int]:
    """Return the processes of a machine that compute tasks of a function; Ray names them so."""
    raylets = [info.process.pid for info in machine.all_processes["raylet"]]
    workers = [pid for raylet in raylets for pid in _children(raylet)]
    return [pid for pid in workers if task in _command(pid)]


def _write_model(path: Path, number: int) -> None:
    kinds = dict.fromkeys(("a", "b"), TensorType("float32", (8, 4 + number)))
    nodes = [Node("sub", ("a", "b"), ("d",)), Node("neg", ("d",), ("v0",))]
    nodes += [Node("tanh", (f"v{i}",), (f"v{i + 1}",)) for i in range(number + 1)]
    graph = build_graph(path.stem, kinds, {}, nodes, [f"v{number + 1}"])
    frontend_of(path).write(graph, path, None)
