"""A module on its way through both entries, and how fast each way of running it is."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils.flop_counter import FlopCounterMode

from bench.modules.architectures import ARCHITECTURES
from relational_tensat import Options
from relational_tensat.adapters.torch_export import bound, exported, write
from relational_tensat.adapters.torch_session import TorchSession
from relational_tensat.torch import OptimizedModule, backend, optimize_module

_SETS = 3
#: Threads of another session spin on the cores for a while after its run.
_QUIET_S = 0.1


def try_module(name: str, rounds: int) -> dict[str, Any]:
    """Return the row of a module.

    Args:
        rounds: of timing; 0 for none, and then for little effort.
    """
    warnings.simplefilter("ignore")
    architecture = ARCHITECTURES[name]
    module = architecture.module()
    kwargs = architecture.inputs()
    effort = "normal" if rounds else "low"
    start_s = time.perf_counter()
    fast, result = optimize_module(module, (), kwargs, options=Options.of(effort=effort))
    seconds = time.perf_counter() - start_s
    start_s = time.perf_counter()
    optimize_module(module, (), kwargs, options=Options.of(effort=effort))
    again_s = time.perf_counter() - start_s
    compiled = torch.compile(module, backend=partial(backend, options={"effort": effort}))
    ways: dict[str, Callable[..., Any]] = {"module": fast, "compile": compiled}
    best = None
    if rounds:
        options = Options.of(runs_on="best", fuse=True)
        best, _ = optimize_module(module, (), kwargs, options=options)
        ways["best"] = best
    errors = dict.fromkeys(ways, 0.0)
    with torch.no_grad():
        for _ in range(_SETS):
            values = architecture.inputs()
            expected = _tensors(module(**values))
            for way, computed in ways.items():
                errors[way] = max(errors[way], _error(expected, _tensors(computed(**values))))
        ms = {} if best is None else _timed(module, fast, best, compiled, kwargs, rounds)
        if rounds:
            ms["products"] = _products_ms(module, kwargs)
    return {
        "name": name, "errors": errors, "seconds": seconds, "again_s": again_s, "ms": ms,
        "runtime": "" if best is None else best.runtime,
        "gain": result.gain.text, "rules": dict(result.rules_used),
    }  # fmt: skip


def _timed(
    module: torch.nn.Module,
    fast: OptimizedModule,
    best: OptimizedModule,
    compiled: Callable[..., Any],
    kwargs: Mapping[str, Any],
    rounds: int,
) -> dict[str, float]:
    """Return the median of each way's milliseconds, all ways in turn, in shuffled order."""
    import torch._inductor.config as inductor

    inductor.freezing = True
    torch._dynamo.reset()
    frozen = torch.compile(module)
    tuned = torch.compile(module, mode="max-autotune")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.onnx"
        program, calls = exported(module, (), kwargs)
        write(program, path)
        plain, file = TorchSession(path), TorchSession(fast.save(Path(folder) / "ours.onnx"))
        tensors = calls.inputs(*bound(module, (), kwargs))
        ways: dict[str, Callable[[], object]] = {
            "eager": lambda: module(**kwargs),
            "inductor": lambda: frozen(**kwargs),
            "autotuned": lambda: tuned(**kwargs),
            "onnxruntime": lambda: plain(tensors),
            "file": lambda: file(tensors),
            "compiled": lambda: compiled(**kwargs),
            "best": lambda: best(**kwargs),
            "ours": lambda: fast(**kwargs),
        }
        for way in ways.values():
            for _ in range(3):
                way()
        spent: dict[str, list[float]] = {name: [] for name in ways}
        order = list(ways)
        draw = random.Random(0)
        for _ in range(rounds):
            draw.shuffle(order)
            for name in order:
                spent[name].append(_ms(ways[name]))
    return {name: statistics.median(times) for name, times in spent.items()}


def _products_ms(module: torch.nn.Module, kwargs: Mapping[str, Any]) -> float:
    """Return how long the products and convolutions alone take at the rate of a large product.

    That is the rate of PyTorch or of onnxruntime, whichever is higher here. Little in float32 is faster.
    """
    with FlopCounterMode(display=False) as counter:
        module(**kwargs)
    product, x = torch.nn.Linear(1024, 1024, bias=False).eval(), torch.randn(1024, 1024)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "product.onnx"
        write(exported(product, (x,), {})[0], path)
        session = TorchSession(path)
        ways: list[Callable[[], object]] = [lambda: product(x), lambda: session([x])]
        least_ms = min(_ms(way) for _ in range(10) for way in ways)
    flops: int = counter.get_total_flops()
    return least_ms * flops / (2 * 1024**3)


def _ms(way: Callable[[], object]) -> float:
    """Return the milliseconds of one of three calls, once others' threads no longer spin."""
    time.sleep(_QUIET_S)
    way()  # another's data leaves the caches
    start_s = time.perf_counter()
    for _ in range(3):
        way()
    return (time.perf_counter() - start_s) / 3 * 1e3


def _tensors(outputs: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]


def _error(expected: list[torch.Tensor], found: list[torch.Tensor]) -> float:
    assert len(expected) == len(found) > 0
    return max(
        float((a.double() - b.double()).abs().max() / a.double().abs().max())
        for a, b in zip(expected, found, strict=True)
    )
