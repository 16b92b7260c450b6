"""Limits within long steps: a step asks often whether it may go on, and ends by an exception.

Some steps on a large e-graph take minutes. Whoever sets a limit catches ``OutOfTimeError`` and goes on
with the best that was there before.
"""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.errors import RelationalTensatError

Check = Callable[[], None]
"""Asked often in a long step; raises ``OutOfTimeError`` where the step shall end."""

ASKED_EVERY = 256
"""Turns of a cheap loop between two questions."""


class OutOfTimeError(RelationalTensatError):
    """A limit was met within a step; extraction catches it, and has something better to return."""


def unlimited() -> None:
    """Let a step take as long as it takes."""
