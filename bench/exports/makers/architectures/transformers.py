"""Networks of transformers, of few layers: encoders, decoders, with and without a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from torch import Generator, Tensor, nn

from bench.exports.makers.architecture import Architecture, Positional, text

_VOCABULARY = 2000
_BATCH_SEQUENCE = {0: "batch", 1: "sequence"}
_LAYERS = 4


def minilm() -> Architecture:
    """Return MiniLM-L6's shape: six narrow layers of BERT."""
    config = transformers.BertConfig(
        vocab_size=_VOCABULARY,
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    return _encoder(transformers.BertModel(config, add_pooling_layer=False), token_types=True)


def bert() -> Architecture:
    """Return four layers of BERT with their pooler."""
    config = transformers.BertConfig(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        intermediate_size=1024,
    )
    return _encoder(transformers.BertModel(config), token_types=True)


def deberta() -> Architecture:
    """Return DeBERTa v2: disentangled attention, relative positions gathered."""
    config = transformers.DebertaV2Config(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=1024,
        relative_attention=True,
        position_buckets=16,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
    )
    return _encoder(transformers.DebertaV2Model(config))


def t5_encoder() -> Architecture:
    """Return T5's encoder: relative position buckets, RMS norms, no biases."""
    config = transformers.T5Config(
        vocab_size=_VOCABULARY, d_model=256, d_kv=32, d_ff=1024, num_layers=_LAYERS, num_heads=8
    )
    return _encoder(transformers.T5EncoderModel(config))


def gpt2() -> Architecture:
    """Return GPT-2 with its head, without a cache."""
    return _decoder(transformers.GPT2LMHeadModel(_gpt2_config()))


def llama() -> Architecture:
    """Return Llama: rotary positions, grouped-query attention, gated MLP."""
    config = transformers.LlamaConfig(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=_LAYERS,
        num_attention_heads=8,
        num_key_value_heads=2,
    )
    return _decoder(transformers.LlamaForCausalLM(config))


def qwen3() -> Architecture:
    """Return Qwen 3: as Llama, with norms of queries and keys."""
    config = transformers.Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=32,
    )
    return _decoder(transformers.Qwen3ForCausalLM(config))


