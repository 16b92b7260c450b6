"""What became of a part of a model: a row that one can ask for, whether it got a kernel or was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

#: What can become of a part: it got a kernel, or none was found; none could save anything; the time was
#: over before its turn; it is no region, or one that no kernel is made of; or it ends there, as it would be
#: no region with what comes before.
FATES = ("kernel", "none found", "no gain", "no time", "left out", "border")


@dataclass(frozen=True, slots=True)
class RegionRow:
    """A part of a model, or of the cheapest graph that computes the same.

    Attributes:
        source: ``model`` or ``cheapest``.
        outputs: the values that it gives.
        operators: of its program, or of the node.
        fate: one of ``FATES``.
        reason: why there is no kernel, or no larger region; else empty.
        operators_us: what the model's operators cost; None where nothing was sought.
        kernel_us: what the kernel is modelled to take.
        mugraph: the kernel's key; empty for none.
    """

    source: str
    outputs: tuple[str, ...]
    operators: tuple[str, ...]
    fate: str
    reason: str = ""
    operators_us: float | None = None
    kernel_us: float | None = None
    mugraph: str = ""

    def values(self) -> tuple[Any, ...]:
        """Return the row of the table ``fused_region``."""
        source, outputs, operators, *others, mugraph = astuple(self)
        return source, list(outputs), list(operators), *others, mugraph or None


#: Notes what is left out.
Leave: TypeAlias = Callable[[RegionRow], None]


def no_matter(row: RegionRow) -> None:
    """Note nothing."""
