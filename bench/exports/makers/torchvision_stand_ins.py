"""Lets torchvision be imported beside a PyTorch whose operators its compiled library does not fit.

Where both are built for each other there is nothing to do. Where not, its library of compiled operators
(NMS, RoI pooling) does not load, and then the import fails where these get their shape functions.
Defining operators of these names before the import is enough; no classifier calls one.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import torch

_NAMES = re.compile(r'register_meta\("(\w+)"|"torchvision::(\w+)"')


def define_operators() -> torch.library.Library | None:
    """Define what ``torchvision`` registers shape functions for; call before importing it.

    The definitions end with the object that is returned. None if torchvision is not installed, or has
    its own: an operator that is defined twice ends the process.
    """
    package = importlib.util.find_spec("torchvision")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent
    if _has_operators(folder):
        return None
    text = (folder / "_meta_registrations.py").read_text(encoding="utf-8")
    names = {first or second for first, second in _NAMES.findall(text)}
    library = torch.library.Library("torchvision", "DEF")
    for name in sorted(names):
        library.define(f"{name}(Tensor x) -> Tensor")
    return library


def _has_operators(folder: Path) -> bool:
    """Whether the package's library of compiled operators loads, as the package tries itself."""
    for library in folder.glob("_C*"):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            continue
        return True
    return False


#: Kept as long as the process, for timm and diffusers import torchvision, too.
LIBRARY = define_operators()
