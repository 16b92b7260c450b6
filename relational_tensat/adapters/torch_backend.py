"""``torch.compile(model, backend="relational_tensat")`` runs the graphs that Dynamo captures in
onnxruntime.

Dynamo hands a module's weights over as inputs, and does not look again whether they are the same tensors:
that is done here, at each call. Where gradients are asked for, Inductor compiles instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from relational_tensat.adapters.artefacts import artefact
from relational_tensat.adapters.torch_check import opened, returned
from relational_tensat.adapters.torch_export import Calls, exported, graph_digest, is_open, write
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
            InputError: an input is something else, or not on the CPU, or an output lies in memory in a way
                that cannot be made.
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
        self._layouts = _layouts(graph, nodes, sizes)
        self._shapes = tuple(
            {
                dim: torch.export.Dim.DYNAMIC
                for dim, size in enumerate(values[place].shape)
                if is_open(size)
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
        misfit = weighted.calls.supposed.misfit(tensors)
        if misfit:
            _say(f"a part runs as it is at sizes where {misfit} does not hold")
            return self._graph(*args)
        outputs = weighted.session(tensors)
        return weighted.calls.outputs(_laid_out(outputs, self._layouts, args, tensors))

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
        expected = returned(module, tuple(tensors), {})
        session = opened("the graph", made, expected, made.beside, tensors)
        return _Weighted(watched, made.beside, session)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where an output lies: as it would in PyTorch, since callers change one tensor and read another.

    Attributes:
        memory: the number of its memory, which others may share; None if it has its own.
        place: of the input whose memory that is; None where no input has it.
        form: elements of the memory, and sizes, strides and offset of the output; sizes may be symbols.
        symbols: the input and the dim that a symbol is the size of.
    """

    memory: int | None
    place: int | None = None
    form: tuple[Any, ...] = ()
    symbols: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def numbers(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """Return the form for these inputs."""
        return [
            each
            if isinstance(each, int)
            else int(
                each.node.expr.xreplace(
                    {
                        symbol: tensors[index].shape[dim]
                        for symbol in each.node.expr.free_symbols
                        for index, dim in [self.symbols[str(symbol)]]
                    }
                )
            )
            for each in self.form
        ]


def _layouts(
    graph: torch.fx.GraphModule,
    inputs: Sequence[torch.fx.Node],
    symbols: Mapping[str, tuple[int, int]],
) -> list[_Layout]:
    """Return where each tensor among the outputs lies.

    Raises:
        InputError: in the memory of a constant, of another element type, or at places that are no sizes'.
    """
    owners: dict[int, tuple[int | None, torch.Tensor]] = {}
    for node in (*inputs, *(each for each in graph.graph.nodes if each.op == "get_attr")):
        value = node.meta.get("example_value")
        if isinstance(value, torch.Tensor):
            place = inputs.index(node) if node in inputs else None
            owners.setdefault(value.untyped_storage()._cdata, (place, value))
    outputs = [
        node
        for node in _pytree.tree_leaves(graph.graph.output_node().args)
        if isinstance(node, torch.fx.Node)
        and isinstance(node.meta.get("example_value"), torch.Tensor)
    ]
    values = [node.meta["example_value"] for node in outputs]
    memories = [value.untyped_storage()._cdata for value in values]
    layouts = []
    for node, value, memory in zip(outputs, values, memories, strict=True):
        sharing = {other for other, its in zip(outputs, memories, strict=True) if its == memory}
        if memory not in owners and len(sharing) == 1 and value.is_contiguous():
            layouts.append(_Layout(None))
            continue
        place, base = owners.get(memory, (None, values[memories.index(memory)]))
        n_elements = value.untyped_storage().nbytes() // value.element_size()
        offset = value.storage_offset()
        if memory in owners:
            # It is as long as it is, and its offset may be another at the next call.
            n_elements, offset = 0, offset - base.storage_offset()
        form = (n_elements, *value.shape, *value.stride(), offset)
        unknown = {
            str(symbol)
            for each in form
            if not isinstance(each, int)
            for symbol in each.node.expr.free_symbols
        } - set(symbols)
        if unknown or base.dtype != value.dtype or (memory in owners and place is None):
            raise InputError(
                f"output {node.name!r} lies in memory of a constant, or of other elements"
            )
        layouts.append(_Layout(memory, place, form, symbols))
    return layouts


def _laid_out(
    outputs: Sequence[torch.Tensor],
    layouts: Sequence[_Layout],
    args: Sequence[Any],
    tensors: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    """Return the outputs where PyTorch would have them."""
    memories: dict[int, torch.Tensor] = {}
    results = []
    for output, layout in zip(outputs, layouts, strict=True):
        if layout.memory is None:
            results.append(output)
            continue
        n_elements, *form, offset = layout.numbers(tensors)
        sizes, strides = form[: output.dim()], form[output.dim() :]
        if layout.place is not None:
            base = args[layout.place]
            results.append(base.as_strided(sizes, strides, base.storage_offset() + offset))
            continue
        if layout.memory not in memories:
            memories[layout.memory] = output.new_empty(n_elements)
        view = memories[layout.memory].as_strided(sizes, strides, offset)
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
        _copy(output[once], view[once])
        results.append(view)
    return results


def _copy(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy elements in this thread: PyTorch's others wait until the runtime's leave the processors."""
    if source.dtype == torch.bfloat16:  # NumPy has none
        source, target = source.view(torch.int16), target.view(torch.int16)
    np.copyto(target.numpy(), source.numpy())


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
