"""What ``rules derive`` reports: a line a rule, then those that are not derived, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.explore.derivation import Derivation


def print_derivations(derivations: Sequence[Derivation], laws: int, console: Console) -> None:
    """Print the table and the list of the rules that are not derived.

    Args:
        laws: how many rules they were to be derived from.
    """
    numbers = ("operands", "iterations", "e-nodes", "seconds")
    rows = table("rule", "derived", *numbers, "law", numbers=numbers)
    for derivation in derivations:
        rows.add_row(
            derivation.rule,
            "yes" if derivation.derived else "no",
            str(derivation.configurations),
            str(derivation.iterations),
            f"{derivation.e_nodes:,}",
            f"{derivation.seconds:.2f}",
            derivation.law,
        )
    console.print(rows)
    underived = [derivation for derivation in derivations if not derivation.derived]
    total_s = sum(derivation.seconds for derivation in derivations)
    console.print(
        f"{len(derivations) - len(underived)} of {_rules(len(derivations))} derived from {_rules(laws)}"
        f" in {total_s:.1f} s"
    )
    if underived:
        console.print("\nnot derived:")
    for derivation in underived:
        where = f", on {derivation.where}" if derivation.where else ""
        console.print(f"  {derivation.rule}: {derivation.reason}{where}")


def derivations_json(derivations: Sequence[Derivation]) -> dict[str, Any]:
    """Return all of it as one object."""
    return {
        "derived": sum(derivation.derived for derivation in derivations),
        "not_derived": [derivation.rule for derivation in derivations if not derivation.derived],
        "rules": [asdict(derivation) for derivation in derivations],
    }


def _rules(count: int) -> str:
    return "1 rule" if count == 1 else f"{count} rules"
