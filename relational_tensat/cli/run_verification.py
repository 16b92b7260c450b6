"""What a run compared, for people: one line for each way to compute, whatever the sizes and masks."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from relational_tensat.cli.console import table
from relational_tensat.verify.comparison import Compared
from relational_tensat.verify.verification import Verification


def print_verification(verification: Verification, verdict: str, console: Console) -> None:
    """Print what was compared, how much it differed, and what that does not prove.

    Args:
        verdict: what is said where nothing was compared.
    """
    if verification.ok:
        console.print(
            f"{'not proven' if verification.unproven else 'verified'}: {verification.runs} comparisons, "
            f"worst relative error {verification.max_relative_error:.2e}"
        )
    else:
        console.print(f"nothing compared: {verdict}")
    alike: dict[tuple[str, ...], list[Compared]] = {}
    for one in verification.compared:
        key = (one.setting.what, one.inputs, one.demand, one.remark)
        alike.setdefault(key, []).append(one)
    for comparisons in alike.values():
        console.print(f"  {_line(comparisons, verification)}")
    settings = [one.setting for one in verification.compared]
    for title, texts in (
        ("masked", [setting.rows for setting in settings]),
        ("sizes", [setting.sizes for setting in settings]),
    ):
        if different := list(filter(None, dict.fromkeys(texts))):
            console.print(f"  {title}: {'; '.join(different)}")
    if len({check.output for check in verification.outputs}) > 1:
        console.print(_outputs(verification))
    for warning in verification.warnings:
        console.print(f"  caution: {warning}", style="yellow")


def _line(comparisons: list[Compared], verification: Verification) -> str:
    """Return in one line what was compared in several settings of one kind."""
    first, runs = comparisons[0], sum(one.runs for one in comparisons)
    masked = sum(one.runs for one in comparisons if one.setting.rows)
    n_sizes = len({one.setting.sizes for one in comparisons})
    parts = [f"{masked} of them masked"] if 0 < masked < runs else []
    parts += [f"at {n_sizes} sizes"] if n_sizes > 1 else []
    parts += [first.demand, *filter(None, [first.remark])]
    checks = [c for one in comparisons for c in verification.checks(one.setting)]
    worst = max(checks, key=lambda check: check.max_relative_error)
    suffix = "" if any(check.proves_something for check in checks) else f" ({worst.note})"
    times = f"{runs} {'run' if runs == 1 else 'runs'} on {first.inputs}"
    return (
        f"{first.setting.what}: {', '.join([times, *parts])}; "
        f"worst {worst.max_relative_error:.2e}{suffix}"
    )


def _outputs(verification: Verification) -> Table:
    rows = table("output", "worst relative error", numbers=("worst relative error",))
    worst: dict[str, float] = {}
    for check in verification.outputs:
        if check.proves_something:
            worst[check.output] = max(worst.get(check.output, 0.0), check.max_relative_error)
    for name, error in worst.items():
        rows.add_row(name, f"{error:.2e}")
    return rows
