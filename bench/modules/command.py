"""``python -m bench modules``: modules of PyTorch through ``optimize_module`` and ``torch.compile``."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.common.result_file import RESULTS, provenance
from bench.common.table import table_row
from relational_tensat.base.errors import VerificationError

#: An output differs by no more, relative to its largest element.
_MOST_ERROR = 1e-5
#: Ways that are compared in the table.
_RATIOS = [
    (slow, fast) for slow in ("inductor", "onnxruntime") for fast in ("ours", "best", "products")
]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "modules", help="modules of PyTorch, beside PyTorch and onnxruntime"
    )
    add = parser.add_argument
    add("names", metavar="MODEL", nargs="*", help="architectures (all)")
    add("--timed", action="store_true", help="time the first ten, with the default effort")
    add("--rounds", metavar="N", type=int, default=15, help="rounds of a timing (15)")
    add(
        "--rows",
        metavar="FILE",
        type=Path,
        help="keep each row here once it is there; go on with it",
    )
    add("--one", action="store_true", help="try one model in this process, and print its row")
    add("--save", action="store_true", help="keep rows and table in bench/results")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Try each model in a process of its own; 4 if one computes something else."""
    if options.one:
        from bench.modules.trial import try_module

        print(json.dumps(try_module(options.names[0], options.rounds if options.timed else 0)))
        return 0
    rows = list(_rows(options))
    text = _table(rows, timed=options.timed)
    print(text)
    if options.save:
        path = RESULTS / f"modules{'-timed' if options.timed else ''}-{provenance()['date']}.json"
        path.write_text(json.dumps({"about": provenance(), "runs": rows}, indent=1) + "\n", "utf-8")
        path.with_suffix(".md").write_text(text, encoding="utf-8")
    wrong = any(max(row.get("errors", {"": 1.0}).values()) > _MOST_ERROR for row in rows)
    return VerificationError.exit_code if wrong else 0


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the row of each module; those that a file has are not tried again."""
    path: Path | None = options.rows
    lines = path.read_text("utf-8").splitlines() if path is not None and path.exists() else []
    known = {row["name"]: row for row in map(json.loads, lines)}
    for name in options.names or _names(timed=options.timed):
        if name not in known:
            known[name] = _in_a_process(name, options)
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[name]) + "\n")
        yield known[name]


def _names(*, timed: bool) -> tuple[str, ...]:
    from bench.modules.architectures import ARCHITECTURES, TIMED

    return TIMED if timed else tuple(ARCHITECTURES)


def _in_a_process(name: str, options: argparse.Namespace) -> dict[str, Any]:
    flags = ["--timed", "--rounds", str(options.rounds)] if options.timed else []
    command = [sys.executable, "-m", "bench", "modules", name, "--one", *flags]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path.cwd(), check=False)
    row: dict[str, Any] = {"name": name}
    if done.returncode:
        row["failed"] = (done.stderr.strip() or "no message").splitlines()[-1]
    else:
        row |= json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def _table(rows: list[dict[str, Any]], *, timed: bool) -> str:
    """Return what became of the modules as a table."""
    about = provenance()
    lines = [
        f"{len(rows)} modules with drawn weights, batch 1; {about['date']}, "
        f"{about['machine']['cpu']}, {about['machine']['cores']} cores. Errors: the largest difference "
        "from PyTorch, relative to the largest element. Inductor is with freezing, autotuned with "
        "mode max-autotune, too; file is our file in onnxruntime alone, ours the module that checks "
        "its weights and calls it, compiled the same by torch.compile, best that of the fastest runtime, "
        "with kernels of its own; products are the products and convolutions alone, at "
        "the highest rate here.",
        "",
    ]
    titles = ["module", "error, optimize_module", "error, torch.compile", "seconds", "again"]
    ways = (
        "eager", "inductor", "autotuned", "onnxruntime", "file", "compiled", "ours", "best", "products"
    )  # fmt: skip
    if timed:
        titles += [f"{way}, ms" for way in ways]
        titles += [f"{slow} over {fast}" for slow, fast in _RATIOS]
    lines += [table_row(titles), table_row(["---"] * len(titles))]
    for row in rows:
        if "failed" in row:
            lines.append(table_row([row["name"], row["failed"], *[""] * (len(titles) - 2)]))
            continue
        cells = [row["name"], *(f"{row['errors'][way]:.1e}" for way in ("module", "compile"))]
        cells += [f"{row['seconds']:.1f}", f"{row['again_s']:.1f}"]
        if timed:
            ms = row["ms"]
            cells += [f"{ms[way]:.2f}" for way in ways]
            cells += [f"{ms[slow] / ms[fast]:.2f}" for slow, fast in _RATIOS]
        lines.append(table_row(cells))
    timings = [row["ms"] for row in rows if row.get("ms")]
    if timings:
        means = [
            statistics.geometric_mean([ms[slow] / ms[fast] for ms in timings])
            for slow, fast in _RATIOS
        ]
        blank = [""] * (len(titles) - 1 - len(means))
        cells = ["geometric mean", *blank, *(f"{mean:.2f}" for mean in means)]
        lines.append(table_row(cells))
    return "\n".join(lines) + "\n"
