"""``python -m bench decoder``: a token of a decoder with a cache, in turn by several tools."""

from __future__ import annotations

import argparse
import logging
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import relational_tensat
from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, report_saved, save_with_table
from bench.common.table import Column, Table, Value
from bench.conformance.runs import sizes
from relational_tensat.base.errors import UsageError
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize

#: Runs a token.
Step = Callable[[Mapping[str, Any]], Any]

_EXPORT = Path(__file__).parents[1] / "export" / "decoder.py"
_THEIRS = "onnxruntime.transformers"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("decoder", help="tokens a second of a decoder with a cache")
    parser.add_argument("folder", type=Path, help="where models are made, or are already")
    parser.add_argument("--python", help="an interpreter with PyTorch and transformers, to export")
    parser.add_argument("--layers", type=int, default=2, help="of the Llama (2)")
    parser.add_argument("--cached", default="1,128,2048", help="tokens in the cache")
    parser.add_argument("--rounds", type=int, default=15, help="of all tools in turn (15)")
    parser.add_argument("--threads", type=int, default=1, help="of each tool (1)")
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="also of float32, for each number of tokens a file of that size with kernels (run --fuse)",
    )
    add_save(parser, "the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make the models, time them in turn, and print a table.

    Raises:
        UsageError: there is no model, and no interpreter to export one.
    """
    rows: list[tuple[Value, ...]] = []
    for name, files in _made(options).items():
        steps = _steps(files, options.threads)
        for cached in map(int, options.cached.split(",")):
            inputs = _inputs(files["onnxruntime"], cached)
            has_kernels = options.kernels and name == "float32"
            own = (
                _kernel_steps(files["onnxruntime"], inputs, options.threads) if has_kernels else {}
            )
            every = {**steps, **own}
            rows += [(name, cached, *row) for row in _timed(every, inputs, options.rounds)]
    columns = (
        Column("weights"), Column("cached tokens"), Column("tool"), Column("tokens a second", 1),
        Column("times as fast", 3), Column("quartiles"),
    )  # fmt: skip
    note = (
        f"A Llama of {options.layers} layers, one token, {options.threads} threads, "
        f"{options.rounds} rounds of all in turn. Times as fast is the median of CPU seconds of the "
        "original in onnxruntime over those of the tool in the same round; tokens a second is wall."
    )
    table = Table("decoder", "Decoders with a cache", columns, tuple(rows), note)
    print(table.markdown())
    if options.save:
        path = RESULTS / f"decoder-{date.today()}.json"
        content = {"rows": [list(row) for row in rows]}
        report_saved(save_with_table(path, content, {}, table.markdown()))
    return 0


def _made(options: argparse.Namespace) -> dict[str, dict[str, Path]]:
    """Return the files to run, by weights and tool; those that are missing are made."""
    options.folder.mkdir(parents=True, exist_ok=True)
    original = options.folder / f"llama{options.layers}.onnx"
    if not original.exists():
        if options.python is None:
            raise UsageError(f"{original} is not there: give --python to export it")
        words = [options.python, str(_EXPORT), str(options.layers), str(original)]
        subprocess.run(words, check=True, capture_output=True)
    files = {"float32": {"onnxruntime": original, "ours": _ours(original), **_theirs(original)}}
    packed = original.with_suffix(".q4.onnx")
    try:
        if not packed.exists():
            _pack(original, packed)
    except ImportError as error:
        print(f"MatMulNBits is left out: onnxruntime's quantizer needs more packages: {error}")
        return files
    return {**files, "MatMulNBits": {"onnxruntime": packed, "ours": _ours(packed)}}


def _pack(original: Path, packed: Path) -> None:
    """Write a model with weights of four bits."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    logging.getLogger("onnxruntime.quantization").setLevel(logging.WARNING)
    quantizer = MatMulNBitsQuantizer(onnx.load(original), bits=4, block_size=32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(packed), False)


def _ours(original: Path) -> Path:
    path = original.with_suffix(".ours.onnx")
    if not path.exists():
        result = optimize(original, Options.of(runs_on="onnxruntime"), output=path)
        print(f"{path.name}: {'unchanged' if result.unchanged else 'optimized'}")
    return path


def _kernel_steps(original: Path, inputs: Mapping[str, Any], threads: int) -> dict[str, Step]:
    """Return a token at fixed sizes: without a library, and with kernels where the file has some."""
    dims = sizes(original.read_bytes(), inputs)
    path = original.with_suffix(f".kernels{'-'.join(map(str, dims.values()))}.onnx")
    if not path.exists():
        chosen = Options.of(
            runs_on="onnxruntime", fuse=True, static=True, dims=dims, threads_at_inference=threads
        )
        result = optimize(original, chosen, output=path)
        print(f"{path.name}: {result.library.outcome if result.library else result.notes[-1]}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if not relational_tensat.register(options, path):
        return {"ours, fixed sizes": partial(_session(path, threads).run, None)}
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return {
        "ours, fixed sizes": partial(_session(path, threads).run, None),
        "ours, with kernels": partial(session.run, None),
    }


def _theirs(original: Path) -> dict[str, Path]:
    """Return what onnxruntime's optimizer of transformers makes; nothing where that fails."""
    path = original.with_suffix(".theirs.onnx")
    if not path.exists():
        try:
            from onnxruntime.transformers import optimizer

            model = optimizer.optimize_model(
                str(original), "gpt2", num_heads=8, hidden_size=512, opt_level=0
            )
            model.save_model_to_file(str(path))
            _session(path, 1)
        except Exception as error:  # it imports, and raises, whatever it likes
            path.unlink(missing_ok=True)
            print(f"{_THEIRS}: {error}")
            return {}
    return {_THEIRS: path}


def _steps(files: Mapping[str, Path], threads: int) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    for tool, path in files.items():
        session = _session(path, threads)
        steps[tool] = partial(session.run, None)
    try:
        import openvino
    except ImportError:
        return steps
    for tool, path in {"OpenVINO": files["onnxruntime"], "ours, OpenVINO": files["ours"]}.items():
        try:
            settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
            model = openvino.Core().compile_model(path, "CPU", settings)
        except RuntimeError as error:  # operators that it does not know
            print(f"{tool}: {str(error).splitlines()[-1]}")
        else:
            steps[tool] = model.create_infer_request().infer
    return steps


def _session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _inputs(model: Path, cached: int) -> dict[str, Any]:
    """Return one token's inputs, by name."""
    drawn = np.random.default_rng(cached)
    inputs: dict[str, Any] = {}
    for value in _session(model, 1).get_inputs():
        fixed = [size if isinstance(size, int) else 1 for size in value.shape]
        if len(fixed) == 4:
            fixed[2] = cached
            inputs[value.name] = drawn.standard_normal(fixed, np.float32)
        elif "mask" in value.name:
            inputs[value.name] = np.ones((1, cached + 1), np.int64)
        else:
            number = cached if "pos" in value.name or "places" in value.name else 7
            inputs[value.name] = np.full((1, 1), number, np.int64)
    return inputs


def _timed(
    steps: Mapping[str, Step], inputs: Mapping[str, Any], rounds: int
) -> list[tuple[Value, ...]]:
    cpu: dict[str, list[float]] = {tool: [] for tool in steps}
    wall: dict[str, list[float]] = {tool: [] for tool in steps}
    for number in range(rounds + 1):
        for tool, step in steps.items():
            starts = time.process_time(), time.perf_counter()
            for _ in range(5):
                step(inputs)
            if number:  # the first one takes memory
                cpu[tool].append(time.process_time() - starts[0])
                wall[tool].append((time.perf_counter() - starts[1]) / 5)
    rows: list[tuple[Value, ...]] = []
    for tool in steps:
        ratios = [
            before / after for before, after in zip(cpu["onnxruntime"], cpu[tool], strict=True)
        ]
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows.append((tool, 1 / statistics.median(wall[tool]), middle, f"{low:.3f} to {high:.3f}"))
    return rows
