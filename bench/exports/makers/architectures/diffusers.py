"""Networks of diffusers: a conditioned UNet, a decoder of latents, a diffusion transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import diffusers
import torch
from torch import Generator, Tensor

from bench.exports.makers.architecture import Architecture, Draw, Positional

_CONTEXT = 77


def unet() -> Architecture:
    """Return Stable Diffusion's UNet, three levels of it, narrow."""
    module = diffusers.UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(64, 128, 128),
        layers_per_block=1,
        cross_attention_dim=128,
        attention_head_dim=8,
        norm_num_groups=16,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    )
    draw = _drawn({"sample": (1, 4, 16, 16), "encoder_hidden_states": (1, _CONTEXT, 128)})
    return _sampled(module, draw)


def vae_decoder() -> Architecture:
    """Return the decoder of Stable Diffusion's latents."""
    module = diffusers.AutoencoderKL(
        block_out_channels=(64, 128),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        layers_per_block=1,
        norm_num_groups=16,
        latent_channels=4,
    )
    return Architecture(module.decoder, _drawn({"latent": (1, 4, 16, 16)}))


def sd3_transformer() -> Architecture:
    """Return Stable Diffusion 3's transformer: joint attention over text and image."""
    module = diffusers.SD3Transformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=3,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=128,
        caption_projection_dim=128,
        pooled_projection_dim=64,
        out_channels=4,
        pos_embed_max_size=16,
    )
    draw = _drawn(
        {
            "hidden_states": (1, 4, 16, 16),
            "encoder_hidden_states": (1, _CONTEXT, 128),
            "pooled_projections": (1, 64),
        }
    )
    return _sampled(module, draw)


def _sampled(module: Any, draw: Draw) -> Architecture:
    """Return a network that takes the time step as well."""

    def with_time(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        step = torch.randint(0, 1000, (1,), generator=generator)
        return {**draw(generator, dims), "timestep": step}

    names = list(with_time(torch.Generator(), {}))
    return Architecture(Positional(module, names, _sample), with_time)


def _drawn(shapes: Mapping[str, tuple[int, ...]]) -> Draw:
    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    return draw


def _sample(result: Any) -> Any:
    return result.sample
