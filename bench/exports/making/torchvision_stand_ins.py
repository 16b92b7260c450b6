"""Lets torchvision be imported beside a PyTorch whose operators its compiled library does not fit.

torchvision's wheel for the CPU from the package registry is built against another PyTorch: its library of
compiled operators (NMS, RoI pooling) does not load, and then the import fails where these get their
shape functions. Defining operators of these names before the import is enough; no classifier calls one.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import torch

_NAMES = re.compile(r'register_meta\("(\w+)"|"torchvision::(\w+)"')


def define_operators() -> torch.library.Library | None:
    """Define what ``torchvision`` registers shape functions for; call before importing it.

    The definitions end with the object that is returned. None if torchvision is not installed.
    """
    package = importlib.util.find_spec("torchvision")
    if package is None or package.origin is None:
        return None
    text = Path(package.origin).with_name("_meta_registrations.py").read_text(encoding="utf-8")
    names = {first or second for first, second in _NAMES.findall(text)}
    library = torch.library.Library("torchvision", "DEF")
    for name in sorted(names):
        library.define(f"{name}(Tensor x) -> Tensor")
    return library


#: Kept as long as the process, for timm and diffusers import torchvision, too.
LIBRARY = define_operators()
