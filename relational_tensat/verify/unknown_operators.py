"""Opaque operators, computed by what can: onnxruntime, ONNX's reference evaluator, or a stand-in.

A stand-in is a random function. A law that rewrites what is around such an operator holds whatever it
computes, so any function of its inputs shows a mistake there. These are smooth, so that rounding before
them stays rounding behind them, and every element of a result depends on elements of all inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.tensor import (
    DTYPE_BYTES,
    Array,
    TensorType,
    ValueType,
    numpy_dtype,
    tensors_of,
)
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.types import Attrs

#: Coefficients are repeated after so many, as drawing more takes longer than using them; a prime.
_BLOCK = 262_147
#: A value whose elements are not known, or are no numbers, is represented by so many numbers.
_FEATURES = 64


def stand_in(name: str, operands: Sequence[Any], kinds: Sequence[TensorType]) -> tuple[Array, ...]:
    """Return what a random function of some operands gives.

    Args:
        name: of the function; the same name and operands give the same results.
        operands: arrays, or what else an operator may take.
        kinds: of the results.

    Returns:
        Floats in float64, about as large as the operands; integers 0 or 1; for a value that is no
        tensor of numbers, a vector of floats.
    """
    digest = hashlib.sha256(name.encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:16], "big"))
    flat = [numbers for numbers in map(_numbers, operands) if numbers.size]
    return tuple(_result(rng, flat, kind) for kind in kinds)


def _result(
    rng: np.random.Generator, operands: Sequence[NDArray[np.float64]], kind: TensorType
) -> Array:
    is_tensor = kind.dtype in DTYPE_BYTES
    size = kind.size if is_tensor else _FEATURES
    total = _coefficients(rng, size)
    for operand in operands:
        total = total + _coefficients(rng, size) * _spread(
            operand * _coefficients(rng, operand.size), size
        )
    total /= np.sqrt(len(operands) + 1)
    if not is_tensor:
        return _nonlinear(total)
    if kind.is_float:
        return _nonlinear(total).reshape(kind.shape)
    return (total > 0).astype(numpy_dtype(kind.dtype)).reshape(kind.shape)


def _nonlinear(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a function of numbers that is neither linear nor flat anywhere."""
    return numbers + 0.5 * np.sin(numbers)


def _coefficients(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw numbers of either sign, none of which is near 0."""
    block = min(count, _BLOCK)
    block_values = (rng.random(block) + 0.5) * rng.choice((-1.0, 1.0), block)
    return np.resize(block_values, count)


def _spread(numbers: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return so many numbers, each of the original ones part of them."""
    if numbers.size <= size or size == 0:
        return np.resize(numbers, size)
    rows = -(-numbers.size // size)
    matrix_values = np.zeros(rows * size)
    matrix_values[: numbers.size] = numbers
    spread: NDArray[np.float64] = matrix_values.reshape(rows, size).sum(axis=0) / np.sqrt(rows)
    return spread


def _numbers(value: Any) -> NDArray[np.float64]:
    """Return a value as numbers: those of a sequence one after the other, a hash for a text."""
    if isinstance(value, list | tuple):
        return np.concatenate([np.zeros(0), *map(_numbers, value)])
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64).reshape(-1)
    return np.array([_hash(str(item)) for item in array.flat])


def _hash(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2.0**31 - 1.0


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

        An operator that draws random numbers, or may, is replaced by a function: drawn twice, it could not
        be compared.
        """
        key = (tuple(sorted(attrs.items())), types)
        if key not in self._first_way:
            self._first_way[key] = len(self._ways) if _may_be_random(attrs) else 0
        kinds = tensors_of(get_operator(_OPAQUE).infer(types, attrs))
        for index in range(self._first_way[key], len(self._ways)):
            with suppress(InputError, MissingDependencyError):
                results = self._ways[index](operands, types, attrs)
                if _have_shapes(results, kinds):
                    return results
            self._first_way[key] = index + 1
        domain, op_type = str(attrs["domain"]), str(attrs["op_type"])
        name = f"{domain}.{op_type}" if domain else op_type
        self._stand_ins[name] = None
        return stand_in(f"{name} {attrs['payload']} {attrs['key']}", flatten(operands), kinds)


def _have_shapes(results: Sequence[Any], kinds: Sequence[TensorType]) -> bool:
    """Whether results are as declared: not so where an operand is a stand-in of some other shape."""
    return all(
        np.shape(result) == kind.shape
        for result, kind in zip(results, kinds, strict=False)
        if kind.dtype in DTYPE_BYTES
    )


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
        with np.errstate(all="ignore"):
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
