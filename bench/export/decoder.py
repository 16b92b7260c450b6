"""Exports a Llama of transformers with its cache, all dimensions dynamic; needs PyTorch and transformers.

``python bench/export/decoder.py LAYERS FILE``, by an interpreter that has these.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

HEADS, CACHED_HEADS, WIDTH = 8, 4, 512


class Decoder(torch.nn.Module):
    """A model that takes and gives its cache as tensors."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Any, mask: Any, places: Any, *cached: Any) -> Any:
        """Return logits, and keys and values of each layer."""
        cache = DynamicCache()
        for layer in range(len(cached) // 2):
            cache.update(cached[2 * layer], cached[2 * layer + 1], layer)
        result = self.model(
            input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache
        )
        layers = result.past_key_values.layers
        return (result.logits, *(part for layer in layers for part in (layer.keys, layer.values)))


def export(layers: int, path: str) -> None:
    """Write the model."""
    torch.manual_seed(0)
    config = LlamaConfig(
        num_hidden_layers=layers, hidden_size=WIDTH, num_attention_heads=HEADS,
        num_key_value_heads=CACHED_HEADS, intermediate_size=1408, vocab_size=8000,
        attn_implementation="eager",
    )  # fmt: skip
    past = [torch.randn(2, CACHED_HEADS, 15, WIDTH // HEADS) for _ in range(2 * layers)]
    ids, mask = torch.randint(0, 1000, (2, 3)), torch.ones(2, 18, dtype=torch.long)
    free = torch.export.Dim.DYNAMIC
    names = [f"{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    torch.onnx.export(
        Decoder(LlamaForCausalLM(config).eval()),
        (ids, mask, torch.arange(15, 18).repeat(2, 1), *past),
        path,
        dynamo=True,
        dynamic_shapes=(*[{0: free, 1: free}] * 3, tuple({0: free, 2: free} for _ in past)),
        input_names=["ids", "mask", "places", *(f"past.{name}" for name in names)],
        output_names=["logits", *(f"present.{name}" for name in names)],
        external_data=False,
    )


if __name__ == "__main__":
    export(int(sys.argv[1]), sys.argv[2])
