"""``fleet``: many models into a folder, and what became of them."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import InputError, UsageError, first_line
from relational_tensat.base.option import options_in
from relational_tensat.base.outputs import DATABASE, PAGE
from relational_tensat.base.shown_text import escaped
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_model_files
from relational_tensat.cli.parser import Parser, add_tree, written_values
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from relational_tensat.fleet.fleet import FleetPlan
    from relational_tensat.fleet.task import FleetRow, FleetTask

#: Options that name one file: each model has its own.
_OF_ONE = ("db", "view", "kernels", "force", "inputs", "certificate")
#: Entries of a file of --config beside its options.
_SETTINGS = ("models", "output", "on", "certificates", "pages", "savings")
_BESIDE = ("certificates", "pages", "savings")


def fleet_arguments(parser: Parser) -> None:
    """Declare the flags of ``fleet``."""
    parser.usage = "relational-tensat fleet run MODEL… -o FOLDER [options of run]"
    add_model_files(parser, "*")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER",
        help="where the results go, and the ledger fleet.duckdb; the same command goes on there",
    )  # fmt: skip
    parser.add_argument(
        "--on", metavar="RUNNER",
        help="processes:N, ray, ray:ADDRESS or slurm:N: several at a time need --effort low or "
        "--deterministic; or here, where a crash ends all [processes:1]",
    )  # fmt: skip
    parser.add_argument(
        "--config", type=Path, metavar="FILE",
        help="a .toml file with models, output, on, and a table [options]; flags go before it",
    )  # fmt: skip
    parser.add_argument(
        "--certificates", action="store_true",
        help="write a certificate beside each result, NAME.proof.json: relational-tensat check replays it",
    )  # fmt: skip
    parser.add_argument(
        "--pages", action="store_true", help="write the page of each run, NAME.html"
    )
    parser.add_argument(
        "--savings", action="store_true",
        help="run each model again without each rule that its result needs: what a rule saved",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object a model, a line each"
    )
    parser.add_argument(
        "--json-events", action="store_true",
        help="print one JSON object a line on standard error when a model begins and when its row lands",
    )  # fmt: skip
    add_tree(parser, Options)


def run_fleet(args: argparse.Namespace) -> int:
    """Optimize the models that are not done; print a line for each, and a summary."""
    from relational_tensat.fleet.fleet import Beside, fleet

    values = written_values(args, (option for _, option in options_in(Options)))
    settings = {} if args.config is None else _read_config(args.config)
    values = {**settings.pop("options", {}), **values}
    for name in _OF_ONE:
        if name in values:
            raise UsageError(f"--{name} is for one model, expected relational-tensat run")
    models: Any = args.models or settings.get("models")
    output: Any = args.output or settings.get("output")
    for name, value in (("MODEL", models), ("-o FOLDER", output)):
        if not value:
            raise UsageError(f"fleet: expected {name} (see relational-tensat fleet run --help)")
    display = _Display(args)
    try:
        with display:
            rows = fleet(
                [models] if isinstance(models, str) else models,
                output,
                Options.of(**values),
                on=args.on or settings.get("on", "processes:1"),
                beside=Beside(
                    **{name: getattr(args, name) or settings.get(name, False) for name in _BESIDE}
                ),
                planned=display.planned,
                begun=display.begun,
                noted=display.noted,
            )
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted after {display.count} models: the same command goes on\n")
        raise
    if not args.json:
        sys.stdout.write(_summary(rows, display.count) + "\n")
    return 0


def _read_config(path: Path) -> dict[str, Any]:
    """Return what a file of ``--config`` says.

    Raises:
        InputError: it cannot be read, or has what is no setting of a fleet.
    """
    import tomllib  # few fleets have one

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from None
    for name in content:
        if name not in (*_SETTINGS, "options"):
            known = ", ".join((*_SETTINGS, "[options]"))
            raise InputError(
                f"{path}: {escaped(name)!r} is no setting of a fleet, expected {known}"
            )
    return content


class _Display:
    """Shows how a fleet proceeds: a line a model, JSON, and on a terminal what runs now and what is left.

    Attributes:
        count: models whose rows have landed.
        sizes: of models that have not ended, by name: their memory, which their time goes with.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.count = 0
        self.sizes: dict[str, int] = {}
        self._all, self._started_s = 0, time.monotonic()
        self._args = args
        self._running: dict[str, float] = {}
        self._live: Any = None
        if sys.stdout.isatty() and not (args.json or args.json_events or args.quiet):
            from rich.live import Live

            self._live = Live(get_renderable=self._table, refresh_per_second=2, transient=True)

    def __enter__(self) -> _Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def planned(self, plan: FleetPlan) -> None:
        if plan.tasks and not self._args.json:
            self._show(plan_text(plan))
        self.sizes = {task.model: task.memory_bytes for task in plan.tasks}
        self._all, self._started_s = sum(self.sizes.values()), time.monotonic()

    def begun(self, task: FleetTask) -> None:
        self._running[task.model] = time.monotonic()
        self._tell("begun", model=task.model, attempt=task.attempts)

    def noted(self, row: FleetRow) -> None:
        self.count += 1
        self._running.pop(row.model, None)
        self.sizes.pop(row.model, None)
        self._show(json.dumps(_as_object(row)) if self._args.json else line_of(row))
        values = {"state": row.state, "speedup": row.speedup, "host": row.host}
        self._tell("row", model=row.model, attempt=row.attempts, **values)

    def _show(self, line: str) -> None:
        if self._live is None:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        else:
            self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
            self._live.refresh()

    def _tell(self, event: str, **values: Any) -> None:
        if self._args.json_events:
            sys.stderr.write(json.dumps({"event": event, **values}) + "\n")
            sys.stderr.flush()

    def _table(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table("running", "seconds", box=None)
        for model, since_s in list(self._running.items()):
            table.add_row(Text(escaped(model)), f"{time.monotonic() - since_s:.0f}")
        return Group(table, Text(self.left()))

    def left(self) -> str:
        """Return how many models are left, and for how long, by what the others took for their sizes."""
        text = f"{self.count} ended, {len(self.sizes)} left"
        left = sum(self.sizes.values())
        if not left or left == self._all:
            return text
        left_s = (time.monotonic() - self._started_s) * left / (self._all - left)
        return (
            f"{text}, about {left_s / 60:.0f} min"
            if left_s >= 60
            else f"{text}, about {left_s:.0f} s"
        )


def status_arguments(parser: Parser) -> None:
    """Declare the flags of ``fleet status``."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the output folder of a fleet")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def fleet_status(args: argparse.Namespace) -> int:
    """Print what became of the models so far."""
    from relational_tensat.fleet.fleet import ledger_of

    rows = ledger_of(args.folder).rows()
    if args.json:
        sys.stdout.write(json.dumps([_as_object(row) for row in rows], indent=2) + "\n")
        return 0
    for row in rows:
        sys.stdout.write(line_of(row) + "\n")
    sys.stdout.write(_summary(rows, len(rows)) + "\n")
    return 0


def page_arguments(parser: Parser) -> None:
    """Declare the flags of ``fleet page``."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the output folder of a fleet")
    parser.add_argument(
        "-o", "--output", type=PAGE, metavar="FILE",
        help="where to write [FOLDER/fleet.html]",
    )  # fmt: skip


