"""The outcomes for people: on the screen, and as a kept table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import onnx
import onnxruntime

from bench.common.result_file import provenance, save_with_table
from bench.common.table import table_row
from bench.exports.trial import Outcome, summary

_HEADINGS = (
    *("model", "nodes", "MB", "modelled µs", "compared", "worst error", "in onnxruntime"),
    *("its CPU ms, one thread", "CPU s", "peak MiB", "dynamic dims kept"),
)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the table, then what is to be said about single models."""
    lines = [table_row(_HEADINGS), table_row(["---"] * len(_HEADINGS))]
    lines += [table_row(_cells(outcome)) for outcome in outcomes]
    lines += ["", ", ".join(f"{name}: {count}" for name, count in summary(outcomes).items())]
    for outcome in outcomes:
        remarks = [f"**{defect}**" for defect in outcome.defects()]
        remarks += ["unchanged"] if outcome.unchanged else []
        remarks += outcome.notes
        if remarks:
            lines += ["", f"{outcome.name}:", *(f"- {remark}" for remark in remarks)]
    return "\n".join(lines)


def save(outcomes: Sequence[Outcome], folder: Path, day: date, stem: str = "exports") -> Path:
    """Write ``STEM-DATE.json``, with all that is known, and the table ``STEM-DATE.md``.

    Returns:
        The first of them.

    Raises:
        InputError: they cannot be written.
    """
    path = folder / f"{stem}-{day.isoformat()}.json"
    versions = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
    origin = provenance(versions)
    used = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    text = (
        "# Models of today\n\n`python -m bench exports --save`, "
        f"{origin['date']}, commit {origin['commit']}; {used}.\n"
        "before → after; errors are relative to an output's largest element: the run's own worst, and that"
        " of the two files in onnxruntime by its defaults on other inputs. The modelled µs are those of the"
        " profile t4, a GPU; what both files take in onnxruntime on this machine's CPU is beside them.\n\n"
    )
    content = {"outcomes": [dataclasses.asdict(o) for o in outcomes]}
    return save_with_table(path, content, versions, f"{text}{markdown(outcomes)}\n")


def _cells(outcome: Outcome) -> list[str]:
    resources = [f"{outcome.cpu_s:.1f}", f"{outcome.peak_mib:,.0f}"]
    if outcome.exit_code:
        return [outcome.name, f"exit code {outcome.exit_code}", *[""] * 6, *resources, ""]
    before, after = outcome.cost_before_us, outcome.cost_after_us
    ratio = f" ({before / after:.2f}x)" if after else ""
    in_runtime = "fails" if outcome.not_run else f"{outcome.error or 0.0:.0e}"
    before_ms, after_ms = outcome.runtime_before_ms, outcome.runtime_after_ms
    faster = f"{before_ms:.3g} → {after_ms:.3g} ({before_ms / after_ms:.2f}x)" if after_ms else ""
    return [
        outcome.name,
        f"{outcome.nodes_before:,} → {outcome.nodes_after:,}",
        f"{outcome.bytes_before / 1e6:.2f} → {outcome.bytes_after / 1e6:.2f}",
        f"{before:,.0f} → {after:,.0f}{ratio}",
        str(outcome.comparisons),
        f"{outcome.verified_error:.0e}",
        in_runtime,
        faster,
        *resources,
        f"{outcome.dims_kept} of {outcome.dims}" if outcome.dims else "",
    ]
