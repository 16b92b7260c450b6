"""One benchmark on the GPU: what its kernels compute, and their time beside PyTorch's operators."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional

from bench.mirage.cases import cases
from bench.mirage.on_gpu.launches import LAUNCHES, prepare
from bench.mirage.on_gpu.operators import Placed, run_program
from relational_tensat.base.errors import first_line
from relational_tensat.cost.cuda.protocol import (
    COLD,
    WARM,
    CudaStopwatch,
    Observation,
    Settings,
    observe,
)
from relational_tensat.cost.device import Unmeasurable
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded

HEADER = (
    "benchmark", "what runs", "error", "warm µs", "cold µs", "times as fast", "modelled µs",
    "modelled ratio", "published", "remark",
)  # fmt: skip
#: The norm of a result's difference, relative to that of the result in float64, that float16 explains.
TOLERANCE = 2e-3
#: Fewer samples than for kernels that are kept as costs: a benchmark has up to four contestants.
SETTINGS = Settings(fewest=30, most=60)
#: How one of several μGraphs is chosen: batches of so many microseconds and runs at most, their median.
_QUICK_US, _QUICK_BATCH, _QUICK_SAMPLES = 200.0, 20, 7
#: PyTorch's operators one after the other: what the others are compared with.
OPERATORS = "operators"

#: Enqueues work; returns the outputs.
Run = Callable[[], Sequence[Placed]]


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to compute a benchmark.

    Attributes:
        error: of the output that differs most, relative to float64; NaN where it did not run.
        warm_us, cold_us: medians, the inputs in the cache or not; None where it was not timed.
        remark: why it was not; which μGraph it is, where one was chosen.
    """

    name: str
    error: float
    warm_us: float | None = None
    cold_us: float | None = None
    remark: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it computes what it should, as far as it was run."""
        return self.error <= TOLERANCE


@dataclass(frozen=True, slots=True)
class GpuRun:
    """A benchmark's contestants, ``OPERATORS`` first, and what was modelled and published of it."""

    case: str
    modelled_us: float
    modelled_ratio: float
    published: str
    contestants: tuple[Contestant, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for each contestant, under ``HEADER``."""
        base_us = self.contestants[0].warm_us
        return [
            (
                self.case, one.name, f"{one.error:.1e}", _number(one.warm_us), _number(one.cold_us),
                f"{base_us / one.warm_us:.2f}" if base_us and one.warm_us else "-",
                f"{self.modelled_us:.1f}", f"{self.modelled_ratio:.1f}x", self.published or "-", one.remark,
            )
            for one in self.contestants
        ]  # fmt: skip


def measure(
    kept: Mapping[str, Any], stopwatch: CudaStopwatch[Run] | None, device: str = "cuda"
) -> GpuRun:
    """Run a kept benchmark in every way there is, check what comes out, and time what is right.

    Args:
        kept: a run of ``benchmarks.json``.
        stopwatch: None where nothing is timed.
        device: PyTorch's name of what it runs on.
    """
    (case,) = (case for case in cases() if case.name == kept["search"]["case"])
    program, graph = case.build(), decoded(kept["mugraph"], case.name)
    inputs = drawn(program, device)
    wide = {name: Placed(x.labels, x.data.double()) for name, x in inputs.items()}
    wanted = run_program(program, wide)
    del wide
    ways: dict[str, Callable[[], Run]] = {OPERATORS: lambda: partial(run_program, program, inputs)}
    if case.program in _SCALES:
        ways["scaled_dot_product_attention"] = lambda: _attention(inputs, _SCALES[case.program])
    ways |= {f"ours, {target}": partial(prepare, graph, inputs, target) for target in LAUNCHES}
    tried = {name: _tried(name, way, wanted) for name, way in ways.items()}
    others = [decoded(each["mugraph"], case.name) for each in kept.get("others", ())]
    for target in LAUNCHES if others else ():
        tuned = _tuned(
            f"ours, {target}, tuned", target, [graph, *others], inputs, wanted, stopwatch
        )
        tried[tuned[0].name] = tuned
    del wanted
    right = {name: run for name, (one, run) in tried.items() if run is not None and one.is_right}
    timed: dict[str, Observation | Unmeasurable] = {}
    if stopwatch is not None:
        timed = dict(zip(right, observe(list(right.values()), stopwatch, SETTINGS), strict=True))
    return GpuRun(
        case.name, kept["best_us"], kept["library_us"] / kept["best_us"], case.published,
        tuple(_timed(one, timed.get(name)) for name, (one, _) in tried.items()),
    )  # fmt: skip


def _tried(
    name: str, way: Callable[[], Run], wanted: Sequence[Placed]
) -> tuple[Contestant, Run | None]:
    """Run a way once; return how far its outputs are from what is wanted, and what runs it again."""
    try:
        run = way()
        return Contestant(name, _error(run(), wanted)), run
    except Exception as error:  # Triton raises errors of many kinds
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # where the device is at fault, this ends the command
        return Contestant(name, float("nan"), remark=first_line(error)), None


def _tuned(
    name: str,
    target: str,
    graphs: Sequence[MuGraph],
    inputs: Mapping[str, Placed],
    wanted: Sequence[Placed],
    stopwatch: CudaStopwatch[Run] | None,
) -> tuple[Contestant, Run | None]:
    """Return the fastest of some μGraphs, by a few samples of each; all of them are compared.

    Where one is wrong, that one: it is what should be seen.
    """
    tried = [_tried(name, partial(prepare, graph, inputs, target), wanted) for graph in graphs]
    ran = [(one, run) for one, run in tried if run is not None]
    worst = max(ran, key=lambda each: each[0].error, default=tried[0])
    if stopwatch is None or not worst[0].is_right:
        return worst
    times_us = [_quick_us(run, stopwatch) if run is not None else math.inf for _, run in tried]
    best = int(np.argmin(times_us))
    one, run = tried[best]
    spread = " ".join("-" if math.isinf(time_us) else f"{time_us:.1f}" for time_us in times_us)
    return replace(one, remark=f"number {best + 1} of {len(graphs)} by the model: {spread} µs"), run


def _quick_us(run: Run, stopwatch: CudaStopwatch[Run]) -> float:
    """Return about how long a run takes, with its inputs in the cache."""
    once_us = stopwatch.time_us(run, WARM, 1)
    batch = max(1, min(_QUICK_BATCH, int(_QUICK_US / max(once_us, 1e-3))))
    times_us = [stopwatch.time_us(run, WARM, batch) / batch for _ in range(_QUICK_SAMPLES)]
    return float(np.median(times_us))


def drawn(program: MuGraph, device: str) -> dict[str, Placed]:
    """Return random inputs in float16, the same each time."""
    random = torch.Generator(device).manual_seed(zlib.crc32(program.name.encode()))
    return {
        name: Placed(
            variables(dims),
            (torch.randn([dim.size for dim in dims], generator=random, device=device) / 2).half(),
        )
        for name, dims in program.inputs.items()
    }


#: What PyTorch's attention multiplies scores with, by program; None for 1/√d.
_SCALES: Mapping[str, float | None] = {"attention": 1.0, "scaled_attention": None}


def _attention(inputs: Mapping[str, Placed], scale: float | None) -> Run:
    """Return PyTorch's own attention, of keys that lie as it wants them."""
    q, k, v = (inputs[name].data[None] for name in "QKV")
    k = k.transpose(-1, -2).contiguous()
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: [Placed(("h", "q", "e"), attend(q, k, v, scale=scale)[0])]


def _error(made: Sequence[Placed], wanted: Sequence[Placed]) -> float:
    """Return the largest relative norm of a difference; infinite where something is NaN."""
    errors = [
        float((x.along(y.labels).double() - y.data).norm() / y.data.norm())
        for x, y in zip(made, wanted, strict=True)
    ]
    return max(error if error == error else float("inf") for error in errors)


def _timed(contestant: Contestant, observation: Observation | Unmeasurable | None) -> Contestant:
    if observation is None:
        remark = contestant.remark or (
            "not timed" if contestant.is_right else "not timed: it does not compute the same"
        )
        return Contestant(contestant.name, contestant.error, remark=remark)
    if isinstance(observation, Unmeasurable):
        return Contestant(contestant.name, contestant.error, remark=observation.reason)
    samples = observation.samples
    return replace(contestant, warm_us=samples[WARM].median_us, cold_us=samples[COLD].median_us)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
