"""The parts of an ONNX model beside its graph, kept in ``Graph.metadata`` and written back.

Keys begin with ``onnx.``; lists and tables in them are JSON. Among them are the versions of the operator
sets; some of these versions are equal for an operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import onnx

from relational_tensat.formats.onnx_names import all_nodes, subgraphs
from relational_tensat.tensor.graph import RUN_US_KEY

#: What ONNX's inference raises: a class of its own for what does not fit, another for what cannot be.
INFERENCE_ERRORS = (onnx.shape_inference.InferenceError, ValueError)
#: In copies for the checker, the domain of what ONNX does not have.
_RUNTIMES_DOMAIN = "runtime"
#: In a graph's metadata: large weights are in a file beside the model's, of this name.
DATA_KEY = "onnx.data"
#: Written where the model does not name the version that it was read from.
DEFAULT_OPSET = 20
#: Operators write themselves for this version of the default operator set and later ones.
OLDEST_WRITTEN_OPSET = 13
#: In versions from here on, their text may mean the same.
OLDEST_POSSIBLE_OPSET = 7


def candidates(preferred: int) -> Iterator[int]:
    """Yield the versions that a model may be written in: the preferred, later ones, older ones."""
    first = max(preferred, OLDEST_WRITTEN_OPSET)
    yield from range(first, onnx.defs.onnx_opset_version() + 1)
    yield from range(first - 1, OLDEST_WRITTEN_OPSET - 1, -1)


#: Operators that onnxruntime has in the default set in each version, and ONNX in late ones or none.
RUNTIME_OPERATORS = frozenset({"SimplifiedLayerNormalization", "LayerNormalization"})
#: Operators whose meaning changed in a version although the version converter takes it for none.
CHANGED = {"PRelu": 7, "Scan": 9}


@cache
def same_meaning(op_type: str, old: int, new: int) -> bool:
    """Whether an operator of the default set is the same in two versions of the set."""
    if old == new or (op_type in RUNTIME_OPERATORS and old < new):
        return True
    try:
        schemas = [onnx.defs.get_schema(op_type, version, "") for version in (old, new)]
    except onnx.defs.SchemaError:
        return False
    return schemas[0].since_version == schemas[1].since_version and not schemas[1].deprecated


@cache
def _form(op_type: str, version: int) -> str | None:
    """Return how an operator of the default set is spelled in a version; None if it is not there."""
    try:
        schema = onnx.defs.get_schema(op_type, version, "")
    except onnx.defs.SchemaError:
        return None
    if schema.deprecated:
        return None
    attributes = [
        (name, str(attribute.type), attribute.required, str(attribute.default_value))
        for name, attribute in sorted(schema.attributes.items())
    ]
    values = [(value.name, str(value.option)) for value in (*schema.inputs, *schema.outputs)]
    return repr((attributes, values))


def has_same_form(node: onnx.NodeProto, old: int, new: int) -> bool:
    """Whether a node without subgraphs is spelled alike in two versions of the default set.

    Versions differ often in nothing but the element types that they take.
    """
    if node.domain not in ("", "ai.onnx") or any(True for _ in subgraphs(node)):
        return False
    if any(old < changed <= new for op, changed in CHANGED.items() if op == node.op_type):
        return False
    form = _form(node.op_type, old)
    return form is not None and form == _form(node.op_type, new)


def is_unchanged(node: onnx.NodeProto, old: int, new: int) -> bool:
    """Whether a node and all in its subgraphs mean the same in two versions of the default set."""
    return all(
        inner.domain not in ("", "ai.onnx") or same_meaning(inner.op_type, old, new)
        for inner in all_nodes([node])
    )


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types that ONNX infers, strictly.

    Raises:
        onnx.shape_inference.InferenceError: the types of a node's operands do not fit.
    """
    # Data propagation fails on valid branches that use one outer value in several places.
    simple = not any(True for node in model.graph.node for _ in subgraphs(node))
    return onnx.shape_inference.infer_shapes(
        model, check_type=True, strict_mode=True, data_prop=simple
    )


