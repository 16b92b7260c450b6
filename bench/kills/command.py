"""``python -m bench kills``: a run with a database, killed at random moments and resumed."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save
from bench.common.saving import RESULTS, report_saved, save_result
from relational_tensat.base.errors import VerificationError

MODEL = Path(__file__).parents[1] / "inputs" / "transformer_block.onnx"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("kills", help="kill runs at random moments, and resume them")
    parser.add_argument("count", metavar="N", type=int, nargs="?", default=100, help="kills (100)")
    parser.add_argument("--model", metavar="FILE", type=Path, default=MODEL, help=f"({MODEL.name})")
    parser.add_argument(
        "--all", action="store_true", help="runs of every kind that writes something, in turn"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the moments (0)")
    add_save(parser, "what became of each")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Kill and resume; 4 if a run ends otherwise than one that nobody killed."""
    return _run_all(options) if options.all else _run_one(options)


def _run_all(options: argparse.Namespace) -> int:
    """Kill runs of all kinds; the table says of each how many were killed where, and survived."""
    from bench.kills.forker import forking
    from bench.kills.kinds import KINDS, KilledKind

    draw = random.Random(options.seed)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="kills-") as name, forking() as forker:
        kinds = [KilledKind(kind, forker, Path(name), options.model) for kind in KINDS]
        for index in range(options.count):
            kind, fraction = kinds[index % len(kinds)], draw.random()
            try:
                survival = kind.survived(index, fraction)
            except KeyboardInterrupt:  # the table is of those that were killed so far
                break
            rows.append({"kind": kind.kind, "moment": round(fraction, 4), **asdict(survival)})
            print(
                f"{index + 1}: {kind.kind} at {fraction:.3f}, {survival.place} {survival.trouble}",
                flush=True,
            )
    places = Counter((str(row["kind"]), str(row["place"])) for row in rows)
    lines = [
        "| kind | kills | while beginning | creating tables | exploring | survived |",
        "|---|---|---|---|---|---|",
    ]
    for kind_name in KINDS:
        own = [row for row in rows if row["kind"] == kind_name]
        cells = [places[kind_name, place] for place in ("beginning", "creating", "exploring")]
        survived = sum(not row["trouble"] for row in own)
        lines.append(f"| {kind_name} | {len(own)} | {' | '.join(map(str, cells))} | {survived} |")
    print("\n".join(lines))
    n_survived = sum(not row["trouble"] for row in rows)
    if options.save:
        settings = {"model": options.model.name, "seed": options.seed}
        summary = {"kills": len(rows), "survived": n_survived}
        path = RESULTS / f"kills-all-{date.today().isoformat()}.json"
        report_saved(save_result(path, {"settings": settings, **summary, "rows": rows}))
        path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if n_survived == len(rows) else VerificationError.exit_code


def _run_one(options: argparse.Namespace) -> int:
    from bench.kills.forker import forking
    from bench.kills.killing import PLACES, KilledRuns

    draw = random.Random(options.seed)
    rows = []
    with tempfile.TemporaryDirectory(prefix="kills-") as name, forking() as forker:
        runs = KilledRuns(forker, Path(name), options.model, [])
        for index in range(options.count):
            folder, fraction = runs.folder(f"run{index}"), draw.random()
            runs.kill(folder, fraction)
            survival = runs.resumed(folder)
            shutil.rmtree(folder)
            rows.append({"moment": round(fraction, 4), **asdict(survival)})
            if survival.trouble:
                print(f"kill {index} at {fraction:.3f}, {survival.place}: {survival.trouble}")
            if sys.stderr.isatty():
                print(f"\r{index + 1} kills", end="", file=sys.stderr, flush=True)
    places = Counter(str(row["place"]) for row in rows)
    n_survived = sum(not row["trouble"] for row in rows)
    print(f"survived: {n_survived} of {len(rows)}, killed while")
    print(*(f"  {place}: {places[place]}" for place in PLACES), sep="\n")
    if options.save:
        settings = {
            "model": options.model.name,
            "seed": options.seed,
            "run_s": round(runs.seconds, 3),
        }
        summary = {"kills": len(rows), "survived": n_survived, "places": dict(places)}
        path = RESULTS / f"kills-{date.today().isoformat()}.json"
        report_saved(save_result(path, {"settings": settings, **summary, "rows": rows}))
    return 0 if n_survived == len(rows) else VerificationError.exit_code
