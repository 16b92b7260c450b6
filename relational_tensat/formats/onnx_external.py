"""Tensors of an ONNX model that are not read with it: mapped from its file, or from files beside it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx.external_data_helper import (
    ExternalDataInfo,
    load_external_data_for_tensor,
    uses_external_data,
)

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import check_file
from relational_tensat.formats.onnx_names import subgraphs
from relational_tensat.formats.onnx_types import TensorDataError
from relational_tensat.formats.onnx_wire import (
    LARGE_BYTES,
    PLACEHOLDER,
    WireRegion,
    without_large_weights,
)
from relational_tensat.tensor.types import Array

#: Element types that are mapped: NumPy has them, and as ONNX stores them.
_MAPPED = {
    onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16,
    onnx.TensorProto.INT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32, onnx.TensorProto.INT64,
    onnx.TensorProto.UINT8, onnx.TensorProto.UINT16, onnx.TensorProto.UINT32, onnx.TensorProto.UINT64,
}  # fmt: skip
#: How the keys begin under which onnxruntime keeps what kernels have packed of a tensor.
_PACKED = "prepacked_"


def map_file(path: Path) -> memoryview:
    """Return the content of a model file, read where it is looked at.

    Raises:
        InputError: it does not exist, is a folder, cannot be read, or has 0 bytes.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise InputError(f"{path}: the file is empty (0 bytes)")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def read_skeleton(message: memoryview) -> tuple[onnx.ModelProto, dict[str, memoryview]]:
    """Return a model without its large initializers' data, and these, which stay where they are.

    Raises:
        WireError, DecodeError: it is no model.
    """
    skeleton, regions = without_large_weights(message)
    model = onnx.ModelProto.FromString(skeleton)
    data = {name: message[region.start : region.stop] for name, region in regions.items()}
    for tensor in model.graph.initializer:
        if tensor.name in data and tensor.data_type not in _MAPPED:
            tensor.raw_data = bytes(data.pop(tensor.name))
    return model, data


def has_external_data(model: onnx.ModelProto) -> bool:
    """Whether a tensor of the model is in another file."""
    return any(uses_external_data(tensor) for tensor in all_tensors(model))


def load_external_data(model: onnx.ModelProto, folder: Path) -> dict[str, memoryview]:
    """Read the tensors that are in files beside a valid model; map its large initializers.

    The model's own tensors are changed in place: what was read is in them, what was mapped has a
    placeholder.

    Returns:
        The data of the mapped initializers, by name.

    Raises:
        InputError, OSError, ValueError: a file does not exist or is too short.
    """
    files: dict[Path, memoryview] = {}
    mapped: dict[str, memoryview] = {}
    for tensor in model.graph.initializer:
        if not uses_external_data(tensor) or tensor.data_type not in _MAPPED:
            continue
        info = _place_of(tensor)
        path = folder / info.location
        size = path.stat().st_size
        start = info.offset or 0
        region = WireRegion(start, size if info.length is None else start + info.length)
        if region.n_bytes < LARGE_BYTES:
            continue
        if region.stop > size:
            raise ValueError(
                f"tensor {tensor.name!r} ends at byte {region.stop} of {info.location}, which has {size}"
            )
        if path not in files:
            files[path] = map_file(path)
        mapped[tensor.name] = files[path][region.start : region.stop]
        tensor.raw_data = PLACEHOLDER
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
    for tensor in all_tensors(model):
        if uses_external_data(tensor):
            _place_of(tensor)
            load_external_data_for_tensor(tensor, os.fspath(folder))
    return mapped


def mapped_array(tensor: onnx.TensorProto, data: memoryview) -> Array:
    """Return the elements of an initializer whose data is mapped; nothing is copied.

    Raises:
        TensorDataError: there are not as many bytes as its shape has.
    """
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
    n_bytes = int(np.prod(tensor.dims, dtype=object)) * dtype.itemsize
    if n_bytes != data.nbytes:
        raise TensorDataError(
            f"tensor {tensor.name!r} of shape {list(tensor.dims)}: has {data.nbytes} bytes of data, "
            f"expected {n_bytes}"
        )
    return np.frombuffer(data, dtype).reshape(tuple(tensor.dims))


def with_weights_as_inputs(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """Return a copy of a skeleton in which large initializers are inputs: one that can be checked."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    large = set(names)
    graph = copy.graph
    tensors = [tensor for tensor in graph.initializer if tensor.name not in large]
    inputs = {value.name for value in graph.input}
    graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
        if tensor.name in large and tensor.name not in inputs
    )
    del graph.initializer[:]
    graph.initializer.extend(tensors)
    return copy


def external_locations(path: Path) -> list[str]:
    """Return the files, relative to a valid model's folder, that its tensors are in."""
    model, _ = read_skeleton(map_file(path))
    tensors = all_tensors(model)
    names = (_place_of(tensor).location for tensor in tensors if uses_external_data(tensor))
    return list(dict.fromkeys(names))


def _place_of(tensor: onnx.TensorProto) -> ExternalDataInfo:
    """Return where a tensor is; what onnxruntime adds, packed for its kernels, is dropped from it."""
    packed = [entry for entry in tensor.external_data if entry.key.startswith(_PACKED)]
    for entry in packed:
        tensor.external_data.remove(entry)
    return ExternalDataInfo(tensor)


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Give all tensors of a model, those of its functions included."""
    yield from _tensors(model.graph.initializer, model.graph.node)
    for function in model.functions:
        yield from _tensors((), function.node)


def _tensors(
    initializers: Iterable[onnx.TensorProto], nodes: Iterable[onnx.NodeProto]
) -> Iterator[onnx.TensorProto]:
    """Yield all tensors of a graph, those of subgraphs and attributes included."""
    yield from initializers
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for graph in subgraphs(node):
            yield from _tensors(graph.initializer, graph.node)
