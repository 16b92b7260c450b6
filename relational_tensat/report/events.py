"""Extraction as a stream of events: each better graph and each better bound, with its time."""

from __future__ import annotations

import json
import math
import time
from typing import TextIO


class ExtractionEvents:
    """Writes one JSON object a line: seconds since it was made, cost and bound (null: none yet)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._last: tuple[float, float] | None = None

    def extraction(self, incumbent: float, bound: float) -> None:
        """Write an event if something moved."""
        if (incumbent, bound) == self._last:
            return
        self._last = (incumbent, bound)
        event = {
            "seconds": round(time.monotonic() - self._started, 3),
            "incumbent": incumbent if math.isfinite(incumbent) else None,
            "bound": bound if math.isfinite(bound) else None,
        }
        self._stream.write(json.dumps(event) + "\n")
        self._stream.flush()
