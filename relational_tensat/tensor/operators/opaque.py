"""ONNX operators that this package does not know: carried through, never rewritten."""

from __future__ import annotations

import base64
import binascii
import importlib
from functools import lru_cache
from typing import Any, cast

import numpy as np

from relational_tensat.base.errors import (
    InputError,
    MissingDependencyError,
    ShapeError,
    UsageError,
    first_line,
)
from relational_tensat.tensor.field import Field, Undefined
from relational_tensat.tensor.operators.attributes import Attr, int_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.operators.onnx_form import ONNX_DTYPES
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.traits import Family, Use
from relational_tensat.tensor.types import (
    CARRIED,
    Array,
    Attrs,
    TensorType,
    TupleType,
    ValueType,
    numpy_dtype,
    tensors_of,
)

#: The default operator set of a node of another domain, which its subgraphs may use.
_DEFAULT_OPSET = 17
#: Operations for an element between others: four weights and their sums.
_INTERPOLATED = 16
#: ONNX's operators that have graphs as attributes.
WITH_BODIES = frozenset({"If", "Loop", "Scan"})
#: How often the body of a loop runs of which that is not known.
_SOME_TURNS = 8.0
#: How often a branch runs.
_HALF = 0.5
#: Sessions kept: making one costs about a millisecond.
_SESSIONS = 64


def _attention_flops(operands: tuple[TensorType, ...], results: tuple[TensorType, ...]) -> int:
    """Return the work of a kernel of attention: scores, weighted sums, and perhaps a projection."""
    kept = max([part.shape[-2] for part in results[1:] if part.rank >= 4], default=0)
    keys = operands[1]
    is_projected = keys.rank == 2  # onnxruntime's Attention multiplies by weights of all three
    length = kept or (operands[0] if is_projected else keys).shape[1 if keys.rank < 4 else 2]
    rows = operands[0].size // max(1, operands[0].shape[-1])
    return 4 * results[0].size * length + (2 * rows * keys.size if is_projected else 0)


@register
class Opaque(Operator):
    """One ONNX node, as it was read.

    Attributes:
        op_type, domain, opset: which operator of which version of which set.
        payload: base64 of the ``NodeProto``, whose inputs are called i0, i1, .. and whose outputs
            o0, o1, .. ("" where one is left out); values that its subgraphs use from outside are
            further inputs.
        out_types: (element type, shape) of each output.
        key: not empty for what must never be merged with its like: random or stateful operators.
        constants: (place, elements) of small operands that are the file's constants: they decide how long
            the operator takes, as the turns of a loop.

    The model writer writes the payload back; there is no other ONNX form.
    """

    name = "opaque"
    computes = Family.UNKNOWN
    uses = (Use.STRUCTURE,)
    in_rules = False
    rounds = True
    arity = (0, None)
    attrs = (
        Attr("op_type", "str"),
        Attr("domain", "str"),
        Attr("opset", "int"),
        Attr("payload", "str"),
        Attr("out_types", "any"),
        Attr("key", "str", "", timed_as=""),
        Attr("constants", "any", ()),
    )
    multi_output = True
    takes_empty = True

    def infer(self, inputs: Types, attrs: Attrs) -> TupleType:
        return _out_types(attrs)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Of recurrent networks and transforms, those of their definition; of others, some an element."""
        operands = tuple(part for kind in inputs for part in tensors_of(kind))
        results = tensors_of(output)
        elements = sum(part.size for part in results)
        match attrs["op_type"]:
            case "LSTM" | "GRU" | "RNN" if len(operands) >= 3 and operands[0].rank == 3:
                steps = operands[0].shape[0] * operands[0].shape[1]  # those of each sequence
                return 2 * steps * (operands[1].size + operands[2].size)
            case "STFT" | "DFT" if results and results[0].rank >= 3:
                points = max(results[0].shape[1:-1])
                return 5 * elements * max(1, points.bit_length())
            case "TopK" if operands and results[0].rank:  # as many as data say have no known shape
                return operands[0].size * max(1, results[0].shape[-1].bit_length())
            case "NonMaxSuppression" if operands and operands[0].rank == 3:
                batches, boxes, _ = operands[0].shape
                return 8 * batches * boxes * boxes
            case "Resize" | "GridSample" | "Upsample" | "RoiAlign":
                return _INTERPOLATED * elements
            case "MatMulNBits" if operands and operands[0].rank:
                return 2 * elements * operands[0].shape[-1]
            case "MoE" | "QMoE" if operands:  # each row goes through one expert, or few
                weights = [part for part in operands if part.rank == 3]
                packed = 2 if attrs["op_type"] == "QMoE" else 1
                rows = operands[0].size // max(1, operands[0].shape[-1])
                return 2 * rows * packed * sum(part.size // part.shape[0] for part in weights)
            case "Attention" | "MultiHeadAttention" | "GroupQueryAttention":
                if results and len(operands) > 1 and min(part.rank for part in operands[:2]) > 1:
                    return _attention_flops(operands, results)
        return max(elements, sum(part.size for part in operands))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        raise UsageError("opaque: its meaning depends on the operands' types; use evaluate_typed")

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        """Run the node through onnxruntime, in the element types that the model declares.

        Where there is no kernel for these, floats are float32.

        Raises:
            InputError: onnxruntime cannot run it.
            MissingDependencyError: onnx or onnxruntime is not installed.
        """
        kinds = tuple(part for kind in types for part in tensors_of(kind))
        session, refusals = _open(kinds, attrs)
        feeds = {
            model_input.name: _as_taken(value, model_input.type)
            for model_input, value in zip(session.get_inputs(), flatten(inputs), strict=True)
        }
        try:
            results = session.run(None, feeds)
        except refusals as error:
            reason = first_line(error)
            raise InputError(
                f"onnxruntime cannot run {str_of(attrs, 'op_type')}: {reason}"
            ) from error
        return tuple(map(_as_evaluated, results))

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        raise Undefined

    def is_random(self, attrs: Attrs) -> bool:
        return attrs.get("key", "") != ""

    def unpacks(self, attrs: Attrs) -> bool:
        """Whether it is ONNX's DequantizeLinear, of whatever types and domain."""
        return attrs.get("op_type") == "DequantizeLinear"

    def can_evaluate(self, inputs: Types, attrs: Attrs) -> bool:
        """Whether it is not random, and onnxruntime is installed and has a kernel for it."""
        if self.is_random(attrs):
            return False
        kinds = tuple(part for kind in inputs for part in tensors_of(kind))
        try:
            _open(kinds, attrs)
        except (InputError, MissingDependencyError):
            return False
        return True


