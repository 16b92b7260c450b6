"""What an ONNX model holds beside its graph, kept in ``Graph.metadata`` and written back.

Keys begin with ``onnx.``; lists and tables in them are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import onnx

from relational_tensat.formats.onnx_opset import read_imports

#: In an ONNX model's metadata: which inputs are weights whose values are not known.
WEIGHTS_KEY = "relational_tensat.weights"

_MODEL_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")


def read_metadata(model: onnx.ModelProto) -> dict[str, str]:
    """Return the graph's metadata of a model."""
    metadata = {f"onnx.{key}": str(getattr(model, key)) for key in _MODEL_TEXTS}
    metadata["onnx.graph_doc_string"] = model.graph.doc_string
    properties = {item.key: item.value for item in model.metadata_props if item.key != WEIGHTS_KEY}
    if properties:
        metadata["onnx.metadata_props"] = json.dumps(properties)
    if model.model_version:
        metadata["onnx.model_version"] = str(model.model_version)
    metadata["onnx.opset_import"] = json.dumps(read_imports(model.opset_import))
    metadata["onnx.outputs"] = json.dumps([value.name for value in model.graph.output])
    return {key: value for key, value in metadata.items() if value}


def write_metadata(
    model: onnx.ModelProto, metadata: Mapping[str, str], weights: Iterable[str]
) -> None:
    """Write the graph's metadata into a model, in place.

    Args:
        weights: the model's inputs that are weights without data.
    """
    for key in _MODEL_TEXTS:
        if text := metadata.get(f"onnx.{key}"):
            setattr(model, key, text)
    if text := metadata.get("onnx.graph_doc_string"):
        model.graph.doc_string = text
    version = metadata.get("onnx.model_version", "0")
    if version.isdecimal() and int(version):
        model.model_version = int(version)
    properties = _table(metadata.get("onnx.metadata_props", "{}"))
    names = list(weights)
    if names:
        properties[WEIGHTS_KEY] = json.dumps(names)
    onnx.helper.set_model_props(model, properties)


def weights_without_data(model: onnx.ModelProto) -> set[str]:
    """Return the names of the inputs that a model marks as weights without data."""
    for item in model.metadata_props:
        if item.key == WEIGHTS_KEY:
            return set(_names(item.value))
    return set()


def written_imports(metadata: Mapping[str, str]) -> dict[str, int]:
    """Return the operator set versions, by domain, that the model was read with, if any."""
    table = _table(metadata.get("onnx.opset_import", "{}"))
    return {domain: version for domain, version in table.items() if isinstance(version, int)}


def written_outputs(metadata: Mapping[str, str]) -> list[str]:
    """Return the names that the model's outputs had when it was read."""
    return _names(metadata.get("onnx.outputs", "[]"))


def _names(text: str) -> list[str]:
    value = _parse(text)
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _table(text: str) -> dict[str, object]:
    value = _parse(text)
    return value if isinstance(value, dict) else {}


def _parse(text: str) -> object:
    """Return the value of JSON text; None for other text (metadata is the file's, and free)."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value
