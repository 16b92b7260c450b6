"""``python -m bench opaque``: predicted beside measured speed-ups, with operators carried through."""

from __future__ import annotations

import argparse
import tempfile
from datetime import date
from pathlib import Path

import onnx

from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, report_saved, save_with_table
from bench.common.table import Column, Table, Value
from bench.opaque.models import all_models
from relational_tensat.base.errors import RelationalTensatError, UsageError
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize

#: A prediction is right that is off by no more.
_CLOSE = 0.1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "opaque", help="predicted and measured gains with opaque operators"
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="operators; default: all")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of timing a model (20)")
    add_save(parser, "the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Optimize the models, timed, and print a table.

    Raises:
        UsageError: there is no such model.
    """
    models = {
        name: model for name, model in all_models() if not options.names or name in options.names
    }
    if not models:
        raise UsageError(f"no model has the operator {options.names[0]!r}")
    rows = [_row(name, model, options.budget) for name, model in models.items()]
    known = [row for row in rows if isinstance(row[3], float)]
    close = sum(row[4] == "yes" for row in known)
    columns = (
        Column("operator"), Column("nodes"), Column("predicted", 3), Column("measured", 3),
        Column("within 10 %"), Column("interval"), Column("note"),
    )  # fmt: skip
    note = (
        f"{len(rows)} models: within 10 % on {close}; {len(rows) - len(known)} without a measurement. "
        "Predicted is what kernels and a run take as modelled, with what was timed of opaque operators; "
        "measured is the race of whole graphs."
    )
    table = Table("opaque", "Gains with operators carried through", columns, tuple(rows), note)
    print(table.markdown())
    if options.save:
        path = RESULTS / f"opaque-{date.today()}.json"
        content = {"rows": [list(row) for row in rows]}
        report_saved(save_with_table(path, content, {}, table.markdown()))
    return 0


def _row(name: str, model: onnx.ModelProto, budget_s: float) -> tuple[Value, ...]:
    with tempfile.TemporaryDirectory(prefix="relational-tensat-opaque-") as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "out.onnx"
        onnx.save(model, source)
        try:
            options = Options.of(runs_on="onnxruntime", budget_s=budget_s)
            result = optimize(source, options, output=target)
        except RelationalTensatError as error:
            return name, len(model.graph.node), None, None, "", "", str(error)
    race = result.race
    sums_us = result.cost_before_us, result.cost_after_us
    if race is not None:
        sums_us = race.original_us, race.contenders[race.winner - 1].cost_us
    before, after = sums_us[0] + result.run_us, sums_us[1] + result.run_after_us
    predicted, standing = before / after, result.gain.measured
    if standing is None or (result.unchanged and result.race is None):
        return name, len(model.graph.node), predicted, None, "", "", "not timed"
    is_close = abs(predicted / standing.speedup - 1) <= _CLOSE
    interval = f"{standing.low:.3f} to {standing.high:.3f}"
    kept = "the original is kept" if result.unchanged else ""
    return (
        name, len(model.graph.node), predicted, standing.speedup, "yes" if is_close else "no",
        interval, kept,
    )  # fmt: skip