def constants_of(attrs: Attrs) -> dict[int, tuple[int | float | bool, ...]]:
    """Return the elements of operands that are constants, by their places."""
    items = cast("tuple[tuple[int, tuple[int | float | bool, ...]], ...]", attrs["constants"])
    return dict(items)


def array_of_constant(attrs: Attrs, place: int, kind: TensorType) -> Array:
    """Return an operand that is a constant."""
    return np.array(constants_of(attrs)[place], numpy_dtype(kind.dtype)).reshape(kind.shape)


def turns_of(attrs: Attrs, inputs: Types) -> float:
    """Return how often a body runs when its node runs once, as far as that is known."""
    match attrs["op_type"]:
        case "If":
            return _HALF
        case "Scan":  # the last operands are what it goes along, most of them along the first axis
            kinds = [part for kind in inputs for part in tensors_of(kind)]
            return float(max((kind.shape[0] for kind in kinds[-1:] if kind.rank), default=1))
    turns = constants_of(attrs).get(0, ())
    return float(turns[0]) if len(turns) == 1 and 0 <= turns[0] < 2**31 else _SOME_TURNS


def _open(kinds: TupleType, attrs: Attrs) -> tuple[Any, tuple[type[Exception], ...]]:
    return _session(
        str_of(attrs, "op_type"),
        str_of(attrs, "payload"),
        str_of(attrs, "domain"),
        int_of(attrs, "opset"),
        kinds,
        _out_types(attrs),
    )


def _out_types(attrs: Attrs) -> TupleType:
    try:
        pairs = cast("tuple[tuple[str, tuple[int, ...]], ...]", attrs["out_types"])
        kinds = tuple(TensorType(str(dtype), tuple(map(int, shape))) for dtype, shape in pairs)
    except (TypeError, ValueError):
        kinds = ()
    if not kinds:
        raise ShapeError(
            f"opaque: out_types {attrs['out_types']!r}, expected (element type, shape) pairs"
        )
    return kinds


def _as_taken(value: Any, onnx_type: str) -> Any:
    """Return an evaluated value as a session takes it; integers have their type already."""
    narrow = onnx_type == "tensor(float)"
    return np.asarray(value).astype(np.float32) if narrow else value


