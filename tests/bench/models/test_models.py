from __future__ import annotations

import math
import re
from functools import cache

import pytest

from bench.models import MODELS, TENSAT_MODELS
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.tensor import Graph, TensorType
from tests.bench.models.oracles import count_tensat_enodes, tree_and_dag_us


@cache
def model(name: str) -> Graph:
    return MODELS[name]()


def vit(blocks: int) -> dict[str, int]:
    return {
        "matmul": 8 * blocks, "reshape": 4 * blocks, "transpose": 4 * blocks, "add": 2 * blocks,
        "relu": 1,
    }  # fmt: skip


#: Operators of each published graph.
HISTOGRAMS = {
    "bert": {"matmul": 48, "reshape": 32, "transpose": 32, "noop": 8, "relu": 1},
    "nasrnn": {"matmul": 80, "add": 55, "mul": 20, "tanh": 40, "sigmoid": 25, "relu": 10},
    "resnext50": {"conv": 53, "add": 16, "relu": 16, "max_pool": 1},
    "resnet50": {"conv": 52, "add": 16, "relu": 16},
    "nasnet_a": {"conv": 217, "add": 90, "avg_pool": 36, "max_pool": 4, "concat": 18},
    "inception_v3": {"conv": 94, "concat": 27 + 1 + 2, "avg_pool": 9, "max_pool": 5},
    "vgg19": {
        "conv": 16, "relu": 18, "max_pool": 5, "matmul": 3, "transpose": 3, "reshape": 3,
        "dropout": 2,
    },
    "squeezenet": {
        "conv": 26, "relu": 26, "concat": 8, "max_pool": 3, "avg_pool": 1, "dropout": 1,
        "reshape": 1,
    },
    "mobilenet_v2": {
        "conv": 54, "batch_norm": 53, "relu": 36, "add": 10, "avg_pool": 1, "reshape": 1,
    },
    "vit_base": vit(12),
    "vit_large": vit(24),
    "vit_huge": vit(32),
    "transformer_transducer": {
        "matmul": 116, "reshape": 56, "transpose": 56, "add": 28, "relu": 15, "concat": 1,
    },
}  # fmt: skip

#: E-nodes of the published graphs before any rewriting, numbers and names included.
TENSAT_ENODES = {
    "bert": 192, "nasrnn": 403, "resnext50": 198, "resnet50": 193, "nasnet_a": 806,
    "inception_v3": 334, "vgg19": 96, "squeezenet": 127, "mobilenet_v2": 694,
    "vit_base": 368, "vit_large": 728, "vit_huge": 969, "transformer_transducer": 457,
}  # fmt: skip

#: Shapes of the inputs and of the output; None for a tuple, which has a test of its own.
INTERFACES: dict[str, tuple[list[tuple[int, ...]], tuple[int, ...]]] = {
    "nasrnn": ([(1, 512)] * 5, (1, 512)),
    "resnext50": ([(1, 3, 224, 224)], (1, 2048, 7, 7)),
    "resnet50": ([(1, 64, 56, 56)], (1, 2048, 7, 7)),
    "nasnet_a": ([(1, 3, 224, 224)], (1, 5120, 7, 7)),
    "inception_v3": ([(1, 3, 299, 299)], (1, 2048, 1, 1)),
    "vgg19": ([(1, 3, 224, 224)], (1, 1000)),
    "squeezenet": ([(1, 3, 224, 224)], (1, 1000)),
    "mobilenet_v2": ([(1, 3, 224, 224)], (1, 1000)),
    "vit_base": ([(64, 768)], (64, 768)),
    "vit_large": ([(64, 1024)], (64, 1024)),
    "vit_huge": ([(64, 1280)], (64, 1280)),
    "transformer_transducer": ([(80, 512)], (80, 10)),
}


def shapes(graph: Graph, op: str) -> list[tuple[int, ...]]:
    kinds = [graph.types[node.outputs[0]] for node in graph.nodes if node.op == op]
    assert all(isinstance(kind, TensorType) for kind in kinds)
    return [kind.shape for kind in kinds if isinstance(kind, TensorType)]


