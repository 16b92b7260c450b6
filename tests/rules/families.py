"""Small graphs that a family of rules makes smaller, optimized with that family alone.

Only kernels count here, one microsecond each, so that the number of operators that run at inference is
what a family brings. Every result is compared numerically by ``optimize`` itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from relational_tensat import Options, Result, optimize
from relational_tensat.base.files import resource_dir
from relational_tensat.cost import Profile
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, Weight, build_graph
from tests.graphs import f32, weight

KERNELS = Profile(
    "kernels", 1e18, 1e18, 1.0, frozenset({"reshape", "part", "noop", "identity", "dropout"})
)
#: What a convolution's or pool's attributes are, unless a test says otherwise.
PLAIN: dict[str, AttrValue] = {"stride": (1, 1), "pad": "valid"}
SAME: dict[str, AttrValue] = {"stride": (1, 1), "pad": "same"}


def node(op: str, inputs: str, output: str, **attrs: AttrValue) -> Node:
    """Return a node; operands and results are names with spaces between."""
    return Node(op, tuple(inputs.split()), tuple(output.split()), attrs)


def norm(x: str, output: str, prefix: str = "n") -> Node:
    """Return a batch normalization with the vectors ``statistics`` makes under the prefix."""
    names = " ".join(f"{prefix}_{part}" for part in ("scale", "bias", "mean", "var"))
    return node("batch_norm", f"{x} {names}", output, epsilon=1e-3)


def statistics(channels: int, prefix: str = "n", seed: int = 100) -> dict[str, Weight]:
    """Return the four vectors of a batch normalization; the variance is positive."""
    names = {
        f"{prefix}_{part}": weight(channels, seed=seed + place)
        for place, part in enumerate(("scale", "bias", "mean", "var"))
    }
    var = names[f"{prefix}_var"]
    assert var.data is not None
    return {**names, f"{prefix}_var": Weight(var.type, abs(var.data) + 0.5)}


def graph(
    inputs: Mapping[str, tuple[int, ...]],
    weights: Mapping[str, Weight | tuple[int, ...]],
    nodes: Sequence[Node],
    outputs: str = "y",
) -> Graph:
    """Return a graph of float32 inputs; weights that are shapes get random data."""
    made = {
        name: weight(*value, seed=place) if isinstance(value, tuple) else value
        for place, (name, value) in enumerate(weights.items())
    }
    types: dict[str, TensorType] = {name: f32(*shape) for name, shape in inputs.items()}
    return build_graph("family", types, made, nodes, outputs.split())


def optimized(
    made: Graph, families: str, cost: Profile = KERNELS, multi_iterations: int = 1
) -> Result:
    """Return the graph optimized with the rule files of some families (names with spaces)."""
    files: tuple[Path, ...] = tuple(
        resource_dir("rules") / f"{family}.rules" for family in families.split()
    )
    options = Options.of(rules=files, multi_iterations=multi_iterations, search="saturation")
    return optimize(made, options, cost_model=cost)


def check_family(
    made: Graph, families: str, left: Mapping[str, int], rule: str, cost: Profile = KERNELS
) -> None:
    """Assert which operators a graph is left with at inference, and that a rule took part.

    Args:
        left: how many of each operator; reshapes, which cost nothing, do not count.
        rule: the name, without the choices in brackets; "" if no rule can help.
    """
    result = optimized(made, families, cost)
    ops = {op: count for op, count in result.ops_after.items() if op != "reshape"}
    applied = {name.partition("[")[0] for name, stats in result.rules.items() if stats.applied}
    assert ops == dict(left), ops
    assert result.saturated
    assert result.optimal
    assert rule in applied if rule else not result.rules_used, applied
