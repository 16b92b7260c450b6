"""Write four transformer blocks into ``bench/inputs/``, from PyTorch, as its exporters spell them.

Not part of the bench's commands and not run by tests: it needs PyTorch, the files it writes are
committed. They were made with torch 2.13.0, onnx 1.23.2 and onnxscript 0.7.2:

    pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2
    python -m bench.export.blocks

Weights are drawn from a seeded generator: another run with these versions writes the same bytes.

| file | block | spelling |
| --- | --- | --- |
| ``encoder_block`` | BERT's: post-norm, biases, padding mask, GELU | traced, opset 14: no LayerNorm |
| ``decoder_block`` | LLaMA's: RMSNorm, rotary positions, causal, 6 heads on 2, SwiGLU | opset 18 |
| ``vit_block`` | patches, class token, pre-norm, one QKV projection, GELU | traced, opset 16 |
| ``gated_mlp`` | RMSNorm and SwiGLU with its residual | traced, opset 17 |
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.export.files import INPUTS, export

BATCH = 1


class EncoderBlock(nn.Module):
    """BERT's layer: attention under a padding mask, MLP; each normalized after its residual."""

    POSITIONS, WIDTH, HEADS, MLP_WIDTH = 32, 64, 4, 256

    def __init__(self) -> None:
        super().__init__()
        width = self.WIDTH
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, self.MLP_WIDTH)
        self.down = nn.Linear(self.MLP_WIDTH, width)
        self.mlp_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """Map (batch, positions, width) to the same shape; ``padding`` (batch, positions) is true
        where a position is none.
        """
        x = self.attention_norm(x + self.attend(x, padding))
        return self.mlp_norm(x + self.down(functional.gelu(self.up(x))))

    def attend(self, x: Tensor, padding: Tensor) -> Tensor:
        """Multi-head self-attention, scores divided by the root of the head's width."""
        head = self.WIDTH // self.HEADS
        query, key, value = (
            layer(x).view(BATCH, self.POSITIONS, self.HEADS, head).permute(0, 2, 1, 3)
            for layer in (self.query, self.key, self.value)
        )
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(head)
        scores = scores.masked_fill(padding[:, None, None, :], -10_000.0)
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value)
        joined = mixed.permute(0, 2, 1, 3).contiguous().view(BATCH, self.POSITIONS, self.WIDTH)
        return self.output(joined)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + ε) · weight, over the last axis, as LLaMA's code has it."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize; the shape stays."""
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


