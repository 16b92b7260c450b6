"""What became of a part of a model for which a kernel was sought."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegionReport:
    """What became of a part of a model.

    Attributes:
        place, total: it is this one of so many.
        outputs: the values that it computes.
        operators: of its program.
        operators_us: what the model's operators cost.
        kernel_us: what the kernel is modelled to take; None where there is none.
        reason: why there is none.
    """

    place: int
    total: int
    outputs: tuple[str, ...]
    operators: tuple[str, ...]
    operators_us: float
    kernel_us: float | None
    reason: str = ""
