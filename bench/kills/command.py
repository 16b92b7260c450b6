"""``python -m bench kills``: a run with a database, killed at random moments and resumed."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from bench.common.arguments import add_save
from bench.common.saving import RESULTS, provenance, report_saved, save_result
from bench.common.table import table_row
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
    add_save(parser, "what became of each; with --all a next call goes on")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Kill and resume; 4 if a run ends otherwise than one that nobody killed."""
    return _run_all(options) if options.all else _run_one(options)


def _run_all(options: argparse.Namespace) -> int:
    """Kill runs of all kinds; go on where rows are kept, and keep each as soon as it is known."""
    from bench.kills.forker import forking
    from bench.kills.kinds import KINDS, KilledKind

    path = RESULTS / "kills-all.jsonl"
    rows: list[dict[str, Any]] = []
    if options.save and path.exists():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    about = {"model": options.model.name, "seed": options.seed}
    done = {row["kill"] for row in rows if about.items() <= row.items()}
    draw, names = random.Random(options.seed), list(KINDS)
    kinds: dict[str, KilledKind] = {}
    with (
        path.open("a", encoding="utf-8") if options.save else nullcontext() as file,
        tempfile.TemporaryDirectory(prefix="kills-") as folder,
        forking() as forker,
    ):
        try:
            for index in range(options.count):
                name, moment = names[index % len(names)], round(draw.random(), 4)
                if index in done:
                    continue
                if name not in kinds:
                    kinds[name] = KilledKind(name, forker, Path(folder), options.model)
                survival = kinds[name].survived(index, moment)
                row = {**about, "kill": index, "kind": name, "moment": moment, **asdict(survival)}
                rows.append(row)
                print(
                    f"{index}: {name} at {moment}, {survival.place} {survival.trouble}", flush=True
                )
                if file is not None:
                    print(json.dumps(row), file=file, flush=True)
        except KeyboardInterrupt:  # the table is of those that were killed so far
            print("interrupted", file=sys.stderr)
    text = _table(rows, names)
    print(text)
    if options.save:
        path.with_suffix(".md").write_text(text, encoding="utf-8")
        report_saved(path)
    return VerificationError.exit_code if any(row["trouble"] for row in rows) else 0


def _table(rows: list[dict[str, Any]], kinds: list[str]) -> str:
    """Return of each kind how many runs were killed where, and survived, and what the others did."""
    about = provenance()
    lines = [
        f"{len(rows)} kills of runs on {', '.join(sorted({row['model'] for row in rows}))}; "
        f"{about['date']}, {about['machine']['cpu']}. Each run is held to this: the database keeps its "
        "invariants, the result is verified, it costs at most what was reported before the kill (20 % more "
        "where costs are measured), and no folder is left.",
        "",
        table_row(["kind", "kills", "while beginning", "creating tables", "exploring", "survived"]),
        table_row(["---"] * 6),
    ]
    for kind in kinds:
        own = [row for row in rows if row["kind"] == kind]
        places = Counter(row["place"] for row in own)
        counts = [len(own), *(places[place] for place in ("beginning", "creating", "exploring"))]
        counts.append(sum(not row["trouble"] for row in own))
        lines.append(table_row([kind, *map(str, counts)]))
    lines += [""] * any(row["trouble"] for row in rows)
    lines += [
        f"- {row['kind']}, kill {row['kill']}: {row['trouble']}" for row in rows if row["trouble"]
    ]
    return "\n".join(lines) + "\n"


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
