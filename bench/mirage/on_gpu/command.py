"""``python -m bench mirage --gpu FILE``: what it runs, and what it keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.common.result_file import save_result
from bench.mirage.table import Table
from relational_tensat.base.errors import MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError("bench mirage --gpu needs PyTorch: pip install torch") from error

from bench.mirage.on_gpu.measure import HEADER as HEADER
from bench.mirage.on_gpu.measure import GpuRun as GpuRun
from bench.mirage.on_gpu.measure import measure
from bench.mirage.on_gpu.stopwatch import TorchStopwatch


def measure_all(
    kept: Sequence[Mapping[str, Any]], limit_s: float, *, times: bool = True
) -> Iterator[GpuRun]:
    """Yield a run for each kept benchmark that is begun within a limit of seconds.

    Args:
        times: whether what is right is timed.

    Raises:
        MissingDependencyError: there is no NVIDIA GPU.
    """
    if not torch.cuda.is_available():
        raise MissingDependencyError("bench mirage --gpu needs an NVIDIA GPU that PyTorch can use")
    until_s = time.perf_counter() + limit_s
    stopwatch = TorchStopwatch() if times else None
    for run in kept:
        if time.perf_counter() > until_s:
            return
        yield measure(run, stopwatch)
        if stopwatch is not None:
            stopwatch.forget()


def save(runs: Sequence[GpuRun], origin: Path, settings: Mapping[str, object]) -> Path:
    """Write runs beside the kept benchmarks that they are of, as JSON, CSV and Markdown; return that."""
    name = torch.cuda.get_device_name()
    stem = f"gpu-{'-'.join(name.lower().split())}"
    table = Table(f"Measured on {name}", HEADER, tuple(row for run in runs for row in run.rows()))
    content = {
        "gpu": name,
        "settings": {key: str(value) for key, value in settings.items()},
        "runs": [asdict(run) for run in runs],
    }
    save_result(
        origin.with_name(f"{stem}.json"),
        content,
        {"torch": torch.__version__, "cuda": torch.version.cuda},
    )
    origin.with_name(f"{stem}.csv").write_text(table.csv(), encoding="utf-8")
    path = origin.with_name(f"{stem}.md")
    path.write_text(table.markdown(), encoding="utf-8")
    return path
