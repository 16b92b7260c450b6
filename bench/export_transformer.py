"""Write ``bench/inputs/transformer_block.onnx``: one encoder block of a transformer, from PyTorch.

Not part of the bench's commands and not run by tests: it needs PyTorch, the file it writes is
committed. It was made with torch 2.13.0, onnx 1.23.2 and onnxscript 0.7.2:

    pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2
    python -m bench.export_transformer

The weights are drawn from a seeded generator, so another run writes the same graph with the same
values. The block is the usual pre-norm encoder: 16 positions of width 64, 4 heads, an MLP of 256.
"""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

BATCH, POSITIONS, WIDTH, HEADS, MLP_WIDTH = 1, 16, 64, 4, 256
SEED = 20261121
OPSET = 20
OUTPUT = Path(__file__).parent / "inputs" / "transformer_block.onnx"


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


def seed_weights(model: nn.Module) -> None:
    """Draw every parameter; a bias that stayed 0 or a norm that stayed 1 would hide errors."""
    generator = torch.Generator().manual_seed(SEED)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        with torch.no_grad():
            if parameter.ndim > 1:
                parameter.copy_(values / math.sqrt(parameter.shape[1]))
            else:
                parameter.copy_(0.1 * values + (1.0 if "norm.weight" in name else 0.0))


def export(path: Path) -> None:
    """Write the block to ``path``, weights inside the file."""
    model = TransformerBlock().eval()
    seed_weights(model)
    example = torch.zeros(BATCH, POSITIONS, WIDTH)
    program = torch.onnx.export(
        model, (example,), dynamo=True, opset_version=OPSET, input_names=["x"], output_names=["y"]
    )
    proto = program.model_proto
    for node in proto.graph.node:
        del node.metadata_props[:]  # paths and line numbers of the machine that exported it
    for value in [*proto.graph.value_info, *proto.graph.input, *proto.graph.output]:
        del value.metadata_props[:]
    del proto.graph.metadata_props[:]
    del proto.metadata_props[:]
    proto.graph.name = "transformer_block"
    onnx.checker.check_model(proto, full_check=True)
    onnx.save_model(proto, path, save_as_external_data=False)


if __name__ == "__main__":
    export(OUTPUT)