class GatedMLP(nn.Module):
    """LLaMA's MLP, normalized before, with its residual: x + down(silu(gate(n)) · up(n))."""

    POSITIONS, WIDTH, MLP_WIDTH = 32, 96, 256

    def __init__(self) -> None:
        super().__init__()
        self.norm = RMSNorm(self.WIDTH)
        self.gate = nn.Linear(self.WIDTH, self.MLP_WIDTH, bias=False)
        self.up = nn.Linear(self.WIDTH, self.MLP_WIDTH, bias=False)
        self.down = nn.Linear(self.MLP_WIDTH, self.WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, positions, width) to the same shape."""
        normed = self.norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class DecoderBlock(nn.Module):
    """LLaMA's layer: causal attention of 6 query heads on 2 key/value heads, gated MLP."""

    POSITIONS, WIDTH, HEADS, GROUPS = GatedMLP.POSITIONS, GatedMLP.WIDTH, 6, 2
    HEAD = WIDTH // HEADS

    def __init__(self) -> None:
        super().__init__()
        self.norm = RMSNorm(self.WIDTH)
        self.query = nn.Linear(self.WIDTH, self.HEADS * self.HEAD, bias=False)
        self.key = nn.Linear(self.WIDTH, self.GROUPS * self.HEAD, bias=False)
        self.value = nn.Linear(self.WIDTH, self.GROUPS * self.HEAD, bias=False)
        self.output = nn.Linear(self.HEADS * self.HEAD, self.WIDTH, bias=False)
        self.mlp = GatedMLP()
        angles = torch.outer(
            torch.arange(self.POSITIONS, dtype=torch.float64),
            10_000.0 ** (-torch.arange(0, self.HEAD, 2, dtype=torch.float64) / self.HEAD),
        )
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())
        future = torch.ones(self.POSITIONS, self.POSITIONS).triu(1)
        self.register_buffer("mask", (future * -10_000.0)[None, None])

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, positions, width) to the same shape."""
        return self.mlp(x + self.attend(self.norm(x)))

    def attend(self, x: Tensor) -> Tensor:
        """Grouped-query attention: every key/value head serves ``HEADS / GROUPS`` query heads."""
        query = self.rotate(self.heads(self.query(x)))
        key = self.repeat(self.rotate(self.heads(self.key(x))))
        value = self.repeat(self.heads(self.value(x)))
        scores = torch.matmul(query, key.transpose(2, 3)) * self.HEAD**-0.5 + self.mask
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value)
        return self.output(mixed.transpose(1, 2).reshape(BATCH, self.POSITIONS, -1))

    def heads(self, x: Tensor) -> Tensor:
        """Split (batch, positions, width) into (batch, heads, positions, head)."""
        return x.view(BATCH, self.POSITIONS, -1, self.HEAD).transpose(1, 2)

    def rotate(self, x: Tensor) -> Tensor:
        """Rotary positions, halves of a head paired."""
        first, second = x[..., : self.HEAD // 2], x[..., self.HEAD // 2 :]
        return x * self.cos + torch.cat((-second, first), dim=-1) * self.sin

    def repeat(self, x: Tensor) -> Tensor:
        """Give every query head its key/value head: (batch, groups, …) to (batch, heads, …)."""
        times = self.HEADS // self.GROUPS
        x = x[:, :, None].expand(BATCH, self.GROUPS, times, self.POSITIONS, self.HEAD)
        return x.reshape(BATCH, self.HEADS, self.POSITIONS, self.HEAD)


class ViTBlock(nn.Module):
    """A vision transformer's stem and first layer: patches, class token, pre-norm attention, MLP."""

    SIZE, PATCH, WIDTH, HEADS, MLP_WIDTH = 32, 8, 64, 4, 256
    POSITIONS = 1 + (SIZE // PATCH) ** 2

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, self.WIDTH, self.PATCH, stride=self.PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, self.WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, self.POSITIONS, self.WIDTH))
        self.attention_norm = nn.LayerNorm(self.WIDTH, eps=1e-6)
        self.qkv = nn.Linear(self.WIDTH, 3 * self.WIDTH)
        self.output = nn.Linear(self.WIDTH, self.WIDTH)
        self.mlp_norm = nn.LayerNorm(self.WIDTH, eps=1e-6)
        self.up = nn.Linear(self.WIDTH, self.MLP_WIDTH)
        self.down = nn.Linear(self.MLP_WIDTH, self.WIDTH)

    def forward(self, image: Tensor) -> Tensor:
        """Map (batch, 3, size, size) to (batch, positions, width)."""
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.token, x), dim=1) + self.positions
        x = x + self.attend(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.mlp_norm(x))))

    def attend(self, x: Tensor) -> Tensor:
        """Multi-head self-attention; query, key and value come from one projection."""
        head = self.WIDTH // self.HEADS
        qkv = self.qkv(x).reshape(BATCH, self.POSITIONS, 3, self.HEADS, head)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax((query * head**-0.5) @ key.transpose(-2, -1), dim=-1)
        mixed = (weights @ value).transpose(1, 2)
        return self.output(mixed.reshape(BATCH, self.POSITIONS, self.WIDTH))


def export_all(folder: Path) -> None:
    """Write the four files into ``folder``."""
    positions = torch.zeros(BATCH, EncoderBlock.POSITIONS, EncoderBlock.WIDTH)
    padding = torch.zeros(BATCH, EncoderBlock.POSITIONS, dtype=torch.bool)
    export(
        EncoderBlock(),
        (positions, padding),
        ("x", "padding"),
        folder / "encoder_block.onnx",
        opset=14,
        dynamo=False,
    )
    wide = torch.zeros(BATCH, GatedMLP.POSITIONS, GatedMLP.WIDTH)
    export(DecoderBlock(), (wide,), ("x",), folder / "decoder_block.onnx", opset=18, dynamo=True)
    image = torch.zeros(BATCH, 3, ViTBlock.SIZE, ViTBlock.SIZE)
    export(ViTBlock(), (image,), ("image",), folder / "vit_block.onnx", opset=16, dynamo=False)
    export(GatedMLP(), (wide,), ("x",), folder / "gated_mlp.onnx", opset=17, dynamo=False)


if __name__ == "__main__":
    export_all(INPUTS)
