"""Builders of the graphs that tensor-graph superoptimizers are compared on.

Shapes only: no weight has values. The nine of TENSAT (Yang et al., 2021) come first, then the four
that were added to them for the Monte-Carlo tree search over the same e-graphs.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.models.builder import GraphBuilder
from bench.models.images import (
    inception_v3,
    mobilenet_v2,
    nasnet_a,
    resnet50,
    resnext50,
    squeezenet,
    vgg19,
)
from bench.models.sequences import (
    bert,
    nasrnn,
    transformer_transducer,
    vit_base,
    vit_huge,
    vit_large,
)
from relational_tensat.tensor import Graph

#: The nine graphs of TENSAT's paper, by name, in the order of its tables.
TENSAT_MODELS: dict[str, Callable[[], Graph]] = {
    "bert": bert,
    "nasrnn": nasrnn,
    "resnext50": resnext50,
    "nasnet_a": nasnet_a,
    "squeezenet": squeezenet,
    "vgg19": vgg19,
    "inception_v3": inception_v3,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
}

#: All models by name; ``python -m bench models DIR`` writes them under these names.
MODELS: dict[str, Callable[[], Graph]] = {
    **TENSAT_MODELS,
    "vit_base": vit_base,
    "vit_large": vit_large,
    "vit_huge": vit_huge,
    "transformer_transducer": transformer_transducer,
}

__all__ = ["MODELS", "TENSAT_MODELS", "GraphBuilder"]
