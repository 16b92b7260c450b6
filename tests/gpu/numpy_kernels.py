"""What each kernel under kernels/ does, from its parameters, in NumPy.

Every function reads and writes memory exactly as its namesake's parameters say: wrong strides, sizes
or operands give wrong results here as they would on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relational_tensat.gpu import catalogue
from relational_tensat.tensor import DTYPE_BYTES
from relational_tensat.tensor.floats import erf
from relational_tensat.tensor.operators.traits import activate
from relational_tensat.tensor.operators.windows import pad_spatial, taps
from tests.gpu.numpy_memory import NumpyMemory, strided

Arguments = dict[str, Any]
Kernel = Callable[[NumpyMemory, str, Arguments], None]

_DTYPES = {name: dtype for dtype, name in catalogue.FLOAT_TYPES.items()}
_WIDTHS = {name: width for width, name in catalogue.MOVED_TYPES.items()}
_ACTS = {code: act for act, code in catalogue.ACTIVATION_CODES.items()}
_UNARY = {code: op for op, code in catalogue.UNARY_CODES.items()}
_BINARY: dict[int, Callable[[Any, Any], Any]] = {
    0: np.add, 1: np.subtract, 2: np.multiply, 3: np.divide, 4: np.power,
}  # fmt: skip
_REDUCTIONS: dict[int, Callable[..., Any]] = {
    0: np.sum, 1: np.mean, 2: np.max, 3: np.min, 4: np.prod,
}  # fmt: skip


def unary(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    assert np.prod(a["sizes"]) == a["n"]
    x = memory.load(a["src"], _DTYPES[kind], strided(a["sizes"], a["src_strides"]))
    with np.errstate(all="ignore"):
        y = _unary(_UNARY[a["op"]], x, a["low"], a["high"])
    memory.store(a["dst"], _DTYPES[kind], np.arange(a["n"]), y.reshape(-1))


def _activate(code: int, x: Any) -> Any:
    act = _ACTS[code]
    return _unary(act, x, 0.0, 0.0) if act == "gelu_tanh" else activate(act, x)


def _unary(op: str, x: Any, low: float, high: float) -> Any:
    functions: dict[str, Callable[[], Any]] = {
        "relu": lambda: activate("relu", x),
        "sigmoid": lambda: activate("sigmoid", x),
        "tanh": lambda: np.tanh(x),
        "exp": lambda: np.exp(x),
        "sqrt": lambda: np.sqrt(x),
        "erf": lambda: erf(x),
        "neg": lambda: -x,
        "abs": lambda: np.abs(x),
        "log": lambda: np.log(x),
        "reciprocal": lambda: 1.0 / x,
        "gelu": lambda: 0.5 * x * (1 + erf(x / np.sqrt(2.0))),
        "gelu_tanh": lambda: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "clip": lambda: np.clip(x, low, high),
        "smul": lambda: x * low,
    }
    return functions[op]()


def binary(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    assert np.prod(a["sizes"]) == a["n"]
    x = memory.load(a["a"], _DTYPES[kind], strided(a["sizes"], a["a_strides"]))
    y = memory.load(a["b"], _DTYPES[kind], strided(a["sizes"], a["b_strides"]))
    with np.errstate(all="ignore"):
        z = _activate(a["act"], _BINARY[a["op"]](x, y))
    memory.store(a["dst"], _DTYPES[kind], np.arange(a["n"]).reshape(z.shape), z)


def is_nan(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    x = memory.load(a["src"], _DTYPES[kind], np.arange(a["n"]))
    memory.store(a["dst"], "bool", np.arange(a["n"]), np.isnan(x))


def compare(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    _write_conditions(memory, _DTYPES[kind], a, (np.less, np.less_equal, np.equal)[a["op"]])


def decide(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    functions = (np.logical_and, np.logical_or, lambda x, _: np.logical_not(x))
    _write_conditions(memory, "bool", a, functions[a["op"]])


def _write_conditions(
    memory: NumpyMemory, dtype: str, a: Arguments, function: Callable[[Any, Any], Any]
) -> None:
    assert np.prod(a["sizes"]) == a["n"]
    x, y = (memory.load(a[n], dtype, strided(a["sizes"], a[f"{n}_strides"])) for n in "ab")
    memory.store(a["dst"], "bool", np.arange(a["n"]), function(x, y).ravel())


def choose(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    assert np.prod(a["sizes"]) == a["n"]
    width, places = _WIDTHS[kind], np.arange(a["n"])
    read = {
        name: strided(a["sizes"], a[f"{name}_strides"]).ravel() for name in ("condition", "a", "b")
    }
    condition = memory.load(a["condition"], "bool", read["condition"]).astype(bool)
    chosen, other = (memory.load_raw(a[name], width, read[name]) for name in "ab")
    memory.store_raw(a["dst"], width, places, np.where(condition[:, None], chosen, other))


def batch_norm(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    every = np.arange(a["n"])
    channel = every // a["inner"] % a["channels"]
    dtype = _DTYPES[kind]
    scale, bias, mean, var = (
        memory.load(a[name], dtype, channel) for name in ("scale", "bias", "mean", "var")
    )
    x = memory.load(a["x"], dtype, every)
    memory.store(a["dst"], dtype, every, (x - mean) * scale / np.sqrt(var + a["epsilon"]) + bias)


def strided_copy(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    assert np.prod(a["sizes"]) == a["n"]
    rows = memory.load_raw(a["src"], _WIDTHS[kind], strided(a["sizes"], a["src_strides"]))
    memory.store_raw(a["dst"], _WIDTHS[kind], strided(a["sizes"], a["dst_strides"]), rows)


def transpose(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    batch, rows, columns = a["batch"], a["rows"], a["columns"]
    source = np.arange(batch * rows * columns).reshape(batch, rows, columns)
    moved = memory.load_raw(a["src"], _WIDTHS[kind], source.transpose(0, 2, 1))
    memory.store_raw(a["dst"], _WIDTHS[kind], source, moved)


def concat(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    for whole, part, address in _pieces(a):
        rows = memory.load_raw(address, _WIDTHS[kind], part)
        memory.store_raw(a["dst"], _WIDTHS[kind], whole, rows)


def split(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    for whole, part, address in _pieces(a):
        rows = memory.load_raw(a["src"], _WIDTHS[kind], whole)
        memory.store_raw(address, _WIDTHS[kind], part, rows)


def _pieces(a: Arguments) -> list[tuple[Any, Any, int]]:
    """Per part: its offsets in the whole, in itself, and its address."""
    assert a["ends"][-1] == a["taken"]
    result, start = [], 0
    for address, end in zip(a["parts"], a["ends"], strict=True):
        if end > start:
            row = np.arange(a["outer"])[:, None]
            column = np.arange(end - start)
            whole = row * a["width"] + a["first"] + start + column
            result.append((whole, row * (end - start) + column, address))
        start = end
    return result


def gather(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    dtype = {4: "int32", 8: "int64"}[a["index_bytes"]]
    index = memory.load(a["indices"], dtype, np.arange(a["count"]))
    index = np.where(index < 0, index + a["axis"], index).astype(np.int64)
    outer, inner = np.arange(a["outer"])[:, None, None], np.arange(a["inner"])
    source = (outer * a["axis"] + index[:, None]) * a["inner"] + inner
    rows = memory.load_raw(a["data"], _WIDTHS[kind], source)
    memory.store_raw(a["dst"], _WIDTHS[kind], np.arange(source.size), rows)


def pad(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    width = _WIDTHS[kind]
    sizes, target, begins = a["src_sizes"], a["dst_sizes"], a["begins"]
    source = np.arange(np.prod(sizes)).reshape(sizes)
    widths = [(b, t - s - b) for b, s, t in zip(begins, sizes, target, strict=True)]
    mode = {0: "constant", 1: "reflect", 2: "edge"}[a["mode"]]
    options = {"constant_values": -1} if mode == "constant" else {}
    places = np.pad(source, widths, mode=mode, **options).reshape(-1)  # type: ignore[call-overload]
    rows = memory.load_raw(a["src"], width, np.maximum(places, 0))
    rows[places < 0] = np.frombuffer(a["value"].to_bytes(width, "little"), np.uint8)
    memory.store_raw(a["dst"], width, np.arange(a["n"]), rows)


def fill(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    pattern = np.frombuffer(a["value"].to_bytes(_WIDTHS[kind], "little"), np.uint8)
    memory.store_raw(a["dst"], _WIDTHS[kind], np.arange(a["n"]), pattern)


def cast(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    dtypes = {code: dtype for dtype, code in catalogue.DTYPE_CODES.items()}
    every, target = np.arange(a["n"]), dtypes[a["target"]]
    values = memory.load(a["src"], dtypes[a["source"]], every)
    if target == "bool":
        values = values != 0
    memory.store(a["dst"], target, every, values)


def reduce_rows(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    x = memory.load(a["src"], _DTYPES[kind], strided((a["rows"], a["width"]), (a["width"], 1)))
    memory.store(a["dst"], _DTYPES[kind], np.arange(a["rows"]), _REDUCTIONS[a["op"]](x, axis=1))


def reduce_columns(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    outer, width, inner = a["outer"], a["width"], a["inner"]
    x = memory.load(a["src"], _DTYPES[kind], np.arange(outer * width * inner))
    y = _REDUCTIONS[a["op"]](x.reshape(outer, width, inner), axis=1)
    memory.store(a["dst"], _DTYPES[kind], np.arange(outer * inner), y.reshape(-1))


def softmax(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    shape = (a["outer"], a["width"], a["inner"])
    every = np.arange(np.prod(shape)).reshape(shape)
    x = memory.load(a["src"], _DTYPES[kind], every)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    memory.store(a["dst"], _DTYPES[kind], every, powers / powers.sum(axis=1, keepdims=True))


def layer_norm(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    _norm(memory, kind, a, centred=True)


def rms_norm(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    _norm(memory, kind, a, centred=False)


def _norm(memory: NumpyMemory, kind: str, a: Arguments, *, centred: bool) -> None:
    dtype, shape = _DTYPES[kind], (a["rows"], a["width"])
    every = np.arange(np.prod(shape)).reshape(shape)
    x = memory.load(a["src"], dtype, every)
    if a["skip"]:
        x = x + memory.load(a["skip"], dtype, every)
    if centred:
        x = x - x.mean(axis=1, keepdims=True)
    y = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + a["epsilon"])
    y = y * memory.load(a["scale"], dtype, every[0])
    if a.get("bias"):
        y = y + memory.load(a["bias"], dtype, every[0])
    memory.store(a["dst"], dtype, every, y)


def pool(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    shape = (1, a["planes"], *a["in"])
    x = memory.load(a["src"], _DTYPES[kind], np.arange(np.prod(shape)).reshape(shape))
    mean = a["kind"] == 1
    begins, ends = a["begins"], _reach(a)
    padded = pad_spatial(x, begins, ends, 0.0 if mean else -np.inf)
    counts = pad_spatial(np.ones((1, 1, *a["in"])), begins, a["ends"], float(a["include_pad"]))
    spare = [max(r - e, 0) for r, e in zip(ends, a["ends"], strict=True)]
    counts = pad_spatial(counts, (0, 0, 0), spare, 0.0)
    slide = (a["kernel"], a["stride"], a["dilation"], a["out"])
    met = np.stack([tap for _, tap in taps(padded, *slide)])
    total = np.sum([tap for _, tap in taps(counts, *slide)], axis=0)
    y = met.sum(axis=0) / total if mean else met.max(axis=0)
    y = _activate(a["act"], y)
    memory.store(a["dst"], _DTYPES[kind], np.arange(y.size), y.reshape(-1))


def _reach(a: Arguments) -> tuple[int, ...]:
    """How much to pad at the ends so that every window is whole."""
    columns = zip(
        a["out"], a["stride"], a["kernel"], a["dilation"], a["in"], a["begins"], a["ends"],
        strict=True,
    )  # fmt: skip
    return tuple(max((o - 1) * s + (k - 1) * d + 1 - i - b, e) for o, s, k, d, i, b, e in columns)


def depthwise(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    single = {**a, "groups": a["channels"], "channels": 1, "filters": a["filters"] // a["channels"]}
    _convolve(memory, kind, single)


def conv(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    _convolve(memory, kind, a)


def _convolve(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    dtype, groups, channels, filters = _DTYPES[kind], a["groups"], a["channels"], a["filters"]
    x_shape = (a["batch"], groups * channels, *a["in"])
    w_shape = (groups, filters, channels, *a["kernel"])
    x = memory.load(a["x"], dtype, np.arange(np.prod(x_shape)).reshape(x_shape))
    w = memory.load(a["w"], dtype, np.arange(np.prod(w_shape)).reshape(w_shape))
    padded = pad_spatial(x, a["begins"], _reach({**a, "ends": (0, 0, 0)}), 0.0)
    y = np.zeros((a["batch"], groups, filters, *a["out"]))
    for tap, met in taps(padded, a["kernel"], a["stride"], a["dilation"], a["out"]):
        grouped = met.reshape(a["batch"], groups, channels, *a["out"])
        y += np.einsum("gfc,ngcxyz->ngfxyz", w[(..., *tap)], grouped)
    if a["addend"]:
        y += memory.load(a["addend"], dtype, np.arange(y.size).reshape(y.shape))
    if a["bias"]:
        bias = memory.load(a["bias"], dtype, np.arange(groups * filters))
        y += bias.reshape(groups, filters, 1, 1, 1)
    y = _activate(a["act"], y)
    memory.store(a["dst"], dtype, np.arange(y.size), y.reshape(-1))


def gemm(memory: NumpyMemory, kind: str, a: Arguments) -> None:
    dtype, m, n, k, batches = _DTYPES[kind], a["m"], a["n"], a["k"], a["batches"]
    *x_batch, x_pitch = a["a_strides"]
    *y_batch, y_pitch = a["b_strides"]
    x_steps, y_steps = _steps(x_pitch, a["transposes_a"]), _steps(y_pitch, a["transposes_b"])
    x = memory.load(a["a"], dtype, strided((*batches, m, k), (*x_batch, *x_steps)))
    y = memory.load(a["b"], dtype, strided((*batches, k, n), (*y_batch, *y_steps)))
    z = x @ y * a["alpha"]
    if a["addend"]:
        z = z + memory.load(a["addend"], dtype, np.arange(z.size).reshape(z.shape))
    if a["bias"]:
        z = z + memory.load(a["bias"], dtype, strided((*batches, m, n), a["bias_strides"]))
    memory.store(a["c"], dtype, np.arange(z.size), _activate(a["act"], z).reshape(-1))


def _steps(pitch: int, is_transposed: int) -> tuple[int, int]:
    return (1, pitch) if is_transposed else (pitch, 1)


#: By name, as the launches have it without its type.
KERNELS: dict[str, Kernel] = {
    **{f.__name__: f for f in (
        unary, binary, is_nan, compare, decide, choose, batch_norm, strided_copy, transpose, concat, split,
        gather, pad,
        fill, cast, reduce_rows, reduce_columns, softmax, layer_norm, rms_norm, pool, depthwise,
    )},
    "gemm_simt": gemm, "gemm_mma": gemm, "conv_simt": conv, "conv_mma": conv,
}  # fmt: skip
assert set(DTYPE_BYTES) >= set(_DTYPES.values())
