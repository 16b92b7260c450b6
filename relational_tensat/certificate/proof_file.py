"""A certificate as a file: JSON whose every part is looked at before it is used.

``certificate.schema.json`` says what each part means. A graph is a list of its outputs' terms; a term has
one operator at all sizes, with other attributes at each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.base.option import SizeRange
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.types import AttrItems, AttrValue

#: The version of the format. Readers of one version refuse another.
FORMAT = 1
#: Inputs are given whole numbers only, and so many of them.
MOST_GIVEN = 64
#: A file of more bytes is no certificate.
_MOST_BYTES = 1 << 30

#: The terms of a graph's outputs.
Outputs: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model's file: its digest and those of the files beside it, by name; figures of an ONNX file."""

    name: str
    sha256: str
    data: Mapping[str, str]
    nodes: int
    bytes: int
    opset: int


@dataclass(frozen=True, slots=True)
class StatedReading:
    """How the original is read: at several sizes at once, or at one; with which sizes and inputs."""

    is_dynamic: bool
    dims: Mapping[str, int]
    keep_overridable: bool
    inputs: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class StatedRule:
    """A rule: shipped, own (the user's), or kernel or body, an equation made for this model."""

    text: str
    kind: str
    verdict: str
    evidence: str


@dataclass(frozen=True, slots=True)
class StatedStep:
    """One application of one rule; ``at`` says which of its sources, or targets, are replaced."""

    rule: str
    backward: bool
    sources: Outputs
    targets: Outputs
    at: tuple[int, ...]
    outputs: Outputs

    @property
    def replaced(self) -> list[tuple[int, int]]:
        """The terms that go, each with the one in its place."""
        pairs = [(self.sources[place], self.targets[place]) for place in self.at]
        return [(new, old) for old, new in pairs] if self.backward else pairs


