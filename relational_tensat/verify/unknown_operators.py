"""Opaque operators, computed by what can: onnxruntime, ONNX's reference evaluator, or a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.tensor import Array, TensorType, ValueType, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.types import Attrs
from relational_tensat.verify.stand_ins import stand_in

#: Operands, their types and the node's attributes to the results.
_Way: TypeAlias = Callable[[Sequence[Any], tuple[ValueType, ...], Attrs], tuple[Any, ...]]

_OPAQUE = "opaque"


class UnknownOperators:
    """Computes opaque operators for one verification.

    Once a way does not work for an operator on operands of some types, it is not tried again: the same
    operator is the same function in all graphs that are compared.
    """

    def __init__(self) -> None:
        self._ways: tuple[_Way, ...] = (_in_runtime, _by_reference)
        self._first_way: dict[object, int] = {}
        self._stand_ins: dict[str, None] = {}

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The operators that random functions have replaced so far."""
        return tuple(self._stand_ins)

    def compute(
        self, operands: Sequence[Any], types: tuple[ValueType, ...], attrs: Attrs
    ) -> tuple[Any, ...]:
        """Return the results of an opaque operator, floats in float64.

        What draws random numbers, or may, is replaced by a function: drawn twice, it could not be
        compared.
        """
        key = (tuple(sorted(attrs.items())), types)
        if key not in self._first_way:
            self._first_way[key] = len(self._ways) if _may_be_random(attrs) else 0
        for index in range(self._first_way[key], len(self._ways)):
            try:
                return self._ways[index](operands, types, attrs)
            except (InputError, MissingDependencyError):
                self._first_way[key] = index + 1
        domain, op_type = str(attrs["domain"]), str(attrs["op_type"])
        name = f"{domain}.{op_type}" if domain else op_type
        self._stand_ins[name] = None
        results = tensors_of(get_operator(_OPAQUE).infer(types, attrs))
        return stand_in(f"{name} {attrs['payload']} {attrs['key']}", flatten(operands), results)


def _may_be_random(attrs: Attrs) -> bool:
    """Whether an operator is not known to be a function; some that are must not be merged either."""
    if not get_operator(_OPAQUE).is_random(attrs):
        return False
    try:
        from relational_tensat.formats.onnx_opaque import decode, is_deterministic
    except ImportError:
        return True
    return not is_deterministic(decode(str(attrs["payload"])))


def _in_runtime(
    operands: Sequence[Any], types: tuple[ValueType, ...], attrs: Attrs
) -> tuple[Any, ...]:
    """Compute in onnxruntime, the one operator alone.

    Raises:
        InputError: onnxruntime cannot.
        MissingDependencyError: it is not installed.
    """
    results: tuple[Any, ...] = get_operator(_OPAQUE).evaluate_typed(operands, types, attrs)
    return results


def _by_reference(
    operands: Sequence[Any], types: tuple[ValueType, ...], attrs: Attrs
) -> tuple[Any, ...]:
    """Compute by ONNX's reference evaluator.

    Raises:
        InputError: it cannot; it raises errors of all kinds.
        MissingDependencyError: ONNX is not installed.
    """
    kinds = tuple(part for kind in types for part in tensors_of(kind))
    feeds = {
        f"i{index}": _declared(value, kind)
        for index, (value, kind) in enumerate(zip(flatten(operands), kinds, strict=True))
    }
    expected = tensors_of(get_operator(_OPAQUE).infer(types, attrs))
    try:
        results = _reference(attrs, len(kinds), len(expected)).run(None, feeds)
    except ImportError as error:
        raise MissingDependencyError("the reference evaluator needs onnx") from error
    except (
        Exception
    ) as error:  # whatever an operator's own code raises: it has no errors of its own
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"ONNX's reference cannot compute {attrs['op_type']}: {reason}") from error
    return tuple(map(_evaluated, results, expected))


def _reference(attrs: Attrs, n_inputs: int, n_outputs: int) -> Any:
    """Return an evaluator of a model of the one node."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    from relational_tensat.formats.onnx_opaque import decode

    def values(letter: str, count: int) -> list[Any]:
        # The reference does not look at types.
        return [
            helper.make_tensor_value_info(f"{letter}{index}", TensorProto.FLOAT, None)
            for index in range(count)
        ]

    graph = helper.make_graph(
        [decode(str(attrs["payload"]))], _OPAQUE, values("i", n_inputs), values("o", n_outputs)
    )
    domain = str(attrs["domain"])
    version = int(str(attrs["opset"]))
    imports = [helper.make_opsetid(domain, version)]
    if domain not in ("", "ai.onnx"):
        imports.append(helper.make_opsetid("", 17))
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))


def _declared(value: Any, kind: TensorType) -> Any:
    """Return an evaluated value in the element type that the model declares."""
    return np.asarray(value).astype(numpy_dtype(kind.dtype)) if kind.is_float else value


def _evaluated(value: Any, kind: TensorType) -> Any:
    """Return a result as it is evaluated with: floats in float64.

    Raises:
        InputError: it is of another shape than the model declares.
    """
    if not isinstance(value, np.ndarray | np.generic):
        return value
    array: Array = np.asarray(value)
    if array.dtype.kind in "biuf" and array.shape != kind.shape:
        raise InputError(f"ONNX's reference gives {list(array.shape)}, expected {kind}")
    return array.astype(np.float64) if kind.is_float else array
