"""Blocks of transformers with and without kernels of their own: what each costs, modelled."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from relational_tensat import Options, optimize

INPUTS = Path(__file__).parents[1] / "inputs"
#: Those that the table is of.
BLOCKS = ("decoder_block", "gated_mlp", "transformer_block", "encoder_block")
HEADER = (
    "model", "parts", "kernels", "used", "operators", "before µs", "without µs", "fused µs", "ratio",
    "CPU s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockRun:
    """A block, optimized twice.

    Attributes:
        parts: for which a kernel was sought, or made.
        kernels: found; each passed verification.
        used: in the result; ``operators`` of the model that each does at once, largest first.
        before_us, without_us, fused_us: modelled: of the original, and of the results without and with
            ``--fuse``.
        optimal: whether the last was proven to be the cheapest of its e-graph.
        is_complete: whether a kernel was sought for all parts.
        fuse_cpu_s: CPU seconds of the run with ``--fuse``, of all threads.
    """

    model: str
    cost: str
    parts: int
    kernels: int
    used: int
    operators: tuple[int, ...]
    before_us: float
    without_us: float
    fused_us: float
    optimal: bool
    is_complete: bool
    fuse_cpu_s: float


def run_block(name: str, cost: str, time_limit_s: float, operators: int) -> BlockRun:
    """Optimize a block without and with kernels of its own.

    Args:
        name: of ``BLOCKS``.
        cost: a profile.
        time_limit_s: wall seconds of the search for kernels.
        operators: of a part at most.
    """
    path = INPUTS / f"{name}.onnx"
    without = optimize(path, Options.of(cost=cost))
    started_s = time.process_time()
    options = Options.of(
        cost=cost, fuse=True, fuse_time_limit_s=time_limit_s, fuse_operators=operators
    )
    fused = optimize(path, options)
    assert fused.fusion is not None
    return BlockRun(
        model=name,
        cost=cost,
        parts=fused.fusion.parts,
        kernels=fused.fusion.kernels,
        used=len(fused.fusion.used),
        operators=tuple(
            sorted((len(kernel.operators) for kernel in fused.fusion.used), reverse=True)
        ),
        before_us=fused.cost_before_us,
        without_us=without.cost_after_us,
        fused_us=fused.cost_after_us,
        optimal=fused.optimal,
        is_complete=not any("ended the search of kernels" in note for note in fused.notes),
        fuse_cpu_s=time.process_time() - started_s,
    )


def cells(run: BlockRun) -> list[str]:
    """Return a row of the table."""
    return [
        run.model, f"{run.parts}{'' if run.is_complete else ' (time)'}", str(run.kernels),
        str(run.used), " + ".join(map(str, run.operators)), f"{run.before_us:.2f}",
        f"{run.without_us:.2f}", f"{run.fused_us:.2f}", f"{run.without_us / run.fused_us:.2f}x",
        f"{run.fuse_cpu_s:.0f}",
    ]  # fmt: skip
