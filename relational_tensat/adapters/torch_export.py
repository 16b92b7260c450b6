"""A module of PyTorch as an ONNX file, and how its calls become the file's inputs and outputs."""

from __future__ import annotations

import hashlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype
from torch._dynamo import convert_frame
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.utils import _pytree

from relational_tensat.adapters.torch_weights import digest_of
from relational_tensat.base.errors import InputError, UsageError, first_line


@dataclass(frozen=True, slots=True)
class SupposedSizes:
    """The assumptions of PyTorch about sizes: where Python decides by a size, a file has one of the ways
    only.

    Attributes:
        dims: of tensors among the arguments: which tensor, which dim, and SymPy's expression of its size.
        conditions: on the symbols of these, SymPy's.
    """

    dims: tuple[tuple[int, int, Any], ...]
    conditions: tuple[Any, ...]
    _fitting: set[tuple[int, ...]] = field(default_factory=set)

    def misfit(self, tensors: Sequence[torch.Tensor]) -> str:
        """Return the condition that these tensors do not fulfil, "" where they fulfil all."""
        sizes = tuple(tensors[index].shape[dim] for index, dim, _ in self.dims)
        if sizes in self._fitting:
            return ""
        expressions = [expression for _, _, expression in self.dims]
        if 0 in sizes:  # a result is compared at sizes from 1 on
            return f"{expressions[sizes.index(0)]} > 0"
        known = {
            expression: size
            for expression, size in zip(expressions, sizes, strict=True)
            if expression.is_Symbol
        }
        for expression, size in zip(expressions, sizes, strict=True):
            if expression.free_symbols <= set(known) and expression.xreplace(known) != size:
                return f"{expression} = {size}"
        for condition in self.conditions:
            if condition.free_symbols <= set(known) and not condition.xreplace(known):
                return str(condition)
        self._fitting.add(sizes)
        return ""


