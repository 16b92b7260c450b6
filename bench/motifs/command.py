"""``python -m bench motifs``: random models of whole motifs, optimized, written and compared."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.common.result_file import RESULTS, provenance
from bench.common.table import table_row
from relational_tensat.base.errors import VerificationError
from relational_tensat.run.options import Options

#: Limits of the optimization of one model: enough for rules to meet what it has.
_LIMITS: dict[str, Any] = {
    "iterations": 4, "node_limit": 5000, "search": "saturation", "time_limit_s": 20.0,
    "extract_time_limit_s": 10.0, "verify_runs": 1,
}  # fmt: skip
#: What a model is optimized for. Costs are modelled, and nothing races.
MODES: dict[str, dict[str, Any]] = {
    "onnxruntime": {"backend": "onnxruntime", "cost": "analytic:cpu", "budget_s": 0.0},
    "cuda": {"backend": "cuda", "cost": "h100"},
    "fuse": {"fuse": True, "cost": "a100"},
}
#: How many graphs are in one model: with kernels, what a model costs beside its graphs is half of it.
_TOGETHER, _TOGETHER_FUSED = 3, 12
#: The search for kernels has so long for each graph.
_FUSE_S = 1 / 6


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("motifs", help="optimize random models of whole motifs")
    add = parser.add_argument
    add("count", metavar="N", type=int, nargs="?", default=10_000, help="graphs (10000)")
    add("--mode", choices=tuple(MODES), default="onnxruntime", help="(onnxruntime)")
    add("--together", metavar="N", type=int, help="graphs in one model (3; with fuse 12)")
    add("--first", metavar="N", type=int, default=0, help="index of the first graph (0)")
    add("--seed", metavar="N", type=int, default=0, help="of all that is drawn (0)")
    add("--fresh", action="store_true", help="try again what was tried before")
    add(
        "--keep", metavar="FILE", type=Path,
        help="a row for each model, where the command goes on (bench/results/motifs-MODE.jsonl); "
        "a table beside it",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Try the graphs that are not kept; 4 if one computes something else, or crashes."""
    from bench.motifs.trial import try_sketches

    path = options.keep or RESULTS / f"motifs-{options.mode}.jsonl"
    rows = [] if options.fresh or not path.exists() else _read(path)
    done = {row["first"] for row in rows}
    is_fused = "fuse" in MODES[options.mode]
    together = options.together or (_TOGETHER_FUSED if is_fused else _TOGETHER)
    settings = Options.of(**_LIMITS, **MODES[options.mode])
    if is_fused:
        settings = settings.replace(fuse_time_limit_s=_FUSE_S * together)
    end = options.first + options.count
    try:
        with path.open("w" if options.fresh else "a", encoding="utf-8") as file:
            for first in range(options.first, end, together):
                if first in done:
                    continue
                indices = range(first, min(first + together, end))
                rows.append(try_sketches(options.seed, indices, settings))
                print(json.dumps(rows[-1]), file=file, flush=True)
                _report(rows[-1])
    except KeyboardInterrupt:
        print("interrupted: the next call goes on", file=sys.stderr)
    text = _table(rows, options.mode)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    wrong = any(row["status"] in ("different", "crashed") for row in rows)
    return VerificationError.exit_code if wrong else 0


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _report(row: dict[str, Any]) -> None:
    last = row["first"] + row["graphs"] - 1
    if row["status"] not in ("equal", "rounding"):
        print(f"{row['status']}: graphs {row['first']} to {last}: {row['reason']}", flush=True)
    if sys.stderr.isatty():
        print(f"\r{last + 1} graphs", end="", file=sys.stderr, flush=True)


def _table(rows: list[dict[str, Any]], mode: str) -> str:
    """Return what became of the graphs, by motif, as a table."""
    from bench.motifs.drawn import MOTIFS
    from bench.motifs.trial import STATUSES

    counts: Counter[str] = Counter()
    by_motif: dict[str, Counter[str]] = {name: Counter() for name in MOTIFS}
    for row in rows:
        counts[row["status"]] += row["graphs"]
        for motif in row["motifs"]:
            by_motif[motif][row["status"]] += 1
    rejections = Counter(why.partition(" ")[0] for row in rows for why in row.get("rejections", ()))
    about = provenance()
    unchanged = sum(bool(row.get("unchanged")) for row in rows)
    unproven = sum(bool(row.get("unproven")) for row in rows)
    lines = [
        f"{sum(counts.values()):,} graphs in {len(rows):,} models, for {mode}; {about['date']}, "
        f"{about['machine']['cpu']}; {unchanged} models unchanged, {unproven} not proven, "
        f"{sum(rejections.values())} graphs rejected on the way: "
        f"{', '.join(f'{name} {count}' for name, count in rejections.most_common(12)) or 'none'}",
        "",
        table_row(["", *STATUSES]),
        table_row(["---"] * (1 + len(STATUSES))),
        table_row(["graphs", *(f"{counts[status]:,}" for status in STATUSES)]),
        *(
            table_row([f"{name} (motifs)", *(f"{found[status]:,}" for status in STATUSES)])
            for name, found in by_motif.items()
        ),
    ]
    return "\n".join(lines) + "\n"
