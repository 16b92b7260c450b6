"""``python -m bench kills``: runs of several kinds, killed at random moments and resumed."""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save
from bench.common.saving import RESULTS, report_saved, save_result
from relational_tensat.base.errors import VerificationError

MODEL = Path(__file__).parents[1] / "inputs" / "transformer_block.onnx"

#: The kinds of runs that write a database and nothing else, by each strategy.
_STORED = ("db", "focus", "tree search")


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
    """Kill and resume; 4 if what must hold of every run does not hold of one."""
    from bench.kills.forker import forking
    from bench.kills.killing import KINDS, PLACES, KilledRuns

    draw = random.Random(options.seed)
    names = tuple(kind for kind in KINDS if options.all or kind in _STORED)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, forking() as forker:
        kinds = [KilledRuns(kind, forker, Path(folder), options.model) for kind in names]
        for index in range(options.count):
            turn, which = divmod(index, len(kinds))
            fraction = draw.random()
            try:
                survival = kinds[which].survived(turn, fraction)
            except KeyboardInterrupt:  # the table is of those that were killed so far
                break
            kind = names[which]
            rows.append({"kind": kind, "moment": round(fraction, 4), **asdict(survival)})
            print(
                f"{index + 1}: {kind} at {fraction:.3f}, {survival.place} {survival.trouble}",
                flush=True,
            )
    places = Counter((str(row["kind"]), str(row["place"])) for row in rows)
    lines = [
        "| kind | kills | while beginning | creating tables | exploring | survived |",
        "|---|---|---|---|---|---|",
    ]
    for kind in names:
        own = [row for row in rows if row["kind"] == kind]
        cells = [places[kind, place] for place in PLACES]
        survived = sum(not row["trouble"] for row in own)
        lines.append(f"| {kind} | {len(own)} | {' | '.join(map(str, cells))} | {survived} |")
    print("\n".join(lines))
    n_survived = sum(not row["trouble"] for row in rows)
    if options.save:
        settings = {"model": options.model.name, "seed": options.seed}
        summary = {"kills": len(rows), "survived": n_survived}
        path = RESULTS / f"kills-{'all-' * options.all}{date.today().isoformat()}.json"
        report_saved(save_result(path, {"settings": settings, **summary, "rows": rows}))
        path.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if n_survived == len(rows) else VerificationError.exit_code
