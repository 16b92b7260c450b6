"""Networks of pictures that no list above has: detection with NMS, segmentation, OCR, diffusion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torchvision
import transformers
from torch import Generator, Tensor, nn
from torch.nn import functional
from torchvision.models import detection, segmentation

from bench.exports.makers.architecture import Architecture, Draw, Positional

_SIZES = {2: "height", 3: "width"}


def retina() -> Architecture:
    """Return RetinaNet on MobileNet: anchors decoded, the best of each level, NMS by class."""
    backbone = _pyramid()
    anchors = detection.anchor_utils.AnchorGenerator(((8,), (16,), (32,)), ((0.5, 1.0, 2.0),) * 3)
    module = detection.RetinaNet(
        backbone, 5, min_size=96, max_size=128, anchor_generator=anchors, topk_candidates=50
    )
    return _detector(module)


def faster_rcnn() -> Architecture:
    """Return Faster R-CNN: proposals with NMS, RoI align, boxes by class with NMS."""
    module = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, min_size=96, max_size=160, num_classes=6
    )
    return _detector(module)


def fcos() -> Architecture:
    """Return FCOS of few channels: detection without anchors, NMS at the end."""
    anchors = detection.anchor_utils.AnchorGenerator(((8,), (16,), (32,)), ((1.0,),) * 3)
    module = detection.FCOS(_pyramid(), 5, min_size=96, max_size=128, anchor_generator=anchors)
    return _detector(module)


def yolo() -> Architecture:
    """Return a detector as YOLO's exports are: three strides, boxes decoded, top candidates, NMS."""
    return Architecture(
        _own(_Yolo(), "image"), _image(96, 128), ("boxes", "scores"), {"image": _SIZES}
    )  # fmt: skip


def deeplab() -> Architecture:
    """Return DeepLab v3 on MobileNet: dilated convolutions, pooling of all, maps resized."""
    module = segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    return _segmenter(Positional(module, ["x"], lambda y: y["out"]), 64)


def unet() -> Architecture:
    """Return U-Net: skips are concatenated with what transposed convolutions double."""
    return _segmenter(_own(_UNet(), "image"), 64)


def dpt() -> Architecture:
    """Return depth of a vision transformer's maps, put together."""
    config = transformers.DPTConfig(
        hidden_size=96, num_hidden_layers=4, num_attention_heads=3, intermediate_size=192,
        backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[24, 48, 96, 96], image_size=64,
        fusion_hidden_size=48,
    )  # fmt: skip
    module = transformers.DPTForDepthEstimation(config)
    return Architecture(
        Positional(module, ["pixel_values"], lambda y: y.predicted_depth), _image(64, 64)
    )


