"""The one clock that limits go by."""

from __future__ import annotations

import time


def now_s() -> float:
    """Return wall seconds, of which only differences mean anything."""
    return time.monotonic()
