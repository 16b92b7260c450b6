"""What ``rules derive`` reports: a line a rule, then those that are not derived, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.explore.derivation import Derivation


def print_derivations(
    found: Sequence[Derivation], conditions: Mapping[str, str], laws: int, console: Console
) -> None:
    """Print the table and the list of the rules that are not derived.

    Args:
        conditions: by rule, what was added to it before it was derived.
        laws: how many rules they were to be derived from.
    """
    numbers = ("operands", "iterations", "e-nodes", "seconds")
    added = ("under",) if conditions else ()
    rows = table("rule", "derived", *numbers, "law", *added, numbers=numbers)
    for each in found:
        rows.add_row(
            each.rule,
            "yes" if each.derived else "no",
            str(each.configurations),
            str(each.iterations),
            f"{each.e_nodes:,}",
            f"{each.seconds:.2f}",
            each.law,
            *(conditions.get(each.rule, "") for _ in added),
        )
    console.print(rows)
    missing = [each for each in found if not each.derived]
    taken = sum(each.seconds for each in found)
    console.print(
        f"{len(found) - len(missing)} of {_rules(len(found))} derived from {_rules(laws)}"
        f" in {taken:.1f} s"
    )
    if missing:
        console.print("\nnot derived:")
    for each in missing:
        where = f", on {each.where}" if each.where else ""
        console.print(f"  {each.rule}: {each.reason}{where}")


def derivations_json(found: Sequence[Derivation], conditions: Mapping[str, str]) -> dict[str, Any]:
    """Return all of it as one object; see ``print_derivations``."""
    return {
        "derived": sum(each.derived for each in found),
        "not_derived": [each.rule for each in found if not each.derived],
        "rules": [{**asdict(each), "under": conditions.get(each.rule, "")} for each in found],
    }


def _rules(count: int) -> str:
    return "1 rule" if count == 1 else f"{count} rules"
