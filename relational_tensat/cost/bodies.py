"""The kernels of bodies of If, Loop and Scan, and how often they run.

Of a body that cannot be read alone nothing is known; its node costs what its operands and results say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.key import graph_configurations
from relational_tensat.tensor import Weight, tensors_of
from relational_tensat.tensor.operators.opaque import array_of_constant, constants_of


@lru_cache(maxsize=1024)
def kernels_of_bodies(configuration: Configuration) -> tuple[tuple[Configuration, float], ...]:
    """Return what the bodies of a node run, and how often each runs when the node runs once."""
    return tuple(_kernels(configuration))


def _kernels(configuration: Configuration) -> Iterator[tuple[Configuration, float]]:
    from relational_tensat.formats.onnx_bodies import bodies_of, has_bodies  # they need onnx
    from relational_tensat.formats.onnx_read import read_model

    attrs = dict(configuration.attrs)
    if not has_bodies(attrs):
        return
    kinds = [part for kind in configuration.inputs for part in tensors_of(kind)]
    known = {
        place: Weight(kinds[place], array_of_constant(attrs, place, kinds[place]))
        for place in constants_of(attrs)
    }
    imports = {"": int(str(attrs["opset"])), "ai.onnx.ml": 3, "com.microsoft": 1}
    for body in bodies_of(attrs, [(kind,) for kind in kinds], known, imports):
        with suppress(RelationalTensatError):
            graph = read_model(body.model, dict(body.sizes), body.attribute)
            for inner in graph_configurations(graph):
                yield inner, body.turns
