"""Which models: architectures of four libraries, both of PyTorch's exporters, quantized, float16, dynamic.

Needs neither PyTorch nor the optimizer: the command and the environment that makes the models read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: PyTorch's exporter by tracing, and the one of today.
EXPORTERS = ("legacy", "dynamo")
#: What is done to the float32 model: nothing, the module in float16, onnxruntime's quantize_static
#: (QDQ, per channel), or its quantize_dynamic (per channel).
VARIANTS = ("float32", "float16", "qdq", "quantize_dynamic")


@dataclass(frozen=True, slots=True)
class Export:
    """One model.

    Attributes:
        architecture: a function of ``makers/architectures/LIBRARY.py``.
        exporter: of ``EXPORTERS``.
        variant: of ``VARIANTS``.
        dims: the dynamic dimensions, with two sizes each: what the optimizer is given, and another
            that the result must take, too.
    """

    library: str
    architecture: str
    exporter: str
    variant: str = "float32"
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in tables and files: its parts that are not the usual ones."""
        parts = [self.architecture, self.exporter]
        parts += [self.variant] if self.variant != "float32" else []
        parts += ["dynamic"] if self.dims else []
        return "-".join(parts)


_BATCH = {"batch": (1, 3)}
_TEXT = {"batch": (1, 3), "sequence": (32, 17)}
_CACHE = {"batch": (1, 2), "past": (24, 7), "total": (25, 8)}

EXPORTS: tuple[Export, ...] = (
    Export("torchvision", "resnet50", "legacy"),
    Export("torchvision", "resnet18", "legacy", "qdq"),
    Export("torchvision", "mobilenet_v3_small", "legacy"),
    Export("torchvision", "regnet_y_400mf", "dynamo"),
    Export("torchvision", "densenet121", "legacy"),
    Export("torchvision", "shufflenet_v2", "legacy"),
    Export("torchvision", "swin_t", "legacy"),
    Export("torchvision", "efficientnet_b0", "dynamo", "float16"),
    Export("timm", "convnext_atto", "dynamo"),
    Export("timm", "convnextv2_atto", "legacy"),
    Export("timm", "vit_tiny", "legacy", dims=_BATCH),
    Export("timm", "mobilenetv4_small", "dynamo", "qdq", _BATCH),
    Export("timm", "efficientvit_b0", "dynamo", dims=_BATCH),
    Export("transformers", "minilm", "legacy", dims=_TEXT),
    Export("transformers", "bert", "dynamo", "quantize_dynamic"),
    Export("transformers", "deberta", "legacy"),
    Export("transformers", "gpt2", "legacy"),
    Export("transformers", "gpt2_cache", "dynamo", dims=_CACHE),
    Export("transformers", "llama", "dynamo", dims=_TEXT),
    Export("transformers", "qwen3", "dynamo", "float16", _TEXT),
    Export("transformers", "t5_encoder", "legacy"),
    Export("transformers", "whisper_encoder", "dynamo"),
    Export("diffusers", "unet", "legacy"),
    Export("diffusers", "vae_decoder", "dynamo"),
    Export("diffusers", "sd3_transformer", "legacy"),
)

#: Models that nobody looked at when rules, costs and limits were made: they say what a stranger's gains.
#: No rule, cost or limit is made after them; only what is wrong is repaired: an error, a result that
#: differs, a file that cannot be read.
HELD_OUT: tuple[Export, ...] = (
    Export("torchvision", "googlenet", "legacy"),
    Export("torchvision", "lraspp", "dynamo"),
    Export("timm", "ghostnetv2", "legacy", dims=_BATCH),
    Export("timm", "mixer", "dynamo"),
    Export("timm", "poolformer", "legacy"),
    Export("timm", "levit", "legacy"),
    Export("timm", "edgenext", "dynamo"),
    Export("timm", "hgnetv2", "legacy", "qdq"),
    Export("transformers", "distilbert", "legacy", dims=_TEXT),
    Export("transformers", "albert", "dynamo"),
    Export("transformers", "modernbert", "dynamo", "quantize_dynamic"),
    Export("transformers", "opt", "legacy"),
    Export("transformers", "gpt_neox", "dynamo", dims=_TEXT),
    Export("transformers", "gemma3", "dynamo", dims=_TEXT),
    Export("transformers", "clip", "legacy"),
    Export("transformers", "wav2vec2", "legacy"),
    Export("transformers", "segformer", "dynamo", "float16"),
)

#: Models exported on the day that default options were tried on them, as a newcomer does: no list above
#: has one of their kind, but for the last two, whose search took longest (72 and 69 s to its limits).
OF_A_DAY: tuple[Export, ...] = (
    Export("torchvision", "mnasnet0_5", "legacy"),
    Export("torchvision", "squeezenet1_1", "dynamo"),
    Export("timm", "tinynet_c", "dynamo"),
    Export("timm", "pvt_v2_b0", "legacy"),
    Export("timm", "rexnet_100", "legacy"),
    Export("timm", "efficientformerv2_s0", "dynamo"),
    Export("timm", "crossvit_9", "legacy"),
    Export("transformers", "electra", "dynamo", dims=_TEXT),
    Export("transformers", "bloom", "legacy"),
    Export("transformers", "dinov2", "dynamo"),
    Export("timm", "mobileone_s0", "legacy"),
    Export("timm", "xcit_nano", "legacy"),
)

ALL_EXPORTS = (*EXPORTS, *HELD_OUT, *OF_A_DAY)
