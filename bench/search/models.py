"""The models that searches are compared on: the papers' 13, larger ones, and ONNX files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.models import MODELS
from bench.scale.families import transformer
from bench.search.decoder import Shape, decoder
from relational_tensat.base.errors import UsageError, check_choice
from relational_tensat.formats import load_model
from relational_tensat.tensor import Graph

#: A decoder of 24 layers, small enough to be made on the spot.
DECODER = "decoder_24"


def model_of(name: str) -> Graph:
    """Return a model by its name, or of an ONNX or JSON file.

    Args:
        name: of ``MODELS``, ``DECODER``, ``transformer_N`` (an encoder of N layers), or a path.

    Raises:
        UsageError: there is none of that name.
        InputError: the file cannot be read.
    """
    if Path(name).suffix in (".onnx", ".json"):
        return load_model(Path(name), {})
    if name == DECODER:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.onnx"
            path.write_bytes(decoder(Shape(24, 256, 4, 512, 64, 1_000)).SerializeToString())
            return load_model(path, {})
    family, _, layers = name.rpartition("_")
    if family == "transformer" and layers.isdigit():
        if int(layers) < 1:
            raise UsageError(f"{name}, expected a transformer of one layer or more")
        return transformer(int(layers))
    return MODELS[check_choice("model", name, MODELS)]()
