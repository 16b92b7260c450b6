"""``python -m bench gpu``: a table of kernels' times, and the 13 models end to end, on this GPU.

One call begins nothing new after ``--limit-s`` seconds and keeps all that is done; calling it again
resumes there.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.common.machine import describe_commit
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.gpu.element_type import ELEMENT_TYPES, FLOAT32, with_element_type
from bench.models import MODELS
from relational_tensat.base.errors import InputError, check_choice
from relational_tensat.cost.device import Device
from relational_tensat.gpu.catalogue import MATH_MODES

if TYPE_CHECKING:
    from bench.gpu.measure import ModelRun, Session


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("gpu", help="time kernels and models on this NVIDIA GPU")
    parser.add_argument("--models", metavar="A,B", help="only these; default: all 13")
    parser.add_argument("--math", choices=MATH_MODES, default="fp32", help="(fp32)")
    parser.add_argument("--dtype", choices=ELEMENT_TYPES, default=FLOAT32, help=f"({FLOAT32})")
    parser.add_argument("--k", metavar="K", type=int, default=1, help="value of k_multi (1)")
    parser.add_argument("--limit-s", metavar="S", type=float, default=480.0, help="(480)")
    parser.add_argument("--cost-cache", metavar="FILE", type=Path, help="(the user's own)")
    parser.add_argument("--runs", metavar="FILE", type=Path, help="what is done (beside the cache)")
    parser.add_argument("--fresh", action="store_true", help="measure all models again")
    parser.add_argument("--out", metavar="DIR", type=Path, default=RESULTS, help="(bench/results)")
    parser.add_argument("--save", action="store_true", help="keep the figures, and the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure the models' kernels first, then each model end to end; print what there is.

    Raises:
        MissingDependencyError: PyCUDA, the driver or a GPU is missing.
        UsageError: a model does not exist.
        InputError: the cache cannot be used.
    """
    from bench.gpu import configurations as record
    from bench.gpu import measure as gpu_measure
    from relational_tensat.cost.cache import CostCache, default_cache
    from relational_tensat.cost.cuda.cuda_device import CudaDevice
    from relational_tensat.cost.measured_source import MeasuredSource
    from relational_tensat.gpu.cuda import CudaLibrary, open_gpu
    from relational_tensat.gpu.cuda.cuda_library import Timer
    from relational_tensat.gpu.cuda.gpu import record_launches

    until_s = time.perf_counter() + options.limit_s
    names = _names(options.models)
    library = CudaLibrary(open_gpu())
    device = CudaDevice(library, options.math)
    cache = CostCache(options.cost_cache or default_cache())
    runs_path = options.runs or cache.path.parent / "gpu-runs.json"
    session = gpu_measure.Session(
        library=library,
        timer=Timer(library),
        record=record_launches,
        source=MeasuredSource("cuda", device, cache),
        math=options.math,
        runs_path=runs_path,
        stamp=_stamp(device, options),
        until_s=until_s,
        k_multi=options.k,
        dtype=options.dtype,
    )
    if options.fresh:
        runs_path.unlink(missing_ok=True)
    runs = measure(names, session)
    print(text_of(runs, names))
    if options.save:
        path = save(runs, options, device, library.versions())
        report_saved(path)
        table = options.out / f"{_file_name(device, options)}.parquet"
        try:
            print(f"saved {table}: {record.export(device, cache, table):,} rows", file=sys.stderr)
        except InputError as error:
            print(f"no table: {error}", file=sys.stderr)
    return 0


def measure(names: Sequence[str], session: Session) -> list[ModelRun]:
    """Measure the kernels of all models and of the ONNX files, then models as long as there is time."""
    from bench.gpu import configurations as record
    from bench.gpu import measure as gpu_measure
    from bench.gpu import optimize as gpu_optimize

    for name, path in record.all_models().items():
        if session.is_over:
            break
        if name not in names and (path is None or len(names) < len(MODELS)):
            continue  # files are no models of the table: they are measured with all of these
        _report(f"kernels of {name}")
        graph = with_element_type(record.load(name, path), session.dtype)
        configurations = record.graph_configurations(graph)
        gpu_optimize.measure_all(session.source, configurations, session.until_s)
    runs = []
    for name in names:
        _report(f"{name}, end to end")
        graph = with_element_type(record.load(name, None), session.dtype)
        run = gpu_measure.measure_model(name, graph, session)
        if run is not None:
            runs.append(run)
    return runs


def text_of(runs: Sequence[ModelRun], names: Sequence[str]) -> str:
    """Return the table that is printed: microseconds, and speed-ups measured and modelled."""
    from bench.gpu.optimize import RULE_SETS

    ratio_names = (name for rules in RULE_SETS for name in (f"{rules} ×", "model ×"))
    rows: list[tuple[str, ...]] = [("model", "original", *RULE_SETS, *ratio_names)]
    for run in runs:
        times = [run.variants[variant].median_us for variant in ("original", *RULE_SETS)]
        ratios = [
            run.speedup(variant, modelled=modelled)
            for variant in RULE_SETS
            for modelled in (False, True)
        ]
        cells = [_number(value, 1) for value in times] + [_number(value, 3) for value in ratios]
        rows.append((run.model, *cells))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    notes = [
        f"{run.model}, {variant}: {variant_run.note}"
        for run in runs
        for variant, variant_run in run.variants.items()
        if variant_run.note
    ]
    if len(runs) < len(names):
        notes.append(f"{len(runs)} of {len(names)} models are done: call it again to resume")
    return "\n".join([*lines, *notes])


def save(
    runs: Sequence[ModelRun], options: argparse.Namespace, device: Device, versions: dict[str, str]
) -> Path:
    """Write the runs with the GPU, the machine, versions and commit; return the file.

    A second save of the same GPU, math and type on the same day replaces the first.
    """
    path: Path = options.out / (
        f"gpu-{date.today().isoformat()}-{_file_name(device, options)}.json"
    )
    content = {
        "gpu": {"name": device.key.name, "driver": device.key.driver, "libraries": versions},
        "settings": {"math": options.math, "dtype": options.dtype, "k_multi": options.k},
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    return save_result(path, content)


def _names(text: str | None) -> list[str]:
    if text is None:
        return list(MODELS)
    return [check_choice("model", name.strip(), MODELS) for name in text.split(",")]


def _stamp(device: Device, options: argparse.Namespace) -> dict[str, Any]:
    """Return what earlier results must share with this call."""
    key = device.key
    return {
        "device": [key.name, key.driver, dict(sorted(key.libraries.items())), key.protocol],
        "commit": describe_commit(),
        "k_multi": options.k,
        "math": options.math,
        "dtype": options.dtype,
    }


def _file_name(device: Device, options: argparse.Namespace) -> str:
    """Return GPU and mode as files are called, e.g. ``nvidia-h200-tf32``, or the type, if it is another."""
    name = device.key.name.removesuffix(f", {options.math}").lower()
    return "-".join([*name.split(), options.math if options.dtype == FLOAT32 else options.dtype])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _report(text: str) -> None:
    print(f"{text} ...", file=sys.stderr, flush=True)
