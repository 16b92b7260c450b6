"""Architectures of transformers, timm, torchvision, diffusers, with drawn weights: none is downloaded."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

_TOKENS, _VOCABULARY = 128, 1000
_LAYERS = {"num_hidden_layers": 4}


@dataclass(frozen=True, slots=True)
class ImageNetwork:
    """A module of timm or torchvision that takes one image.

    Attributes:
        package: which of both.
        model: its name there.
        size: of the image, in pixels, each way.
    """

    package: str
    model: str
    size: int = 224

    def module(self) -> torch.nn.Module:
        """Return the module for inference, with weights drawn by seed."""
        torch.manual_seed(0)
        make = getattr(importlib.import_module(self.package), _MAKERS[self.package])
        module: torch.nn.Module = make(self.model).eval()
        return module

    def inputs(self) -> dict[str, torch.Tensor]:
        """Return an image; the first argument is called ``x`` in both packages."""
        return {"x": torch.randn(1, 3, self.size, self.size)}


_MAKERS = {"timm": "create_model", "torchvision.models": "get_model"}


@dataclass(frozen=True, slots=True)
class Denoiser:
    """A UNet of diffusers, of two small blocks."""

    def module(self) -> torch.nn.Module:
        """Return the module for inference, with weights drawn by seed."""
        torch.manual_seed(0)
        make = importlib.import_module("diffusers").UNet2DModel
        module: torch.nn.Module = make(
            sample_size=32, in_channels=3, out_channels=3, block_out_channels=(32, 64),
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"), norm_num_groups=8,
        ).eval()  # fmt: skip
        return module

    def inputs(self) -> dict[str, torch.Tensor]:
        """Return noise and a time."""
        return {"sample": torch.randn(1, 3, 32, 32), "timestep": torch.tensor([10])}


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
ARCHITECTURES: dict[str, Architecture | ImageNetwork | Denoiser] = {
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
    "fastvit": ImageNetwork("timm", "fastvit_t8"),
    "repvit": ImageNetwork("timm", "repvit_m0_9"),
    "mobileone": ImageNetwork("timm", "mobileone_s0"),
    "coat": ImageNetwork("timm", "coat_tiny"),
    "efficientformer": ImageNetwork("timm", "efficientformerv2_s0"),
    "densenet": ImageNetwork("torchvision.models", "densenet121"),
    "shufflenet": ImageNetwork("torchvision.models", "shufflenet_v2_x1_0"),
    "googlenet": ImageNetwork("torchvision.models", "googlenet"),
    "unet": Denoiser(),
    "clip_vision": Architecture("CLIPVisionConfig", {"num_hidden_layers": 2}, "CLIPVisionModel", _pixels()),
}  # fmt: skip
TIMED = tuple(ARCHITECTURES)[:10]
