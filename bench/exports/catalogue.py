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
#: has one of their kind, but for the last three: two whose search took longest (72 and 69 s to its limits),
#: and the one that OpenVINO was furthest ahead of.
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
    Export("timm", "coat_tiny", "legacy"),
)

_PICTURE = {"height": (96, 64), "width": (128, 160)}
_GRAPH = {"nodes": (40, 23), "edges": (160, 77)}
_GENERATED = {"batch": (1, 2), "past": (24, 7), "total": (25, 8)}
_CLICKS = {"batch": (16, 5)}


def _of(
    library: str, *models: tuple[str, str, Mapping[str, tuple[int, int]]]
) -> tuple[Export, ...]:
    return tuple(Export(library, name, exporter, dims=dims) for name, exporter, dims in models)


#: Forty models of ten families, written for this list, most of them dynamic: none is refused, none slower.
FAMILIES: Mapping[str, tuple[Export, ...]] = {
    "detection with NMS": _of(
        "pictures",
        ("retina", "legacy", {}),
        ("faster_rcnn", "legacy", _PICTURE),
        ("fcos", "legacy", {}),
        ("yolo", "legacy", _PICTURE),
    ),
    "segmentation": _of(
        "pictures",
        ("deeplab", "legacy", {**_BATCH, "height": (64, 96), "width": (64, 80)}),
        ("unet", "dynamo", {}),
        ("dpt", "dynamo", {}),
        ("segformer_any", "legacy", {"height": (64, 96), "width": (64, 160)}),
    ),
    "OCR": _of(
        "pictures",
        ("crnn", "legacy", {"batch": (1, 2), "width": (96, 168)}),
        ("text_detector", "legacy", {"batch": (1, 2), **_PICTURE}),
        ("trocr_decoder", "dynamo", {"batch": (1, 2), "sequence": (12, 7)}),
        ("line_transformer", "dynamo", {}),
    ),
    "speech": _of(
        "sequences",
        ("spectrogram", "dynamo", {}),
        ("hubert", "legacy", {"batch": (1, 2), "length": (4000, 5600)}),
        ("conformer", "dynamo", {"batch": (1, 2), "length": (120, 76)}),
        ("vocoder", "legacy", {}),
    ),
    "recurrent": _of(
        "sequences",
        ("lstm_language", "legacy", {"batch": (1, 3), "length": (20, 7)}),
        ("gru_tagger", "legacy", {"batch": (1, 3), "length": (20, 7)}),
        ("mamba", "dynamo", {}),
        ("forecaster", "dynamo", {}),
    ),
    "recommendation": _of(
        "entities",
        ("dlrm", "dynamo", {}),
        ("deep_fm", "dynamo", _CLICKS),
        ("interest", "legacy", {"batch": (8, 3), "length": (20, 11)}),
        ("two_towers", "legacy", _CLICKS),
    ),
    "graph": _of(
        "entities",
        ("gcn", "dynamo", _GRAPH),
        ("gat", "dynamo", {}),
        ("sage", "legacy", _GRAPH),
        ("molecule", "dynamo", {}),
    ),
    "diffusion": _of(
        "pictures",
        ("diffusion_unet", "legacy", {**_BATCH, "height": (16, 24), "width": (16, 32)}),
        ("dit", "dynamo", {}),
        ("vae", "dynamo", {}),
        ("clip_text", "dynamo", {"batch": (2, 3)}),
    ),
    "mixture of experts": _of(
        "sequences",
        ("switch", "dynamo", {"batch": (1, 2), "length": (24, 11)}),
        ("gathered_experts", "legacy", {"batch": (1, 2), "length": (24, 11)}),
        ("mixtral", "dynamo", {}),
        ("olmoe", "dynamo", {}),
    ),
    "decoder with cache": _of(
        "sequences",
        ("llama_cache", "dynamo", _GENERATED),
        ("qwen2_cache", "dynamo", _GENERATED),
        ("opt_cache", "dynamo", {}),
        ("phi_cache", "dynamo", {}),
    ),
}
OF_FAMILIES = tuple(export for exports in FAMILIES.values() for export in exports)

ALL_EXPORTS = (*EXPORTS, *HELD_OUT, *OF_A_DAY, *OF_FAMILIES)