def checkable(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model as the checker takes it: that asks for more than runtimes do.

    Outputs of a shape that nobody knows get that of a number: the checker compares it with nothing.
    Operators that onnxruntime has in the default set, and ONNX has not, get another domain.
    """
    if not _outputs_without_shape(model) and not any(_runtimes_nodes(model)):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in _outputs_without_shape(copy):
        value.type.tensor_type.shape.SetInParent()
    for node in _runtimes_nodes(copy):
        node.domain = _RUNTIMES_DOMAIN
    copy.opset_import.append(onnx.helper.make_opsetid(_RUNTIMES_DOMAIN, 1))
    return copy


def _runtimes_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of the default operator set that onnxruntime has there, and ONNX has not."""
    version = read_imports(model.opset_import).get("", 0)
    for node in all_nodes(model.graph.node):
        if _domain(node.domain) or version > onnx.defs.onnx_opset_version():
            continue
        if not onnx.defs.has(node.op_type, version) and _is_runtimes(node.op_type, version):
            yield node


@cache
def _is_runtimes(op_type: str, version: int) -> bool:
    """Whether onnxruntime has an operator of the default set in a version."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:
        return False
    own = [s for s in get_all_operator_schema() if s.name == op_type and not s.domain]
    latest = max(
        (s for s in own if s.since_version <= version),
        default=None,
        key=lambda s: int(s.since_version),
    )
    return latest is not None and not latest.deprecated


def _outputs_without_shape(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the outputs that are tensors, and have no declared shape."""
    return [
        value
        for value in model.graph.output
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")
    ]


def opset_imports(imports: Mapping[str, int]) -> list[onnx.OperatorSetIdProto]:
    """Return versions by domain as ONNX has them."""
    return [onnx.helper.make_opsetid(domain, imports[domain]) for domain in sorted(imports)]


def read_imports(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return versions by domain; the default domain is ``""``."""
    return {_domain(item.domain): item.version for item in imports}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


#: In an ONNX model's metadata: which inputs are weights whose values are not known.
WEIGHTS_KEY = "relational_tensat.weights"
#: In a model's metadata while it is in memory: its large tensors are in a file beside its own.
_BESIDE_KEY = "relational_tensat.beside"
#: As what a file beside the model's is known that has its name.
_BESIDE = "beside"

_MODEL_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")


def read_metadata(model: onnx.ModelProto) -> dict[str, str]:
    """Return the graph's metadata of a model."""
    metadata = {f"onnx.{key}": str(getattr(model, key)) for key in _MODEL_TEXTS}
    metadata["onnx.graph_doc_string"] = model.graph.doc_string
    own = (WEIGHTS_KEY, _BESIDE_KEY)
    properties = {item.key: item.value for item in model.metadata_props if item.key not in own}
    if RUN_US_KEY in properties:
        metadata[RUN_US_KEY] = properties.pop(RUN_US_KEY)
    if properties:
        metadata["onnx.metadata_props"] = json.dumps(properties)
    if model.model_version:
        metadata["onnx.model_version"] = str(model.model_version)
    beside = [item.value for item in model.metadata_props if item.key == _BESIDE_KEY]
    if beside:
        metadata[DATA_KEY] = beside[0] or _BESIDE
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
    if RUN_US_KEY in metadata:
        properties[RUN_US_KEY] = metadata[RUN_US_KEY]
    if DATA_KEY in metadata:
        properties[_BESIDE_KEY] = metadata[DATA_KEY]
    onnx.helper.set_model_props(model, properties)


def mark_beside(model: onnx.ModelProto, name: str = _BESIDE) -> None:
    """Let a model say that its large tensors are in a file beside its own, and are to be so again.

    Args:
        name: of the file, if it has not the model's name.
    """
    model.metadata_props.add(key=_BESIDE_KEY, value=name)


def take_beside(model: onnx.ModelProto, own_name: str) -> str:
    """Return in which file a model says so, "" if it does not; it says no more.

    Args:
        own_name: of the file that has the model's name.
    """
    places = [i for i, item in enumerate(model.metadata_props) if item.key == _BESIDE_KEY]
    names = [model.metadata_props[place].value for place in places]
    for place in reversed(places):
        del model.metadata_props[place]
    return {"": "", _BESIDE: own_name}.get(names[0], names[0]) if names else ""


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
