"""A module in, a module out: exported, optimized for this CPU, and called as before."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from relational_tensat.adapters.artefacts import artefact
from relational_tensat.adapters.torch_check import opened, returned
from relational_tensat.adapters.torch_export import (
    Calls,
    bound,
    exported,
    program_digest,
    tensors_in,
    write,
)
from relational_tensat.adapters.torch_weights import WatchedModule
from relational_tensat.base.errors import UsageError
from relational_tensat.formats import copy_model
from relational_tensat.run.options import Options
from relational_tensat.run.result import Result


def optimize_module(
    module: torch.nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    options: Options | None = None,
) -> tuple[OptimizedModule, Result]:
    """Return a module that computes the same in another runtime, faster, and how it was found.

    Args:
        module: a module in evaluation mode, whose tensors are on the CPU.
        args: arguments like those that it will be called with.
        kwargs: the same for named ones.
        dynamic_shapes: which dimensions of them may have other sizes, as ``torch.export.export`` takes it.
        options: of the run; by default the result is timed in onnxruntime on this CPU. With
            ``Options.of(runs_on="best")`` OpenVINO races, too, and the winner computes the module; with
            ``fuse=True`` kernels of its own do, where they are faster.

    Returns:
        The module, and the run's result. The result for a module and its weights is kept for this user, and
        other processes find it.

    Raises:
        UsageError: the module is in training mode, or the arguments do not fit it.
        InputError: PyTorch cannot export it.
        RelationalTensatError: as ``optimize``.

    Example:
        >>> fast, result = optimize_module(model.eval(), (x,))  # doctest: +SKIP
        >>> fast.save("fast.onnx")  # doctest: +SKIP
    """
    fast = OptimizedModule(module, args, kwargs or {}, dynamic_shapes, options)
    return fast, fast.result


class OptimizedModule(torch.nn.Module):
    """A module that a runtime computes.

    It is as the module that it was made of: where that one's weights, parts or attributes change, the next
    call optimizes again. It gives no gradients.

    Attributes:
        result: of the run that found it.
        optimizations: how often it was optimized, or taken from what is kept.
    """

    result: Result

    def __init__(
        self,
        module: torch.nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        dynamic_shapes: Any,
        options: Options | None,
    ) -> None:
        """Optimize a module; see ``optimize_module``."""
        super().__init__()
        # Held without being registered: its weights are not this module's own.
        self.__dict__["_original"] = module
        self._example = (args, dict(kwargs), dynamic_shapes)
        self._options = options or Options()
        self.optimizations = 0
        self._optimize()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles hold the original module: its file is kept by content."""
        return type(self), (self._original, *self._example, self._options)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the original module returns.

        Raises:
            UsageError: the arguments are others than it was exported for, or ask for gradients.
        """
        if not self._watched.is_as_before():
            self._optimize()
        calls = self._calls
        inputs = calls.inputs(*bound(self._original, args, kwargs, self._signature))
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
            raise UsageError(
                "an input requires a gradient, expected torch.no_grad(): there is none"
            )
        misfit = calls.supposed.misfit(inputs)
        if misfit:
            warnings.warn(
                f"relational_tensat: these sizes were not exported ({misfit} does not hold): "
                f"{type(self._original).__name__} runs as it is",
                stacklevel=3,
            )
            return self._original(*args, **kwargs)
        return calls.outputs(self._session(inputs))

    @property
    def runtime(self) -> str:
        """The runtime that computes it: ``onnxruntime`` or ``openvino``."""
        return self._artefact.runtime

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the optimized model as ONNX, large weights and kernels beside it; return where it is.

        Raises:
            UsageError, InputError: the path is unusable.
        """
        from relational_tensat.custom_ops.manifest import (
            check_place,
            read_manifest,
            remove_stale,
            write_manifest,
        )

        has_kernels = self._artefact.has_kernels
        if has_kernels:
            check_place(Path(path))
        copy_model(self._artefact.path, Path(path))
        if has_kernels:
            manifest = read_manifest(self._artefact.path)
            write_manifest(manifest.ops, Path(path), manifest.overrides)
        else:
            remove_stale(Path(path))
        return Path(path)

    def _optimize(self) -> None:
        module = self._original
        if module.training:
            raise UsageError(f"{type(module).__name__}: is in training mode, expected model.eval()")
        args, kwargs, dynamic_shapes = self._example
        program, calls = exported(module, args, kwargs, dynamic_shapes)
        expected = returned(module, args, kwargs)
        # An export or a call may set attributes; values of tensors are read after it.
        watched = WatchedModule(module, tensors_in(program).values())

        def export(path: Path) -> tuple[Calls, Mapping[str, int]]:
            write(program, path)
            return calls, calls.sizes

        name = type(module).__name__
        self._artefact = artefact(program_digest(program), name, export, self._options)
        self._calls = calls
        tensors = calls.inputs(*bound(module, args, kwargs))
        self._session = opened(name, self._artefact, expected, calls, tensors)
        self._watched, self._signature = watched, inspect.signature(module.forward)
        self.__dict__["result"] = self._artefact.result
        self.optimizations += 1
