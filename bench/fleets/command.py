"""``python -m bench fleets``: fleets whose processes are killed, and what a task takes beside itself."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, provenance, report_saved
from bench.common.table import table_row
from relational_tensat.base.errors import VerificationError

_MODELS = 12
_MOST_A_FLEET = 10


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("fleets", help="kill processes of fleets, and continue them")
    parser.add_argument("count", metavar="N", type=int, nargs="?", default=100, help="kills (100)")
    parser.add_argument(
        "--on", default="processes:2", help="or ray: two machines, which are processes"
    )
    parser.add_argument(
        "--timed", action="store_true",
        help="models are timed: Ray's two machines, and two quiet ones, which are killed too",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the moments (0)")
    parser.add_argument(
        "--overhead", action="store_true",
        help="instead: CPU ms of a task that does nothing, from fleets of 50 and of 250",
    )  # fmt: skip
    parser.add_argument(
        "--simulate", action="store_true",
        help="instead: how much faster up to 64 workers are, by kept durations; a table and a plot",
    )  # fmt: skip
    parser.add_argument(
        "--check-simulated", action="store_true",
        help="instead: tasks that wait, on 1, 2 and 3 hosts of Ray, against the simulation",
    )  # fmt: skip
    add_save(parser, "what became of each; a next call goes on")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Kill until so many kills are done; 4 if what must hold of every fleet does not hold of one."""
    if options.overhead:
        from bench.fleets.overhead import overhead

        print(overhead(options.on, 50, 250))
        return 0
    if options.simulate or options.check_simulated:
        return _simulate(options)
    place = "timed" if options.timed else options.on.partition(":")[0]
    path = RESULTS / f"fleets-{place}.jsonl"
    rows: list[dict[str, Any]] = []
    if options.save and path.exists():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="fleets-")))
        file = ends.enter_context(
            path.open("a", encoding="utf-8") if options.save else nullcontext()
        )
        fleets = _fleets(options, folder, ends)
        fleets.prepare()
        number = max((row["fleet"] for row in rows), default=-1)
        try:
            while (left := options.count - sum("kind" in row for row in rows)) > 0:
                number += 1
                fleets.draw = random.Random(f"{options.seed} {number}")
                for row in fleets.run(number, min(left, _MOST_A_FLEET)):
                    rows.append(row)
                    print(json.dumps(row), flush=True)
                    if file is not None:
                        print(json.dumps(row), file=file, flush=True)
        except KeyboardInterrupt:  # the table is of those that were killed so far
            print("interrupted: the next call goes on", file=sys.stderr)
    text = _table(rows, options)
    print(text)
    if options.save:
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        report_saved(path)
    return VerificationError.exit_code if any(row.get("trouble") for row in rows) else 0


def _simulate(options: argparse.Namespace) -> int:
    """Print what is simulated, or how near it is to real runs; 4 if one is a tenth off."""
    from bench.fleets import checked, simulate

    about = provenance()
    path = (
        RESULTS
        / f"fleets-{'checked' if options.check_simulated else 'simulated'}-{about['date']}.md"
    )
    code = 0
    if options.check_simulated:
        results = checked.check()
        code = VerificationError.exit_code if any(abs(each.error) > 0.1 for each in results) else 0
        text = checked.check_text(results)
    else:
        rows = simulate.speed_ups(simulate.Overheads())
        text = simulate.table(rows)
    print(text)
    if options.save:
        head = f"{about['date']}, {about['machine']['cpu']}, {about['machine']['cores']} cores\n\n"
        path.write_text(head + text, encoding="utf-8")
        if not options.check_simulated:
            simulate.draw(rows, path.with_suffix(".png"))
        report_saved(path)
    return code


def _fleets(options: argparse.Namespace, folder: Path, ends: ExitStack) -> Any:
    from bench.fleets.kills import Kill, KilledFleets, Machines, kill_fleet, kill_worker
    from bench.fleets.timed import TimedFleets

    kills: dict[str, Kill] = {"fleet": kill_fleet, "worker": kill_worker}
    if options.on != "ray" and not options.timed:
        return KilledFleets(folder, _MODELS, options.on, kills, random.Random())
    machines = Machines(quiet=2 if options.timed else 0)
    ends.callback(machines.close)
    given = (folder, _MODELS, f"ray:{machines.address}", kills, random.Random())
    kills |= {"worker": machines.kill_worker, "machine": machines.kill_machine}
    if options.timed:
        kills["quiet machine"] = machines.kill_quiet_machine
        return TimedFleets(*given, machines=machines)
    return KilledFleets(*given)


def _table(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Return how many kills of each kind there were, after which event, and what did not survive."""
    about = provenance()
    kills = [row for row in rows if "kind" in row]
    ended = [row for row in rows if "trouble" in row]
    events = ("begun", "row")
    result = (
        "a complete file that computes what the model does, with the operators of its report, and costs no "
        "more than that claims, no two things timed at once on a quiet machine"
        if options.timed
        else "the bytes that the model has without a kill"
    )
    lines = [
        f"{len(kills)} kills (SIGKILL) in {len(ended)} fleets of {_MODELS} models, "
        f"{'--timed' if options.timed else f'--on {options.on}'}; "
        f"{about['date']}, {about['machine']['cpu']}. Each fleet is held to this: one row for each model, "
        f"{result}, an attempt in the ledger for each that was begun, and nothing half-written.",
        "",
        table_row(["killed", "kills", "when a model was begun", "when a row landed"]),
        table_row(["---"] * 4),
    ]
    for kind in sorted({row["kind"] for row in kills}):
        counted = Counter(row["event"] for row in kills if row["kind"] == kind)
        amounts = [sum(counted.values()), *(counted[event] for event in events)]
        lines.append(table_row([kind, *map(str, amounts)]))
    troubles = [row for row in ended if row["trouble"]]
    lines += ["", f"{len(ended) - len(troubles)} of {len(ended)} fleets kept all of it."]
    lines += [f"- fleet {row['fleet']}: {row['trouble']}" for row in troubles]
    return "\n".join(lines) + "\n"
