"""Timings for people: a table, and what it comes to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import onnxruntime

from bench.common.result_file import provenance, save_with_table
from bench.common.table import table_row
from bench.exports.peers import FOR_THIS_MACHINE, PEERS
from bench.exports.times import AGAIN, OURS, OURS_HERE, Timing, for_threads
from bench.exports.timing_plot import plot
from relational_tensat.cost.race import Standing


def markdown(timings: Sequence[Timing]) -> str:
    """Return the table, then counts, means and failures."""
    who = list(dict.fromkeys(name for timing in timings for name in timing.standings))
    heading = ["model", "threads", "ms", *who, "ours, predicted", "run, s"]
    lines = [table_row(heading), table_row(["---"] * len(heading))]
    for timing in timings:
        cells = [_span(timing.standings.get(name)) for name in who]
        predicted = "kept" if timing.kept else f"{timing.predicted:.3f}"
        times = [f"{timing.original_ms:.2f}", *cells, predicted, f"{timing.wall_s:.0f}"]
        lines.append(table_row([timing.name, str(timing.threads), *times]))
    lines.append("")
    for name in (each for each in who if each != AGAIN):
        standings = [t.standings[name] for t in timings if name in t.standings]
        mean = math.exp(sum(math.log(s.speedup) for s in standings) / len(standings))
        faster = sum(s.low > 1 for s in standings)
        slower = sum(s.high < 1 for s in standings)
        lines.append(
            f"{name}: geometric mean {mean:.3f}, beyond the noise faster on {faster}, slower on {slower} "
            f"of {len(standings)}"
        )
    gaps = [
        abs(math.log(t.predicted) - math.log(t.standings[OURS].speedup))
        for t in timings
        if OURS in t.standings
    ]
    if gaps:
        median, worst = sorted(gaps)[len(gaps) // 2], max(gaps)
        lines.append(f"predicted and measured differ by {median:.1%} (median), {worst:.1%} (worst)")
    lines += [f"behind beyond the noise: {text}" for timing in timings for text in _behind(timing)]
    for timing in timings:
        lines += [f"{timing.name}, {name}: {why}" for name, why in timing.failures.items()]
    return "\n".join(lines)


def save(
    timings: Sequence[Timing],
    folder: Path,
    options: Sequence[str],
    note: str,
    *,
    stem: str = "exports",
) -> Path:
    """Write ``STEM-time-DATE.json``, the table and the plot beside it; return the first.

    Where not all is of one thread, the name says of how many.

    Raises:
        InputError: they cannot be written.
        MissingDependencyError: what draws the plot is not installed.
    """
    threads = sorted({timing.threads for timing in timings})
    suffix = "" if threads == [1] else f"-threads-{'-'.join(map(str, threads))}"
    path = folder / f"{stem}-time-{date.today().isoformat()}{suffix}.json"
    versions = {"onnxruntime": onnxruntime.__version__}
    rows = [dataclasses.asdict(timing) for timing in timings]
    content = {"options": list(options), "note": note, "timings": rows}
    origin = provenance(versions)
    head = (
        f"# Models of today, timed\n\n`python -m bench {stem.replace('-', ' --', 1)} --time --save`, "
        f"{origin['date']}, commit {origin['commit']}, onnxruntime {onnxruntime.__version__}; our runs "
        f"with `{_own(options, threads)}`. {note}\n\nHow many times as fast as the original, with its "
        "interval of 99 % over heats of new "
        f"sessions in shuffled order. “{OURS_HERE}” is of a run with `--this-machine`: it "
        "may be what onnxruntime saves after its optimizations, for its version and this kind of processor "
        "only, as “ort offline” is (packed: with matrices as its kernels read them); the others run "
        "anywhere.\n\n"
    )
    plot(timings, path.with_suffix(".png"))
    picture = f"![predicted and measured]({path.with_suffix('.png').name})"
    return save_with_table(path, content, versions, f"{head}{markdown(timings)}\n\n{picture}\n")


def _own(options: Sequence[str], threads: Sequence[int]) -> str:
    return "`, `".join(" ".join(for_threads(options, count)) for count in threads)


def _behind(timing: Timing) -> list[str]:
    """Return by which files ours is behind: intervals do not meet. Those for one machine are held against
    ours for this one, the others against the one that runs anywhere.
    """
    texts = []
    for peer in (each for each in PEERS if each in timing.standings):
        who = OURS_HERE if peer in FOR_THIS_MACHINE else OURS
        own, other = timing.standings.get(who), timing.standings[peer]
        if own is not None and own.high < other.low:
            texts.append(f"{timing.name}, {who} {_span(own)}, {peer} {_span(other)}")
    return texts


def _span(standing: Standing | None) -> str:
    if standing is None:
        return "–"
    return f"{standing.speedup:.3f} [{standing.low:.3f}, {standing.high:.3f}]"
