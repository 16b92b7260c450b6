"""What a command that takes minutes reports meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Result = TypeVar("_Result")

_SHOWN_EVERY_S = 5.0


def watched(results: Iterable[_Result], report: Callable[[int, _Result], str]) -> Iterator[_Result]:
    """Pass results on; now and then, write a line on standard error.

    Args:
        say: what to write, given how many there are and the last one.
    """
    shown = time.monotonic()
    for count, result in enumerate(results, start=1):
        if time.monotonic() - shown > _SHOWN_EVERY_S:
            shown = time.monotonic()
            sys.stderr.write(f"{report(count, result)}\n")
        yield result
