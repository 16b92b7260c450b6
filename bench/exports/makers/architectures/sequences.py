"""Sequences that no list above has: speech, recurrence, mixtures of experts, decoders with a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from torch import Generator, Tensor, nn
from torch.nn import functional

from bench.exports.makers.architecture import Architecture, Positional

_VOCABULARY = 500
_BATCH_LENGTH = {0: "batch", 1: "length"}


def spectrogram() -> Architecture:
    """Return a classifier of sound: short Fourier transform, bands, logarithm, convolutions."""
    return Architecture(
        _own(_Spectrogram(), "sound"), _noise("sound", 4000), dims={"sound": {0: "batch"}}
    )


def hubert() -> Architecture:
    """Return HuBERT for sound of any length."""
    config = transformers.HubertConfig(
        vocab_size=32, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192,
        conv_dim=(48,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
    )  # fmt: skip
    module = Positional(transformers.HubertForCTC(config), ["input_values"], lambda y: y.logits)
    return Architecture(module, _noise("sound", 4000), dims={"sound": _BATCH_LENGTH})


def conformer() -> Architecture:
    """Return a conformer: attention with relative positions between gated convolutions."""
    return Architecture(
        _own(_Conformer(), "features"), _noise("features", 120, 40), dims={"features": _BATCH_LENGTH}
    )  # fmt: skip


def vocoder() -> Architecture:
    """Return HiFi-GAN: transposed convolutions and dilated ones make sound of a spectrogram."""
    config = transformers.SpeechT5HifiGanConfig(
        model_in_dim=20, upsample_initial_channel=64, upsample_rates=[4, 4], upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3, 7], resblock_dilation_sizes=[[1, 3], [1, 3]],
    )  # fmt: skip
    module = Positional(transformers.SpeechT5HifiGan(config), ["spectrogram"], lambda y: y)
    return Architecture(module, _noise("spectrogram", 40, 20), dims={"spectrogram": _BATCH_LENGTH})


def lstm_language() -> Architecture:
    """Return a language model of two LSTMs that takes and returns its states."""
    return Architecture(
        _own(_LstmLanguage(), "ids", "hidden", "cell"), _states, ("logits", "hidden_out", "cell_out"),
        {"ids": _BATCH_LENGTH, "hidden": {1: "batch"}, "cell": {1: "batch"}},
    )  # fmt: skip


def gru_tagger() -> Architecture:
    """Return a tagger: GRUs of two directions, layer norm, a label for each token."""
    return Architecture(_own(_GruTagger(), "ids"), _ids("ids", 20), dims={"ids": _BATCH_LENGTH})


def mamba() -> Architecture:
    """Return Mamba: a selective scan over few tokens, unrolled by the export."""
    config = transformers.MambaConfig(
        vocab_size=_VOCABULARY, hidden_size=64, state_size=8, num_hidden_layers=2, use_cache=False,
        use_mambapy=False,
    )  # fmt: skip
    module = Positional(transformers.MambaForCausalLM(config), ["input_ids"], lambda y: y.logits)
    return Architecture(module, _ids("ids", 8))


def forecaster() -> Architecture:
    """Return a forecast of series: dilated causal convolutions, a GRU, quantiles that do not cross."""
    return Architecture(
        _own(_Forecaster(), "series"), _noise("series", 48, 6), dims={"series": {0: "batch"}}
    )


def switch() -> Architecture:
    """Return layers whose tokens go to one expert each: all are computed, and masked."""
    return Architecture(
        _own(_Experts(chosen=1, gathers=False), "rows"), _rows, dims={"rows": _BATCH_LENGTH}
    )


def gathered_experts() -> Architecture:
    """Return layers whose tokens gather the weights of their two experts."""
    return Architecture(
        _own(_Experts(chosen=2, gathers=True), "rows"), _rows, dims={"rows": _BATCH_LENGTH}
    )


def mixtral() -> Architecture:
    """Return Mixtral: grouped attention, rotary positions, two of four experts."""
    config = transformers.MixtralConfig(
        **_decoder_sizes(), num_local_experts=4, num_experts_per_tok=2
    )
    return _mixture(transformers.MixtralForCausalLM(config))


def olmoe() -> Architecture:
    """Return OLMoE: norms of queries and keys, two of eight small experts."""
    sizes = _decoder_sizes() | {"intermediate_size": 64}
    config = transformers.OlmoeConfig(**sizes, num_experts=8, num_experts_per_tok=2)
    return _mixture(transformers.OlmoeForCausalLM(config))


def llama_cache() -> Architecture:
    """Return Llama with a cache."""
    return _with_cache(transformers.LlamaForCausalLM(transformers.LlamaConfig(**_decoder_sizes())))


def qwen2_cache() -> Architecture:
    """Return Qwen 2 with a cache: biases of queries, keys and values."""
    return _with_cache(transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**_decoder_sizes())))


def opt_cache() -> Architecture:
    """Return OPT with a cache: learned positions counted from the mask."""
    config = transformers.OPTConfig(
        vocab_size=_VOCABULARY, hidden_size=128, ffn_dim=256, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=128, word_embed_proj_dim=128,
    )  # fmt: skip
    return _with_cache(transformers.OPTForCausalLM(config))


def phi_cache() -> Architecture:
    """Return Phi with a cache: attention beside the MLP, positions that turn a part of each head."""
    sizes = _decoder_sizes() | {"num_key_value_heads": 4}
    return _with_cache(transformers.PhiForCausalLM(transformers.PhiConfig(**sizes)))


def _decoder_sizes() -> dict[str, Any]:
    return {
        "vocab_size": _VOCABULARY, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
    }  # fmt: skip


_Drawing = Callable[[Generator, Mapping[str, int]], dict[str, Tensor]]


def _own(module: nn.Module, *names: str) -> Positional:
    return Positional(module, names, lambda y: y)


def _noise(name: str, length: int, *more: int) -> _Drawing:
    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        shape = (dims.get("batch", 1), dims.get("length", length), *more)
        return {name: torch.randn(shape, generator=generator)}

    return draw


def _ids(name: str, length: int) -> _Drawing:
    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        shape = (dims.get("batch", 1), dims.get("length", length))
        return {name: torch.randint(0, _VOCABULARY, shape, generator=generator)}

    return draw


def _states(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
    state = (2, dims.get("batch", 1), 96)
    return _ids("ids", 20)(generator, dims) | {
        name: torch.randn(state, generator=generator) for name in ("hidden", "cell")
    }


def _rows(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
    shape = (dims.get("batch", 1), dims.get("length", 24), 64)
    return {"rows": torch.randn(shape, generator=generator)}


def _mixture(module: nn.Module) -> Architecture:
    module.config.use_cache = False
    module.config._experts_implementation = "batched_mm"
    positional = Positional(module, ["input_ids"], lambda y: y.logits)
    return Architecture(positional, _ids("ids", 16), dims={"ids": _BATCH_LENGTH})


def _with_cache(decoder: nn.Module) -> Architecture:
    from bench.exports.makers.architectures.transformers import _WithCache

    config: Any = decoder.config
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    caches = [f"{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]

    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        batch, past = dims.get("batch", 1), dims.get("past", 24)
        shape = (batch, kept, past, config.hidden_size // heads)
        length = dims.get("total", past + 1) - past
        return {
            "input_ids": torch.randint(0, _VOCABULARY, (batch, length), generator=generator),
            "attention_mask": torch.ones((batch, past + length), dtype=torch.int64),
            **{name: torch.randn(shape, generator=generator) for name in caches},
        }

    dims = {
        "input_ids": {0: "batch"}, "attention_mask": {0: "batch", 1: "total"},
        **{name: {0: "batch", 2: "past"} for name in caches},
    }  # fmt: skip
    outputs = ["logits", *(f"{name}_out" for name in caches)]
    return Architecture(_WithCache(decoder, layers), draw, outputs, dims)


class _Spectrogram(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.register_buffer("bands", torch.rand(129, 32))
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(32, 10)

    def forward(self, sound: Tensor) -> Tensor:
        waves = torch.stft(sound, 256, 128, window=self.window, center=False, return_complex=False)
        power = waves.pow(2).sum(-1).transpose(1, 2) @ self.bands
        maps = self.body(torch.log(power + 1e-5)[:, None])
        return self.head(maps.mean((2, 3)))


class _Conformer(nn.Module):
    def __init__(self, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv1d(40, width, 3, 2, 1), nn.ReLU(), nn.Conv1d(width, width, 3, 2, 1)
        )
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "before": self._mlp(width), "after": self._mlp(width),
                "norm": nn.LayerNorm(width), "attention": nn.MultiheadAttention(width, 4, batch_first=True),
                "last": nn.LayerNorm(width),
                "inner": nn.Sequential(
                    nn.Conv1d(width, 2 * width, 1), nn.GLU(1),
                    nn.Conv1d(width, width, 7, padding=3, groups=width),
                    nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1),
                ),
            })
            for _ in range(layers)
        )  # fmt: skip
        self.head = nn.Linear(width, 30)

    @staticmethod
    def _mlp(width: int) -> nn.Module:
        return nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )

    def forward(self, features: Tensor) -> Tensor:
        rows = self.down(features.transpose(1, 2)).transpose(1, 2)
        for layer in self.layers:
            rows = rows + 0.5 * layer["before"](rows)
            inner = layer["norm"](rows)
            rows = rows + layer["attention"](inner, inner, inner, need_weights=False)[0]
            rows = rows + layer["inner"](rows.transpose(1, 2)).transpose(1, 2)
            rows = layer["last"](rows + 0.5 * layer["after"](rows))
        return self.head(rows).log_softmax(-1)


class _LstmLanguage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_VOCABULARY, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(96, 64), nn.Linear(64, _VOCABULARY))

    def forward(self, ids: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, ...]:
        rows, (hidden, cell) = self.lstm(self.embedding(ids), (hidden, cell))
        return self.head(rows), hidden, cell


class _GruTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_VOCABULARY, 64)
        self.gru = nn.GRU(64, 48, num_layers=2, bidirectional=True, batch_first=True)
        self.norm, self.head = nn.LayerNorm(96), nn.Linear(96, 12)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.gru(self.embedding(ids))[0])).softmax(-1)


class _Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.causal = nn.ModuleList(
            nn.Conv1d(6 if i == 0 else 32, 32, 2, dilation=2**i) for i in range(4)
        )
        self.gru, self.head = nn.GRU(32, 32, batch_first=True), nn.Linear(32, 3 * 12)

    def forward(self, series: Tensor) -> Tensor:
        rows = series.transpose(1, 2)
        for place, layer in enumerate(self.causal):
            inner = torch.relu(layer(functional.pad(rows, (2**place, 0))))
            rows = inner if place == 0 else rows + inner
        last = self.gru(rows.transpose(1, 2))[0][:, -1]
        steps = functional.softplus(self.head(last)).view(-1, 12, 3)
        return torch.cumsum(steps, -1)


class _Experts(nn.Module):
    def __init__(self, chosen: int, gathers: bool, width: int = 64, experts: int = 4) -> None:
        super().__init__()
        self.chosen, self.gathers, self.experts = chosen, gathers, experts
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / 8)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / 8)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 20)

    def forward(self, rows: Tensor) -> Tensor:
        inner = self.norm(rows)
        weights, places = self.router(inner).softmax(-1).topk(self.chosen, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        if self.gathers:
            flat, places = inner.flatten(0, 1), places.flatten(0, 1)
            up, down = self.up[places], self.down[places]
            result = functional.silu(torch.einsum("td,tkdf->tkf", flat, up))
            result = torch.einsum("tkf,tkfd->tkd", result, down) * weights.flatten(0, 1)[..., None]
            return self.head(rows + result.sum(1).view_as(rows))
        gates = torch.zeros_like(inner[..., : self.experts]).scatter(-1, places, weights)
        hidden = functional.gelu(torch.einsum("bsd,edf->besf", inner, self.up))
        result = torch.einsum("besf,efd->besd", hidden, self.down)
        return self.head(rows + (result * gates.permute(0, 2, 1)[..., None]).sum(1))
