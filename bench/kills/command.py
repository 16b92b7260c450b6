"""``python -m bench kills``: runs of several kinds, killed at random moments and resumed."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, provenance, report_saved
from bench.common.table import table_row
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
    add_save(parser, "what became of each; a next call goes on")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Kill and resume; 4 if what must hold of every run does not hold of one.

    With ``save``, it goes on where rows are kept, and keeps each as soon as it is known.
    """
    from bench.kills.forker import forking
    from bench.kills.kills import KINDS, KilledRuns

    names = [kind for kind in KINDS if options.all or kind in _STORED]
    path = RESULTS / f"kills{'-all' * options.all}.jsonl"
    rows: list[dict[str, Any]] = []
    if options.save and path.exists():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    about = {"model": options.model.name, "seed": options.seed}
    done = {row["kill"] for row in rows if about.items() <= row.items()}
    draw = random.Random(options.seed)
    with (
        path.open("a", encoding="utf-8") if options.save else nullcontext() as file,
        tempfile.TemporaryDirectory(prefix="kills-") as folder,
        forking() as forker,
    ):
        kinds = [KilledRuns(kind, forker, Path(folder), options.model) for kind in names]
        try:
            for index in range(options.count):
                turn, which = divmod(index, len(kinds))
                moment = round(draw.random(), 4)
                if index in done:
                    continue
                survival, kind = kinds[which].survived(turn, moment), names[which]
                row = {**about, "kill": index, "kind": kind, "moment": moment, **asdict(survival)}
                rows.append(row)
                where = f"{survival.place} {survival.trouble}"
                print(f"{index + 1}: {kind} at {moment}, {where}", flush=True)
                if file is not None:
                    print(json.dumps(row), file=file, flush=True)
        except KeyboardInterrupt:  # the table is of those that were killed so far
            print("interrupted: the next call goes on", file=sys.stderr)
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
        "invariants, the result is verified, it costs at most what was known before the kill (20 % more "
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
