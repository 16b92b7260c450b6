"""What became of the conformance models: printed, and kept as CSV and Markdown."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import onnx
import onnxruntime

from bench.common.result_file import provenance
from bench.conformance.trial import ACCEPTED, STATUSES, Outcome
from relational_tensat.base.files import write_aside
from relational_tensat.run.options import Options


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Print how many models have which status, and each whose status is not a good one."""
    for line in summary(outcomes):
        print(line)


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Return lines: the counts, then each model that is not equal or random, and why."""
    counts = Counter(outcome.status for outcome in outcomes)
    accepted = sum(counts[status] for status in ACCEPTED)
    lines = [f"{len(outcomes)} models, {accepted} accepted"]
    lines += [f"{status}: {counts[status]}" for status in STATUSES]
    runners = Counter(outcome.compared_in for outcome in outcomes if outcome.compared_in)
    lines += [f"compared in {name}: {count}" for name, count in runners.most_common()]
    written = [outcome for outcome in outcomes if outcome.status in ACCEPTED]
    changed = [outcome for outcome in written if not outcome.unchanged]
    unverified = sum(outcome.comparisons == 0 for outcome in changed)
    lines.append(f"written as they were, byte for byte: {len(written) - len(changed)}")
    lines.append(f"changed, and the run itself compared nothing: {unverified}")
    lines += [
        f"larger: {o.name}: {o.nodes_before} to {o.nodes_after} nodes,"
        f" {o.bytes_before} to {o.bytes_after} bytes"
        for o in changed
        if o.nodes_after > o.nodes_before or o.bytes_after > o.bytes_before
    ]
    lines += [f"rejected: {o.name}: {o.rejected}" for o in outcomes if o.rejected]
    lines += [
        f"{outcome.status}: {outcome.name}: {outcome.reason}"
        for outcome in outcomes
        if outcome.status not in ("equal", "random")
        or (outcome.reason and outcome.status != "equal")
    ]
    return lines


def save(outcomes: Sequence[Outcome], settings: Options, folder: Path, day: date) -> Path:
    """Write ``conformance-DATE.csv``, a row a model, and ``conformance-DATE.md``; return the first.

    Raises:
        InputError: they cannot be written.
    """
    path = folder / f"conformance-{day.isoformat()}.csv"
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(Outcome)])
    writer.writerows(dataclasses.astuple(outcome) for outcome in outcomes)
    with write_aside(path) as aside:
        (aside / path.name).write_text(table.getvalue(), encoding="utf-8")
        (aside / path.with_suffix(".md").name).write_text(
            _markdown(outcomes, settings), encoding="utf-8"
        )
    return path


def _markdown(outcomes: Sequence[Outcome], settings: Options) -> str:
    origin = provenance({"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__})
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    lines = [
        "# ONNX's conformance models",
        "",
        f"`python -m bench conformance --save`, {origin['date']}, commit {origin['commit']}; {versions}.",
        f"Each was optimized ({settings.exploration.iterations} iterations,"
        f" {settings.exploration.node_limit} e-nodes),"
        " written, and compared with the original on ONNX's own inputs.",
        "",
        *(f"- {line}" for line in summary(outcomes)),
    ]
    return "\n".join(lines) + "\n"
