"""The architectures, a module a library, in sizes that a laptop optimizes in seconds."""

from bench.exports.makers import torchvision_stand_ins  # noqa: F401 - all four import torchvision
