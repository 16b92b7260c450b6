"""What blocks of kernels do when, where tensors lie and how, and the proof that they lie well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.kernels.emission import Emitted
    from relational_tensat.mugraph.kernels.layout_choice import GraphLayouts


def layouts_json(layouts: GraphLayouts) -> dict[str, Any]:
    """Return what was proven of layouts as JSON."""
    return {
        "clocks": layouts.clocks,
        "bound": layouts.bound,
        "plain_clocks": layouts.plain_clocks,
        "combinations": layouts.combinations,
    }


def show_plans(emitted: Sequence[Emitted], console: Console) -> None:
    """Print the plans of a μGraph's kernels, made for CUDA, and what was proven of its layouts."""
    for one in emitted:
        _show_plan(one, console)
    console.print(_proof(emitted[0].layouts))


def _proof(layouts: GraphLayouts) -> str:
    proven = (
        f"the least of {layouts.combinations:,} choices (integer program, proven)"
        if layouts.bound >= layouts.clocks
        else f"at least {layouts.bound:,.0f} (integer program)"
    )
    return (
        f"layouts: {layouts.clocks:,.0f} modelled clocks of memory in all blocks, {proven}; "
        f"rows as the model has them: {layouts.plain_clocks:,.0f}"
    )


def _show_plan(one: Emitted, console: Console) -> None:
    from relational_tensat.cli.console import table

    console.print(f"kernel {one.name}: {one.shared_bytes} bytes of shared memory")
    steps = table("", "when", "barrier", "statement", "writes", "reads", "threads go over")
    for row in one.plan:
        steps.add_row(
            str(row.place), row.stage, "yes" if row.waits else "", row.statement,
            ", ".join(row.writes), ", ".join(row.reads), row.over,
        )  # fmt: skip
    console.print(steps)
    places = table(
        "tensor", "memory", "dims", "element", "at byte", "bytes", "needed", "strides",
        numbers=("at byte", "bytes"),
    )  # fmt: skip
    for place in one.places:
        where = ["", ""] if place.offset is None else [str(place.offset), str(place.size)]
        places.add_row(
            place.tensor, place.memory, place.dims, place.element, *where, place.needed,
            place.strides,
        )  # fmt: skip
    console.print(places)