@dataclass(frozen=True, slots=True)
class Calls:
    """How arguments and outputs are nested, and which of them are tensors.

    Attributes:
        arguments: per leaf of the arguments, whether it is a tensor, else the value that it always has.
        returned: the same for what is returned.
        sizes: of dynamic dimensions, by their names in the file, as they were in the example.
        supposed: of these dimensions, and where they are.
    """

    in_spec: Any
    out_spec: Any
    arguments: tuple[tuple[bool, Any], ...]
    returned: tuple[tuple[bool, Any], ...]
    sizes: Mapping[str, int]
    supposed: SupposedSizes

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        """Return the tensors of a call, whose arguments are as ``bound`` returns them.

        Raises:
            UsageError: the arguments are not as those that the module was exported for.
        """
        leaves, spec = _pytree.tree_flatten((args, dict(kwargs)))
        if spec != self.in_spec:
            raise UsageError(f"the arguments are {spec}, expected {self.in_spec} as when exported")
        tensors = []
        for leaf, (is_tensor, value) in zip(leaves, self.arguments, strict=True):
            if isinstance(leaf, torch.Tensor) != is_tensor or not (is_tensor or leaf == value):
                expected = "a tensor" if is_tensor else repr(value)
                raise UsageError(f"an argument is {leaf!r}, expected {expected} as when exported")
            if is_tensor:
                tensors.append(leaf)
        return tensors

    def outputs(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Return what the module returns, made of these tensors."""
        left = iter(tensors)
        leaves = [next(left) if is_tensor else value for is_tensor, value in self.returned]
        return _pytree.tree_unflatten(leaves, self.out_spec)


def bound(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    signature: inspect.Signature | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments as the module's signature has them: the same call always looks the same.

    Args:
        signature: of the module's ``forward``, where it is known.

    Raises:
        UsageError: they do not fit.
    """
    try:
        arguments = (signature or inspect.signature(module.forward)).bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(f"{type(module).__name__}: {error}") from None
    return arguments.args, dict(sorted(arguments.kwargs.items()))


def exported(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
) -> tuple[torch.export.ExportedProgram, Calls]:
    """Export a module for arguments like these; the program returns tensors only.

    Raises:
        UsageError: the arguments do not fit the module.
        InputError: PyTorch cannot export it, or it changes its inputs or buffers.
    """
    args, kwargs = bound(module, args, kwargs)
    with _quiet(), torch.no_grad():
        try:
            program = torch.export.export(
                module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False
            )
            impurity = _impurity(program)
        except Exception as error:  # PyTorch raises errors of many kinds for what it cannot do
            raise InputError(f"{type(module).__name__}: torch.export: {_reason(error)}") from error
    if impurity:
        raise InputError(f"{type(module).__name__}: {impurity}, expected a pure function")
    misfit = _misfit(program)
    if misfit:
        raise InputError(f"{type(module).__name__}: {misfit}")
    signature, call = program.graph_signature, program.call_spec
    given = [each.arg for each in signature.input_specs if each.kind == InputKind.USER_INPUT]
    returned = tuple(_kind(each.arg) for each in signature.output_specs)
    calls = Calls(
        call.in_spec,
        call.out_spec,
        tuple(map(_kind, given)),
        returned,
        _sizes(program),
        _supposed(program),
    )
    # The exporter to ONNX takes tensors only.
    kept = [place for place, (is_tensor, _) in enumerate(returned) if is_tensor]
    node = program.graph.output_node()
    node.args = (tuple(node.args[0][place] for place in kept),)
    signature.output_specs[:] = [signature.output_specs[place] for place in kept]
    program.module_call_graph[0].signature.out_spec = _pytree.tree_flatten((0,) * len(kept))[1]
    return program, calls


def write(program: torch.export.ExportedProgram, path: Path) -> None:
    """Write a program as an ONNX file; large weights beside it.

    Raises:
        InputError: an operator has no ONNX form.
    """
    nodes = program.graph.output_node().args[0]
    with _quiet():
        try:
            written = torch.onnx.export(program, dynamo=True, verbose=False)
            _cast_outputs(written.model.graph, [node.meta["val"].dtype for node in nodes])
            written.save(str(path))
        except Exception as error:  # the exporter raises errors of many kinds for what it cannot do
            raise InputError(f"torch.onnx.export: {_reason(error)}") from error


def _cast_outputs(graph: onnx_ir.Graph, dtypes: Sequence[torch.dtype]) -> None:
    """Give outputs the types of the program.

    The exporter computes some operators of float16 in float32, and forgets to convert them back where they
    are outputs.
    """
    for place, (output, dtype) in enumerate(zip(graph.outputs, dtypes, strict=True)):
        expected = from_torch_dtype(dtype)
        if output.dtype != expected:
            cast = onnx_ir.node("Cast", [output], {"to": expected.value})
            cast.outputs[0].shape, cast.outputs[0].dtype = output.shape, expected
            graph.append(cast)
            graph.outputs[place] = cast.outputs[0]


def tensors_in(program: torch.export.ExportedProgram) -> dict[str, torch.Tensor]:
    """Return the tensors that a program holds, those of lists and of globals, too."""
    held = {**program.state_dict, **program.constants}
    return {name: value for name, value in held.items() if isinstance(value, torch.Tensor)}


def program_digest(program: torch.export.ExportedProgram) -> str:
    """Return a digest of all that decides what a program computes, weights included."""
    tensors = tensors_in(program)
    return digest(
        torch.__version__,
        *_texts(program.graph_module),
        str(program.graph_signature),
        str(program.range_constraints),
        *(str(node.meta.get("val")) for node in program.graph.nodes if node.op == "placeholder"),
        *tensors,
        digest_of(list(tensors.values())),
    )


def graph_digest(
    graph: torch.fx.GraphModule, tensors: Sequence[torch.Tensor], *others: object
) -> str:
    """Return the same of a graph that Dynamo captured, with all tensors that it holds."""
    state = (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
    texts = (*_texts(graph), str(state), str(torch.get_default_dtype()), *map(str, others))
    # the values kept beside a file have these fields
    return digest(torch.__version__, str(Calls.__slots__), *texts, digest_of(tensors))


def digest(*texts: str) -> str:
    """Return a digest of texts."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()


def _texts(graph: torch.fx.GraphModule) -> Iterator[str]:
    """Yield a graph, and those inside of it, as text."""
    for name, module in graph.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            yield f"{name}: {module.graph}"


def _impurity(program: torch.export.ExportedProgram) -> str:
    """Return why a program is no pure function of its inputs: "" where it is one."""
    nodes = [
        node
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
        if isinstance(node.target, torch._ops.OpOverload)
    ]
    for node in nodes:
        if torch.Tag.nondeterministic_seeded in node.target.tags and _draws(node):
            return f"draws random numbers ({node.target})"
    if any(node.target._schema.is_mutable for node in nodes):
        # Most change what they have made themselves; decompositions find out.
        for each in program.run_decompositions({}).graph_signature.output_specs:
            if each.kind != OutputKind.USER_OUTPUT:
                return f"changes {each.target!r}"
    return ""


def _misfit(program: torch.export.ExportedProgram) -> str:
    """Return why ONNX has no such inputs or outputs; "" where it has."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    signature = program.graph_signature
    for name in (*signature.user_inputs, *signature.user_outputs):
        value = values.get(name) if isinstance(name, str) else None
        # Exporters would write two numbers.
        if isinstance(value, torch.Tensor) and value.is_complex():
            return f"{name!r} is complex, expected a type that ONNX has"
    if not any(isinstance(each.arg, TensorArgument) for each in signature.output_specs):
        return "returns no tensor, expected one"
    return ""


def _draws(node: torch.fx.Node) -> bool:
    """Whether an operator that may draw random numbers does: those for training are told."""
    names = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    if "dropout_p" in names:
        return bool(given.get("dropout_p", 0.0))
    return bool(given.get("train", given.get("training", True)))


def _kind(argument: Any) -> tuple[bool, Any]:
    """Return whether an argument is a tensor, else the value that it always has."""
    if isinstance(argument, TensorArgument):
        return True, None
    if isinstance(argument, ConstantArgument):
        return False, argument.value
    kind = type(argument).__name__
    raise InputError(f"{argument.name!r} is a {kind}, expected a tensor or a constant")


def _sizes(program: torch.export.ExportedProgram) -> dict[str, int]:
    """Return the example's sizes of dynamic dimensions."""
    return {
        str(size): size.node.hint
        for node in program.graph.nodes
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)
        for size in node.meta["val"].shape
        if isinstance(size, torch.SymInt) and str(size).isidentifier()
    }


def is_open(size: int | torch.SymInt) -> bool:
    """Whether a dim may have other sizes: one that turned out to have one size only is a SymInt still."""
    return isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None


def _supposed(program: torch.export.ExportedProgram) -> SupposedSizes:
    """Return what an export supposed of sizes, but for PyTorch's habit to suppose that none is 0 or 1."""
    names = {
        each.arg.name
        for each in program.graph_signature.input_specs
        if each.kind == InputKind.USER_INPUT and isinstance(each.arg, TensorArgument)
    }
    values = [
        node.meta["val"]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in names
    ]
    dims = [
        (index, dim, size.node)
        for index, value in enumerate(values)
        for dim, size in enumerate(value.shape)
        if is_open(size)
    ]
    if not dims:
        return SupposedSizes((), ())
    traced = dims[0][2].shape_env
    conditions = [traced.replace(guard.expr) for guard in traced.guards]
    for symbol, bounds in program.range_constraints.items():
        conditions += [symbol >= bounds.lower] * bool(bounds.lower > 2)
        conditions += [symbol <= bounds.upper] * bool(bounds.upper.is_Integer)
    return SupposedSizes(
        tuple((index, dim, node.expr) for index, dim, node in dims),
        tuple(dict.fromkeys(each for each in conditions if each.free_symbols)),
    )


def _reason(error: BaseException) -> str:
    """Return the first line of what caused an error: the exporter's own are many lines of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(Exception(str(error)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the exporter says of itself from the caller, and threads that capture graphs from it."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    # Exporters and Dynamo change what all threads share.
    with convert_frame.compile_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