def _fed_dtype(dtype: str) -> str:
    """Halves go in and out as float32, cast inside: NumPy has no bfloat16."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _as_evaluated(value: Any) -> Any:
    if isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating):
        return value.astype(np.float64)
    return value


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"evaluating an opaque ONNX operator needs {name.partition('.')[0]}:"
            " pip install 'relational-tensat[onnx]'"
        ) from error


@lru_cache(maxsize=_SESSIONS)
def _session(
    op_type: str, payload: str, domain: str, opset: int, kinds: TupleType, out_kinds: TupleType
) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return a session of the one node, and the exceptions with which onnxruntime refuses.

    Raises:
        InputError: the payload is no node, or onnxruntime has no kernel for it.
    """
    onnx, runtime = _load("onnx"), _load("onnxruntime")
    state = _load("onnxruntime.capi.onnxruntime_pybind11_state")
    classes = (value for value in vars(state).values() if isinstance(value, type))
    refusals: tuple[type[Exception], ...] = (
        *(kind for kind in classes if issubclass(kind, Exception)),
        RuntimeError,
        ValueError,
    )
    decode_error: type[Exception] = _load("google.protobuf.message").DecodeError
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # fatal only: what is wrong is raised
    options.intra_op_num_threads = 1
    refused: list[Exception] = []
    for narrowed in (False, True):
        try:
            model = _single_node_model(
                onnx,
                payload,
                domain,
                opset,
                _declared(kinds, narrowed),
                _declared(out_kinds, narrowed),
            )
            session = runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except (binascii.Error, decode_error) as error:
            raise InputError(f"opaque {op_type}: malformed payload: {first_line(error)}") from error
        except refusals as error:
            refused.append(error)
        else:
            return session, refusals
    reason = first_line(refused[0])
    raise InputError(f"onnxruntime cannot run {op_type}: {reason}") from refused[0]


def _declared(kinds: TupleType, narrowed: bool) -> TupleType:
    """Return the types in which a node runs: float32 for all floats, where it has no others."""
    if not narrowed:
        return kinds
    return tuple(TensorType("float32", k.shape) if k.is_float else k for k in kinds)


def _single_node_model(
    onnx: Any, payload: str, domain: str, opset: int, kinds: TupleType, out_kinds: TupleType
) -> Any:
    """Return a model of the node, with halves cast to and from float32 around it."""
    node = onnx.NodeProto.FromString(base64.b64decode(payload, validate=True))
    before, after, inputs, outputs = [], [], [], []
    for k, kind in enumerate(kinds):
        feed_type, name = TensorType(_fed_dtype(kind.dtype), kind.shape), f"i{k}"
        if feed_type != kind:  # the node and its subgraphs keep the name
            before.append(_cast(onnx, f"fed_{name}", name, kind.dtype))
            name = f"fed_{name}"
        inputs.append(_value_info(onnx, name, feed_type))
    for k, kind in enumerate(out_kinds):
        result_type, name = TensorType(_fed_dtype(kind.dtype), kind.shape), f"o{k}"
        if result_type != kind:
            after.append(_cast(onnx, name, f"given_{name}", result_type.dtype))
            name = f"given_{name}"
        outputs.append(_value_info(onnx, name, result_type))
    graph = onnx.helper.make_graph([*before, node, *after], "opaque", inputs, outputs)
    default = opset if domain in ("", "ai.onnx") else _DEFAULT_OPSET
    imports = [onnx.helper.make_opsetid("", default)]
    if domain not in ("", "ai.onnx"):
        imports.append(onnx.helper.make_opsetid(domain, opset))
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)


def _cast(onnx: Any, source: str, target: str, dtype: str) -> Any:
    return onnx.helper.make_node("Cast", [source], [target], to=ONNX_DTYPES[dtype])


def _value_info(onnx: Any, name: str, kind: TensorType) -> Any:
    if kind.dtype.startswith(CARRIED):
        text = kind.dtype.removeprefix(CARRIED)
        proto = onnx.TypeProto.FromString(base64.b64decode(text))
    elif kind.dtype in ONNX_DTYPES:
        proto = onnx.helper.make_tensor_type_proto(ONNX_DTYPES[kind.dtype], kind.shape)
    else:
        code = onnx.TensorProto.DataType.Value(kind.dtype.upper())
        proto = onnx.helper.make_tensor_type_proto(code, kind.shape)
    return onnx.helper.make_value_info(name, proto)