@dataclass(frozen=True, slots=True)
class StatedSize:
    """The model at one size of each dynamic dimension: the operator and attributes of each term there."""

    dims: Mapping[str, int]
    symbols: Sequence[tuple[str, AttrItems]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Costs in microseconds, and what is claimed of them."""

    profile: str
    basis: str
    before_us: float
    after_us: float
    speedup: float
    low: float
    high: float
    bound_us: float
    gap: float
    e_nodes: int
    e_classes: int


@dataclass(frozen=True, slots=True)
class StatedNumbers:
    """The largest relative errors where both ways were computed."""

    float64: float
    runtime: float | None
    tolerance: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """All that a certificate says; ``operands`` has the terms that each term is computed from."""

    original: ModelFile
    result: ModelFile
    reading: StatedReading
    rules: Mapping[str, StatedRule]
    operands: Sequence[Outputs]
    sizes: Sequence[StatedSize]
    start: Outputs
    steps: Sequence[StatedStep]
    figures: Figures
    numbers: StatedNumbers

    @property
    def seed(self) -> int:
        """The seed of all inputs: nobody can choose it, as it follows from both files."""
        return int(self.original.sha256[:8], 16) ^ int(self.result.sha256[:8], 16)

    @property
    def end(self) -> Outputs:
        """The graph after the last step."""
        return self.steps[-1].outputs if self.steps else self.start


def read_certificate(path: Path) -> Certificate:
    """Read a certificate.

    Raises:
        InputError: the file cannot be read, or is no certificate of this version.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: more than {_MOST_BYTES >> 30} GiB, expected a certificate")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    version = content.get("format") if isinstance(content, dict) else None
    if version != FORMAT:
        raise InputError(f"{path}: format {version!r}, expected a certificate of format {FORMAT}")
    try:
        return certificate_of(content)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: not a whole certificate ({reason})") from None


def certificate_of(content: Mapping[str, Any]) -> Certificate:
    """Return the certificate of a JSON object.

    Raises:
        ValueError, TypeError, KeyError, IndexError, AttributeError: it is not one.
    """
    operands = [tuple(map(int, term)) for term in content["terms"]]
    if any(not 0 <= child < place for place, term in enumerate(operands) for child in term):
        raise ValueError("a term is computed from one after it")
    symbols = [(str(op), _items(attrs)) for op, attrs in content["symbols"]]
    sizes = [
        StatedSize(dict(each["dims"]), [symbols[int(place)] for place in each["symbols"]])
        for each in content["sizes"]
    ]
    if not sizes or any(len(each.symbols) != len(operands) for each in sizes):
        raise ValueError("a size has not one symbol for each term")
    start = _outputs(content["start"], operands)
    steps = [_step(step, operands) for step in content["steps"]]
    if any(len(step.outputs) != len(start) for step in steps):
        raise ValueError("a step changes the number of outputs")
    return Certificate(
        original=ModelFile(**content["original"]),
        result=ModelFile(**content["result"]),
        reading=_reading(**content["reading"]),
        rules={str(name): StatedRule(**rule) for name, rule in content["rules"].items()},
        operands=operands,
        sizes=sizes,
        start=start,
        steps=steps,
        figures=Figures(**content["figures"]),
        numbers=StatedNumbers(**content["numbers"]),
    )


def _reading(
    is_dynamic: bool, dims: Mapping[str, Any], keep_overridable: bool, inputs: Mapping[str, Any]
) -> StatedReading:
    sizes = {
        name: SizeRange.of(*map(int, size)) if isinstance(size, list) else int(size)
        for name, size in dims.items()
    }
    arrays = {name: _given(*given) for name, given in inputs.items()}
    return StatedReading(is_dynamic, sizes, keep_overridable, arrays)


def _given(dtype: str, shape: Sequence[int], elements: Sequence[int]) -> Array:
    """Return whole numbers that an input has; few, so that random ones are not replaced by them."""
    if np.dtype(dtype).kind not in "bi" or len(elements) > MOST_GIVEN:
        raise ValueError(f"an input is given {len(elements)} numbers of {dtype}")
    return np.array(elements, dtype).reshape(shape)


def _step(content: Mapping[str, Any], operands: Sequence[Outputs]) -> StatedStep:
    graphs = [_outputs(content[key], operands) for key in ("sources", "targets", "outputs")]
    sources, targets, outputs = graphs
    at = tuple(map(int, content["at"]))
    if not at or not all(0 <= place < min(len(sources), len(targets)) for place in at):
        raise ValueError("a step replaces nothing")
    return StatedStep(content["rule"], content["backward"], sources, targets, at, outputs)


def _outputs(terms: Sequence[Any], operands: Sequence[Outputs]) -> Outputs:
    found = tuple(map(int, terms))
    if not all(0 <= term < len(operands) for term in found):
        raise ValueError("a graph has a term that is not there")
    return found


def _items(attrs: Sequence[Any]) -> AttrItems:
    return tuple((str(name), _attr(value)) for name, value in attrs)


def _attr(value: Any) -> AttrValue:
    if isinstance(value, list):
        return tuple(map(_attr, value))
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"{value!r} is no attribute")
    return value


def dims_of(file: Path, graph: Graph) -> dict[str, int]:
    """Return the sizes of a file's dynamic dimensions, by name, or by input and axis.

    Args:
        graph: the graph that the file holds.
    """
    if file.suffix.lower() != ".onnx":
        return {}
    from relational_tensat.formats.onnx_external import map_file, read_skeleton  # both need onnx
    from relational_tensat.formats.onnx_types import is_fixed

    model, _ = read_skeleton(map_file(file))
    return {
        dim.dim_param or f"{value.name}:{axis}": graph.inputs[value.name].shape[axis]
        for value in model.graph.input
        if value.name in graph.inputs
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if not is_fixed(dim)
    }


def model_file(path: Path) -> ModelFile:
    """Return what can be said of a model's file.

    Raises:
        InputError: it, or a file beside it, cannot be read.
    """
    if path.suffix.lower() != ".onnx":
        return ModelFile(path.name, _digest(path), {}, 0, path.stat().st_size, 0)
    from relational_tensat.formats.onnx_external import external_locations  # both need onnx
    from relational_tensat.formats.onnx_frame import figures_of_file

    data = {name: _digest(path.parent / name) for name in external_locations(path)}
    found = figures_of_file(path)
    return ModelFile(path.name, _digest(path), data, found.nodes, found.bytes, found.opset)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
