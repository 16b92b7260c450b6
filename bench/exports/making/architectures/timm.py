"""Networks of timm."""

from __future__ import annotations

import timm

from bench.exports.making.architecture import Architecture, classifier


def convnext_atto() -> Architecture:
    """Return ConvNeXt: depthwise 7x7, LayerNorm over channels, layer scale."""
    return classifier(timm.create_model("convnext_atto"), 128)


def convnextv2_atto() -> Architecture:
    """Return ConvNeXt v2: global response normalization in place of layer scale."""
    return classifier(timm.create_model("convnextv2_atto"), 128)


def vit_tiny() -> Architecture:
    """Return a vision transformer of 4 blocks."""
    return classifier(timm.create_model("vit_tiny_patch16_224", img_size=96, depth=4), 96)


def mobilenetv4_small() -> Architecture:
    """Return MobileNet v4."""
    return classifier(timm.create_model("mobilenetv4_conv_small"), 128)


def efficientvit_b0() -> Architecture:
    """Return EfficientViT: linear attention among convolutions."""
    return classifier(timm.create_model("efficientvit_b0"), 128)
