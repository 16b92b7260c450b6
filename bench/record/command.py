"""``python -m bench record``: measure what a recorded table of this machine's device should have."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from relational_tensat.base.errors import UsageError, unknown
from relational_tensat.cost.device import Device
from relational_tensat.cost.opener import DEVICES, open_device


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("record", help="make a recorded table of this machine's device")
    parser.add_argument("device", choices=DEVICES, help="the device, as after --cost")
    parser.add_argument("table", metavar="FILE", type=Path, help="NAME.parquet")
    parser.add_argument(
        "--models", metavar="A,B", default="", help="only these; default: the 13 graphs, all files"
    )
    parser.add_argument(
        "--rewritten", action="store_true", help="what rules can make of the models, too"
    )
    parser.add_argument("--cost-cache", metavar="FILE", type=Path, help="(the user's own)")
    parser.add_argument("--seconds", metavar="S", type=float, default=600.0, help="at most (600)")
    parser.add_argument(
        "--patience",
        metavar="S",
        type=float,
        help="wait so long for undisturbed moments, per configuration; only of cpu (1)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure the models' graphs first, what they can become then; write the table whatever is in.

    Raises:
        UsageError: a model does not exist.
        MissingDependencyError: what the device needs is not installed.
        InputError: the cache or the table cannot be used.
    """
    from bench.record import configurations as record
    from relational_tensat.cost.cache import CostCache, default_cache
    from relational_tensat.cost.measured_source import MeasuredSource

    until_s = time.perf_counter() + options.seconds
    models = record.all_models()
    names = options.models.split(",") if options.models else list(models)
    for name in names:
        if name not in models:
            raise unknown("model", name, models)
    device = _device(options.device, options.patience)
    cache = CostCache(options.cost_cache or default_cache())
    source = MeasuredSource(options.device, device, cache)
    graphs = {name: record.load(name, models[name]) for name in names}
    configurations_of = {
        "graph": record.graph_configurations,
        "e-graph": record.egraph_configurations,
    }
    configurations_by_label = {}
    for scope in ("graph", "e-graph") if options.rewritten else ("graph",):
        for name, graph in graphs.items():
            if time.perf_counter() > until_s:
                break
            timed = [
                configuration
                for configuration in configurations_of[scope](graph)
                if not source.is_free(configuration)
            ]
            configurations_by_label[f"{name}, {scope}"] = timed
            for measured_count in record.record(source, timed, until_s):
                print(
                    f"\r{name}, {scope}: {measured_count}/{len(timed)} ",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
            print(file=sys.stderr)
    for row in record.coverage(device, cache, configurations_by_label):
        print(f"{row.model}: {row.measured} of {row.total} configurations measured")
    print(f"{record.export(device, cache, options.table):,} configurations in {options.table}")
    return 0


def _device(name: str, patience_s: float | None) -> Device:
    """Return a device, a processor with so much patience.

    Raises:
        UsageError: the device waits for nothing.
    """
    if patience_s is None:
        return open_device(name)
    kind, _, mode = name.partition(":")
    if kind != "cpu" or not patience_s >= 0:
        raise UsageError(f"--patience {patience_s} with {name}, expected seconds, and cpu")
    from relational_tensat.cost import cpu

    return cpu.open_device(mode or "off", patience_s)
