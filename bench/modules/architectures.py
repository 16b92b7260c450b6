"""Architectures of transformers, with drawn weights: none is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

_TOKENS, _VOCABULARY = 128, 1000
_LAYERS = {"num_hidden_layers": 4}


@dataclass(frozen=True, slots=True)
class Architecture:
    """A module of transformers.

    Attributes:
        config: the class of its configuration, and settings that are not the default ones.
        model: its class, and the part of it that is taken, "" for all.
        inputs: makes arguments by name.
    """

    config: str
    settings: dict[str, Any]
    model: str
    inputs: Callable[[], dict[str, torch.Tensor]]
    part: str = ""
    call: dict[str, Any] = field(default_factory=dict)

    def module(self) -> torch.nn.Module:
        """Return the module for inference, with weights drawn by seed."""
        torch.manual_seed(0)
        config = getattr(transformers, self.config)(**self.settings)
        if "use_cache" in vars(config):
            config.use_cache = False
        module = getattr(transformers, self.model)(config).eval()
        part: torch.nn.Module = module.get_submodule(self.part) if self.part else module
        return part


def _ids() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(0, _VOCABULARY, (1, _TOKENS))}


def _pixels(size: int = 224) -> Callable[[], dict[str, torch.Tensor]]:
    return lambda: {"pixel_values": torch.randn(1, 3, size, size)}


def _sound() -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(1, 16_000)}


def _spectrum() -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(1, 80, 3000)}


#: By name; the first ten are timed.
ARCHITECTURES = {
    "bert": Architecture("BertConfig", _LAYERS, "BertModel", _ids),
    "gpt2": Architecture("GPT2Config", {"n_layer": 4}, "GPT2Model", _ids),
    "llama": Architecture(
        "LlamaConfig",
        {"num_hidden_layers": 2, "hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8,
         "num_key_value_heads": 4, "vocab_size": 2000},
        "LlamaModel", _ids,
    ),
    "vit": Architecture("ViTConfig", _LAYERS, "ViTModel", _pixels()),
    "swin": Architecture("SwinConfig", {"depths": [1, 1, 2, 1], "embed_dim": 96}, "SwinModel", _pixels()),
    "convnext": Architecture("ConvNextConfig", {"depths": [1, 1, 3, 1]}, "ConvNextModel", _pixels()),
    "mobilenet_v2": Architecture("MobileNetV2Config", {}, "MobileNetV2Model", _pixels()),
    "segformer": Architecture(
        "SegformerConfig", {}, "SegformerForSemanticSegmentation", _pixels(256)
    ),
    "whisper_encoder": Architecture(
        "WhisperConfig",
        {"d_model": 256, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4}, "WhisperModel",
        _spectrum, "encoder",
    ),
    "wav2vec2": Architecture("Wav2Vec2Config", {"num_hidden_layers": 2}, "Wav2Vec2Model", _sound),
    "roberta": Architecture("RobertaConfig", _LAYERS, "RobertaModel", _ids),
    "distilbert": Architecture("DistilBertConfig", {"n_layers": 3}, "DistilBertModel", _ids),
    "albert": Architecture("AlbertConfig", {"num_hidden_layers": 3, "hidden_size": 256,
        "num_attention_heads": 4, "intermediate_size": 512}, "AlbertModel", _ids),
    "electra": Architecture("ElectraConfig", _LAYERS, "ElectraModel", _ids),
    "opt": Architecture("OPTConfig", {"num_hidden_layers": 2, "hidden_size": 256, "ffn_dim": 512,
        "num_attention_heads": 4, "word_embed_proj_dim": 256}, "OPTModel", _ids),
    "t5_encoder": Architecture("T5Config", {"num_layers": 3}, "T5EncoderModel", _ids),
    "deit": Architecture("DeiTConfig", {"num_hidden_layers": 3}, "DeiTModel", _pixels()),
    "dinov2": Architecture("Dinov2Config", {"num_hidden_layers": 2}, "Dinov2Model", _pixels()),
    "resnet": Architecture("ResNetConfig", {"depths": [1, 1, 1, 1]}, "ResNetModel", _pixels()),
    "regnet": Architecture("RegNetConfig", {"depths": [1, 1, 2, 1]}, "RegNetModel", _pixels()),
    "mobilevit": Architecture("MobileViTConfig", {"image_size": 256}, "MobileViTModel", _pixels(256)),
    "clip_vision": Architecture("CLIPVisionConfig", {"num_hidden_layers": 2}, "CLIPVisionModel", _pixels()),
}  # fmt: skip
TIMED = tuple(ARCHITECTURES)[:10]
