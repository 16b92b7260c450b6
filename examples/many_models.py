"""Many models, one cache: a kernel that two models have is measured once.

python examples/many_models.py
"""

import tempfile
from pathlib import Path

from relational_tensat import (
    Node,
    Options,
    RelationalTensatError,
    TensorType,
    Weight,
    build_graph,
    optimize,
)


def layers(count):
    """Return a small network: products with a weight, a relu after each."""
    square = TensorType("float32", (32, 32))
    weights = {f"w{n}": Weight(square) for n in range(count)}
    nodes = []
    for n in range(count):
        nodes.append(Node("matmul", (f"x{n}", f"w{n}"), (f"p{n}",)))
        nodes.append(Node("relu", (f"p{n}",), (f"x{n + 1}",)))
    return build_graph(f"layers{count}", {"x0": square}, weights, nodes, [f"x{count}"])


with tempfile.TemporaryDirectory() as folder:
    # cost="cpu" measures kernels here. Without cost_cache, a folder of the user keeps what was measured.
    options = Options.of(cost="cpu", cost_cache=Path(folder) / "costs.duckdb", iterations=1)
    for model in (layers(1), layers(2)):
        try:
            result = optimize(model, options)
        except RelationalTensatError as error:
            print(f"{model.name}: {error}")  # and on to the next one
        else:
            costs = result.costs
            print(f"{model.name}: {costs.measured} measured, {costs.cached} from the cache")
