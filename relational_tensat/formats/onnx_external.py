"""Tensors of an ONNX model that are not read with it: mapped from its file, or from files beside it.

A written file is checked first, then renamed into place. A model with its weights in a file beside it
is moved together with that file.
"""

from __future__ import annotations

import filecmp
import mmap
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it ships no types
from onnx import checker
from onnx.external_data_helper import (
    ExternalDataInfo,
    load_external_data_for_tensor,
    uses_external_data,
)

from relational_tensat.base.errors import InputError, ModelError
from relational_tensat.base.files import check_file, real_path, write_aside
from relational_tensat.formats.onnx_metadata import INFERENCE_ERRORS, checkable, take_beside
from relational_tensat.formats.onnx_names import subgraphs
from relational_tensat.formats.onnx_node import condense, opens_in_runtime
from relational_tensat.formats.onnx_types import TensorDataError
from relational_tensat.formats.onnx_wire import (
    LARGE_BYTES,
    PLACEHOLDER,
    WireError,
    WireRegion,
    with_large_weights,
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
    """Return a model without its large initializers' data, and these; they stay where they are.

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
    return any(uses_external_data(tensor) for tensor in _all_tensors(model))


def missing_data(model: onnx.ModelProto, folder: Path) -> str:
    """Return the name of a file of weights that is not there; "" where all are."""
    places = (
        _place_of(tensor).location for tensor in _all_tensors(model) if uses_external_data(tensor)
    )
    inside = (place for place in places if place and ".." not in Path(place).parts)
    return next((place for place in inside if not (folder / place).exists()), "")


def load_external_data(model: onnx.ModelProto, folder: Path) -> dict[str, memoryview]:
    """Read the tensors that are in files beside a valid model; map its large initializers.

    The model's own tensors are changed in place: read data is in them, mapped data has a placeholder.

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
    for tensor in _all_tensors(model):
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
    tensors = _all_tensors(model)
    names = (_place_of(tensor).location for tensor in tensors if uses_external_data(tensor))
    return list(dict.fromkeys(names))


def _place_of(tensor: onnx.TensorProto) -> ExternalDataInfo:
    """Return a tensor's place; data that onnxruntime adds, packed for its kernels, is dropped from it."""
    packed = [entry for entry in tensor.external_data if entry.key.startswith(_PACKED)]
    for entry in packed:
        tensor.external_data.remove(entry)
    return ExternalDataInfo(tensor)


def _all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
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


def move_with_data(
    model_file: Path, data: Path, target: Path, kept: Collection[Path] = ()
) -> Path | None:
    """Move a model and its data to ``target`` and ``TARGET.data``, both from a folder of one file system.

    A file with the data's name may be another model's: if it has other content, the data goes to
    ``TARGET.1.data``, and so on, and the model names that. The model is moved last: at no time is one there
    whose data is not. Then the data of a model that was at ``target`` goes, if it is called so.

    Args:
        kept: data that stays in any case.

    Returns:
        The data's place; None where the model has no data beside it.
    """
    replaced = _data_of_replaced(target) - {real_path(path) for path in kept}
    place = _free_place(data, target) if data.exists() else None
    if place is not None:
        _name_data(model_file, place.name)
        if not place.exists():
            data.replace(place)
    model_file.replace(target)
    for path in replaced - {place and real_path(place)}:
        path.unlink(missing_ok=True)
    return place


def _free_place(data: Path, target: Path) -> Path:
    """Return the first of the names that data may have where nothing is, or the same."""
    names = chain((f"{target.name}.data",), (f"{target.name}.{k}.data" for k in count(1)))
    return next(place for place in map(target.with_name, names) if not _is_other(place, data))


def _is_other(place: Path, data: Path) -> bool:
    if place.is_symlink() or place.is_dir():
        return True
    return place.exists() and not filecmp.cmp(place, data, shallow=False)


def _name_data(model_file: Path, name: str) -> None:
    """Let a model's tensors be in a file of another name."""
    model = onnx.load(model_file, load_external_data=False)
    for tensor in filter(uses_external_data, _all_tensors(model)):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
    model_file.write_bytes(model.SerializeToString())


def _data_of_replaced(target: Path) -> set[Path]:
    """Return the files by the names above that a model at ``target`` has its data in."""
    own = re.compile(rf"{re.escape(target.name)}(\.\d+)?\.data")
    try:
        names = external_locations(target) if target.is_file() else []
    except (InputError, DecodeError, WireError):
        return set()
    return {real_path(target.parent / name) for name in names if own.fullmatch(name)}


#: From this size on, large weights go to a file of their own beside the model (protobuf ends at 2 GiB).
_EXTERNAL_FROM_BYTES = 1_500_000_000
#: Large weights begin at multiples of this in that file, so that a system can map each alone into memory;
#: others at multiples of the second.
_ALIGNMENT_BYTES, _SMALL_ALIGNMENT_BYTES = 4096, 16
#: Of a model whose weights are beside it, those of fewer bytes are in it, as ONNX writes them.
_BESIDE_FROM_BYTES = 1024


def save_skeleton(model: onnx.ModelProto, weights: Mapping[str, Array], path: Path) -> None:
    """Write a skeleton and its large weights as ``save_onnx`` does; changes the skeleton.

    Raises:
        InputError, ModelError: as ``save_onnx``.
    """
    own_name = f"{path.name}.data"
    beside = take_beside(model, own_name)
    is_large = sum(weight.nbytes for weight in weights.values()) >= _EXTERNAL_FROM_BYTES
    checked = with_weights_as_inputs(model, weights)
    with write_aside(path) as aside:
        target = aside / path.name
        outside = {**weights, **_smaller(model)} if beside else weights if is_large else {}
        if outside:
            _write_beside(model, outside, aside / (beside or own_name))
            weights = {}
        data = {name: memoryview(weight.data).cast("B") for name, weight in weights.items()}
        with target.open("wb") as file:
            file.writelines(with_large_weights(model, data))
        reason = why_invalid(checked, target)
        if reason:
            raise ModelError(f"{path}: not written, the result is no valid ONNX model: {reason}")


def _smaller(model: onnx.ModelProto) -> dict[str, Array]:
    """Return the bytes of initializers that are in a skeleton, and go beside the model."""
    return {
        tensor.name: np.frombuffer(tensor.raw_data, np.uint8)
        for tensor in model.graph.initializer
        if len(tensor.raw_data) >= _BESIDE_FROM_BYTES
    }


def _write_beside(model: onnx.ModelProto, weights: Mapping[str, Array], path: Path) -> None:
    """Write weights to a file of their own; the model then refers to it."""
    with path.open("wb") as file:
        for tensor in model.graph.initializer:
            if tensor.name not in weights:
                continue
            weight = weights[tensor.name]
            is_large = weight.nbytes >= LARGE_BYTES
            alignment = _ALIGNMENT_BYTES if is_large else _SMALL_ALIGNMENT_BYTES
            offset = -(-file.tell() // alignment) * alignment
            file.seek(offset)
            file.write(weight.data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": path.name, "offset": offset, "length": weight.nbytes}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))


def why_invalid(model: onnx.ModelProto, path: Path) -> str:
    """Return why a model is not valid, the types of its values included: "" where it is.

    Args:
        model: the skeleton, its large weights as inputs.
        path: the file that it is in.
    """
    try:
        checker.check_model(checkable(model))
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except checker.ValidationError as error:
        return condense(str(error))
    except INFERENCE_ERRORS as error:
        # ONNX fails on functions of its own (MeanVarianceNormalization) that onnxruntime runs.
        return "" if opens_in_runtime(path) else condense(str(error))
    return ""