def segformer_any() -> Architecture:
    """Return SegFormer for pictures of any size."""
    config = transformers.SegformerConfig(
        hidden_sizes=[16, 32, 40, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=64, num_labels=7,
    )  # fmt: skip
    module = transformers.SegformerForSemanticSegmentation(config)
    return _segmenter(Positional(module, ["pixel_values"], lambda y: y.logits), 64)


def crnn() -> Architecture:
    """Return a reader of lines: convolutions, columns through LSTMs of two directions, log-softmax."""
    return Architecture(
        _own(_Crnn(), "image"), _image(32, 96, 1), dims={"image": {0: "batch", 3: "width"}}
    )


def text_detector() -> Architecture:
    """Return a detector of text as DBNet is: maps of four strides summed, probabilities, a threshold."""
    return Architecture(
        _own(_TextDetector(), "image"),
        _image(64, 96),
        ("shrunk", "binary"),
        {"image": {0: "batch", **_SIZES}},
    )


def trocr_decoder() -> Architecture:
    """Return TrOCR's decoder, that reads what an encoder saw."""
    config = transformers.TrOCRConfig(
        vocab_size=400, d_model=128, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=256,
        max_position_embeddings=64, cross_attention_hidden_size=128,
    )  # fmt: skip
    module = transformers.TrOCRForCausalLM(config)
    names = ["input_ids", "encoder_hidden_states"]

    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        batch, length = dims.get("batch", 1), dims.get("sequence", 12)
        return {
            "input_ids": torch.randint(0, 400, (batch, length), generator=generator),
            "encoder_hidden_states": torch.randn((batch, 20, 128), generator=generator),
        }

    axes = {"input_ids": {0: "batch", 1: "sequence"}, "encoder_hidden_states": {0: "batch"}}
    return Architecture(
        Positional(module, names, lambda y: y.logits, use_cache=False), draw, dims=axes
    )


def line_transformer() -> Architecture:
    """Return a reader of lines by attention: patches of a fixed picture, one character a query."""
    return Architecture(_own(_LineTransformer(), "image"), _image(32, 128))


def diffusion_unet() -> Architecture:
    """Return a step of a diffusion: group norms, SiLU, attention, the time in each block."""
    return _denoiser(_own(_Denoiser(), "sample", "time"), 4)


def dit() -> Architecture:
    """Return a diffusion transformer: norms scaled and shifted by time and class."""
    return _denoiser(_own(_DiT(), "sample", "time"), 4)


def vae() -> Architecture:
    """Return the decoder of a variational autoencoder: latents of any size become pictures."""
    module = nn.Sequential(
        nn.Conv2d(4, 64, 3, padding=1), _Residual(64, 64), _SelfAttention(64), _Residual(64, 64),
        *(part for a, b in ((64, 48), (48, 32)) for part in (_Nearest(), _Residual(a, b))),
        nn.GroupNorm(8, 32), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1),
    )  # fmt: skip
    dims = {"image": {0: "batch", **_SIZES}}
    return Architecture(_own(module, "input"), _image(16, 16, 4), dims=dims)


def clip_text() -> Architecture:
    """Return the text encoder of a diffusion: causal CLIP, the state at the end token."""
    config = transformers.CLIPTextConfig(
        vocab_size=500, hidden_size=128, intermediate_size=512, num_hidden_layers=3,
        num_attention_heads=4, max_position_embeddings=32, eos_token_id=499, bos_token_id=0,
    )  # fmt: skip

    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        ids = torch.randint(0, 499, (dims.get("batch", 2), 32), generator=generator)
        ids[:, -5] = 499
        return {"input_ids": ids}

    module = Positional(
        transformers.CLIPTextModel(config),
        ["input_ids"],
        lambda y: (y.last_hidden_state, y.pooler_output),
    )
    return Architecture(module, draw, ("states", "pooled"), {"input_ids": {0: "batch"}})


def _own(module: nn.Module, *names: str) -> Positional:
    return Positional(module, names, lambda y: y)


def _image(height: int, width: int, channels: int = 3) -> Draw:
    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        shape = (
            dims.get("batch", 1),
            channels,
            dims.get("height", height),
            dims.get("width", width),
        )
        return {"image": torch.rand(shape, generator=generator)}

    return draw


def _pyramid() -> nn.Module:
    return detection.backbone_utils.mobilenet_backbone(
        backbone_name="mobilenet_v3_large", weights=None, fpn=True
    )


def _detector(module: nn.Module) -> Architecture:
    outputs = ("boxes", "scores", "labels")
    return Architecture(
        _own(_Detector(module), "image"), _image(96, 128), outputs, {"image": _SIZES}
    )


def _segmenter(module: nn.Module, size: int) -> Architecture:
    return Architecture(module, _image(size, size), dims={"image": {0: "batch", **_SIZES}})


def _denoiser(module: nn.Module, channels: int) -> Architecture:
    def draw(generator: Generator, dims: Mapping[str, int]) -> dict[str, Tensor]:
        batch = dims.get("batch", 1)
        size = (dims.get("height", 16), dims.get("width", 16))
        return {
            "sample": torch.randn((batch, channels, *size), generator=generator),
            "time": torch.rand((batch,), generator=generator) * 1000,
        }

    axes = {"sample": {0: "batch", **_SIZES}, "time": {0: "batch"}}
    return Architecture(module, draw, dims=axes)


