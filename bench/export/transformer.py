"""Write ``bench/inputs/transformer_block.onnx``: one encoder block of a transformer, from PyTorch.

Not part of the bench's commands and not run by tests: it needs PyTorch, the file it writes is
committed. It was made with torch 2.13.0, onnx 1.23.2 and onnxscript 0.7.2:

    pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2
    python -m bench.export.transformer

The weights are drawn from a seeded generator, so another run writes the same graph with the same
values. The block is the usual pre-norm encoder: 16 positions of width 64, 4 heads, an MLP of 256.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.export.files import INPUTS, export

BATCH, POSITIONS, WIDTH, HEADS, MLP_WIDTH = 1, 16, 64, 4, 256


class SelfAttention(nn.Module):
    """Multi-head self-attention; three projections with bias, one after the heads are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Attend: (batch, positions, width) to the same shape."""
        query, key, value = (
            layer(x).view(BATCH, POSITIONS, HEADS, WIDTH // HEADS).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(BATCH, POSITIONS, WIDTH))


class TransformerBlock(nn.Module):
    """A pre-norm encoder block: attention and an MLP with GELU, each with its residual."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = SelfAttention()
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, MLP_WIDTH), nn.GELU(), nn.Dropout(), nn.Linear(MLP_WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, positions, width) to the same shape."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


if __name__ == "__main__":
    export(
        TransformerBlock(),
        (torch.zeros(BATCH, POSITIONS, WIDTH),),
        ("x",),
        INPUTS / "transformer_block.onnx",
        opset=20,
        dynamo=True,
    )
