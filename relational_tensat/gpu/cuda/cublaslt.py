"""Products through cuBLASLt: scale, transposed factors, an addend, bias per column, and relu or gelu fused.

The algorithm is the fastest of those that its own heuristic names first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import ProductCall, Resolve
from relational_tensat.gpu.cuda.gpu import Gpu, quickest
from relational_tensat.gpu.cuda.modules import (
    INT,
    INT64,
    OWN,
    POINTER,
    SIZE,
    BoundLaunch,
    Modules,
    Objects,
    SharedLibrary,
    find_library,
)
from relational_tensat.gpu.library_calls import BlasProduct, blas_product

NAME = "cublasLt"
#: The workspace that cuBLAS asks for on Hopper.
_WORKSPACE_BYTES = 32 << 20
#: So many algorithms are tried.
_TRIED = 8

# Values of cublasLt.h, cublas_api.h and library_types.h.
_DTYPES = {"float32": 0, "float16": 2, "bfloat16": 14}
_COMPUTE_FLOAT32, _COMPUTE_TF32 = 68, 77
_DESC_TRANSPOSE_LEFT, _DESC_TRANSPOSE_RIGHT = 3, 4
_DESC_EPILOGUE, _DESC_BIAS_POINTER, _DESC_BIAS_TYPE = 7, 8, 26
_TRANSPOSED = 1
_EPILOGUE_DEFAULT, _EPILOGUE_BIAS = 1, 4
_EPILOGUES = {"none": 0, "relu": 2, "gelu_tanh": 32}
_LAYOUT_BATCH_COUNT, _LAYOUT_BATCH_STRIDE = 5, 6
_PREFERENCE_WORKSPACE = 1
_PREFERENCE_ALIGNMENTS = (5, 6, 7, 8)  # of cuBLAS's A, B, C and D
#: cuBLASLt takes operands to lie at multiples of this, unless it is told.
_MOST_ALIGNMENT_BYTES = 256

_UINT64 = ctypes.c_uint64
_FUNCTIONS: dict[str, list[Any]] = {
    "cublasLtCreate": [POINTER],
    "cublasLtMatmulDescCreate": [POINTER, INT, INT],
    "cublasLtMatmulDescSetAttribute": [POINTER, INT, POINTER, SIZE],
    "cublasLtMatmulDescDestroy": [POINTER],
    "cublasLtMatrixLayoutCreate": [POINTER, INT, _UINT64, _UINT64, INT64],
    "cublasLtMatrixLayoutSetAttribute": [POINTER, INT, POINTER, SIZE],
    "cublasLtMatrixLayoutDestroy": [POINTER],
    "cublasLtMatmulPreferenceCreate": [POINTER],
    "cublasLtMatmulPreferenceSetAttribute": [POINTER, INT, POINTER, SIZE],
    "cublasLtMatmulPreferenceDestroy": [POINTER],
    "cublasLtMatmulAlgoGetHeuristic": [POINTER] * 7 + [INT, POINTER, POINTER],
    "cublasLtMatmul": [POINTER] * 14 + [SIZE, POINTER],
}  # fmt: skip


class _Heuristic(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class CublasLt:
    """A handle of the library.

    Args:
        handle: what ``ctypes.CDLL`` returns.
    """

    def __init__(self, gpu: Gpu, modules: Modules, handle: Any) -> None:
        handle.cublasLtGetStatusName.restype = ctypes.c_char_p
        handle.cublasLtGetVersion.restype = ctypes.c_size_t
        self.library = SharedLibrary(
            handle, _FUNCTIONS, lambda status: handle.cublasLtGetStatusName(status).decode()
        )
        self.version = str(handle.cublasLtGetVersion())
        self._gpu = gpu
        self._modules = modules
        self._handle = self.library.create("cublasLtCreate")
        #: By the call, wherever its operands lie, and whether bias and activation are part of it.
        self._chosen: dict[tuple[ProductCall, bool, tuple[int, ...]], _Heuristic] = {}

    def bind(self, call: ProductCall, resolve: Resolve, *, fused: bool) -> BoundProduct:
        """Prepare a product.

        Args:
            fused: whether cuBLASLt is asked for bias and activation, where it has them.

        Raises:
            InputError: cuBLASLt does not have it.
        """
        product = blas_product(call, fuses=fused)
        if product is None:
            raise InputError("cuBLASLt takes batches of one stride only")
        if not fused and product.rest is None:
            raise InputError("a product without bias and activation leaves nothing")
        objects = Objects(self.library)
        try:
            return self._bind(call, product, resolve, objects, fused=fused)
        except InputError:
            objects.close()
            raise

    def _bind(
        self,
        call: ProductCall,
        product: BlasProduct,
        resolve: Resolve,
        objects: Objects,
        *,
        fused: bool,
    ) -> BoundProduct:
        dtype, count = _DTYPES[call.dtype], product.count
        rows, columns, depth = product.rows, product.columns, product.depth
        description = self._describe(call, product, dtype, resolve, objects)
        left = (depth, rows) if call.transposes_b else (rows, depth)
        right = (columns, depth) if call.transposes_a else (depth, columns)
        layouts = (
            self._layout(objects, dtype, (*left, product.b_pitch), count, product.b_stride),
            self._layout(objects, dtype, (*right, product.a_pitch), count, product.a_stride),
            self._layout(objects, dtype, (rows, columns, rows), count, product.c_stride),
        )
        b, a, c = (resolve(ref) for ref in (call.b, call.a, call.c))
        addend = None if call.addend is None else resolve(call.addend)
        alignments = tuple(_alignment(address) for address in (b, a, addend or c, c))
        bare = BoundProduct(
            library=self.library,
            objects=objects,
            handle=self._handle,
            stream=self._gpu.stream.handle,
            description=description,
            layouts=layouts,
            addresses=(b, a, c),
            addend=addend,
            heuristic=_Heuristic(),
            rest=None,
            alpha=ctypes.c_float(call.alpha),
            beta=ctypes.c_float(0.0 if call.addend is None else 1.0),
        )
        key = call.anywhere(), fused, alignments
        if key not in self._chosen:
            self._chosen[key] = self._fastest(bare, self._named(description, layouts, alignments))
        rest = None if product.rest is None else self._modules.bind(product.rest, resolve)
        return replace(bare, heuristic=self._chosen[key], rest=rest)

    def _describe(
        self,
        call: ProductCall,
        product: BlasProduct,
        dtype: int,
        resolve: Resolve,
        objects: Objects,
    ) -> int:
        tf32 = call.dtype == "float32" and call.math == "tf32"
        compute = _COMPUTE_TF32 if tf32 else _COMPUTE_FLOAT32
        description = objects.create("cublasLtMatmulDescCreate", compute, _DTYPES["float32"])
        epilogue = _EPILOGUES[product.act] | (_EPILOGUE_BIAS if product.bias else 0)
        setter = "cublasLtMatmulDescSetAttribute"
        number = ctypes.c_uint32(epilogue or _EPILOGUE_DEFAULT)
        self._set(setter, description, _DESC_EPILOGUE, number)
        if call.transposes_b:
            self._set(setter, description, _DESC_TRANSPOSE_LEFT, ctypes.c_int32(_TRANSPOSED))
        if call.transposes_a:
            self._set(setter, description, _DESC_TRANSPOSE_RIGHT, ctypes.c_int32(_TRANSPOSED))
        if product.bias and call.bias is not None:
            address = ctypes.c_void_p(resolve(call.bias))
            self._set(setter, description, _DESC_BIAS_POINTER, address)
            self._set(setter, description, _DESC_BIAS_TYPE, ctypes.c_int32(dtype))
        return description

    def _layout(
        self, objects: Objects, dtype: int, sizes: tuple[int, int, int], count: int, stride: int
    ) -> int:
        """Describe matrices of so many rows, columns, and elements from one column to the next."""
        layout = objects.create("cublasLtMatrixLayoutCreate", dtype, *sizes)
        if count > 1:
            setter = "cublasLtMatrixLayoutSetAttribute"
            self._set(setter, layout, _LAYOUT_BATCH_COUNT, ctypes.c_int32(count))
            self._set(setter, layout, _LAYOUT_BATCH_STRIDE, ctypes.c_int64(stride))
        return layout

    def _fastest(self, product: BoundProduct, named: Sequence[_Heuristic]) -> _Heuristic:
        """Return the fastest of some algorithms; the product's result is overwritten.

        Raises:
            InputError: none of them runs, or there is no memory for them to work in.
        """
        ways = [replace(product, heuristic=heuristic) for heuristic in named]
        if len(ways) == 1:
            return named[0]
        try:
            workspace = self._gpu.driver.mem_alloc(_WORKSPACE_BYTES)
        except self._gpu.driver.Error as error:
            raise InputError(f"the GPU has no {_WORKSPACE_BYTES:,} bytes left: {error}") from error
        try:
            starts = [partial(way.start, int(workspace)) for way in ways]
            return named[quickest(self._gpu, starts)]
        finally:
            workspace.free()

    def _named(
        self, description: int, layouts: tuple[int, int, int], alignments: Sequence[int]
    ) -> list[_Heuristic]:
        """Return the algorithms that cuBLASLt thinks best, the best first.

        Args:
            alignments: numbers of bytes that divide the addresses of its A, B, C and D.

        Raises:
            InputError: it has none.
        """
        objects = Objects(self.library)
        preference = objects.create("cublasLtMatmulPreferenceCreate")
        setter = "cublasLtMatmulPreferenceSetAttribute"
        self._set(setter, preference, _PREFERENCE_WORKSPACE, ctypes.c_uint64(_WORKSPACE_BYTES))
        for attribute, alignment_bytes in zip(_PREFERENCE_ALIGNMENTS, alignments, strict=True):
            self._set(setter, preference, attribute, ctypes.c_uint32(alignment_bytes))
        heuristics, count = (_Heuristic * _TRIED)(), ctypes.c_int()
        b, a, c = layouts
        try:
            self.library.call(
                "cublasLtMatmulAlgoGetHeuristic", self._handle, description, b, a, c, c,
                preference, _TRIED, heuristics, ctypes.byref(count),
            )  # fmt: skip
        finally:
            objects.close()
        named = [each for each in heuristics[: count.value] if not each.state]
        if not named:
            raise InputError("cuBLASLt has no algorithm for this product")
        return named

    def _set(self, function: str, target: int, attribute: int, value: Any) -> None:
        size = ctypes.sizeof(value)
        self.library.call(function, target, attribute, ctypes.byref(value), size)


@dataclass(slots=True)
class BoundProduct:
    """A product with its addresses; B' A' is what cuBLAS computes."""

    library: SharedLibrary
    objects: Objects
    handle: int
    stream: int
    description: int
    layouts: tuple[int, int, int]
    addresses: tuple[int, int, int]
    heuristic: _Heuristic
    rest: BoundLaunch | None
    addend: int | None
    alpha: Any
    beta: Any

    @property
    def implementation(self) -> str:
        """The implementation: cuBLASLt, perhaps with an epilogue of ours."""
        return NAME if self.rest is None else f"{NAME}+{OWN}"

    @property
    def workspace_bytes(self) -> int:
        """As the algorithm says."""
        return int(self.heuristic.workspace_bytes)

    def start(self, workspace: int) -> None:
        """Enqueue it.

        Raises:
            InputError: cuBLASLt refuses.
        """
        (b, a, c), (b_layout, a_layout, c_layout) = self.addresses, self.layouts
        addend = c if self.addend is None else self.addend
        self.library.call(
            "cublasLtMatmul", self.handle, self.description, ctypes.byref(self.alpha),
            b, b_layout, a, a_layout, ctypes.byref(self.beta), addend, c_layout, c, c_layout,
            ctypes.byref(self.heuristic), workspace, self.workspace_bytes, self.stream,
        )  # fmt: skip
        if self.rest is not None:
            self.rest.start(workspace)

    def close(self) -> None:
        """Give cuBLASLt's descriptions back."""
        self.objects.close()


def _alignment(address: int) -> int:
    """Return the largest power of two, up to what matters, that an address is a multiple of."""
    return min(address & -address, _MOST_ALIGNMENT_BYTES)


def open_cublaslt(gpu: Gpu, modules: Modules) -> CublasLt | None:
    """Return the library, None where it is not installed."""
    handle = find_library(NAME)
    return None if handle is None else CublasLt(gpu, modules, handle)
