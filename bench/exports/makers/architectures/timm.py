"""Networks of timm."""

from __future__ import annotations

import timm

from bench.exports.makers.architecture import Architecture, classifier


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


def ghostnetv2() -> Architecture:
    """Return GhostNet v2: cheap convolutions of each channel beside others, concatenated; gates."""
    return classifier(timm.create_model("ghostnetv2_100"), 128)


def mixer() -> Architecture:
    """Return MLP-Mixer: products over patches and over channels, transposed between."""
    return classifier(timm.create_model("mixer_s32_224"), 224)


def poolformer() -> Architecture:
    """Return PoolFormer: average pools in the place of attention."""
    return classifier(timm.create_model("poolformer_s12"), 128)


def levit() -> Architecture:
    """Return LeViT: attention with biases of positions, batch norms after products."""
    return classifier(timm.create_model("levit_128s"), 224)


def edgenext() -> Architecture:
    """Return EdgeNeXt: channels split in cascade, attention between channels."""
    return classifier(timm.create_model("edgenext_xx_small"), 160)


def hgnetv2() -> Architecture:
    """Return HGNet v2: many concatenated branches, ReLU."""
    return classifier(timm.create_model("hgnetv2_b0"), 128)


def tinynet_c() -> Architecture:
    """Return TinyNet: EfficientNet shrunk in resolution, depth and width."""
    return classifier(timm.create_model("tinynet_c"), 184)


def pvt_v2_b0() -> Architecture:
    """Return PVT v2: attention on reduced keys, overlapping patches, convolutions in MLPs."""
    return classifier(timm.create_model("pvt_v2_b0"), 224)


def rexnet_100() -> Architecture:
    """Return ReXNet: inverted bottlenecks that add a part of their channels, SiLU and ReLU6."""
    return classifier(timm.create_model("rexnet_100"), 224)


def efficientformerv2_s0() -> Architecture:
    """Return EfficientFormer v2: convolutions, then attention with talking heads."""
    return classifier(timm.create_model("efficientformerv2_s0"), 224)


def crossvit_9() -> Architecture:
    """Return CrossViT: two vision transformers of two sizes of patches, that read each other."""
    return classifier(timm.create_model("crossvit_9_240"), 240)


def mobileone_s0() -> Architecture:
    """Return MobileOne as it is trained: each convolution is the sum of several."""
    return classifier(timm.create_model("mobileone_s0"), 224)


def xcit_nano() -> Architecture:
    """Return XCiT: attention between channels."""
    return classifier(timm.create_model("xcit_nano_12_p16_224"), 224)


def coat_tiny() -> Architecture:
    """Return CoaT: attention of channels, convolutions of each channel between, images of four sizes."""
    return classifier(timm.create_model("coat_tiny"), 224)
