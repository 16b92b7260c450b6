"""Lines of code with their indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Text:
    """Collects lines; blocks indent what is in them."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def line(self, *lines: str) -> None:
        """Add lines; empty ones stay empty."""
        self._lines += [f"{'  ' * self._depth}{line}".rstrip() for line in lines]

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        """Add a head, what is added meanwhile one deeper, and an end."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1
        self.line(end)

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"