def gpt2_cache() -> Architecture:
    """Return GPT-2 that reads one token after a cache of keys and values, and returns the cache."""
    config = _gpt2_config()
    module = _WithCache(transformers.GPT2LMHeadModel(config), config.n_layer)
    caches = [f"{kind}_{layer}" for layer in range(config.n_layer) for kind in ("key", "value")]
    cache_dims = {name: {0: "batch", 2: "past"} for name in caches}
    dims = {"input_ids": {0: "batch"}, "attention_mask": {0: "batch", 1: "total"}, **cache_dims}

    def draw(generator: Generator, sizes: Mapping[str, int]) -> dict[str, Tensor]:
        batch, past = sizes.get("batch", 1), sizes.get("past", 24)
        shape = (batch, config.n_head, past, config.n_embd // config.n_head)
        return {
            "input_ids": torch.randint(0, _VOCABULARY, (batch, 1), generator=generator),
            "attention_mask": torch.ones((batch, past + 1), dtype=torch.int64),
            **{name: torch.randn(shape, generator=generator) for name in caches},
        }

    outputs = ["logits", *(f"{name}_out" for name in caches)]
    return Architecture(module, draw, outputs, dims)


def whisper_encoder() -> Architecture:
    """Return Whisper's encoder: convolutions in one dimension before attention."""
    config = transformers.WhisperConfig(
        d_model=256,
        encoder_layers=_LAYERS,
        encoder_attention_heads=4,
        encoder_ffn_dim=1024,
        max_source_positions=100,
        decoder_layers=1,
        decoder_attention_heads=4,
        vocab_size=_VOCABULARY,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    module = transformers.WhisperModel(config).get_encoder()
    return _of_noise(module, "input_features", (1, 80, 200), _last_hidden_state)


def distilbert() -> Architecture:
    """Return DistilBERT with a head that classifies sentences."""
    config = transformers.DistilBertConfig(
        vocab_size=_VOCABULARY, dim=256, n_layers=_LAYERS, n_heads=4, hidden_dim=1024
    )
    names = ["input_ids", "attention_mask"]
    dims = {**dict.fromkeys(names, _BATCH_SEQUENCE), "y": {0: "batch"}}
    module = transformers.DistilBertForSequenceClassification(config)
    return Architecture(Positional(module, names, _logits), text(_VOCABULARY, *names), dims=dims)


def albert() -> Architecture:
    """Return ALBERT: one layer's weights in all layers."""
    config = transformers.AlbertConfig(
        vocab_size=_VOCABULARY,
        embedding_size=64,
        hidden_size=256,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        intermediate_size=1024,
    )
    return _encoder(transformers.AlbertModel(config, add_pooling_layer=False), token_types=True)


def modernbert() -> Architecture:
    """Return ModernBERT: rotary positions, attention in windows, gated GELU."""
    config = transformers.ModernBertConfig(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        local_attention=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        attn_implementation="sdpa",
    )
    return _encoder(transformers.ModernBertModel(config))


def opt() -> Architecture:
    """Return OPT: ReLU, learned positions counted from the mask."""
    config = transformers.OPTConfig(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        ffn_dim=1024,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        max_position_embeddings=128,
        word_embed_proj_dim=256,
    )
    return _decoder(transformers.OPTForCausalLM(config))


def gpt_neox() -> Architecture:
    """Return GPT-NeoX: attention and MLP side by side, rotary positions on a part of each head."""
    config = transformers.GPTNeoXConfig(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        max_position_embeddings=128,
    )
    return _decoder(transformers.GPTNeoXForCausalLM(config))


def gemma3() -> Architecture:
    """Return Gemma 3: norms before and after, attention in windows, gated GELU, one key head."""
    config = transformers.Gemma3TextConfig(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=64,
        sliding_window=16,
        max_position_embeddings=128,
    )
    return _decoder(transformers.Gemma3ForCausalLM(config))


def clip() -> Architecture:
    """Return CLIP: a text and an image encoder, compared."""
    sizes = {
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    config = transformers.CLIPConfig(
        text_config={
            **sizes,
            "vocab_size": _VOCABULARY,
            "eos_token_id": 2,
            "max_position_embeddings": 32,
        },
        vision_config={**sizes, "image_size": 96, "patch_size": 16},
        projection_dim=128,
    )
    names = ["input_ids", "pixel_values"]

    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        return {
            "input_ids": torch.randint(0, _VOCABULARY, (4, 32), generator=generator),
            "pixel_values": torch.randn((2, 3, 96, 96), generator=generator),
        }

    module = transformers.CLIPModel(config)
    return Architecture(Positional(module, names, lambda result: result.logits_per_image), draw)


def wav2vec2() -> Architecture:
    """Return wav2vec 2.0: convolutions of raw sound, group norm, positions by a grouped convolution."""
    config = transformers.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=1024,
        conv_dim=(128,) * 7,
    )
    module = transformers.Wav2Vec2ForCTC(config)
    return _of_noise(module, "input_values", (1, 16_000), _logits)


def segformer() -> Architecture:
    """Return SegFormer: attention on reduced keys, depthwise convolutions in MLPs, maps resized."""
    config = transformers.SegformerConfig(num_labels=21)
    module = transformers.SegformerForSemanticSegmentation(config)
    return _of_noise(module, "pixel_values", (1, 3, 128, 128), _logits)


def electra() -> Architecture:
    """Return ELECTRA: embeddings narrower than layers, which discriminates drawn tokens."""
    config = transformers.ElectraConfig(
        vocab_size=_VOCABULARY,
        embedding_size=128,
        hidden_size=256,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        intermediate_size=1024,
    )
    return _encoder(transformers.ElectraModel(config), token_types=True)


def bloom() -> Architecture:
    """Return BLOOM: biases of distance in the place of positions, keys and queries interleaved."""
    config = transformers.BloomConfig(
        vocab_size=_VOCABULARY, hidden_size=256, n_layer=_LAYERS, n_head=4
    )
    return _decoder(transformers.BloomForCausalLM(config))


def dinov2() -> Architecture:
    """Return DINOv2: a vision transformer with layer scale."""
    config = transformers.Dinov2Config(
        hidden_size=192, num_hidden_layers=6, num_attention_heads=3, image_size=112, patch_size=14
    )
    return _of_noise(
        transformers.Dinov2Model(config), "pixel_values", (1, 3, 112, 112), _last_hidden_state
    )


class _WithCache(nn.Module):
    """A decoder that takes and returns its cache as tensors."""

    def __init__(self, decoder: nn.Module, layers: int) -> None:
        super().__init__()
        self.decoder = decoder
        self.layers = layers

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return logits, and each layer's keys and values with the new ones."""
        ids, mask, *caches = tensors
        pairs = [(caches[2 * i], caches[2 * i + 1]) for i in range(self.layers)]
        result = self.decoder(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=transformers.DynamicCache(pairs),
            use_cache=True,
        )
        layers = result.past_key_values.layers
        return (result.logits, *(t for layer in layers for t in (layer.keys, layer.values)))


def _gpt2_config() -> Any:
    return transformers.GPT2Config(
        vocab_size=_VOCABULARY, n_positions=128, n_embd=256, n_layer=_LAYERS, n_head=4
    )


def _encoder(module: nn.Module, token_types: bool = False) -> Architecture:
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if token_types else [])]
    dims = dict.fromkeys([*names, "y"], _BATCH_SEQUENCE)
    return Architecture(
        Positional(module, names, _last_hidden_state), text(_VOCABULARY, *names), dims=dims
    )


def _decoder(module: nn.Module) -> Architecture:
    names = ["input_ids", "attention_mask"]
    dims = dict.fromkeys([*names, "y"], _BATCH_SEQUENCE)
    return Architecture(
        Positional(module, names, _logits, use_cache=False), text(_VOCABULARY, *names), dims=dims
    )


def _of_noise(
    module: nn.Module, name: str, shape: tuple[int, ...], outputs: Callable[[Any], Any]
) -> Architecture:
    """Return a module of one input that is drawn from a normal distribution."""

    def draw(generator: Generator, sizes: Mapping[str, int]) -> dict[str, Tensor]:
        return {name: torch.randn(shape, generator=generator)}

    return Architecture(Positional(module, [name], outputs), draw)


def _last_hidden_state(result: Any) -> Any:
    return result.last_hidden_state


def _logits(result: Any) -> Any:
    return result.logits
