"""How fast this machine's processor is undisturbed, remembered from one process to the next.

A process that begins while others keep the processor busy sees it disturbed only: it would take the
disturbance for the processor, and its times would be up to twice too long. Whoever has seen it undisturbed
writes down what the reference took then.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import unless_full, write_aside
from relational_tensat.cost.cache import default_cache

#: A better time is written down from so much on, as a fraction: less is noise.
_BETTER = 0.005


class Baseline:
    """The best time of the reference under one name: a processor and what runs the reference.

    Args:
        name: everything that it depends on.
        path: a JSON object of microseconds by name; None for the file beside the user's cost cache.
    """

    def __init__(self, name: str, path: Path | None = None) -> None:
        self._name = name
        self._path = path or default_cache().parent / "undisturbed.json"

    def best_us(self) -> float:
        """Return the best time that is known, infinity where none is.

        Raises:
            InputError: the file is not what was written.
        """
        return self._read().get(self._name, math.inf)

    def keep(self, best_us: float) -> None:
        """Write a time down if it is better than what is known.

        Raises:
            InputError: the file cannot be written, or is not what was written.
        """
        times_us = self._read()
        if best_us < (1 - _BETTER) * times_us.get(self._name, math.inf):
            text = json.dumps({**times_us, self._name: best_us}, indent=1)
            with unless_full():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with write_aside(self._path) as folder:
                    (folder / self._path.name).write_text(text, encoding="utf-8")

    def _read(self) -> dict[str, float]:
        if not self._path.is_file():
            return {}
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError:
            content = None
        if not isinstance(content, dict) or not all(map(_is_time, content.values())):
            raise InputError(f"{self._path}: expected a JSON object of microseconds; delete it")
        return content


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
