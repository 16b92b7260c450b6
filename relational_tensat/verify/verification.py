"""The result of verification."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from relational_tensat.verify.comparison import TINY, Compared, OutputCheck, Setting


@dataclass(frozen=True, slots=True)
class QuantizedCheck:
    """How the files of a quantized model and of what was made of it compare, a sentence each.

    Attributes:
        kernels: what onnxruntime's default optimizations make of both.
        loss: the optimized model's loss by that, or "".
        gain: the roundings of the optimized model only, or "".
        growth: how much larger its file is; "" where it is not.
    """

    kernels: str
    loss: str = ""
    gain: str = ""
    growth: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of comparing an optimized graph with its original.

    Attributes:
        runs: how often both graphs were run.
        outputs: the worst error of every output under each comparison.
        compared: the comparisons.
        warnings: the gaps of the comparison, and their reasons.
        shrink: how many steps smaller inputs were drawn, so that the original does not overflow.
        stand_ins: operators that random functions replaced, as nothing can compute them.
        quantized: how a quantized model's file compares; None for others.
    """

    runs: int
    outputs: tuple[OutputCheck, ...]
    compared: tuple[Compared, ...]
    warnings: tuple[str, ...] = ()
    shrink: int = 0
    stand_ins: tuple[str, ...] = ()
    quantized: QuantizedCheck | None = None

    @property
    def ok(self) -> bool:
        """Whether something was compared, and every error is within its tolerance."""
        return self.runs > 0 and all(check.ok for check in self.outputs)

    @property
    def unproven(self) -> str:
        """The outputs that are not proven to be the same, and why; "" if all are.

        Such an output is one that no comparison could have found wrong, or that differs in one by more than
        the tolerance, even if that has an explanation.
        """
        proven = {check.output for check in self.outputs if check.proves_something}
        for check in self.outputs:
            if check.is_excused or check.output not in proven:
                return f"output {check.output!r} is {check.note} ({check.setting})"
        return ""

    @property
    def max_relative_error(self) -> float:
        """The worst error of any output, among the comparisons that prove something if any does."""
        proving = [check for check in self.outputs if check.proves_something]
        return max((c.max_relative_error for c in proving or self.outputs), default=0.0)

    def checks(self, setting: Setting) -> tuple[OutputCheck, ...]:
        """Return what was found at each output in a setting."""
        return tuple(check for check in self.outputs if check.setting == setting)

    def at_sizes(self, sizes: str) -> Verification:
        """Return the same, as made at sizes of dynamic dimensions."""
        return replace(
            self,
            outputs=tuple(
                replace(o, setting=replace(o.setting, sizes=sizes)) for o in self.outputs
            ),
            compared=tuple(
                replace(c, setting=replace(c.setting, sizes=sizes)) for c in self.compared
            ),
        )

    def joined(self, other: Verification) -> Verification:
        """Return both together; one after the other."""
        return Verification(
            runs=self.runs + other.runs,
            outputs=self.outputs + other.outputs,
            compared=self.compared + other.compared,
            warnings=tuple(dict.fromkeys((*self.warnings, *other.warnings))),
            shrink=max(self.shrink, other.shrink),
            stand_ins=tuple(dict.fromkeys((*self.stand_ins, *other.stand_ins))),
            quantized=other.quantized or self.quantized,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as an object, with every comparison and the worst error in it."""
        return {
            "ok": self.ok and not self.unproven,
            "unproven": self.unproven,
            "max_relative_error": self.max_relative_error,
            "runs": self.runs,
            "stand_ins": list(self.stand_ins),
            "comparisons": [
                {
                    **asdict(one.setting),
                    "runs": one.runs,
                    "demand": one.demand,
                    "max_relative_error": max(
                        check.max_relative_error for check in self.checks(one.setting)
                    ),
                }
                for one in self.compared
            ],
        }

    def failure(self) -> str:
        """Return one line on the worst output that is out of tolerance; "" where all are within."""
        failed = [check for check in self.outputs if not check.ok]
        if not failed:
            return ""
        worst = max(failed, key=lambda check: check.max_relative_error / (check.tolerance or TINY))
        limit = f"at most {worst.tolerance:g}" if worst.tolerance else "none: integers are equal"
        place = f" ({worst.place})" if worst.place else ""
        return (
            f"the optimized graph computes something else: output {worst.output!r} ({worst.type}) "
            f"has a relative error of {worst.max_relative_error:.3g}{place}, expected {limit} "
            f"({worst.setting})"
        )


#: Of a graph that is the original: there is nothing to compare.
UNCHANGED = Verification(runs=0, outputs=(), compared=())


def not_compared(reason: str) -> Verification:
    """Return a verification in which nothing could be compared, and the reason."""
    return Verification(runs=0, outputs=(), compared=(), warnings=(reason,))
