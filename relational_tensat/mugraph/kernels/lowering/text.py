"""Lines of code with their indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Text:
    """Collects lines; blocks indent what is in them."""

    def __init__(self, indent: int = 2) -> None:
        """Begin; each block is indented by so many spaces."""
        self._lines: list[str] = []
        self._depth, self._indent = 0, " " * indent

    def line(self, *lines: str) -> None:
        """Add lines; empty ones stay empty."""
        self._lines += [f"{self._indent * self._depth}{line}".rstrip() for line in lines]

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        """Add a head, what is added meanwhile one deeper, and an end, if there is one."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1
        if end:
            self.line(end)

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"
