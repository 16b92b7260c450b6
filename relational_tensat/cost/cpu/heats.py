"""One heat of a race (``cost.race``) in onnxruntime: new sessions in any order, run in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from relational_tensat.cost.cpu.graph_timing import repeated
from relational_tensat.cost.cpu.quiet import clock_of
from relational_tensat.cost.cpu.session import prepare_model
from relational_tensat.cost.rounds import times_as_fast_as_first
from relational_tensat.tensor import Array

#: Rounds of a heat, each graph once in each, all several times if the first is quick.
_ROUNDS = 7
#: Fewer, if they would take longer: heats are what is repeated.
_MOST_S = 1.0


def run_heat(
    models: Sequence[bytes | Path], feeds: Mapping[str, Array], seed: int, threads: int = 1
) -> list[float]:
    """Run models by onnxruntime's defaults: all its optimizations, as users run them.

    Args:
        models: as ONNX writes them, or their files.
        seed: of the order in which sessions are made, and of that in each round.
        threads: that each operator is run by.

    Returns:
        Per model, how many times as fast as the first it is, by thread CPU time, of several threads by
        wall time: the median over the rounds.

    Raises:
        Exception: one of ``session.refusals``.
    """
    rng = np.random.default_rng(seed)
    clock = clock_of(threads)
    runs = {}
    for number in rng.permutation(len(models)).tolist():
        runs[number] = repeated(prepare_model(models[number], feeds, "all", threads), clock)
    runs = {number: each.as_often_as(runs[0]) for number, each in runs.items()}
    round_s = sum(each.wall_s * each.times for each in runs.values())
    rounds = max(1, min(_ROUNDS, int(_MOST_S / round_s)))
    return times_as_fast_as_first(rng, len(models), rounds, lambda number: clock(runs[number].run))