def write_page(args: argparse.Namespace) -> int:
    """Write the page of a fleet, also of one that runs."""
    from relational_tensat.base.files import write_aside
    from relational_tensat.fleet.fleet import ledger_of
    from relational_tensat.fleet.page import fleet_page

    path = args.output or args.folder / "fleet.html"
    text = fleet_page(ledger_of(args.folder).rows(), path.parent)
    with write_aside(path) as aside:
        (aside / path.name).write_text(text, encoding="utf-8", errors="backslashreplace")
    write_line(str(path))
    return 0


def lake_arguments(parser: Parser) -> None:
    """Declare the flags of ``fleet lake``."""
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER", help="the output folder of a fleet"
    )
    parser.add_argument(
        "-o", "--output", type=DATABASE, metavar="FILE", required=True,
        help="the catalogue; these fleets' rows are replaced where it has them",
    )  # fmt: skip


def write_lake(args: argparse.Namespace) -> int:
    """Put ledgers into a catalogue."""
    from relational_tensat.fleet.lake import add_to_lake

    add_to_lake(args.folders, args.output)
    write_line(str(args.output))
    return 0


def plan_text(plan: FleetPlan) -> str:
    """Return in one line what a fleet does now, and what bounds it."""
    count = len(plan.tasks)
    text = f"{count} model{'s' * (count > 1)} to optimize, {plan.at_once} at a time"
    if plan.quiet_cores and plan.at_once > 1:
        cores = f"{plan.quiet_cores} quiet core{'s' * (plan.quiet_cores > 1)}"
        text += f"; timed parts take turns on {cores}, {2 * plan.quiet_cores} would halve that"
    return text


def line_of(row: FleetRow) -> str:
    """Return a row in one line, with names of files shown safely."""
    if row.speedup is None:
        return escaped(f"{row.model}: {row.state}: {row.reason}")
    interval = "" if row.low is None else f" [{row.low:.3f}, {row.high:.3f}]"
    gain = "the original" if row.state == "kept" else f"{row.speedup:.3f} times as fast{interval}"
    note = f", {row.reason}" if row.reason else ""
    place = "" if row.host in ("", platform.node()) else f" on {row.host}"
    took = f"{row.wall_s:.1f} s{place}"
    return escaped(f"{row.model}: {row.state}, {gain}, {row.basis}, {took}{note}")


def _summary(rows: list[FleetRow], now: int) -> str:
    counted = Counter(row.state for row in rows)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counted.items()))
    before = len(rows) - now
    earlier = f"; {before} of them done before" if before else ""
    return f"{len(rows)} models: {states or 'none'}{earlier}"


def _as_object(row: FleetRow) -> dict[str, Any]:
    values = asdict(row)
    del values["report"]
    return values | {
        "ended": row.ended.isoformat(),
        "rules": dict(row.rules),
        "savings": dict(row.savings),
    }
