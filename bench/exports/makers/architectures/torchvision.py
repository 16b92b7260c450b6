"""Networks of torchvision."""

from __future__ import annotations

import torchvision.models as models

from bench.exports.makers.architecture import Architecture, Positional, classifier, images


def resnet18() -> Architecture:
    """Return ResNet-18."""
    return classifier(models.resnet18(), 64)


def resnet50() -> Architecture:
    """Return ResNet-50."""
    return classifier(models.resnet50(), 128)


def mobilenet_v3_small() -> Architecture:
    """Return MobileNet v3: depthwise convolutions, squeeze-excite gates, hard swish."""
    return classifier(models.mobilenet_v3_small(), 128)


def regnet_y_400mf() -> Architecture:
    """Return RegNet-Y: grouped convolutions and squeeze-excite gates."""
    return classifier(models.regnet_y_400mf(), 128)


def densenet121() -> Architecture:
    """Return DenseNet-121: concatenations of all before."""
    return classifier(models.densenet121(), 64)


def shufflenet_v2() -> Architecture:
    """Return ShuffleNet v2: channels split and shuffled."""
    return classifier(models.shufflenet_v2_x1_0(), 128)


def swin_t() -> Architecture:
    """Return Swin-T: shifted windows, whose export has thousands of nodes."""
    return classifier(models.swin_t(), 224)


def efficientnet_b0() -> Architecture:
    """Return EfficientNet-B0: squeeze-excite gates and SiLU."""
    return classifier(models.efficientnet_b0(), 128)


def googlenet() -> Architecture:
    """Return GoogLeNet: branches of convolutions, concatenated."""
    return classifier(models.googlenet(aux_logits=False, init_weights=False), 128)


def lraspp() -> Architecture:
    """Return LR-ASPP on MobileNet v3: segmentation, maps resized and added."""
    module = models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Architecture(Positional(module, ["input"], lambda y: y["out"]), images(160))


def mnasnet0_5() -> Architecture:
    """Return MnasNet: inverted bottlenecks, found by a search."""
    return classifier(models.mnasnet0_5(), 224)


def squeezenet1_1() -> Architecture:
    """Return SqueezeNet: narrow convolutions before two wide ones, side by side."""
    return classifier(models.squeezenet1_1(), 224)
