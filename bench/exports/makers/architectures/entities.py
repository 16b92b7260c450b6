"""Networks of entities and their relations: recommendation and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from bench.exports.makers.architecture import Architecture, Positional

_ITEMS, _FEATURES = 300, 13
_NODES = {"features": {0: "nodes"}, "edges": {1: "edges"}}


def dlrm() -> Architecture:
    """Return DLRM: embeddings and dense features, products of all pairs, a tower."""
    dims = {"dense": {0: "batch"}, "sparse": {0: "batch"}}
    return Architecture(_own(_Dlrm(), "dense", "sparse"), _clicks, dims=dims)


def deep_fm() -> Architecture:
    """Return DeepFM: factorization by squares of sums beside a tower."""
    dims = {"dense": {0: "batch"}, "sparse": {0: "batch"}}
    return Architecture(_own(_DeepFm(), "dense", "sparse"), _clicks, dims=dims)


def interest() -> Architecture:
    """Return DIN: a history weighted by what it has to do with a candidate."""
    dims = {"history": {0: "batch", 1: "length"}, "candidate": {0: "batch"}}
    return Architecture(_own(_Interest(), "history", "candidate"), _history, dims=dims)


def two_towers() -> Architecture:
    """Return towers of users and items, their normalized products, and the best items."""
    return Architecture(
        _own(_TwoTowers(), "dense", "sparse"),
        _clicks,
        ("scores", "items"),
        {"dense": {0: "batch"}, "sparse": {0: "batch"}},
    )


def gcn() -> Architecture:
    """Return graph convolutions: messages scattered to their targets, divided by degrees."""
    return Architecture(_own(_Convolutions(), "features", "edges"), _graph, dims=_NODES)


def gat() -> Architecture:
    """Return graph attention: softmax over the edges of each target."""
    return Architecture(_own(_Attention(), "features", "edges"), _graph, dims=_NODES)


def sage() -> Architecture:
    """Return GraphSAGE: means of neighbours beside the node itself, normalized."""
    return Architecture(_own(_Sage(), "features", "edges"), _graph, dims=_NODES)


def molecule() -> Architecture:
    """Return messages along a dense adjacency, a gated update, and a sum over atoms."""
    dims = {"atoms": {0: "batch", 1: "nodes"}, "bonds": {0: "batch", 1: "nodes", 2: "nodes"}}
    return Architecture(_own(_Molecule(), "atoms", "bonds"), _molecules, dims=dims)


def _own(module: nn.Module, *names: str) -> Positional:
    return Positional(module, names, lambda y: y)


def _clicks(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
    batch = dims.get("batch", 16)
    return {
        "dense": torch.rand((batch, _FEATURES), generator=generator),
        "sparse": torch.randint(0, _ITEMS, (batch, 8), generator=generator),
    }


def _history(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
    batch, length = dims.get("batch", 8), dims.get("length", 20)
    history = torch.randint(0, _ITEMS, (batch, length), generator=generator)
    history[:, length // 2 :: 3] = 0
    return {
        "history": history, "candidate": torch.randint(0, _ITEMS, (batch,), generator=generator)
    }  # fmt: skip


def _graph(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
    nodes, edges = dims.get("nodes", 40), dims.get("edges", 160)
    return {
        "features": torch.randn((nodes, 32), generator=generator),
        "edges": torch.randint(0, nodes, (2, edges), generator=generator),
    }


def _molecules(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
    batch, nodes = dims.get("batch", 4), dims.get("nodes", 12)
    bonds = (torch.rand((batch, nodes, nodes), generator=generator) > 0.7).float()
    return {
        "atoms": torch.randint(0, 20, (batch, nodes), generator=generator),
        "bonds": torch.maximum(bonds, bonds.transpose(1, 2)),
    }


def _tower(*widths: int) -> nn.Sequential:
    layers = [
        part
        for a, b in pairwise(widths)
        for part in (nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU())
    ]
    return nn.Sequential(*layers[:-2])


class _Dlrm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(_ITEMS, 32, mode="sum") for _ in range(8))
        self.dense, self.top = _tower(_FEATURES, 64, 32), _tower(32 + 36, 64, 1)
        self.register_buffer("pairs", torch.tril_indices(9, 9, -1))

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        own = self.dense(dense)
        rows = [table(sparse[:, i : i + 1]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([own, *rows], 1)
        products = stacked @ stacked.transpose(1, 2)
        return self.top(torch.cat([own, products[:, self.pairs[0], self.pairs[1]]], 1)).sigmoid()


class _DeepFm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.linear = nn.Embedding(8 * _ITEMS, 16), nn.Embedding(8 * _ITEMS, 1)
        self.register_buffer("first", torch.arange(8) * _ITEMS)
        self.dense, self.tower = nn.Linear(_FEATURES, 1), _tower(8 * 16 + _FEATURES, 64, 32, 1)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        places = sparse + self.first
        rows = self.embedding(places)
        pairs = 0.5 * (rows.sum(1).pow(2) - rows.pow(2).sum(1)).sum(1, keepdim=True)
        deep = self.tower(torch.cat([rows.flatten(1), dense], 1))
        return torch.sigmoid(self.linear(places).sum(1) + self.dense(dense) + pairs + deep)


class _Interest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(_ITEMS, 24)
        self.weight = nn.Sequential(nn.Linear(96, 36), nn.PReLU(), nn.Linear(36, 1))
        self.top = nn.Sequential(nn.Linear(72, 40), nn.PReLU(), nn.Linear(40, 1))

    def forward(self, history: Tensor, candidate: Tensor) -> Tensor:
        rows, target = self.items(history), self.items(candidate)
        wide = target[:, None].expand_as(rows)
        scores = self.weight(torch.cat([rows, wide, rows - wide, rows * wide], -1)).squeeze(-1)
        scores = scores.masked_fill(history == 0, -1e9).softmax(-1)
        seen = (scores[:, None] @ rows).squeeze(1)
        return self.top(torch.cat([seen, target, seen * target], -1)).sigmoid()


class _TwoTowers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.tower = nn.Embedding(_ITEMS, 16), _tower(8 * 16 + _FEATURES, 64, 32)
        self.items, self.item_tower = nn.Embedding(_ITEMS, 24), _tower(24, 32, 32)

    def forward(self, dense: Tensor, sparse: Tensor) -> tuple[Tensor, Tensor]:
        users = self.tower(torch.cat([self.users(sparse).flatten(1), dense], 1))
        items = self.item_tower(self.items.weight)
        products = functional.normalize(users, dim=1) @ functional.normalize(items, dim=1).T
        scores, places = products.topk(10, 1)
        return scores, places


def _summed(messages: Tensor, targets: Tensor, nodes: Tensor) -> Tensor:
    return torch.zeros((nodes.shape[0], messages.shape[1])).index_add(0, targets, messages)


class _Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))

    def forward(self, features: Tensor, edges: Tensor) -> Tensor:
        sources, targets = edges[0], edges[1]
        degrees = _summed(torch.ones((edges.shape[1], 1)), targets, features) + 1
        scale = degrees.rsqrt()
        for layer in self.layers:
            rows = layer(features) * scale
            features = torch.relu((_summed(rows[sources], targets, rows) + rows) * scale)
        return features.log_softmax(-1)


class _Attention(nn.Module):
    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(nn.Linear(32, 32, bias=False) for _ in range(2))
        self.own = nn.Parameter(torch.randn(2, 2, heads, 8) / 3)

    def forward(self, features: Tensor, edges: Tensor) -> Tensor:
        sources, targets = edges[0], edges[1]
        for layer, own in zip(self.layers, self.own, strict=True):
            rows = layer(features).view(-1, self.heads, 8)
            at_source, at_target = (rows * own[0]).sum(-1), (rows * own[1]).sum(-1)
            scores = functional.leaky_relu(at_source[sources] + at_target[targets], 0.2)
            scores = (scores - scores.max()).exp()
            sums = _summed(scores, targets, features) + 1e-9
            weights = scores / sums[targets]
            messages = (rows[sources] * weights[..., None]).flatten(1)
            features = functional.elu(_summed(messages, targets, features))
        return features


class _Sage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.around = nn.ModuleList(nn.Linear(32, 32, bias=False) for _ in range(2))

    def forward(self, features: Tensor, edges: Tensor) -> Tensor:
        counts = _summed(torch.ones((edges.shape[1], 1)), edges[1], features).clamp(min=1)
        for own, around in zip(self.own, self.around, strict=True):
            mean = _summed(features[edges[0]], edges[1], features) / counts
            features = functional.normalize(torch.relu(own(features) + around(mean)), dim=-1)
        return features


class _Molecule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.atoms, self.message = nn.Embedding(20, 32), nn.Linear(32, 32)
        self.update, self.gate, self.head = nn.Linear(64, 32), nn.Linear(64, 32), nn.Linear(32, 1)

    def forward(self, atoms: Tensor, bonds: Tensor) -> Tensor:
        rows = self.atoms(atoms)
        for _ in range(3):
            both = torch.cat([rows, bonds @ self.message(rows)], -1)
            gate = self.gate(both).sigmoid()
            rows = (1 - gate) * rows + gate * self.update(both).tanh()
        return self.head((rows * (atoms != 0)[..., None]).sum(1))