class _Detector(nn.Module):
    """A detector of torchvision, of one picture."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        found = self.module([image[0]])[0]
        return found["boxes"], found["scores"], found["labels"]


def _block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU()
    )


class _Yolo(nn.Module):
    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        widths = (8, 16, 32, 48, 64)
        self.stem = _block(3, widths[0], 2)
        self.down = nn.ModuleList(_block(a, b, 2) for a, b in pairwise(widths))
        self.heads = nn.ModuleList(nn.Conv2d(w, 4 + classes, 1) for w in widths[2:])

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        maps, found = [self.stem(image)], []
        for layer in self.down:
            maps.append(layer(maps[-1]))
        for stride, head, part in zip((8, 16, 32), self.heads, maps[2:], strict=True):
            raw = head(part)
            height, width = raw.shape[2], raw.shape[3]
            grid = torch.stack(
                torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy")
            )
            centers = (raw[:, :2].sigmoid() * 2 - 0.5 + grid) * stride
            sizes = (raw[:, 2:4].sigmoid() * 2) ** 2 * stride
            boxes = torch.cat([centers - sizes / 2, centers + sizes / 2, raw[:, 4:].sigmoid()], 1)
            found.append(boxes.flatten(2))
        rows = torch.cat(found, 2)[0].transpose(0, 1)
        scores, labels = rows[:, 4:].max(1)
        kept = torchvision.ops.nms(rows[:, :4] + labels[:, None] * 4096.0, scores, 0.5)
        return rows[kept, :4], scores[kept]


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (16, 32, 64)
        self.first = _block(3, widths[0])
        self.down = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), _block(a, b), _block(b, b)) for a, b in pairwise(widths)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairwise(widths))
        self.join = nn.ModuleList(_block(2 * a, a) for a in widths[:-1])
        self.last = nn.Conv2d(widths[0], 5, 1)

    def forward(self, image: Tensor) -> Tensor:
        maps = [self.first(image)]
        for layer in self.down:
            maps.append(layer(maps[-1]))
        result = maps.pop()
        for up, join in zip(reversed(self.up), reversed(self.join), strict=True):
            skip = maps.pop()
            wide = functional.interpolate(up(result), size=skip.shape[2:], mode="nearest")
            result = join(torch.cat([skip, wide], 1))
        return torch.sigmoid(self.last(result))


class _Crnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.Sequential(
            _block(1, 32), nn.MaxPool2d(2), _block(32, 64), nn.MaxPool2d(2), _block(64, 96),
            nn.MaxPool2d((2, 1)), _block(96, 96), nn.MaxPool2d((4, 1)),
        )  # fmt: skip
        self.rows = nn.LSTM(96, 64, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(128, 80)

    def forward(self, image: Tensor) -> Tensor:
        columns = self.maps(image).squeeze(2).permute(0, 2, 1)
        return self.head(self.rows(columns)[0]).log_softmax(-1)


class _TextDetector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (16, 24, 32, 48)
        self.stem = _block(3, 16, 2)
        self.down = nn.ModuleList(_block(a, b, 2) for a, b in pairwise((16, *widths)))
        self.narrow = nn.ModuleList(nn.Conv2d(w, 24, 1, bias=False) for w in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(24, 8, 3, padding=1, bias=False) for _ in widths)
        self.heads = nn.ModuleList(
            nn.Sequential(
                _block(32, 8), nn.ConvTranspose2d(8, 8, 2, 2), nn.BatchNorm2d(8), nn.ReLU(),
                nn.ConvTranspose2d(8, 1, 2, 2), nn.Sigmoid(),
            )
            for _ in range(2)
        )  # fmt: skip

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        maps, result = [], self.stem(image)
        for layer in self.down:
            result = layer(result)
            maps.append(result)
        maps = [narrow(part) for narrow, part in zip(self.narrow, maps, strict=True)]
        for index in (2, 1, 0):
            size = maps[index].shape[2:]
            maps[index] = maps[index] + functional.interpolate(maps[index + 1], size=size)
        size = maps[0].shape[2:]
        parts = [smooth(part) for smooth, part in zip(self.smooth, maps, strict=True)]
        whole = torch.cat([functional.interpolate(part, size=size) for part in parts], 1)
        shrunk, threshold = (head(whole) for head in self.heads)
        return shrunk, 1 / (1 + torch.exp(-50 * (shrunk - threshold)))


class _LineTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 96, (4, 8), (4, 8))
        self.places = nn.Parameter(torch.randn(1, 128, 96) / 10)
        self.queries = nn.Parameter(torch.randn(1, 25, 96) / 10)
        layer = partial(nn.TransformerEncoderLayer, 96, 4, 192, batch_first=True, norm_first=True)
        self.encoder = nn.Sequential(*(layer(activation="gelu") for _ in range(3)))
        self.decoder = nn.TransformerDecoderLayer(96, 4, 192, batch_first=True)
        self.head = nn.Linear(96, 95)

    def forward(self, image: Tensor) -> Tensor:
        seen = self.encoder(self.patches(image).flatten(2).transpose(1, 2) + self.places)
        return self.head(self.decoder(self.queries.expand(image.shape[0], -1, -1), seen)).softmax(
            -1
        )


class _Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, time: int = 0) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.second = nn.Sequential(
            nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.time = nn.Linear(time, outputs) if time else None
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        inner = self.first(x)
        if self.time is not None and time is not None:
            inner = inner + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(inner)


class _SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, width), heads
        self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, width, height, length = x.shape
        rows = self.inner(self.norm(x).flatten(2).transpose(1, 2))
        parts = rows.view(batch, height * length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        seen = self.outer(seen.reshape(batch, height * length, width))
        return x + seen.transpose(1, 2).reshape(batch, width, height, length)


class _Nearest(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2.0, mode="nearest")


def _waves(time: Tensor, width: int) -> Tensor:
    rates = torch.exp(torch.arange(width // 2) * (-9.2 / (width // 2)))
    angles = time[:, None] * rates[None]
    return torch.cat([angles.cos(), angles.sin()], -1)


class _Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 96), nn.SiLU(), nn.Linear(96, 96))
        self.first, self.last = nn.Conv2d(4, 32, 3, padding=1), nn.Conv2d(32, 4, 3, padding=1)
        self.wide, self.narrow = _Residual(32, 32, 96), nn.Conv2d(32, 64, 3, 2, 1)
        self.deep, self.attention = _Residual(64, 64, 96), _SelfAttention(64)
        self.up, self.join = nn.Conv2d(64, 32, 3, padding=1), _Residual(64, 32, 96)
        self.norm = nn.GroupNorm(8, 32)

    def forward(self, sample: Tensor, time: Tensor) -> Tensor:
        time = self.time(_waves(time, 32))
        skip = self.wide(self.first(sample), time)
        deep = self.attention(self.deep(self.narrow(skip), time))
        wide = self.up(functional.interpolate(deep, scale_factor=2.0, mode="nearest"))
        return self.last(functional.silu(self.norm(self.join(torch.cat([wide, skip], 1), time))))


class _DiT(nn.Module):
    def __init__(self, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.patch, self.width = nn.Conv2d(4, width, 2, 2), width
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU())
        self.blocks = nn.ModuleList(
            nn.ModuleDict({
                "modulation": nn.Linear(width, 6 * width),
                "attention": nn.MultiheadAttention(width, 4, batch_first=True),
                "mlp": nn.Sequential(
                    nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
                ),
            })
            for _ in range(layers)
        )  # fmt: skip
        self.last = nn.Linear(width, 16)

    def forward(self, sample: Tensor, time: Tensor) -> Tensor:
        maps = self.patch(sample)
        batch, height, width = maps.shape[0], maps.shape[2], maps.shape[3]
        rows, condition = maps.flatten(2).transpose(1, 2), self.time(_waves(time, 32))
        for block in self.blocks:
            parts: Any = block["modulation"](condition)[:, None].chunk(6, -1)
            inner = functional.layer_norm(rows, (self.width,)) * (1 + parts[0]) + parts[1]
            rows = rows + parts[2] * block["attention"](inner, inner, inner, need_weights=False)[0]
            inner = functional.layer_norm(rows, (self.width,)) * (1 + parts[3]) + parts[4]
            rows = rows + parts[5] * block["mlp"](inner)
        pixels = self.last(functional.layer_norm(rows, (self.width,)))
        pixels = pixels.reshape(batch, height, width, 2, 2, 4).permute(0, 5, 1, 3, 2, 4)
        return pixels.reshape(batch, 4, 2 * height, 2 * width)