def test_the_thirteen_models_are_there() -> None:
    assert len(TENSAT_MODELS) == 9
    assert set(MODELS) == set(HISTOGRAMS)
    assert list(MODELS)[:9] == list(TENSAT_MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_operator_counts(name: str) -> None:
    assert model(name).count_ops() == HISTOGRAMS[name]


@pytest.mark.parametrize("name", MODELS)
def test_enode_counts(name: str) -> None:
    assert count_tensat_enodes(model(name)) == TENSAT_ENODES[name]


@pytest.mark.parametrize("name", INTERFACES)
def test_interfaces(name: str) -> None:
    inputs, output = INTERFACES[name]
    assert [kind.shape for kind in model(name).inputs.values()] == inputs
    assert [kind.shape for kind in model(name).output_types()] == [output]


@pytest.mark.parametrize("name", MODELS)
def test_names_are_readable_and_the_same_each_time(name: str) -> None:
    graph, again = model(name), MODELS[name]()
    assert graph.name == name
    assert graph.nodes == again.nodes
    assert list(graph.weights) == list(again.weights)
    assert graph.outputs == again.outputs
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", name) for name in graph.types)


@pytest.mark.parametrize("name", MODELS)
def test_everything_is_used_and_nothing_twice(name: str) -> None:
    graph = model(name)
    used = {value for node in graph.nodes for value in node.inputs} | set(graph.outputs)
    assert set(graph.types) == used
    expressions = {(node.op, node.inputs, tuple(node.attrs.items())) for node in graph.nodes}
    assert len(expressions) == len(graph.nodes)


@pytest.mark.parametrize("name", MODELS)
def test_weights_have_types_and_no_values(name: str) -> None:
    weights = model(name).weights.values()
    assert all(weight.data is None and weight.type.dtype == "float32" for weight in weights)


def test_bert_returns_eight_attentions_and_the_hidden_state() -> None:
    assert [kind.shape for kind in model("bert").output_types()] == [(64, 1024)] * 9
    assert len(model("bert").weights) == 8 * 4


def test_nasrnn_starts_from_a_weight_and_shares_no_product() -> None:
    graph = model("nasrnn")
    assert len(graph.weights) == 1 + 80
    starting = [node for node in graph.nodes if "hidden_0" in node.inputs]
    assert [node.op for node in starting] == ["matmul"] * 8


def test_nasnet_concatenates_at_four_sizes() -> None:
    concats = shapes(model("nasnet_a"), "concat")
    sizes = {shape: concats.count(shape) for shape in concats}
    assert sizes == {
        (1, 640, 56, 56): 5, (1, 1280, 28, 28): 6, (1, 2560, 14, 14): 6, (1, 5120, 7, 7): 1,
    }  # fmt: skip


def test_inception_is_as_wide_and_as_small_as_published() -> None:
    graph = model("inception_v3")
    assert shapes(graph, "max_pool")[1] == (1, 192, 35, 35)
    joined = [shape[1:3] for shape in shapes(graph, "concat")]
    assert joined.count((256, 35)) == 1
    assert joined.count((288, 35)) == 2
    assert joined.count((768, 17)) == 1 + 1 + 4 - 1  # block B, blocks C
    assert joined.count((1280, 8)) == 1
    assert joined.count((2048, 8)) == 2


def test_resnext_convolutions_have_32_groups() -> None:
    graph = model("resnext50")
    grouped = [
        weight.type.shape
        for name, weight in graph.weights.items()
        if name.endswith("block1.conv.weight")
    ]
    assert grouped == [(128, 4, 3, 3), (256, 8, 3, 3), (512, 16, 3, 3), (1024, 32, 3, 3)]


def test_resnet_halves_the_image_in_three_first_blocks() -> None:
    graph = model("resnet50")
    strided = [node.name for node in graph.nodes if node.attrs.get("stride") == (2, 2)]
    assert len(strided) == 6
    assert all(".block1." in name for name in strided)
    shortcuts = [node for node in graph.nodes if ".shortcut." in node.name]
    assert len(shortcuts) == 4
    assert {node.attrs["act"] for node in shortcuts} == {"relu"}


def test_mobilenet_ends_at_seven_by_seven() -> None:
    graph = model("mobilenet_v2")
    sizes = {shape[2] for shape in shapes(graph, "conv")}
    assert sizes == {112, 56, 28, 14, 7, 1}


@pytest.mark.parametrize(("name", "published_ratio"), [("nasrnn", 936), ("nasnet_a", 2.04e12)])
def test_values_are_shared_as_published(name: str, published_ratio: float) -> None:
    tree_us, dag_us = tree_and_dag_us(model(name))
    assert tree_us / dag_us == pytest.approx(published_ratio, rel=0.05)


@pytest.mark.parametrize(
    ("name", "published_ratio", "published_ms"),
    [("vit_base", 1.44e9, 1.8), ("vit_large", 4.6e19, 5.4), ("vit_huge", 5.5e26, 10.0)],
)
def test_vision_transformers_share_and_cost_as_published(
    name: str, published_ratio: float, published_ms: float
) -> None:
    tree_us, dag_us = tree_and_dag_us(model(name))
    assert math.isclose(tree_us / dag_us, published_ratio, rel_tol=0.05)
    assert math.isclose(dag_us / 1000, published_ms, rel_tol=0.05)


def test_models_cost_what_they_do_in_tensat() -> None:
    """TENSAT's own program says so of three, under the same profile, in µs."""
    profile = load_profile("tensat_t4")
    for name, cost_us in (("bert", 816.2), ("nasrnn", 1349.3), ("vgg19", 7060.6)):
        assert graph_cost_us(model(name), profile) == pytest.approx(cost_us, abs=0.05)
