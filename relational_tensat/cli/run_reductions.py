"""What the reductions before the integer program dropped, for people."""

from __future__ import annotations

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.extract import Extraction
from relational_tensat.extract.techniques import TECHNIQUES


def print_reductions(extraction: Extraction, console: Console) -> None:
    """Print sizes before and after, and the e-nodes that each reduction dropped."""
    if not extraction.was_reduced:
        return
    rows = table("reduction", "e-nodes", "what it does", numbers=("e-nodes",))
    for name, technique in TECHNIQUES.items():
        if name in extraction.reductions:
            rows.add_row(name, f"-{extraction.reductions[name]:,}", technique.effect)
    console.print(rows)
    before, after = extraction.size, extraction.reduced_size
    console.print(
        f"reduced: {before[0]:,} e-nodes in {before[1]:,} e-classes, {before[2]:,} edges → "
        f"{after[0]:,} in {after[1]:,}, {after[2]:,}"
        f"{components_text(extraction.components, extraction.distinct_components)}"
    )


def components_text(components: int, distinct: int) -> str:
    """Return what an e-graph fell into, to be added to its size; "" where it stays in one piece."""
    if components < 2:
        return ""
    copies = components - distinct
    return f", {components:,} components{f' ({copies:,} as others)' if copies else ''}"
