"""The text of the ``kernels`` commands: verifications, plans of blocks, rows of searches with their SQL.

A plan says when a block does what, and where tensors lie and how. It proves that they lie well. ``kernels
show --sql`` prints the rows of a search that a kernel came from, and the SQL that asks for them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import sql

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.graph.mugraph import MuGraph
    from relational_tensat.mugraph.kernels.emission import Emitted
    from relational_tensat.mugraph.kernels.layout_choice import GraphLayouts
    from relational_tensat.mugraph.verify.verification import MuGraphVerification


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


#: Of any database that has kernels; of one that a search has kept its tables in.
_OF_KERNELS = ("mugraph/rows_of_kernel",)
_OF_SEARCHES = ("mugraph/configs_of_kernel", "mugraph/passes_of_kernel")


def mugraph_of(path: Path, key: str) -> MuGraph:
    """Return the μGraph of a kernel that a database has.

    Raises:
        InputError: it has none of that name, or it is malformed.
    """
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.mugraph.graph.mugraph_json import decoded

    database = RunDatabase(path)
    try:
        found = database.query("SELECT mugraph, graph FROM fused_kernel ORDER BY mugraph").rows
    finally:
        database.close()
    graphs = dict(found)
    if key not in graphs:
        names = ", ".join(graphs) or "none"
        raise InputError(f"{path}: no kernel {key!r}, there are: {names}")
    return decoded(json.loads(graphs[key]), f"{path}: {key}")


def show_rows(graph: MuGraph, console: Console) -> None:
    """Print the rows that a μGraph's file has.

    Raises:
        InputError: it has none.
    """
    from relational_tensat.cli.database import QueryRows, print_rows

    if not graph.rows:
        raise InputError(
            f"{graph.name}: no rows of a search: it was made, imported, or written before rows were kept"
        )
    columns = tuple(graph.rows[0].content())
    rows = [tuple(row.content().values()) for row in graph.rows]
    console.print("the rows of the search; with --db of a database that has it, as SQL")
    print_rows(QueryRows(columns, rows), console)


def show_sql(path: Path, key: str, console: Console) -> None:
    """Print each statement as it can be run there, and its rows."""
    from relational_tensat.cli.database import RunDatabase, print_rows
    from relational_tensat.explore.rule_run import literal

    database = RunDatabase(path)
    try:
        tables = {name for (name,) in database.query("SELECT table_name FROM duckdb_tables()").rows}
        names = (*_OF_KERNELS, *(_OF_SEARCHES if "derivation" in tables else ()))
        for name in names:
            text = sql(name).strip().replace("$mugraph", literal(key))
            console.print(text, markup=False, highlight=False)
            print_rows(database.query(text), console)
    finally:
        database.close()


def verification_json(verification: MuGraphVerification) -> dict[str, Any]:
    """Return a verification as JSON."""
    return {
        "passed": verification.passed,
        "difference": None if verification.difference is None else str(verification.difference),
        "small_tests": verification.small_tests,
        "error": verification.error,
        "full_tests": verification.full_tests,
        "entry_tests": verification.entry_tests,
        "float64_error": verification.float64_error,
        "float16_error": _finite(verification.float16_error),
        "large_error": _finite(verification.large_error),
        "level_error": _finite(verification.level_error),
        "takes_masks": verification.takes_masks,
        "is_stable": verification.is_stable,
    }


def _finite(number: float | None) -> float | None:
    """Return a number as JSON can have it: None for an infinite one."""
    return None if number is None or math.isinf(number) else number


def verification_lines(verification: MuGraphVerification) -> list[str]:
    """Return a verification for people."""
    if verification.difference is not None:
        return [f"refused: {verification.difference} (modulo p)"]
    if verification.takes_masks is False:
        return ["refused: where masks leave little or nothing, the result is another"]
    lines = []
    if verification.small_tests:
        odds = (
            f"; a wrong graph passes them with odds of {verification.error:g} (Theorem 4, at these sizes)"
            if verification.error
            else "; no theorem bounds the odds of an error"
        )
        lines.append(
            f"finite fields, small sizes: {verification.small_tests} random tests passed{odds}"
        )
    where = "its own sizes" if verification.full_tests else "small sizes, as it is large"
    if verification.full_tests:
        lines.append(f"finite fields, its own sizes: {verification.full_tests} random tests passed")
    if verification.entry_tests:
        which = (
            "all sums and loops" if verification.has_all_sums else "each sum and loop in some test"
        )
        lines.append(
            f"finite fields, some entries of the result, {which} at their own sizes: "
            f"{verification.entry_tests} random tests passed"
        )
    if verification.float64_error is not None:
        lines.append(f"float64, {where}: relative error {verification.float64_error:.1e}")
    if verification.float16_error is not None:
        lines.append(f"float16, {where}: relative error {verification.float16_error:.1e}")
    if verification.large_error is not None:
        if verification.takes_large_logits:
            large = f"finite, relative error {verification.large_error:.1e}"
        else:
            large = "exponentials overflow"
        lines.append(f"float16, logits up to 600 and more: {large}")
    if verification.level_error is not None:
        if verification.takes_large_sums:
            level = f"relative error {verification.level_error:.1e}"
        else:
            level = "a tensor between kernels overflows"
        lines.append(f"float16, equal logits, values of 10,000: {level}")
    if verification.takes_masks:
        lines.append(
            "float64 and float16, masks that leave half of a row, any part, nothing: right"
        )
    return lines or ["refused: nothing could be tested"]
