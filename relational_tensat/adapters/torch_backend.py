"""``torch.compile(model, backend="relational_tensat")`` runs the graphs that Dynamo captures in
onnxruntime.

Dynamo hands a module's weights over as inputs, and does not look again whether they are the same tensors:
that is done here, at each call. Where gradients are asked for, Inductor compiles instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from relational_tensat.adapters.artefacts import artefact
from relational_tensat.adapters.torch_export import Calls, exported, graph_digest, write
from relational_tensat.adapters.torch_session import TorchSession
from relational_tensat.adapters.torch_weights import WatchedWeights, tensors_of
from relational_tensat.base.errors import InputError, RelationalTensatError, first_line
from relational_tensat.run.options import Options

#: So many sets of weights are kept for one captured graph: instances of a class share it.
_MOST_COMPILED = 4


def backend(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile what Dynamo captured, when it is called for the first time.

    Args:
        graph: the captured graph.
        example_inputs: tensors and sizes like those of the calls.
        options: of the run, by the names that ``Options.of`` takes.
    """
    if torch.is_grad_enabled() and any(_asks_for_gradient(each) for each in example_inputs):
        return _inductor(
            graph, example_inputs, "gradients are asked for (torch.no_grad() asks for none)"
        )
    try:
        region = CapturedRegion(graph, example_inputs, Options.of(**(options or {})))
    except InputError as error:
        return _inductor(graph, example_inputs, first_line(error))
    call: Callable[..., Any] = torch._dynamo.disable(region)
    return call


@dataclass(frozen=True, slots=True)
class _Weighted:
    """A captured graph with one set of weights."""

    weights: WatchedWeights
    calls: Calls
    session: TorchSession


class CapturedRegion:
    """A captured graph, optimized for each set of weights that it is called with."""

    def __init__(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any], options: Options
    ) -> None:
        """Tell the inputs apart: weights, tensors, and sizes of these.

        Raises:
            InputError: an input is something else, or not on the CPU.
        """
        self._graph, self._options = graph, options
        self._compiled: list[_Weighted] = []
        self._runs_as_it_is = False
        nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        values = [
            node.meta.get("example_value", value)
            for node, value in zip(nodes, example_inputs, strict=True)
        ]
        self._weights = [
            place for place, node in enumerate(nodes) if _is_weight(node, values[place])
        ]
        self._tensors = [
            place
            for place, value in enumerate(values)
            if isinstance(value, torch.Tensor) and place not in self._weights
        ]
        for place in (*self._weights, *self._tensors):
            if values[place].device.type != "cpu":
                raise InputError(
                    f"input {nodes[place].name!r} is on {values[place].device}, expected cpu"
                )
        sizes = {
            str(size): (index, dim)
            for index, place in reversed(list(enumerate(self._tensors)))
            for dim, size in reversed(list(enumerate(values[place].shape)))
        }
        self._sizes: dict[int, tuple[int, int]] = {}
        for place, (node, value) in enumerate(zip(nodes, values, strict=True)):
            if isinstance(value, torch.Tensor):
                continue
            if str(value) not in sizes:
                raise InputError(
                    f"input {node.name!r} is {value}, expected a tensor or the size of one"
                )
            self._sizes[place] = sizes[str(value)]
        self._shapes = tuple(
            {
                dim: torch.export.Dim.DYNAMIC
                for dim, size in enumerate(values[place].shape)
                if isinstance(size, torch.SymInt)
            }
            for place in self._tensors
        )

    def __call__(self, *args: Any) -> Any:
        """Compute the graph."""
        asks_for_gradient = torch.is_grad_enabled() and any(map(_asks_for_gradient, args))
        if self._runs_as_it_is or asks_for_gradient:
            return self._graph(*args)
        weights = [*(args[place] for place in self._weights), *tensors_of(self._graph)]
        tensors = [args[place] for place in self._tensors]
        for weighted in self._compiled:
            if weighted.weights.are(weights):
                break
        else:
            try:
                weighted = self._compile(weights, args, tensors)
            except RelationalTensatError as error:
                _say(f"a part runs as it is, without being compiled: {first_line(error)}")
                self._runs_as_it_is = True
                return self._graph(*args)
            self._compiled = [weighted, *self._compiled[: _MOST_COMPILED - 1]]
        return weighted.calls.outputs(weighted.session(tensors))

    def _compile(
        self, weights: list[torch.Tensor], args: Sequence[Any], tensors: list[torch.Tensor]
    ) -> _Weighted:
        watched = WatchedWeights(weights)
        fixed = {place: args[place] for place in self._weights}
        module = _Region(self._graph, fixed, self._tensors, self._sizes, len(args)).eval()
        shapes = {"tensors": self._shapes} if tensors else None

        def export(path: Path) -> tuple[Calls, Mapping[str, int]]:
            program, calls = exported(module, tuple(tensors), {}, shapes)
            write(program, path)
            return calls, calls.sizes

        examples = [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]
        key = graph_digest(self._graph, weights, examples, self._shapes, self._sizes)
        made = artefact(key, "captured", export, self._options)
        return _Weighted(watched, made.beside, TorchSession(made.path, made.runtime))


class _Region(torch.nn.Module):
    """A captured graph as a module of its tensors: it holds its weights, and reads sizes off its inputs."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        weights: Mapping[int, torch.Tensor],
        tensors: Sequence[int],
        sizes: Mapping[int, tuple[int, int]],
        count: int,
    ) -> None:
        super().__init__()
        self.captured = graph  # programs of PyTorch have a ``graph`` of their own
        self._places = {place: f"weight_{place}" for place in weights}
        for place, tensor in weights.items():
            self.register_buffer(f"weight_{place}", tensor.detach())
        self._tensors, self._sizes, self._count = tensors, sizes, count

    def forward(self, *tensors: torch.Tensor) -> Any:
        args: list[Any] = [None] * self._count
        for place, tensor in zip(self._tensors, tensors, strict=True):
            args[place] = tensor
        for place, (index, dim) in self._sizes.items():
            args[place] = tensors[index].shape[dim]
        for place, name in self._places.items():
            args[place] = getattr(self, name)
        return self.captured(*args)


def _is_weight(node: torch.fx.Node, value: Any) -> bool:
    """Whether Dynamo says that an input is a parameter or a buffer."""
    marks = node.meta.get("tensor_dict") or {}
    return "_dynamo_static_input_type" in marks or isinstance(value, torch.nn.Parameter)


def _asks_for_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _inductor(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], reason: str
) -> Callable[..., Any]:
    from torch._inductor.compile_fx import compile_fx

    _say(f"Inductor compiles it: {reason}")
    compiled: Callable[..., Any] = compile_fx(graph, list(example_inputs))
    return compiled


def _say(text: str) -> None:
    warnings.warn(f"relational_tensat: {text}", stacklevel=3)
