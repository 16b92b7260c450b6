"""A bar for each operator, before and after."""

from __future__ import annotations

import io

from rich.console import Console

from relational_tensat.cli.run_course_text import bar, print_kernels


def printed(kernels_us: dict[str, tuple[float, float]]) -> list[str]:
    console = Console(file=io.StringIO(), width=100)
    print_kernels(kernels_us, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(1.0) == "█" * 24
    assert bar(0.5) == "█" * 12
    assert bar(1 / 24 / 8) == "▏"
    assert bar(0.0) == ""


def test_each_operator_has_two_bars() -> None:
    _, _, *rows = printed({"matmul": (40.0, 20.0), "relu": (2.0, 0.0)})
    cells = [row.split() for row in rows]
    assert cells[:2] == [
        ["matmul", "before", "40.00", "█" * 24],
        ["after", "20.00", "█" * 12],
    ]
    assert cells[3] == ["after", "0.00"]


def test_what_is_cheap_is_one_row_and_nothing_is_none() -> None:
    rows = printed({f"op{n}": (20.0 - n, 1.0) for n in range(15)})
    (others,) = [row.split() for row in rows if "others" in row]
    assert others[:4] == ["3", "others", "before", "21.00"]
    assert printed({}) == [] == printed({"view": (0.0, 0.0)})
