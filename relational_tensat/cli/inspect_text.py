"""What ``inspect`` reports about a run's database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from relational_tensat.cli.console import table
from relational_tensat.cli.database import QueryRows, RunDatabase

#: The columns that hold text; all others are numbers.
_TEXT = frozenset({"what", "type", "operators", "name"})

#: Columns of sql/inspect_rules.sql.
_MATCHES, _SECONDS = 1, 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """Sizes, biggest classes, rules by matches and time, growth per iteration."""

    sizes: QueryRows
    classes: QueryRows
    rules: QueryRows
    growth: QueryRows
    n_classes: int

    def to_json(self) -> dict[str, Any]:
        """Return all of it as one object."""
        return {
            "sizes": dict(self.sizes.rows),
            "classes": self.classes.as_objects(),
            "rules": self.rules.as_objects(),
            "growth": self.growth.as_objects(),
        }


def inspect_database(database: RunDatabase, classes_shown: int) -> Inspection:
    """Read the figures.

    Raises:
        InputError: the database was not written by a run of this program.
    """
    sizes = database.named("inspect/sizes")
    return Inspection(
        sizes=sizes,
        classes=database.named("inspect/classes", shown=classes_shown),
        rules=database.named("inspect/rules"),
        growth=database.named("inspect/growth"),
        n_classes=dict(sizes.rows)["e-classes"],
    )


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Print the figures as tables."""
    print_rows(inspection.sizes, console)
    shown = len(inspection.classes.rows)
    console.print(f"\nbiggest e-classes (showing {shown} of {inspection.n_classes:,})")
    print_rows(inspection.classes, console)
    console.print("\nrules that matched, by matches and time")
    matched = [row for row in inspection.rules.rows if row[_MATCHES] > 0]
    print_rows(QueryRows(inspection.rules.columns, matched), console)
    idle = [row for row in inspection.rules.rows if row[_MATCHES] == 0]
    seconds = sum(row[_SECONDS] for row in idle)
    console.print(f"(and {len(idle)} rules without a match, {seconds:.4f} s)")
    console.print("\ngrowth per iteration")
    print_rows(inspection.growth, console)


def print_rows(rows: QueryRows, console: Console) -> None:
    """Print the rows of a query as a table."""
    numbers = tuple(column for column in rows.columns if column not in _TEXT)
    shape = table(*rows.columns, numbers=numbers)
    for row in rows.rows:
        shape.add_row(*(_cell(value) for value in row))
    console.print(shape)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.4f}"
    return str(value)
