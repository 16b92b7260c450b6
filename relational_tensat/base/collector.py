"""Python's garbage collector, kept out of where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: The garbage collector looks for cycles once there are so many new objects. A run keeps nearly all that it
#: makes: at Python's 700, traversing 50,000 rules, forms and modules again and again took 3 % of it, and
#: graphs of a tree search 10 % of that.
_NEW_OBJECTS = 100_000


def collect_rarely() -> None:
    """Let the garbage collector of this process search less often."""
    gc.set_threshold(_NEW_OBJECTS)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector from searching millions of new objects again and again.

    For code that makes many objects and no cycles of them; other cycles are collected later.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
